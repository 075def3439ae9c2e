// Variance and standard deviation over any set of axes. Floor: ops.
#pragma once

#include <wengert/kernels/reduce_composed.hpp>
#include <wengert/ops/reduce_axes.hpp>

namespace wengert::inline WENGERT_ISA {

/// Options of `var` and `std`.
struct VarOptions {
  double correction = 1;  ///< subtracted from n in the divisor: 1 is unbiased, 0 is the population's variance
  bool keepdim = false;   ///< keep the reduced axes, with size 1
};

namespace detail {

template <Field T>
struct VarRule {
  static constexpr std::string_view name = "var";
  Saved<T> x, mean;
  ReducePlan plan;
  T factor;
  auto saved() const { return std::tie(x, mean); }

  void backward(Vjp& v) const {
    if (!v.wants(0)) return;
    const Tensor<T> values = plan.arranged(x.value());
    const kernels::SpreadDeviation<T> map{v.dy<T>(), mean.data(), nullptr, factor};
    plan.accumulate<T>(v, [&](T* dx, bool add) { kernels::spread(plan.view, values.data(), dx, add, map); });
  }
};

template <Field T>
struct StdRule {
  static constexpr std::string_view name = "std";
  Saved<T> x, mean, y;
  ReducePlan plan;
  T factor;
  auto saved() const { return std::tie(x, mean, y); }

  void backward(Vjp& v) const {
    if (!v.wants(0)) return;
    const Tensor<T> values = plan.arranged(x.value());
    const kernels::SpreadDeviation<T> map{v.dy<T>(), mean.data(), y.data(), factor};
    plan.accumulate<T>(v, [&](T* dx, bool add) { kernels::spread(plan.view, values.data(), dx, add, map); });
  }
};

/// n - correction, at least 0.
template <Field T>
T degrees_of_freedom(const ReducePlan& plan, double correction) {
  return static_cast<T>(std::max(0.0, static_cast<double>(plan.view.reduce) - correction));
}

}  // namespace detail

/// Variance over `axes`, by default all.
///   y   = sum of (x - mean)^2 / max(0, n - correction)     n: elements that one y comes from; y as `sum`
///   dx += dy * 2 * (x - mean) / (n - correction)           saves x and the means
/// A large mean costs no digits. NaN where n is 0, or 1 with the usual correction. Throws
/// ShapeError when an axis is out of range or given twice.
template <Field T>
Tensor<T> var(const Tensor<T>& x, const Axes& axes = Axes::all(), VarOptions options = {}) {
  const detail::ReducePlan plan("var", x.shape(), axes);
  const Recorder rec("var", x);
  const Tensor<T> values = plan.arranged(x);
  Tensor<T> y(plan.result(options.keepdim)), mean(y.shape());
  kernels::mean_and_squares(plan.view, values.data(), mean.fresh_data(), y.fresh_data());
  const T freedom = detail::degrees_of_freedom<T>(plan, options.correction);
  kernels::divide(y.fresh_data(), y.size(), freedom);
  if (rec) rec.record(y, detail::VarRule<T>{save(x), save(mean), plan, static_cast<T>(T(2) / freedom)});
  return y;
}

/// Standard deviation over `axes`, by default all.
///   y   = sqrt(var(x))                                       options and shapes as `var`
///   dx += dy * (x - mean) / ((n - correction) * y)           saves x, y and the means
/// Where y is 0, dx += 0. Throws as `var`.
template <Field T>
Tensor<T> std(const Tensor<T>& x, const Axes& axes = Axes::all(), VarOptions options = {}) {
  const detail::ReducePlan plan("std", x.shape(), axes);
  const Recorder rec("std", x);
  const Tensor<T> values = plan.arranged(x);
  Tensor<T> y(plan.result(options.keepdim)), mean(y.shape());
  kernels::mean_and_squares(plan.view, values.data(), mean.fresh_data(), y.fresh_data());
  const T freedom = detail::degrees_of_freedom<T>(plan, options.correction);
  kernels::root_of_quotient(y.fresh_data(), y.size(), freedom);
  if (rec)
    rec.record(y, detail::StdRule<T>{save(x), save(mean), save(y), plan, static_cast<T>(T(1) / freedom)});
  return y;
}

}  // namespace wengert::inline WENGERT_ISA
