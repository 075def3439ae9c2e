// Channels into pixels and back: pixel_shuffle, pixel_unshuffle. Floor: ops.
#pragma once

#include <wengert/ops/view_rule.hpp>

namespace wengert::inline WENGERT_ISA {

namespace detail {

/// The axes (N, H, W, C, i, j) of small images of C r^2 channels, and where their elements lie in those and
/// in large images of (H r) x (W r) pixels.
struct PixelShuffle {
  Shape shape;
  Strides small, large;

  PixelShuffle(const Shape& x, Index r)  // x: the small images
      : shape{x[0], x[1], x[2], x[3] / (r * r), r, r}, small(contiguous_strides(shape)) {
    const Strides s = contiguous_strides(Shape{x[0], x[1], r, x[2], r, shape[3]});
    large = {s[0], s[1], s[3], s[5], s[2], s[4]};
  }
};

template <Scalar T>
void pixel_shuffle(const PixelShuffle& p, bool shuffles, const T* x, T* y, bool add) {
  if (p.shape.size() == 0) return;
  const Strides &from = shuffles ? p.small : p.large, &to = shuffles ? p.large : p.small;
  if constexpr (Field<T>)
    if (add) return kernels::copy_add(p.shape, x, from, y, to);
  kernels::copy(p.shape, x, from, y, to);
}

template <OpName Name, Field T>
struct PixelShuffleRule {
  static constexpr std::string_view name = Name.view();
  Index factor;
  bool shuffles;
  void backward(Vjp& v) const {
    if (!v.wants(0)) return;
    Shape small = v.shape();
    if (shuffles) small = {small[0], small[1] / factor, small[2] / factor, small[3] * factor * factor};
    const GradRef<T> dx = v.into<T>(0);
    pixel_shuffle(PixelShuffle(small, factor), !shuffles, v.dy<T>(), dx.data, dx.add);
  }
};

inline void check_pixel_factor(std::string_view op, const Shape& x, Index factor) {
  if (x.rank() != 4)
    fail<ShapeError>(op, "the rank does not fit; x is ", x, "; expected images (N, H, W, C)");
  constexpr Index largest = 1 << 15;
  if (factor < 1 || factor > largest)
    fail<ValueError>(op, "the factor is out of range; factor is ", factor, "; expected 1..", largest);
}

}  // namespace detail

/// Images of r times the height and width from r^2 times the channels: (N, H, W, C r^2) to (N, H r, W r, C).
///   y[n, h r + i, w r + j, c] = x[n, h, w, c r^2 + i r + j]
/// The channels of x count as (C, r, r), so that the result is PyTorch's with its axes moved (nhwc_to_nchw).
///   dx += pixel_unshuffle(dy, r)             saves nothing
/// Throws ShapeError unless x has rank 4 and a multiple of r^2 channels, ValueError unless r >= 1.
template <Scalar T>
Tensor<T> pixel_shuffle(const Tensor<T>& x, Index factor) {
  detail::check_pixel_factor("pixel_shuffle", x.shape(), factor);
  Shape shape = x.shape();
  if (shape[3] % (factor * factor) != 0)
    fail<ShapeError>("pixel_shuffle", "the channels do not divide; x is ", x.shape(), ", factor is ", factor,
                     "; expected a multiple of ", factor * factor, " channels");
  const detail::PixelShuffle p(shape, factor);
  shape = {shape[0], shape[1] * factor, shape[2] * factor, shape[3] / (factor * factor)};
  checked_size("pixel_shuffle", shape, sizeof(T));
  const Recorder rec("pixel_shuffle", x);
  const Tensor<T> xc = x.packed();
  Tensor<T> y(shape);
  detail::pixel_shuffle(p, true, xc.data(), y.fresh_data(), false);
  if constexpr (Field<T>)
    if (rec) rec.record(y, detail::PixelShuffleRule<"pixel_shuffle", T>{factor, true});
  return y;
}

/// The inverse of pixel_shuffle: (N, H r, W r, C) to (N, H, W, C r^2).
///   y[n, h, w, c r^2 + i r + j] = x[n, h r + i, w r + j, c]
///   dx += pixel_shuffle(dy, r)             saves nothing
/// Throws ShapeError unless x has rank 4 and r divides its height and width, ValueError unless r >= 1.
template <Scalar T>
Tensor<T> pixel_unshuffle(const Tensor<T>& x, Index factor) {
  detail::check_pixel_factor("pixel_unshuffle", x.shape(), factor);
  Shape shape = x.shape();
  if (shape[1] % factor != 0 || shape[2] % factor != 0)
    fail<ShapeError>("pixel_unshuffle", "the pixels do not divide; x is ", x.shape(), ", factor is ", factor,
                     "; expected multiples of ", factor, " as height and width");
  shape = {shape[0], shape[1] / factor, shape[2] / factor, shape[3] * factor * factor};
  checked_size("pixel_unshuffle", shape, sizeof(T));
  const Recorder rec("pixel_unshuffle", x);
  const Tensor<T> xc = x.packed();
  Tensor<T> y(shape);
  detail::pixel_shuffle(detail::PixelShuffle(shape, factor), false, xc.data(), y.fresh_data(), false);
  if constexpr (Field<T>)
    if (rec) rec.record(y, detail::PixelShuffleRule<"pixel_unshuffle", T>{factor, false});
  return y;
}

}  // namespace wengert::inline WENGERT_ISA
