// Batch normalisation as one record. Floor: ops.
#pragma once

#include <wengert/kernels/norm_batch.hpp>
#include <wengert/ops/linear_rows.hpp>

namespace wengert::inline WENGERT_ISA {

/// How `batch_norm` normalises; PyTorch's names and defaults.
struct BatchNormOptions {
  bool training = true;   ///< normalise by the batch's statistics, and move the running ones towards them
  double momentum = 0.1;  ///< share of the batch in the running statistics
  double eps = 1e-5;      ///< added to the variance
};

namespace detail {

template <Field T>
FoldedRows<T> channel_rows(const Tensor<T>& x) {
  return FoldedRows<T>(x, x.rank() - 1, FoldedRows<T>::Columns::contiguous);
}

template <Field T>
struct BatchNormRule {
  static constexpr std::string_view name = "batch_norm";
  Saved<T> x, weight;  // without values where no gradient needs them
  Saved<T> stats;      // (3, C), see kernels::ColumnStats
  bool training;
  auto saved() const { return std::tie(x, weight, stats); }

  void backward(Vjp& v) const {
    const Index columns = v.shape().back(), rows = columns == 0 ? 0 : v.size() / columns;
    const T* const dy = v.dy<T>();
    const kernels::ColumnStats<T> s(const_cast<T*>(stats.data()), columns);
    const Scratch<T> scratch(2 * columns);
    T *const dy_x = scratch.data(), *const dy_sum = dy_x + columns;
    const bool from_batch = training && v.wants(0);
    const FoldedRows<T> xr = channel_rows(x.value());
    if (from_batch || v.wants(1) || v.wants(2))
      kernels::batch_norm_sums(rows, columns, xr.matrix(), s, dy, dy_x, dy_sum);
    if (v.wants(1)) {  // dweight += sum of dy * normalised x
      const GradRef<T> dw = v.into<T>(1);
      kernels::accumulate(dy_x, columns, dw.data, dw.add);
    }
    if (v.wants(2)) {  // dbias += sum of dy
      const GradRef<T> db = v.into<T>(2);
      kernels::accumulate(dy_sum, columns, db.data, db.add);
    }
    if (!v.wants(0)) return;
    const Tensor<T> w = weight.value().packed();
    const GradRef<T> dx = v.into_over_dy<T>(0);
    if (rows == 0) return;
    if (training)
      kernels::batch_norm_vjp(rows, columns, xr.matrix(), s, w.data(), dy, dy_x, dy_sum, dx.data, dx.add);
    else
      kernels::batch_norm_eval_vjp(rows, columns, s, w.data(), dy, dx.data, dx.add);
  }
};

template <Field T>
void check_channels(const Shape& x, const char* what, const Tensor<T>* p) {
  if (p != nullptr && p->shape() != Shape{x.back()})
    fail<ShapeError>("batch_norm", what, " does not fit; x is ", x, ", ", what, " is ", p->shape(),
                     "; expected (", x.back(), ")");
}

template <Field T>
void check_batch_norm(const Tensor<T>& x, const Tensor<T>* weight, const Tensor<T>* bias,
                      const Tensor<T>* running_mean, const Tensor<T>* running_var,
                      const BatchNormOptions& options) {
  if (x.rank() < 2)
    fail<ShapeError>("batch_norm", "rank is too low; x is ", x.shape(), "; expected (batch, ..., channels)");
  check_channels(x.shape(), "weight", weight);
  check_channels(x.shape(), "bias", bias);
  check_channels(x.shape(), "running_mean", running_mean);
  check_channels(x.shape(), "running_var", running_var);
  if ((running_mean == nullptr) != (running_var == nullptr))
    fail<ValueError>("batch_norm", "one running statistic without the other; x is ", x.shape(),
                     "; expected running_mean and running_var, or neither");
  for (const Tensor<T>* running : {running_mean, running_var})
    if (running != nullptr && running->requires_grad() && grad_enabled())
      fail<TapeError>("batch_norm",
                      "a running statistic asks for a gradient, which batch_norm would sever; x is ",
                      x.shape(), "; expected constants; call requires_grad(false) on them");
  if (!options.training && running_mean == nullptr)
    fail<ValueError>("batch_norm", "evaluation needs running statistics; x is ", x.shape(),
                     "; expected running_mean and running_var");
  Index rows = 1;
  for (int i = 0; i + 1 < x.rank(); ++i) rows *= x.shape()[i];
  if (options.training && rows == 1)
    fail<ValueError>("batch_norm", "a single value per channel has no variance; x is ", x.shape(),
                     "; expected more than one value per channel when training");
}

/// Writes the statistics that x is normalised by, and moves the running ones when training.
template <Field T>
void make_stats(const FoldedRows<T>& x, Tensor<T>* running_mean, Tensor<T>* running_var,
                const BatchNormOptions& options, kernels::ColumnStats<T> stats) {
  const T eps = static_cast<T>(options.eps);
  const Index columns = x.width(), rows = x.rows();
  if (!options.training && running_mean != nullptr && running_var != nullptr) {  // evaluation has both
    const Tensor<T> mean = running_mean->packed(), variance = running_var->packed();
    kernels::stats_from_running(columns, mean.data(), variance.data(), eps, stats);
    return;
  }
  if (rows == 0) {
    std::fill_n(stats.mean, 3 * columns, T(0));
    return;
  }
  const Scratch<T> variance(columns);
  kernels::batch_stats(rows, columns, x.matrix(), eps, stats, variance.data());
  if (running_mean == nullptr) return;
  const T momentum = static_cast<T>(options.momentum);
  const T unbiased = static_cast<T>(static_cast<double>(rows) / static_cast<double>(rows - 1));
  kernels::update_running(columns, stats.mean, T(1), momentum, running_mean->mutable_data(),
                          running_mean->strides()[0]);
  kernels::update_running(columns, variance.data(), unbiased, momentum, running_var->mutable_data(),
                          running_var->strides()[0]);
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
  detail::check_batch_norm<T>(x, weight, bias, running_mean, running_var, options);
  const Tensor<T> absent;
  const Tensor<T>& w = weight != nullptr ? *weight : absent;
  const Tensor<T>& b = bias != nullptr ? *bias : absent;
  const Recorder rec("batch_norm", x, w, b);
  const detail::FoldedRows<T> xr = detail::channel_rows(x);
  const Index columns = x.shape().back();
  const Tensor<T> wp = w.packed(), bp = b.packed();
  Tensor<T> y(x.shape()), block({3, columns});
  const kernels::ColumnStats<T> stats(block.fresh_data(), columns);
  detail::make_stats(xr, running_mean, running_var, options, stats);
  kernels::batch_norm(xr.rows(), columns, xr.matrix(), stats, wp.data(), bp.data(), y.fresh_data());
  if (rec) {
    const bool needs_x = w.requires_grad() || b.requires_grad() || (options.training && x.requires_grad());
    rec.record(y, detail::BatchNormRule<T>{detail::save_if(needs_x, x), detail::save_if(x.requires_grad(), w),
                                           save(block), options.training});
  }
  return y;
}
/// As above, with all tensors present.
template <Field T>
Tensor<T> batch_norm(const Tensor<T>& x, const Tensor<T>& weight, const Tensor<T>& bias,
                     Tensor<T>& running_mean, Tensor<T>& running_var, const BatchNormOptions& options = {}) {
  return batch_norm(x, &weight, &bias, &running_mean, &running_var, options);
}

}  // namespace wengert::inline WENGERT_ISA
