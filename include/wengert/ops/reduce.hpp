// Reductions over any set of axes: sum, mean, logsumexp here; var, std, max, min beside it. Floor: ops.
#pragma once

#include <wengert/ops/reduce_extrema.hpp>
#include <wengert/ops/reduce_moments.hpp>

namespace wengert::inline WENGERT_ISA {

namespace detail {

template <Field T>
struct SumRule {
  static constexpr std::string_view name = "sum";
  ReducePlan plan;
  T factor;

  void backward(Vjp& v) const {
    if (!v.wants(0)) return;
    const kernels::SpreadScaled<T> map{v.dy<T>(), factor};
    plan.accumulate<T>(v, [&](T* dx, bool add) {
      kernels::spread(plan.view, static_cast<const T*>(nullptr), dx, add, map);
    });
  }
};

template <Field T>
struct MeanRule : SumRule<T> {
  static constexpr std::string_view name = "mean";
};

template <Field T>
struct LogsumexpRule {
  static constexpr std::string_view name = "logsumexp";
  Saved<T> x, shift, scale;
  ReducePlan plan;
  auto saved() const { return std::tie(x, shift, scale); }

  void backward(Vjp& v) const {
    if (!v.wants(0)) return;
    const Tensor<T> values = plan.arranged(x.value());
    const kernels::SpreadSoftmax<T> map{v.dy<T>(), shift.data(), scale.data()};
    plan.accumulate<T>(v, [&](T* dx, bool add) { kernels::spread(plan.view, values.data(), dx, add, map); });
  }
};

}  // namespace detail

/// Sum over `axes`, by default all.
///   y   = sum of x           x: any shape; y: x without `axes`, or with 1 there if `keepdim`
///   dx += dy                 saves nothing
/// Long sums are cut into blocks of 4096 elements or 512 rows; the same bits at any number of threads. An
/// empty sum is 0. Throws ShapeError when an axis is out of range or given twice.
template <Field T>
Tensor<T> sum(const Tensor<T>& x, const Axes& axes = Axes::all(), bool keepdim = false) {
  const detail::ReducePlan plan("sum", x.shape(), axes);
  const Recorder rec("sum", x);
  const Tensor<T> values = plan.arranged(x);
  Tensor<T> y(plan.result(keepdim));
  kernels::fold<kernels::FoldSum>(plan.view, values.data(), y.fresh_data());
  if (rec) rec.record(y, detail::SumRule<T>{plan, T(1)});
  return y;
}

/// Sum of integers, or number of ones in a mask, as int64: not differentiated. Otherwise as above.
template <std::integral T>
Tensor<Index> sum(const Tensor<T>& x, const Axes& axes = Axes::all(), bool keepdim = false) {
  checked_size("sum", x.shape(), sizeof(Index));
  const detail::ReducePlan plan("sum", x.shape(), axes);
  const Tensor<T> values = plan.arranged(x);
  Tensor<Index> wide(x.shape()), y(plan.result(keepdim));
  std::copy(values.data(), values.data() + values.size(), wide.fresh_data());
  kernels::fold<kernels::FoldSum>(plan.view, wide.data(), y.fresh_data());
  return y;
}

/// Arithmetic mean over `axes`, by default all.
///   y   = sum of x / n       n: number of elements that one y comes from; shapes as `sum`
///   dx += dy / n             saves nothing
/// The mean of nothing is NaN. Throws as `sum`.
template <Field T>
Tensor<T> mean(const Tensor<T>& x, const Axes& axes = Axes::all(), bool keepdim = false) {
  const detail::ReducePlan plan("mean", x.shape(), axes);
  const Recorder rec("mean", x);
  const Tensor<T> values = plan.arranged(x);
  Tensor<T> y(plan.result(keepdim));
  const T n = static_cast<T>(plan.view.reduce);
  kernels::fold<kernels::FoldSum>(plan.view, values.data(), y.fresh_data());
  kernels::divide(y.fresh_data(), y.size(), n);
  if (rec) rec.record(y, detail::MeanRule<T>{{plan, static_cast<T>(T(1) / n)}});
  return y;
}

/// Logarithm of the sum of exponentials over `axes`, by default all; no overflow.
///   y   = log(sum of exp(x))            shapes as `sum`
///   dx += dy * exp(x - y)               saves x and two numbers for each y
/// Where all x are -inf, or there are none, y = -inf and dx += 0; where one is inf, y = inf. Throws as `sum`.
template <Field T>
Tensor<T> logsumexp(const Tensor<T>& x, const Axes& axes = Axes::all(), bool keepdim = false) {
  const detail::ReducePlan plan("logsumexp", x.shape(), axes);
  const Recorder rec("logsumexp", x);
  const Tensor<T> values = plan.arranged(x);
  Tensor<T> y(plan.result(keepdim)), shift(y.shape()), scale(y.shape());
  kernels::logsumexp(plan.view, values.data(), y.fresh_data(), shift.fresh_data(), scale.fresh_data());
  if (rec) rec.record(y, detail::LogsumexpRule<T>{save(x), save(shift), save(scale), plan});
  return y;
}

}  // namespace wengert::inline WENGERT_ISA
