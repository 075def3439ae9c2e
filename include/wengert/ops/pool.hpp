// Pools over images (N, spatial axes, C): the largest or the mean element of sliding windows. Floor: ops.
#pragma once

#include <wengert/kernels/pool_avg.hpp>
#include <wengert/kernels/pool_max.hpp>
#include <wengert/ops/pool_window.hpp>

namespace wengert::inline WENGERT_ISA {

namespace detail {

template <Field T, class Place, PoolKind kind, int axes>
struct MaxPoolRule {
  static constexpr std::string_view name = pool_name(kind, axes);
  SavedFlat<Place> place;
  kernels::PoolWindow window;
  auto saved() const { return std::tie(place); }

  void backward(Vjp& v) const {
    if (!v.wants(0)) return;
    const GradRef<T> dx = v.into<T>(0);
    kernels::max_pool_vjp(window, v.dy<T>(), place.data(), dx.data, dx.add);
  }
};

template <Field T, PoolKind kind, int axes>
struct AvgPoolRule {
  static constexpr std::string_view name = pool_name(kind, axes);
  kernels::PoolWindow window;

  void backward(Vjp& v) const {
    if (!v.wants(0)) return;
    const GradRef<T> dx = v.into<T>(0);
    kernels::avg_pool_vjp(window, v.dy<T>(), dx.data, dx.add);
  }
};

template <PoolKind kind, int axes, Field T>
Tensor<T> max_pool(const Tensor<T>& x, const kernels::PoolWindow& window) {
  const Recorder rec(pool_name(kind, axes), x);
  const Tensor<T> xc = x.packed();
  Tensor<T> y(image_shape(window.window, axes, true, window.window.channels));
  if (!rec) {
    kernels::max_pool(window, xc.data(), y.fresh_data(), static_cast<void*>(nullptr));
    return y;
  }
  const auto track = [&]<class Place>(Place) {
    Tensor<Place> place(y.shape());
    kernels::max_pool(window, xc.data(), y.fresh_data(), place.fresh_data());
    rec.record(y, MaxPoolRule<T, Place, kind, axes>{SavedFlat<Place>(place), window});
  };
  if (window.taps() <= kernels::pool_byte_taps)
    track(Byte());
  else
    track(kernels::WidePlace<T>());
  return y;
}

template <PoolKind kind, int axes, Field T>
Tensor<T> avg_pool(const Tensor<T>& x, const kernels::PoolWindow& window) {
  const Recorder rec(pool_name(kind, axes), x);
  const Tensor<T> xc = x.packed();
  Tensor<T> y(image_shape(window.window, axes, true, window.window.channels));
  kernels::avg_pool(window, xc.data(), y.fresh_data());
  if (rec) rec.record(y, AvgPoolRule<T, kind, axes>{window});
  return y;
}

template <int axes, Field T>
Tensor<T> max_pool(const Tensor<T>& x, const MaxPoolOptions& options) {
  return max_pool<PoolKind::max, axes>(x,
                                       pool_window(pool_name(PoolKind::max, axes), axes, x.shape(), options));
}
template <int axes, Field T>
Tensor<T> avg_pool(const Tensor<T>& x, const AvgPoolOptions& options) {
  return avg_pool<PoolKind::avg, axes>(x,
                                       pool_window(pool_name(PoolKind::avg, axes), axes, x.shape(), options));
}

}  // namespace detail

/// The largest element of each window of an image, a channel at a time.
///   y   = max of x over the window      x: (N, H, W, C); y: (N, OH, OW, C),
///         OH = (H + 2 padding - dilation (kernel - 1) - 1) / stride + 1, rounded down, or up in ceil_mode
///   dx += dy at the largest             saves the number of its tap: a byte each up to 256 taps
/// The first of ties takes all of dy; NaN counts as the largest, its last one takes dy. Padding never wins: a
/// window without a pixel, which only dilation makes, gives -inf. `{2}` is kernel and stride 2. Throws
/// ValueError on options out of range or padding > kernel / 2, ShapeError when x is no image or too small.
template <Field T>
Tensor<T> max_pool2d(const Tensor<T>& x, const MaxPoolOptions& options) {
  return detail::max_pool<2>(x, options);
}
/// As `max_pool2d` for x: (N, W, C).
template <Field T>
Tensor<T> max_pool1d(const Tensor<T>& x, const MaxPoolOptions& options) {
  return detail::max_pool<1>(x, options);
}
/// As `max_pool2d` for x: (N, D, H, W, C).
template <Field T>
Tensor<T> max_pool3d(const Tensor<T>& x, const MaxPoolOptions& options) {
  return detail::max_pool<3>(x, options);
}

/// The mean of each window of an image, a channel at a time.
///   y   = sum of x over the window / count      shapes as `max_pool2d`
///   dx += dy / count for each window            saves nothing
/// count: the taps in image and padding, or, without count_include_pad, in the image alone; never those that
/// ceil_mode puts beyond the padding. Throws as `max_pool2d`.
template <Field T>
Tensor<T> avg_pool2d(const Tensor<T>& x, const AvgPoolOptions& options) {
  return detail::avg_pool<2>(x, options);
}
/// As `avg_pool2d` for x: (N, W, C).
template <Field T>
Tensor<T> avg_pool1d(const Tensor<T>& x, const AvgPoolOptions& options) {
  return detail::avg_pool<1>(x, options);
}
/// As `avg_pool2d` for x: (N, D, H, W, C).
template <Field T>
Tensor<T> avg_pool3d(const Tensor<T>& x, const AvgPoolOptions& options) {
  return detail::avg_pool<3>(x, options);
}

}  // namespace wengert::inline WENGERT_ISA
