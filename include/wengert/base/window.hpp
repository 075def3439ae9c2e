// Windows that slide over the spatial axes of images: the sizes that convolutions and pools share. Floor:
// base.
#pragma once

#include <concepts>

#include <wengert/base/shape.hpp>

namespace wengert::inline WENGERT_ISA {

/// A whole number for each spatial axis: `3` for all of them, `{3, 5}` for height and width.
class PerAxis {
 public:
  template <std::integral I>
  requires(!std::same_as<I, bool>) constexpr PerAxis(I all) : all_(static_cast<Index>(all)) {}
  constexpr PerAxis(std::initializer_list<Index> each) : each_(each) {}
  constexpr explicit PerAxis(const Shape& each) : each_(each) {}

  constexpr Index operator[](int axis) const noexcept { return each_.empty() ? all_ : each_[axis]; }

  static constexpr Index most = Index{1} << 30;  // so that sizes computed from a few of them fit an Index

  /// Throws ValueError naming `what` unless there is one number, or `axes` numbers, each from `least` to
  /// `most`.
  constexpr void check(std::string_view op, const char* what, int axes, Index least) const {
    if (!each_.empty() && each_.rank() != axes)
      fail<ValueError>(op, what, " has ", each_.rank(), " numbers; got ", each_, "; expected one, or ", axes);
    for (int i = 0; i < axes; ++i)
      if ((*this)[i] < least)
        fail<ValueError>(op, what, " is too small; got ", str(), "; expected at least ", least);
    for (int i = 0; i < axes; ++i)
      if ((*this)[i] > most)
        fail<ValueError>(op, what, " is too large; got ", str(), "; expected at most ", most);
  }
  std::string str() const { return each_.empty() ? std::to_string(all_) : each_.str(); }

  friend constexpr bool operator==(const PerAxis&, const PerAxis&) noexcept = default;

 private:
  Shape each_;
  Index all_ = 0;
};

/// One spatial axis of a sliding window: output position o reads inputs o * stride - before + t * dilation
/// for taps t < kernel; positions outside 0 .. in - 1 are padding.
struct WindowAxis {
  Index in = 1, out = 1, kernel = 1, stride = 1, before = 0, dilation = 1;

  /// From the first tap to the last.
  constexpr Index span() const noexcept { return (kernel - 1) * dilation + 1; }
  /// Windows that fit the input with `padding` in all around it.
  constexpr Index fitting(Index padding) const noexcept {
    const Index room = in + padding - span();
    return room < 0 ? 0 : room / stride + 1;
  }
  constexpr Index first(Index o) const noexcept { return o * stride - before; }
  /// Taps begin .. end - 1 of output position o read within the input.
  constexpr Index tap_begin(Index o) const noexcept {
    const Index at = first(o);
    return at >= 0 ? 0 : std::min(kernel, (-at + dilation - 1) / dilation);
  }
  constexpr Index tap_end(Index o) const noexcept {
    const Index left = in - first(o);
    return left <= 0 ? 0 : std::min(kernel, (left + dilation - 1) / dilation);
  }
};

/// A window over an image (N, [D, [H,]] W, C): always depth, height, width; axes that the image has not are
/// of size 1.
struct Window {
  Index batch = 1, channels = 1;
  WindowAxis axis[3];

  constexpr const WindowAxis& depth() const noexcept { return axis[0]; }
  constexpr const WindowAxis& height() const noexcept { return axis[1]; }
  constexpr const WindowAxis& width() const noexcept { return axis[2]; }
  /// The i-th of `axes` spatial axes.
  constexpr WindowAxis& spatial(int axes, int i) noexcept { return axis[3 - axes + i]; }
  constexpr const WindowAxis& spatial(int axes, int i) const noexcept { return axis[3 - axes + i]; }
  constexpr Index inputs() const noexcept { return axis[0].in * axis[1].in * axis[2].in; }
  constexpr Index outputs() const noexcept { return axis[0].out * axis[1].out * axis[2].out; }
  constexpr Index taps() const noexcept { return axis[0].kernel * axis[1].kernel * axis[2].kernel; }
};

namespace detail {

/// How the shape of an image with `axes` spatial axes reads in messages.
constexpr std::string_view image_form(int axes) noexcept {
  return axes == 1 ? "(N, W, C)" : axes == 2 ? "(N, H, W, C)" : "(N, D, H, W, C)";
}

/// (N, spatial sizes, channels) of the window's input, or of its output.
constexpr Shape image_shape(const Window& w, int axes, bool output, Index channels) {
  Shape shape{w.batch};
  for (int i = 0; i < axes; ++i) shape.push_back(output ? w.spatial(axes, i).out : w.spatial(axes, i).in);
  shape.push_back(channels);
  return shape;
}

}  // namespace detail

}  // namespace wengert::inline WENGERT_ISA
