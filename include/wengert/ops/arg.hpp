// Where the largest and the smallest element lies. Floor: ops.
#pragma once

#include <optional>

#include <wengert/kernels/reduce_arg.hpp>
#include <wengert/ops/reduce_axes.hpp>

namespace wengert::inline WENGERT_ISA {

namespace detail {

template <bool largest, Scalar T>
Tensor<Index> arg_extreme(const Tensor<T>& x, std::optional<Index> axis, bool keepdim) {
  constexpr std::string_view name = largest ? "argmax" : "argmin";
  const ReducePlan plan(name, x.shape(), axis ? Axes(*axis) : Axes::all());
  plan.check_not_empty(name);
  const Tensor<T> values = plan.arranged(x);
  Tensor<Index> y(plan.result(keepdim));
  kernels::arg_extreme<largest>(plan.view, values.data(), y.fresh_data());
  return y;
}

}  // namespace detail

/// Index of the largest element along `axis`; without an axis, its position in row-major order.
///   y = argmax(x)        x: any shape; y: int64, x without `axis`, or with 1 there if `keepdim`
/// The first of ties; a NaN counts as the largest. Not differentiated. Throws ShapeError when the axis is out
/// of range or there is nothing to choose from.
template <Scalar T>
Tensor<Index> argmax(const Tensor<T>& x, std::optional<Index> axis = {}, bool keepdim = false) {
  return detail::arg_extreme<true>(x, axis, keepdim);
}

/// Index of the smallest element along `axis`, as `argmax`; a NaN counts as the smallest.
template <Scalar T>
Tensor<Index> argmin(const Tensor<T>& x, std::optional<Index> axis = {}, bool keepdim = false) {
  return detail::arg_extreme<false>(x, axis, keepdim);
}

}  // namespace wengert::inline WENGERT_ISA
