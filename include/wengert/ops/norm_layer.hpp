// Layer normalisation as one record. Floor: ops.
#pragma once

#include <wengert/kernels/norm_layer.hpp>
#include <wengert/ops/linear_rows.hpp>

namespace wengert::inline WENGERT_ISA {

/// How `layer_norm` normalises; PyTorch's default.
struct LayerNormOptions {
  double eps = 1e-5;  ///< added to the variance
};

namespace detail {

template <Field T>
FoldedRows<T> normalized_rows(const Tensor<T>& x, int normalized_axes) {
  return FoldedRows<T>(x, x.rank() - normalized_axes, FoldedRows<T>::Columns::contiguous);
}

template <Field T>
struct LayerNormRule {
  static constexpr std::string_view name = "layer_norm";
  Saved<T> x, weight;  // weight without values where x asks for no gradient
  Saved<kernels::RowStats<T>> stats;
  int normalized_axes;
  auto saved() const { return std::tie(x, weight, stats); }

  void backward(Vjp& v) const {
    const FoldedRows<T> xr = normalized_rows(x.value(), normalized_axes);
    const Tensor<T> w = weight.value().packed();
    kernels::SumTarget<T> to[3];  // dx, dweight, dbias; dx last, over dy
    for (const int i : {1, 2, 0}) {
      if (!v.wants(i)) continue;
      const GradRef<T> d = i == 0 ? v.into_over_dy<T>(0) : v.into<T>(i);
      to[i] = {d.data, d.add};
    }
    kernels::layer_norm_vjp(xr.rows(), xr.width(), xr.matrix(), stats.data(), w.data(), v.dy<T>(), to[0],
                            to[1], to[2]);
  }
};

inline void check_layer_norm(const Shape& x, const Shape& normalized, const Shape* weight,
                             const Shape* bias) {
  if (normalized.rank() == 0)
    fail<ShapeError>("layer_norm", "normalized shape has no axes; x is ", x,
                     "; expected at least the last axis of x");
  const int leading = x.rank() - normalized.rank();
  if (leading < 0 || !std::equal(normalized.begin(), normalized.end(), x.begin() + leading))
    fail<ShapeError>("layer_norm", "normalized shape differs from the last axes of x; x is ", x,
                     ", normalized shape is ", normalized, "; expected x.shape() to end in it");
  if (weight != nullptr && *weight != normalized)
    fail<ShapeError>("layer_norm", "weight does not fit; x is ", x, ", weight is ", *weight, "; expected ",
                     normalized);
  if (bias != nullptr && *bias != normalized)
    fail<ShapeError>("layer_norm", "bias does not fit; x is ", x, ", bias is ", *bias, "; expected ",
                     normalized);
}

}  // namespace detail

/// Normalises x over its last axes, of shape `normalized`, as one record that visits each row once.
///   x: (..., normalized); weight, bias: `normalized`, null when absent
///   y   = xn * weight + bias, where xn = (x - mean) / std, std = sqrt(var + eps), biased, of each row
///   dx += (g - mean(g) - xn * mean(g * xn)) / std, where g = dy * weight
///   dweight += sum of dy * xn over rows;   dbias += sum of dy over rows
/// Saves x, weight and three numbers a row. Accurate for a mean of any size; a constant row gives bias.
/// Throws ShapeError when `normalized` is empty or does not end x's shape, or weight or bias differs from it.
template <Field T>
Tensor<T> layer_norm(const Tensor<T>& x, const Shape& normalized,
                     const std::type_identity_t<Tensor<T>>* weight,
                     const std::type_identity_t<Tensor<T>>* bias, const LayerNormOptions& options = {}) {
  detail::check_layer_norm(x.shape(), normalized, weight != nullptr ? &weight->shape() : nullptr,
                           bias != nullptr ? &bias->shape() : nullptr);
  const Tensor<T> absent;
  const Tensor<T>& w = weight != nullptr ? *weight : absent;
  const Tensor<T>& b = bias != nullptr ? *bias : absent;
  const Recorder rec("layer_norm", x, w, b);
  const detail::FoldedRows<T> xr = detail::normalized_rows(x, normalized.rank());
  const Tensor<T> wp = w.packed(), bp = b.packed();
  Tensor<T> y(x.shape());
  Tensor<kernels::RowStats<T>> stats(Shape{xr.rows()});
  kernels::layer_norm(xr.rows(), xr.width(), xr.matrix(), wp.data(), bp.data(), static_cast<T>(options.eps),
                      stats.fresh_data(), y.fresh_data());
  if (rec)
    rec.record(y, detail::LayerNormRule<T>{save(x), detail::save_if(x.requires_grad(), w), save(stats),
                                           normalized.rank()});
  return y;
}
/// As above, with weight and bias.
template <Field T>
Tensor<T> layer_norm(const Tensor<T>& x, const Shape& normalized, const Tensor<T>& weight,
                     const Tensor<T>& bias, const LayerNormOptions& options = {}) {
  return layer_norm(x, normalized, &weight, &bias, options);
}
/// As above, without weight and bias.
template <Field T>
Tensor<T> layer_norm(const Tensor<T>& x, const Shape& normalized, const LayerNormOptions& options = {}) {
  return layer_norm(x, normalized, nullptr, nullptr, options);
}

}  // namespace wengert::inline WENGERT_ISA
