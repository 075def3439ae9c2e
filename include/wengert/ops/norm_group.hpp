// Group and instance normalisation as one record each. Floor: ops.
#pragma once

#include <wengert/kernels/norm_group.hpp>
#include <wengert/ops/linear_rows.hpp>

namespace wengert::inline WENGERT_ISA {

/// How `group_norm` normalises; PyTorch's default.
struct GroupNormOptions {
  double eps = 1e-5;  ///< added to the variance
};
/// How `instance_norm` normalises; PyTorch's default.
struct InstanceNormOptions {
  double eps = 1e-5;  ///< added to the variance
};

namespace detail {

inline kernels::GroupNormSizes group_norm_sizes(const Shape& x, Index groups) {
  Index rows = 1;
  for (int i = 1; i + 1 < x.rank(); ++i) rows *= x[i];
  return {x[0], rows, x.back(), groups};
}

template <Field T, bool Instance>
struct GroupNormRule {
  static constexpr std::string_view name = Instance ? "instance_norm" : "group_norm";
  Saved<T> x, weight;  // weight without values where x asks for no gradient
  Saved<kernels::RowStats<T>> stats;
  Index groups;
  auto saved() const { return std::tie(x, weight, stats); }

  void backward(Vjp& v) const {
    const FoldedRows<T> xr(x.value(), x.shape().rank() - 1, FoldedRows<T>::Columns::contiguous);
    const Tensor<T> w = weight.value().packed();
    kernels::SumTarget<T> to[3];  // dx, dweight, dbias; dx last, over dy
    for (const int i : {1, 2, 0}) {
      if (!v.wants(i)) continue;
      const GradRef<T> d = i == 0 ? v.into_over_dy<T>(0) : v.into<T>(i);
      to[i] = {d.data, d.add};
    }
    kernels::group_norm_vjp(group_norm_sizes(x.shape(), groups), xr.matrix(), stats.data(), w.data(),
                            v.dy<T>(), to[0], to[1], to[2]);
  }
};

template <Field T, bool Instance>
Tensor<T> group_norm(const Tensor<T>& x, Index groups, const Tensor<T>* weight, const Tensor<T>* bias,
                     double eps) {
  constexpr std::string_view op = GroupNormRule<T, Instance>::name;
  for (const auto& [what, p] : {std::pair("weight", weight), std::pair("bias", bias)})
    if (p != nullptr && p->shape() != Shape{x.shape().back()})
      fail<ShapeError>(op, what, " does not fit; x is ", x.shape(), ", ", what, " is ", p->shape(),
                       "; expected (", x.shape().back(), ")");
  const Tensor<T> absent;
  const Tensor<T>& w = weight != nullptr ? *weight : absent;
  const Tensor<T>& b = bias != nullptr ? *bias : absent;
  const Recorder rec(op, x, w, b);
  const kernels::GroupNormSizes sizes = group_norm_sizes(x.shape(), groups);
  const FoldedRows<T> xr(x, x.rank() - 1, FoldedRows<T>::Columns::contiguous);
  const Tensor<T> wp = w.packed(), bp = b.packed();
  Tensor<T> y(x.shape());
  Tensor<kernels::RowStats<T>> stats({sizes.samples, groups});
  kernels::group_norm(sizes, xr.matrix(), wp.data(), bp.data(), static_cast<T>(eps), stats.fresh_data(),
                      y.fresh_data());
  if (rec)
    rec.record(y, GroupNormRule<T, Instance>{save(x), save_if(x.requires_grad(), w), save(stats), groups});
  return y;
}

}  // namespace detail

/// Normalises each sample of x over each of `groups` groups of neighbouring channels, as one record.
///   x: (N, ..., C) with C divisible by groups; weight, bias: (C), null when absent
///   y   = xn * weight + bias, where xn = (x - mean) / std, std = sqrt(var + eps), biased, of each group
///   dx += (g - mean(g) - xn * mean(g * xn)) / std, where g = dy * weight
///   dweight += sum of dy * xn;   dbias += sum of dy;   saves x, weight and three numbers a group
/// Accurate for a mean of any size; a constant group gives bias. Throws ShapeError on shapes; ValueError
/// unless groups >= 1.
template <Field T>
Tensor<T> group_norm(const Tensor<T>& x, Index groups, const std::type_identity_t<Tensor<T>>* weight,
                     const std::type_identity_t<Tensor<T>>* bias, const GroupNormOptions& options = {}) {
  if (x.rank() < 2)
    fail<ShapeError>("group_norm", "rank is too low; x is ", x.shape(), "; expected (batch, ..., channels)");
  if (groups < 1) fail<ValueError>("group_norm", "groups is ", groups, "; expected groups >= 1");
  if (x.shape().back() % groups != 0)
    fail<ShapeError>("group_norm", "groups do not divide the channels; x is ", x.shape(), ", groups is ",
                     groups, "; expected x.dim(-1) to be a multiple of groups");
  return detail::group_norm<T, false>(x, groups, weight, bias, options.eps);
}
/// As above, with weight and bias.
template <Field T>
Tensor<T> group_norm(const Tensor<T>& x, Index groups, const Tensor<T>& weight, const Tensor<T>& bias,
                     const GroupNormOptions& options = {}) {
  return group_norm(x, groups, &weight, &bias, options);
}
/// As above, without weight and bias.
template <Field T>
Tensor<T> group_norm(const Tensor<T>& x, Index groups, const GroupNormOptions& options = {}) {
  return group_norm(x, groups, nullptr, nullptr, options);
}

/// Normalises each channel of each sample of x over the axes between, as one record: `group_norm` with a
/// group a channel. x: (N, ..., C), with more than one value a channel; weight, bias: (C), null when absent.
/// Keeps no running statistics. Formulas, what is saved and accuracy are those of `group_norm`. Throws
/// ShapeError on shapes; ValueError where each channel of a sample holds one value, which has no variance.
template <Field T>
Tensor<T> instance_norm(const Tensor<T>& x, const std::type_identity_t<Tensor<T>>* weight,
                        const std::type_identity_t<Tensor<T>>* bias,
                        const InstanceNormOptions& options = {}) {
  if (x.rank() < 3)
    fail<ShapeError>("instance_norm", "rank is too low; x is ", x.shape(),
                     "; expected (batch, ..., channels) with an axis between");
  if (detail::group_norm_sizes(x.shape(), 1).rows == 1)
    fail<ValueError>("instance_norm", "a single value per channel has no variance; x is ", x.shape(),
                     "; expected more than one value per channel of a sample");
  return detail::group_norm<T, true>(x, x.shape().back(), weight, bias, options.eps);
}
/// As above, with weight and bias.
template <Field T>
Tensor<T> instance_norm(const Tensor<T>& x, const Tensor<T>& weight, const Tensor<T>& bias,
                        const InstanceNormOptions& options = {}) {
  return instance_norm(x, &weight, &bias, options);
}
/// As above, without weight and bias.
template <Field T>
Tensor<T> instance_norm(const Tensor<T>& x, const InstanceNormOptions& options = {}) {
  return instance_norm(x, nullptr, nullptr, options);
}

}  // namespace wengert::inline WENGERT_ISA
