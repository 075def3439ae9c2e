// Channels into pixels and back: pixel_shuffle, pixel_unshuffle. Floor: ops.
#pragma once

#include <wengert/core/record.hpp>
#include <wengert/kernels/pixel_shuffle.hpp>

namespace wengert::inline WENGERT_ISA {

namespace detail {

/// Of small images (N, H, W, C r^2).
inline kernels::PixelGrid pixel_grid(const Shape& small, Index factor) noexcept {
  return {small[0] * small[1], small[2], small[3] / (factor * factor), factor};
}

template <bool Shuffles, Field T>
struct PixelShuffleRule {
  static constexpr std::string_view name = Shuffles ? "pixel_shuffle" : "pixel_unshuffle";
  kernels::PixelGrid grid;
  void backward(Vjp& v) const {
    if (!v.wants(0)) return;
    const GradRef<T> dx = v.into<T>(0);
    if (dx.add)
      kernels::pixel_shuffle<!Shuffles, true>(grid, v.dy<T>(), dx.data);
    else
      kernels::pixel_shuffle<!Shuffles, false>(grid, v.dy<T>(), dx.data);
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
  const kernels::PixelGrid grid = detail::pixel_grid(shape, factor);
  shape = {shape[0], shape[1] * factor, shape[2] * factor, shape[3] / (factor * factor)};
  checked_size("pixel_shuffle", shape, sizeof(T));
  const Recorder rec("pixel_shuffle", x);
  const Tensor<T> xc = x.packed();
  Tensor<T> y(shape);
  kernels::pixel_shuffle<true, false>(grid, xc.data(), y.fresh_data());
  if constexpr (Field<T>)
    if (rec) rec.record(y, detail::PixelShuffleRule<true, T>{grid});
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
  const kernels::PixelGrid grid = detail::pixel_grid(shape, factor);
  const Recorder rec("pixel_unshuffle", x);
  const Tensor<T> xc = x.packed();
  Tensor<T> y(shape);
  kernels::pixel_shuffle<false, false>(grid, xc.data(), y.fresh_data());
  if constexpr (Field<T>)
    if (rec) rec.record(y, detail::PixelShuffleRule<false, T>{grid});
  return y;
}

}  // namespace wengert::inline WENGERT_ISA
