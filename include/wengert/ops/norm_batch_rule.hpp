// What the batch normalisations share: their options, their checks, their statistics and the backward rule.
// Floor: ops.
#pragma once

#include <wengert/kernels/norm_batch_vjp.hpp>
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

/// A NormLine with its memory.
template <class T>
class BatchNormLine {
 public:
  BatchNormLine(Index columns, kernels::ColumnStats<T> stats, const T* weight, const T* bias)
      : scratch_(2 * columns), line_{scratch_.data(), scratch_.data() + columns} {
    kernels::norm_line(columns, stats, weight, bias, line_);
  }
  kernels::NormLine<T> line() const noexcept { return line_; }

 private:
  Scratch<T> scratch_;
  kernels::NormLine<T> line_;
};

template <Field T, kernels::NormEnd End>
struct BatchNormRule {
  using E = kernels::NormEnd;
  static constexpr std::string_view name = End == E::none   ? "batch_norm"
                                           : End == E::relu ? "batch_norm_relu"
                                                            : "batch_norm_add_relu";
  Saved<T> x, weight, bias;  // without values where no gradient needs them
  Saved<T> y;                // for add_relu
  Saved<T> stats;            // (3, C), see kernels::ColumnStats
  bool training = true;
  auto saved() const { return std::tie(x, weight, bias, y, stats); }

  void backward(Vjp& v) const {
    const Index columns = v.shape().back(), rows = columns == 0 ? 0 : v.size() / columns;
    const kernels::ColumnStats<T> s(const_cast<T*>(stats.data()), columns);
    const Tensor<T> w = weight.value().packed();
    if constexpr (End == E::relu) {
      const Tensor<T> b = bias.value().packed();
      const BatchNormLine<T> line(columns, s, w.data(), b.data());
      run(v, rows, columns, s, w, {line.line().slope, line.line().shift, nullptr});
    } else {
      run(v, rows, columns, s, w, {nullptr, nullptr, y.data()});
    }
  }

 private:
  void run(Vjp& v, Index rows, Index columns, kernels::ColumnStats<T> s, const Tensor<T>& w,
           kernels::NormMask<T> mask) const {
    const T* const dy = v.dy<T>();
    const Scratch<T> scratch(2 * columns);
    T *const dy_x = scratch.data(), *const dy_sum = dy_x + columns;
    const FoldedRows<T> xr = channel_rows(x.value());
    kernels::SumTarget<T> dresidual;  // of masked dy, over dy itself where that is possible
    if constexpr (End == E::add_relu)
      if (v.wants(3)) {
        const GradRef<T> d = v.into_over_dy<T>(3);
        dresidual = {d.data, d.add};
      }
    if ((training && v.wants(0)) || v.wants(1) || v.wants(2))
      kernels::batch_norm_sums<End>(rows, columns, xr.matrix(), s, mask, dy, dresidual, dy_x, dy_sum,
                                    Scratch<T>(kernels::column_sums_scratch<2>(rows, columns)).data());
    else if (dresidual.data != nullptr)
      kernels::relu_vjp(v.size(), mask.y, dy, dresidual);
    if (v.wants(1)) {  // dweight += sum of g * normalised x
      const GradRef<T> dw = v.into<T>(1);
      kernels::accumulate(dy_x, columns, dw.data, dw.add);
    }
    if (v.wants(2)) {  // dbias += sum of g
      const GradRef<T> db = v.into<T>(2);
      kernels::accumulate(dy_sum, columns, db.data, db.add);
    }
    if (!v.wants(0)) return;
    const bool masked = dresidual.data != nullptr && !dresidual.add;  // then dresidual holds just that
    const GradRef<T> d = dresidual.data == dy ? v.into<T>(0) : v.into_over_dy<T>(0);
    if (rows == 0) return;
    const kernels::SumTarget<T> dx{d.data, d.add};
    if (masked)
      write_dx<E::none>(rows, columns, xr, s, w, mask, dresidual.data, dy_x, dy_sum, dx);
    else
      write_dx<End>(rows, columns, xr, s, w, mask, dy, dy_x, dy_sum, dx);
  }

  template <E Mask>
  void write_dx(Index rows, Index columns, const FoldedRows<T>& xr, kernels::ColumnStats<T> s,
                const Tensor<T>& w, kernels::NormMask<T> mask, const T* dy, const T* dy_x, const T* dy_sum,
                kernels::SumTarget<T> dx) const {
    if (training)
      kernels::batch_norm_vjp<Mask>(rows, columns, xr.matrix(), s, w.data(), mask, dy, dy_x, dy_sum, dx);
    else
      kernels::batch_norm_eval_vjp<Mask>(rows, columns, xr.matrix(), s, w.data(), mask, dy, dx);
  }
};

template <Field T>
void check_channels(std::string_view op, const Shape& x, const char* what, const Tensor<T>* p) {
  if (p != nullptr && p->shape() != Shape{x.back()})
    fail<ShapeError>(op, what, " does not fit; x is ", x, ", ", what, " is ", p->shape(), "; expected (",
                     x.back(), ")");
}

template <Field T>
void check_batch_norm(std::string_view op, const Tensor<T>& x, const Tensor<T>* residual,
                      const Tensor<T>* weight, const Tensor<T>* bias, const Tensor<T>* running_mean,
                      const Tensor<T>* running_var, const BatchNormOptions& options) {
  if (x.rank() < 2)
    fail<ShapeError>(op, "rank is too low; x is ", x.shape(), "; expected (batch, ..., channels)");
  if (residual != nullptr && residual->shape() != x.shape())
    fail<ShapeError>(op, "residual does not fit; x is ", x.shape(), ", residual is ", residual->shape(),
                     "; expected ", x.shape());
  check_channels(op, x.shape(), "weight", weight);
  check_channels(op, x.shape(), "bias", bias);
  check_channels(op, x.shape(), "running_mean", running_mean);
  check_channels(op, x.shape(), "running_var", running_var);
  if ((running_mean == nullptr) != (running_var == nullptr))
    fail<ValueError>(op, "one running statistic without the other; x is ", x.shape(),
                     "; expected running_mean and running_var, or neither");
  for (const Tensor<T>* running : {running_mean, running_var}) {
    if (running != nullptr && options.training && running->strides()[0] == 0 && x.shape().back() > 1)
      fail<ShapeError>(op, "several elements of a running statistic lie in one place; x is ", x.shape(),
                       ", strides are ", running->strides(),
                       "; expected a tensor that was not expanded; pass a clone");
    if (running != nullptr && running->requires_grad() && grad_enabled())
      fail<TapeError>(op, "a running statistic asks for a gradient, which ", op, " would sever; x is ",
                      x.shape(), "; expected constants; call requires_grad(false) on them");
  }
  if (!options.training && running_mean == nullptr)
    fail<ValueError>(op, "evaluation needs running statistics; x is ", x.shape(),
                     "; expected running_mean and running_var");
  const Index rows = x.shape().product(0, x.rank() - 1);
  if (options.training && rows == 1)
    fail<ValueError>(op, "a single value per channel has no variance; x is ", x.shape(),
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

}  // namespace wengert::inline WENGERT_ISA
