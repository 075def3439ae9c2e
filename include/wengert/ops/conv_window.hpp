// Options of convolutions, and their sizes after every check. Floor: ops.
#pragma once

#include <wengert/base/window.hpp>
#include <wengert/core/record.hpp>
#include <wengert/kernels/conv.hpp>

namespace wengert::inline WENGERT_ISA {

/// Zeros around an image: numbers for both ends of each axis, or "valid" for none, or "same" for as many as
/// make the output in / stride pixels, rounded up; an odd one goes to the end.
class Padding {
 public:
  template <std::integral I>
  requires(!std::same_as<I, bool>) constexpr Padding(I all) : numbers_(all) {}
  constexpr Padding(std::initializer_list<Index> each) : numbers_(each) {}
  constexpr Padding(const PerAxis& each) : numbers_(each) {}
  /// Throws ValueError unless mode is "same" or "valid".
  constexpr Padding(const char* mode) : numbers_(0), same_(std::string_view(mode) == "same") {
    if (!same_ && std::string_view(mode) != "valid")
      fail<ValueError>("padding", "unknown mode; got \"", mode,
                       "\"; expected \"same\", \"valid\" or numbers");
  }

  constexpr bool same() const noexcept { return same_; }
  constexpr const PerAxis& numbers() const noexcept { return numbers_; }
  std::string str() const { return same_ ? "same" : numbers_.str(); }

 private:
  PerAxis numbers_;
  bool same_ = false;
};

/// Of conv1d, conv2d and conv3d; PyTorch's names and defaults.
struct ConvOptions {
  PerAxis stride = 1;
  Padding padding = 0;
  PerAxis dilation = 1;  ///< between the taps
  Index groups = 1;      ///< output channels of a group read the input channels of that group alone
};

/// Of conv_transpose1d, conv_transpose2d and conv_transpose3d; PyTorch's names and defaults.
struct ConvTransposeOptions {
  PerAxis stride = 1;
  PerAxis padding = 0;         ///< pixels cut from both ends of the output
  PerAxis output_padding = 0;  ///< pixels more at the end of the output
  PerAxis dilation = 1;
  Index groups = 1;
};

namespace detail {

inline constexpr std::string_view conv_names[] = {"conv1d", "conv2d", "conv3d"};
inline constexpr std::string_view conv_relu_names[] = {"conv1d_relu", "conv2d_relu", "conv3d_relu"};
inline constexpr std::string_view conv_transpose_names[] = {"conv_transpose1d", "conv_transpose2d",
                                                            "conv_transpose3d"};

/// Ranks and groups; `in` and `out` are the channels that w reads and writes.
inline void check_conv(std::string_view op, int axes, const Shape& x, const Shape& w, const Shape* b,
                       Index groups, bool transposed) {
  if (x.rank() != axes + 2)
    fail<ShapeError>(op, "wrong rank; x is ", x, ", w is ", w, "; expected x of ", image_form(axes));
  if (w.rank() != axes + 2)
    fail<ShapeError>(op, "wrong rank; x is ", x, ", w is ", w, "; expected w of (",
                     axes == 1   ? "kw"
                     : axes == 2 ? "kh, kw"
                                 : "kd, kh, kw",
                     transposed ? ", out / groups, in)" : ", in / groups, out)");
  if (x.back() == 0 || w.size() == 0)
    fail<ShapeError>(op, "no channels or no taps; x is ", x, ", w is ", w, "; expected at least one of each");
  const Index first = w[axes], last = w[axes + 1];
  if (groups < 1 || x.back() % groups != 0 || last % groups != 0)
    fail<ShapeError>(op, "groups do not divide the channels; x is ", x, ", w is ", w, ", groups is ", groups,
                     "; expected a divisor of ", x.back(), transposed ? "" : detail::text(" and of ", last));
  if (transposed ? last != x.back() : first != x.back() / groups)
    fail<ShapeError>(op, "channels differ; x is ", x, ", w is ", w, ", groups is ", groups,
                     "; expected w.dim(", transposed ? axes + 1 : axes,
                     ") == ", transposed ? x.back() : x.back() / groups);
  const Index out = transposed ? first * groups : last;
  if (b != nullptr && *b != Shape{out})
    fail<ShapeError>(op, "bias does not fit; x is ", x, ", w is ", w, ", b is ", *b, "; expected (", out,
                     ")");
}

/// Checks all operands of a convolution and returns its sizes.
inline kernels::ConvShape conv_shape(std::string_view op, int axes, const Shape& x, const Shape& w,
                                     const Shape* b, const ConvOptions& options) {
  check_conv(op, axes, x, w, b, options.groups, false);
  options.stride.check(op, "stride", axes, 1);
  options.dilation.check(op, "dilation", axes, 1);
  options.padding.numbers().check(op, "padding", axes, 0);
  kernels::ConvShape s;
  s.window.batch = x[0];
  s.window.channels = x.back();
  s.out_channels = w.back();
  s.groups = options.groups;
  for (int i = 0; i < axes; ++i) {
    WindowAxis& a = s.window.spatial(axes, i);
    a = {x[1 + i], 1, w[i], options.stride[i], 0, options.dilation[i]};
    Index padding = 2 * options.padding.numbers()[i];
    if (options.padding.same())
      padding = std::max<Index>(0, (std::max<Index>(a.in, 1) - 1) / a.stride * a.stride + a.span() - a.in);
    a.before = padding / 2;
    a.out = a.fitting(padding);
    if (a.out == 0)
      fail<ShapeError>(op, "the kernel is larger than the padded input; x is ", x, ", w is ", w,
                       ", padding is ", options.padding, ", dilation is ", options.dilation,
                       "; expected at most ", a.in + padding,
                       " pixels from the first tap to the last along axis ", 1 + i);
  }
  return s;
}

/// The convolution that a transposed one is the adjoint of: its input is y, its output x.
inline kernels::ConvShape conv_transpose_shape(std::string_view op, int axes, const Shape& x, const Shape& w,
                                               const Shape* b, const ConvTransposeOptions& options) {
  check_conv(op, axes, x, w, b, options.groups, true);
  options.stride.check(op, "stride", axes, 1);
  options.dilation.check(op, "dilation", axes, 1);
  options.padding.check(op, "padding", axes, 0);
  options.output_padding.check(op, "output_padding", axes, 0);
  kernels::ConvShape s;
  s.window.batch = x[0];
  s.window.channels = w[axes] * options.groups;
  s.out_channels = x.back();
  s.groups = options.groups;
  for (int i = 0; i < axes; ++i) {
    WindowAxis& a = s.window.spatial(axes, i);
    a = {0, x[1 + i], w[i], options.stride[i], options.padding[i], options.dilation[i]};
    if (options.output_padding[i] >= std::max(a.stride, a.dilation))
      fail<ValueError>(op, "output_padding is too large; output_padding is ", options.output_padding,
                       ", stride is ", options.stride, ", dilation is ", options.dilation,
                       "; expected less than the larger of the two");
    a.in = (a.out - 1) * a.stride - 2 * a.before + a.span() + options.output_padding[i];
    if (a.out < 1 || a.in < 1)
      fail<ShapeError>(op, "the output would be empty; x is ", x, ", w is ", w, ", padding is ",
                       options.padding, "; expected at least one pixel along axis ", 1 + i);
  }
  return s;
}

}  // namespace detail

}  // namespace wengert::inline WENGERT_ISA
