// softmax and log_softmax along one axis. Floor: ops.
#pragma once

#include <wengert/kernels/softmax.hpp>
#include <wengert/ops/reduce_axes.hpp>

namespace wengert::inline WENGERT_ISA {

namespace detail {

template <Field T, bool logs>
struct SoftmaxRule {
  static constexpr std::string_view name = logs ? "log_softmax" : "softmax";
  Saved<T> y;
  kernels::ReduceView view;
  auto saved() const { return std::tie(y); }

  void backward(Vjp& v) const {
    if (!v.wants(0)) return;
    const T* dy = v.dy<T>();
    const GradRef<T> dx = v.into_over_dy<T>(0);
    kernels::softmax_vjp<logs>(view, dy, y.data(), dx.data, dx.add);
  }
};

template <bool logs, Field T>
Tensor<T> softmax(const Tensor<T>& x, Index axis) {
  constexpr std::string_view name = logs ? "log_softmax" : "softmax";
  const int a = normalize_axis(name, axis, x.rank());
  const Recorder rec(name, x);
  const kernels::ReduceView view = kernels::ReduceView::of(x.shape(), 1u << a);
  const Tensor<T> values = x.packed();
  Tensor<T> y(x.shape());
  kernels::softmax<logs>(view, values.data(), y.fresh_data());
  if (rec) rec.record(y, SoftmaxRule<T, logs>{save(y), view});
  return y;
}

}  // namespace detail

/// Exponentials that add up to 1 along `axis`; no overflow.
///   y   = exp(x) / sum(exp(x))           x: rank >= 1; y: same shape
///   dx += y * (dy - sum(dy * y))         saves y
/// A row of -inf gives zeros and gradient 0; NaN or inf makes its row NaN, and no other. Throws ShapeError
/// when the axis is out of range.
template <Field T>
Tensor<T> softmax(const Tensor<T>& x, Index axis) {
  return detail::softmax<false>(x, axis);
}

/// Logarithm of softmax along `axis`, without taking the logarithm of small numbers.
///   y   = x - log(sum(exp(x)))           x: rank >= 1; y: same shape
///   dx += dy - exp(y) * sum(dy)          saves y
/// A row of -inf stays -inf, with gradient 0; NaN or inf makes its row NaN, and no other. Throws as
/// `softmax`.
template <Field T>
Tensor<T> log_softmax(const Tensor<T>& x, Index axis) {
  return detail::softmax<true>(x, axis);
}

}  // namespace wengert::inline WENGERT_ISA
