// Losses: mean squared error and binary cross-entropy from logits here, losses over classes in
// losses_classes.hpp. Floor: ops.
#pragma once

#include <wengert/kernels/loss.hpp>
#include <wengert/ops/losses_classes.hpp>

namespace wengert::inline WENGERT_ISA {

/// Options of `mse_loss`.
struct MseOptions {
  Reduction reduction = Reduction::mean;
};

/// Options of `bce_with_logits`.
template <Field T>
struct BceOptions {
  std::optional<Tensor<T>> weight = {};  ///< factor of each loss; broadcasts to the shape of x
  std::optional<Tensor<T>> pos_weight =
      {};  ///< factor of the losses of positives, usually one a class; broadcasts
  Reduction reduction = Reduction::mean;
};

namespace detail {

/// x and targets that must have one shape: a silent broadcast here is nearly always a fault.
template <Scalar T>
void check_same_shape(std::string_view op, const Tensor<T>& x, const Tensor<T>& targets) {
  if (x.shape() != targets.shape())
    fail<ShapeError>(op, "shapes differ; x is ", x.shape(), ", targets are ", targets.shape(),
                     "; expected equal shapes");
}

/// Options that are tensors count as constants: a gradient they ask for must not be dropped in silence.
template <Scalar T>
void check_constant(std::string_view op, std::string_view option, const std::optional<Tensor<T>>& w) {
  if (w && w->requires_grad() && grad_enabled())
    fail<ValueError>(op, option, " asks for a gradient, which this operator does not give; ", option, " is ",
                     w->shape(), "; expected a constant; pass its detach()");
}

/// Forward of an element-wise loss, by its reduction.
template <Scalar T, class Loss>
Tensor<T> reduce_losses(const Shape& shape, const Loss& loss, Reduction reduction) {
  Tensor<T> y(reduction == Reduction::none ? shape : Shape());
  const Index n = shape.size();
  if (reduction == Reduction::none) {
    kernels::each_loss(n, loss, y.fresh_data());
    return y;
  }
  const T total = kernels::sum_losses<T>(n, loss);
  *y.fresh_data() = reduction == Reduction::mean ? static_cast<T>(total / static_cast<T>(n)) : total;
  return y;
}

/// Backward of an element-wise loss of (x, t), by its reduction.
template <Scalar T, class Loss>
void losses_backward(Vjp& v, Index n, const Loss& loss, Reduction reduction) {
  const T scale = reduction == Reduction::mean ? static_cast<T>(T(1) / static_cast<T>(n)) : T(1);
  kernels::LossGradient<T> to[2];
  for (int i = 0; i < 2; ++i)
    if (v.wants(i)) {
      const GradRef<T> d = v.into<T>(i);
      to[i] = {d.data, d.add};
    }
  kernels::losses_vjp(n, loss, v.dy<T>(), reduction == Reduction::none, scale, to[0], to[1]);
}

template <Field T>
struct MseRule {
  static constexpr std::string_view name = "mse_loss";
  Saved<T> x, t;
  Reduction reduction;
  auto saved() const { return std::tie(x, t); }

  void backward(Vjp& v) const {
    const Tensor<T> xs = x.value().packed(), ts = t.value().packed();
    losses_backward<T>(v, xs.size(), kernels::SquaredError<T>{xs.data(), ts.data()}, reduction);
  }
};

template <Field T>
struct BceRule {
  static constexpr std::string_view name = "bce_with_logits";
  Saved<T> x, t, weight, pos_weight;
  Reduction reduction;
  auto saved() const { return std::tie(x, t, weight, pos_weight); }

  void backward(Vjp& v) const {
    const Tensor<T> xs = x.value().packed(), ts = t.value().packed();
    losses_backward<T>(v, xs.size(),
                       kernels::BinaryCrossEntropy<T>{xs.data(), ts.data(), weight.data(), pos_weight.data()},
                       reduction);
  }
};

/// An optional weight as one number for each element of `shape`; no elements when it is not given.
template <Scalar T>
Tensor<T> spread_weight(std::string_view op, std::string_view option, const std::optional<Tensor<T>>& w,
                        const Shape& shape) {
  if (!w) return Tensor<T>();
  Shape common;
  if (!try_broadcast(shape, w->shape(), common) || common != shape)
    fail<ShapeError>(op, option, " does not broadcast to x; x is ", shape, ", ", option, " is ", w->shape(),
                     "; expected dimensions of x or 1, aligned at the back");
  return Tensor<T>(w->buffer(), shape, broadcast_strides(w->shape(), w->strides(), shape), w->offset())
      .packed();
}

}  // namespace detail

/// Mean squared error.
///   l_i = (x_i - t_i)^2;  y = mean of l, sum of l, or l
///   x, targets: one shape; y: () or, with reduction none, the same
///   dx += dy * 2 * (x - t) [/ n];  dt += the negative          saves x and targets
/// The mean of nothing is NaN. Shapes never broadcast. Throws ShapeError when they differ.
template <Field T>
Tensor<T> mse_loss(const Tensor<T>& x, const Tensor<T>& targets, MseOptions options = {}) {
  detail::check_same_shape("mse_loss", x, targets);
  const Recorder rec("mse_loss", x, targets);
  const Tensor<T> xs = x.packed(), ts = targets.packed();
  Tensor<T> y =
      detail::reduce_losses<T>(x.shape(), kernels::SquaredError<T>{xs.data(), ts.data()}, options.reduction);
  if (rec) rec.record(y, detail::MseRule<T>{save(x), save(targets), options.reduction});
  return y;
}

/// Binary cross-entropy of logits x and targets t in 0..1, without overflow or cancellation.
///   l_i = w * (p * t * softplus(-x) + (1 - t) * softplus(x))   w: weight, p: pos_weight, by default 1
///   y   = mean of l (divided by n, not by weights), sum of l, or l          x, targets: one shape
///   dx += dy * w * ((1 - t + p * t) * sigmoid(x) - p * t) [/ n]             dt likewise; saves all of them
/// Throws ShapeError when x and targets differ in shape or a weight does not broadcast to it, ValueError when
/// a weight asks for a gradient.
template <Field T>
Tensor<T> bce_with_logits(const Tensor<T>& x, const Tensor<T>& targets, const BceOptions<T>& options = {}) {
  constexpr std::string_view op = "bce_with_logits";
  detail::check_same_shape(op, x, targets);
  detail::check_constant(op, "weight", options.weight);
  detail::check_constant(op, "pos_weight", options.pos_weight);
  const Recorder rec(op, x, targets);
  const Tensor<T> w = detail::spread_weight(op, "weight", options.weight, x.shape());
  const Tensor<T> p = detail::spread_weight(op, "pos_weight", options.pos_weight, x.shape());
  const Tensor<T> xs = x.packed(), ts = targets.packed();
  Tensor<T> y = detail::reduce_losses<T>(
      x.shape(), kernels::BinaryCrossEntropy<T>{xs.data(), ts.data(), w.data(), p.data()}, options.reduction);
  if (rec) rec.record(y, detail::BceRule<T>{save(x), save(targets), save(w), save(p), options.reduction});
  return y;
}

}  // namespace wengert::inline WENGERT_ISA
