// Pools to a given size, and pools over whole images. Floor: ops.
#pragma once

#include <wengert/ops/pool.hpp>
#include <wengert/ops/reduce.hpp>

namespace wengert::inline WENGERT_ISA {

namespace detail {

template <Field T>
struct GlobalAvgPoolRule : SumRule<T> {
  static constexpr std::string_view name = "global_avg_pool";
};
template <Field T>
struct GlobalMaxPoolRule : ExtremeRule<T, true> {
  static constexpr std::string_view name = "global_max_pool";
};

/// The reduction of x, of shape (N, spatial axes, C), over the spatial axes.
inline ReducePlan global_plan(std::string_view op, const Shape& x) {
  if (x.rank() < 3)
    fail<ShapeError>(op, "wrong rank; x is ", x, "; expected (N, ..., C) with spatial axes between");
  Shape spatial;
  for (Index axis = 1; axis < x.rank() - 1; ++axis) {
    if (x[static_cast<int>(axis)] == 0)
      fail<ShapeError>(op, "the image has no pixels; x is ", x, "; expected at least one");
    spatial.push_back(axis);
  }
  return ReducePlan(op, x, Axes(spatial));
}

}  // namespace detail

/// The largest element of each of `size` windows an axis that cover an image evenly: window o of size n
/// covers the pixels from o H / n, rounded down, to (o + 1) H / n, rounded up. Neighbours may share a pixel.
///   y   = max of x over the window      x: (N, H, W, C); y: (N, size, C)
///   dx += dy at the largest             saves the number of its tap
/// Ties and NaN as in `max_pool2d`. `size`: {OH, OW}, or one number for both. Throws ValueError unless size
/// >= 1, ShapeError when x is no image.
template <Field T>
Tensor<T> adaptive_max_pool2d(const Tensor<T>& x, const PerAxis& size) {
  return detail::max_pool<detail::PoolKind::adaptive_max, 2>(
      x, detail::adaptive_window("adaptive_max_pool2d", 2, x.shape(), size));
}
/// As `adaptive_max_pool2d` for x: (N, W, C).
template <Field T>
Tensor<T> adaptive_max_pool1d(const Tensor<T>& x, const PerAxis& size) {
  return detail::max_pool<detail::PoolKind::adaptive_max, 1>(
      x, detail::adaptive_window("adaptive_max_pool1d", 1, x.shape(), size));
}

/// The mean of each of `size` windows an axis that cover an image evenly, those of `adaptive_max_pool2d`.
///   y   = mean of x over the window                    x: (N, H, W, C); y: (N, size, C)
///   dx += dy / pixels of the window for each window    saves nothing
/// Throws as `adaptive_max_pool2d`.
template <Field T>
Tensor<T> adaptive_avg_pool2d(const Tensor<T>& x, const PerAxis& size) {
  return detail::avg_pool<detail::PoolKind::adaptive_avg, 2>(
      x, detail::adaptive_window("adaptive_avg_pool2d", 2, x.shape(), size));
}
/// As `adaptive_avg_pool2d` for x: (N, W, C).
template <Field T>
Tensor<T> adaptive_avg_pool1d(const Tensor<T>& x, const PerAxis& size) {
  return detail::avg_pool<detail::PoolKind::adaptive_avg, 1>(
      x, detail::adaptive_window("adaptive_avg_pool1d", 1, x.shape(), size));
}

/// The mean over all pixels of each image, a channel at a time.
///   y   = mean of x over the spatial axes       x: (N, ..., C); y: (N, C)
///   dx += dy / pixels                           saves nothing
/// Throws ShapeError when x has no spatial axis, or one without elements.
template <Field T>
Tensor<T> global_avg_pool(const Tensor<T>& x) {
  const detail::ReducePlan plan = detail::global_plan("global_avg_pool", x.shape());
  const Recorder rec("global_avg_pool", x);
  const Tensor<T> values = plan.arranged(x);
  Tensor<T> y(plan.result(false));
  const T n = static_cast<T>(plan.view.reduce);
  kernels::fold<kernels::FoldSum>(plan.view, values.data(), y.fresh_data());
  kernels::divide(y.fresh_data(), y.size(), n);
  if (rec) rec.record(y, detail::GlobalAvgPoolRule<T>{{plan, static_cast<T>(T(1) / n)}});
  return y;
}

/// The largest element over all pixels of each image, a channel at a time.
///   y   = max of x over the spatial axes        x: (N, ..., C); y: (N, C)
///   dx += dy at the first of the largest        saves its place
/// NaN if one element is NaN, which counts as the largest. Throws as `global_avg_pool`.
template <Field T>
Tensor<T> global_max_pool(const Tensor<T>& x) {
  const detail::ReducePlan plan = detail::global_plan("global_max_pool", x.shape());
  const Recorder rec("global_max_pool", x);
  const Tensor<T> values = plan.arranged(x);
  Tensor<T> y(plan.result(false));
  if (!rec) {
    kernels::fold<kernels::FoldExtreme<true>>(plan.view, values.data(), y.fresh_data());
    return y;
  }
  Tensor<Index> place(y.shape());
  kernels::arg_extreme<true>(plan.view, values.data(), place.fresh_data(), y.fresh_data());
  rec.record(y, detail::GlobalMaxPoolRule<T>{{save(place), plan}});
  return y;
}

}  // namespace wengert::inline WENGERT_ISA
