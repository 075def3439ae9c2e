// Batch normalisation as one record, alone or with what a residual block puts behind it: relu, or the sum
// with a residual and relu. Floor: ops.
#pragma once

#include <wengert/ops/norm_batch_rule.hpp>

namespace wengert::inline WENGERT_ISA {

namespace detail {

template <kernels::NormEnd End, Field T>
Tensor<T> batch_norm(std::string_view op, const Tensor<T>& x, const Tensor<T>* residual,
                     const Tensor<T>* weight, const Tensor<T>* bias, Tensor<T>* running_mean,
                     Tensor<T>* running_var, const BatchNormOptions& options) {
  check_batch_norm<T>(op, x, residual, weight, bias, running_mean, running_var, options);
  constexpr bool has_residual = End == kernels::NormEnd::add_relu;
  const Tensor<T> absent;
  const Tensor<T>& w = weight != nullptr ? *weight : absent;
  const Tensor<T>& b = bias != nullptr ? *bias : absent;
  const auto rec = [&] {
    if constexpr (has_residual)
      return Recorder(op, x, w, b, *residual);
    else
      return Recorder(op, x, w, b);
  }();
  const FoldedRows<T> xr = channel_rows(x);
  const Index columns = x.shape().back();
  const Tensor<T> wp = w.packed(), bp = b.packed();
  Tensor<T> y(x.shape()), block({3, columns});
  const kernels::ColumnStats<T> stats(block.fresh_data(), columns);
  make_stats(xr, running_mean, running_var, options, stats);
  const BatchNormLine<T> line(columns, stats, wp.data(), bp.data());
  const auto write = [&](kernels::RowMatrix<T> r) {
    kernels::normalise<End>(xr.rows(), columns, xr.matrix(), stats.mean, line.line(), r, y.fresh_data());
  };
  if constexpr (has_residual)
    write(channel_rows(*residual).matrix());
  else
    write({});
  if (rec) {
    const bool wants_x = x.requires_grad(), wants_affine = w.requires_grad() || b.requires_grad();
    const bool masks_by_x = End == kernels::NormEnd::relu;
    BatchNormRule<T, End> rule;
    rule.x = save_if(wants_affine || (options.training && wants_x) || masks_by_x, x);
    rule.weight = save_if(wants_x || masks_by_x, w);
    rule.bias = save_if(masks_by_x, b);
    rule.stats = save(block);
    rule.training = options.training;
    if constexpr (has_residual) rule.y = save(y);
    rec.record(y, std::move(rule));
  }
  return y;
}

}  // namespace detail

/// Batch normalisation over the last axis, C channels, as one record; a null pointer is absent.
///   x: (N, ..., C); weight, bias, running_mean, running_var: (C)
///   y   = xn * weight + bias, where xn = (x - mean) / std, std = sqrt(var + eps) with the biased variance
///   dx += (dy - mean(dy) - xn * mean(dy * xn)) * weight / std; in evaluation dy * weight / std
///   dweight += sum of dy * xn;   dbias += sum of dy;   saves x and three numbers a channel
/// Training writes running = (1 - momentum) * running + momentum * (mean, unbiased var) at every call, so a
/// checkpoint, which runs forward twice, moves it twice; an empty batch does not. Evaluation reads running.
/// Accurate for a mean of any size. Throws ShapeError on shapes; ValueError when training on one value a
/// channel or evaluating without statistics; TapeError on running statistics that ask for a gradient.
template <Field T>
Tensor<T> batch_norm(const Tensor<T>& x, const std::type_identity_t<Tensor<T>>* weight,
                     const std::type_identity_t<Tensor<T>>* bias,
                     std::type_identity_t<Tensor<T>>* running_mean,
                     std::type_identity_t<Tensor<T>>* running_var, const BatchNormOptions& options = {}) {
  return detail::batch_norm<kernels::NormEnd::none, T>("batch_norm", x, nullptr, weight, bias, running_mean,
                                                       running_var, options);
}
/// As above, with all tensors present.
template <Field T>
Tensor<T> batch_norm(const Tensor<T>& x, const Tensor<T>& weight, const Tensor<T>& bias,
                     Tensor<T>& running_mean, Tensor<T>& running_var, const BatchNormOptions& options = {}) {
  return batch_norm(x, &weight, &bias, &running_mean, &running_var, options);
}

/// y = relu(batch_norm(x)) as one record: `batch_norm` with dy where y > 0 (or is NaN) and 0 elsewhere, as
/// relu'(0) = 0. Saves what batch_norm saves, and bias; backward finds the sign of y from x again, so y is
/// not kept. Shapes, running statistics and errors are those of `batch_norm`, named batch_norm_relu.
template <Field T>
requires detail::Ordered<T> Tensor<T> batch_norm_relu(const Tensor<T>& x,
                                                      const std::type_identity_t<Tensor<T>>* weight,
                                                      const std::type_identity_t<Tensor<T>>* bias,
                                                      std::type_identity_t<Tensor<T>>* running_mean,
                                                      std::type_identity_t<Tensor<T>>* running_var,
                                                      const BatchNormOptions& options = {}) {
  return detail::batch_norm<kernels::NormEnd::relu, T>("batch_norm_relu", x, nullptr, weight, bias,
                                                       running_mean, running_var, options);
}
/// As above, with all tensors present.
template <Field T>
requires detail::Ordered<T> Tensor<T> batch_norm_relu(const Tensor<T>& x, const Tensor<T>& weight,
                                                      const Tensor<T>& bias, Tensor<T>& running_mean,
                                                      Tensor<T>& running_var,
                                                      const BatchNormOptions& options = {}) {
  return batch_norm_relu(x, &weight, &bias, &running_mean, &running_var, options);
}

/// y = relu(batch_norm(x) + residual) as one record, the end of a residual block; residual has x's shape.
/// With g = dy where y > 0 (or is NaN) and 0 elsewhere, as relu'(0) = 0:
///   dresidual += g;   dx, dweight, dbias as of `batch_norm` with g in place of dy
/// Saves what batch_norm saves, and y. Errors are those of `batch_norm`, named batch_norm_add_relu, and a
/// ShapeError for a residual of another shape.
template <Field T>
requires detail::Ordered<T> Tensor<T> batch_norm_add_relu(const Tensor<T>& x, const Tensor<T>& residual,
                                                          const std::type_identity_t<Tensor<T>>* weight,
                                                          const std::type_identity_t<Tensor<T>>* bias,
                                                          std::type_identity_t<Tensor<T>>* running_mean,
                                                          std::type_identity_t<Tensor<T>>* running_var,
                                                          const BatchNormOptions& options = {}) {
  return detail::batch_norm<kernels::NormEnd::add_relu, T>("batch_norm_add_relu", x, &residual, weight, bias,
                                                           running_mean, running_var, options);
}
/// As above, with all tensors present.
template <Field T>
requires detail::Ordered<T> Tensor<T> batch_norm_add_relu(const Tensor<T>& x, const Tensor<T>& residual,
                                                          const Tensor<T>& weight, const Tensor<T>& bias,
                                                          Tensor<T>& running_mean, Tensor<T>& running_var,
                                                          const BatchNormOptions& options = {}) {
  return batch_norm_add_relu(x, residual, &weight, &bias, &running_mean, &running_var, options);
}

}  // namespace wengert::inline WENGERT_ISA
