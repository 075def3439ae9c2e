// The largest and the smallest element over any set of axes. Floor: ops.
#pragma once

#include <wengert/kernels/reduce_arg.hpp>
#include <wengert/ops/reduce_axes.hpp>

namespace wengert::inline WENGERT_ISA {

namespace detail {

template <Field T, bool largest>
struct ExtremeRule {
  static constexpr std::string_view name = largest ? "max" : "min";
  Saved<Index> place;
  ReducePlan plan;
  auto saved() const { return std::tie(place); }

  void backward(Vjp& v) const {
    if (!v.wants(0)) return;
    plan.accumulate<T>(
        v, [&](T* dx, bool add) { kernels::arg_spread(plan.view, place.data(), v.dy<T>(), dx, add); });
  }
};

template <bool largest, Scalar T>
Tensor<T> extreme(const Tensor<T>& x, const Axes& axes, bool keepdim) {
  constexpr std::string_view name = largest ? "max" : "min";
  const ReducePlan plan(name, x.shape(), axes);
  plan.check_not_empty(name);
  const Recorder rec(name, x);
  const Tensor<T> values = plan.arranged(x);
  Tensor<T> y(plan.result(keepdim));
  if constexpr (Field<T>) {
    if (rec) {
      Tensor<Index> place(y.shape());
      kernels::arg_extreme<largest>(plan.view, values.data(), place.fresh_data(), y.fresh_data());
      rec.record(y, ExtremeRule<T, largest>{save(place), plan});
      return y;
    }
  }
  kernels::fold<kernels::FoldExtreme<largest>>(plan.view, values.data(), y.fresh_data());
  return y;
}

}  // namespace detail

/// The largest element over `axes`, by default all; where it lies: see `argmax`.
///   y   = max of x                          x: any shape; y: x without `axes`, or with 1 there if `keepdim`
///   dx += dy at the first of the largest    saves its place
/// NaN if one element is NaN, which counts as the largest. Integers: not differentiated. Throws ShapeError
/// when an axis is out of range, given twice or without elements.
template <Scalar T>
Tensor<T> max(const Tensor<T>& x, const Axes& axes = Axes::all(), bool keepdim = false) {
  return detail::extreme<true>(x, axes, keepdim);
}

/// The smallest element over `axes`, by default all; where it lies: see `argmin`.
///   y   = min of x                          shapes as `max`
///   dx += dy at the first of the smallest   saves its place
/// NaN if one element is NaN. Throws as `max`.
template <Scalar T>
Tensor<T> min(const Tensor<T>& x, const Axes& axes = Axes::all(), bool keepdim = false) {
  return detail::extreme<false>(x, axes, keepdim);
}

}  // namespace wengert::inline WENGERT_ISA
