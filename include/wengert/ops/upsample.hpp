// Resizing of images: upsample. Floor: ops.
#pragma once

#include <wengert/base/window.hpp>
#include <wengert/core/record.hpp>
#include <wengert/kernels/resize.hpp>

namespace wengert::inline WENGERT_ISA {

/// A factor for each spatial axis: `2` for all of them, `{2, 1.5}` for height and width.
class ScalePerAxis {
 public:
  template <class S>
  requires(std::is_arithmetic_v<S> && !std::same_as<S, bool>) constexpr ScalePerAxis(S all)
      : scale_{static_cast<double>(all)} {}
  constexpr ScalePerAxis(std::initializer_list<double> each) : count_(static_cast<int>(each.size())) {
    int n = 0;
    for (const double s : each)
      if (n < 3) scale_[n++] = s;
  }

  constexpr double operator[](int axis) const noexcept { return scale_[count_ == 0 ? 0 : axis]; }
  /// Number of factors; 0 where one serves every axis.
  constexpr int count() const noexcept { return count_; }
  constexpr bool given() const noexcept { return count_ != 0 || scale_[0] != 0; }

 private:
  double scale_[3] = {};
  int count_ = 0;
};

/// What `upsample` does: one of `size` and `scale`, the other left at 0, says how large the result is.
struct UpsampleOptions {
  PerAxis size = 0;        ///< of the result, along each spatial axis
  ScalePerAxis scale = 0;  ///< result = floor(scale * size of x)
  UpsampleMode mode = UpsampleMode::nearest;
  bool align_corners = false;  ///< linear: corner pixels keep their values
};

namespace detail {

template <Field T>
struct UpsampleRule {
  static constexpr std::string_view name = "upsample";
  kernels::Resize resize;
  void backward(Vjp& v) const {
    if (!v.wants(0)) return;
    const GradRef<T> dx = v.into<T>(0);
    kernels::resize_vjp(resize, v.dy<T>(), dx.data, dx.add);
  }
};

inline kernels::ResizeAxis resize_axis(const Shape& x, int i, const UpsampleOptions& o) {
  kernels::ResizeAxis a;
  a.in = x[i + 1];
  a.mode = o.mode;
  a.align_corners = o.align_corners;
  double scale = 0;
  if (!o.scale.given()) {
    a.out = o.size[i];
  } else {
    scale = o.scale[i];
    constexpr double largest = 1e15;
    const double out = std::floor(static_cast<double>(a.in) * scale);
    if (!(scale > 0) || out > largest)
      fail<ValueError>("upsample", "scale ", scale, " of spatial axis ", i, " is out of range; x is ", x,
                       "; expected a finite factor > 0");
    a.out = static_cast<Index>(out);
  }
  if (a.out > 0 && a.in == 0)
    fail<ShapeError>("upsample", "spatial axis ", i, " has no pixels; x is ", x, "; expected a size >= 1");
  if (a.out == 0 && a.in > 0)
    fail<ShapeError>("upsample", "spatial axis ", i, " of the result has no pixels; x is ", x,
                     "; expected a size >= 1");
  const double in = static_cast<double>(a.in), out = static_cast<double>(a.out);
  if (o.align_corners)
    a.ratio = a.out > 1 ? (in - 1) / (out - 1) : 0;
  else
    a.ratio = scale > 0 ? 1 / scale : in / out;
  return a;
}

inline kernels::Resize check_upsample(const Shape& x, const UpsampleOptions& o, Shape& y) {
  const int axes = x.rank() - 2;
  if (axes < 1 || axes > 3)
    fail<ShapeError>("upsample", "the rank does not fit; x is ", x,
                     "; expected images (N, W, C), (N, H, W, C) or (N, D, H, W, C)");
  const bool sized = !(o.size == PerAxis(0));
  if (sized == o.scale.given())
    fail<ValueError>("upsample", sized ? "both size and scale are given" : "neither size nor scale is given",
                     "; x is ", x, "; expected one of them");
  if (o.align_corners && o.mode == UpsampleMode::nearest)
    fail<ValueError>("upsample", "align_corners has no meaning for the nearest pixel; x is ", x,
                     "; expected mode linear");
  if (sized) o.size.check("upsample", "size", axes, 1);
  if (o.scale.count() != 0 && o.scale.count() != axes)
    fail<ValueError>("upsample", "scale has ", o.scale.count(), " numbers; x is ", x, "; expected one, or ",
                     axes);
  kernels::Resize r;
  r.batch = x[0];
  r.channels = x.back();
  y = x;
  for (int i = 0; i < axes; ++i) {
    r.axis[3 - axes + i] = resize_axis(x, i, o);
    y[i + 1] = r.axis[3 - axes + i].out;
  }
  return r;
}

}  // namespace detail

/// Images resized: (N, W, C), (N, H, W, C) or (N, D, H, W, C) to `.size`, or by `.scale`:
///   upsample(x, {.scale = 2});    upsample(x, {.size = {32, 48}, .mode = UpsampleMode::linear})
/// With r = 1 / scale, or in / out where a size is given, pixel o of an axis is
///   nearest: x[floor(o r)]        linear: x interpolated at max(0, (o + 1/2) r - 1/2)
///   linear, align_corners: x interpolated at o (in - 1) / (out - 1)
/// as PyTorch's interpolate (nearest, linear, bilinear, trilinear; no antialiasing), also to smaller sizes.
///   dx += each dy times the weight with which its pixel read x      saves nothing; same bits at any threads
/// A pixel of weight 0 is not read. Throws ShapeError for other ranks and axes without pixels, ValueError
/// unless one of size and scale is given, for numbers out of range, and for align_corners with nearest.
template <Field T>
Tensor<T> upsample(const Tensor<T>& x, const UpsampleOptions& options) {
  Shape shape;
  const kernels::Resize r = detail::check_upsample(x.shape(), options, shape);
  checked_size("upsample", shape, sizeof(T));
  const Recorder rec("upsample", x);
  const Tensor<T> xc = x.packed();
  Tensor<T> y(shape);
  kernels::resize(r, xc.data(), y.fresh_data());
  if (rec) rec.record(y, detail::UpsampleRule<T>{r});
  return y;
}

}  // namespace wengert::inline WENGERT_ISA
