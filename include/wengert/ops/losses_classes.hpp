// Losses over classes: cross-entropy from logits and the negative log-likelihood. The class axis is the last
// one, as channels are everywhere in this library. Floor: ops.
#pragma once

#include <optional>

#include <wengert/core/record.hpp>
#include <wengert/kernels/loss_rows.hpp>

namespace wengert::inline WENGERT_ISA {

/// How a loss joins the losses of its elements or rows.
enum class Reduction { mean, sum, none };

/// Options of `cross_entropy`; names and defaults are PyTorch's.
template <Field T>
struct CrossEntropyOptions {
  std::optional<Tensor<T>> weight = {};  ///< (C): factor of the losses of each class
  Index ignore_index = -100;             ///< rows with this target count for nothing; integer targets only
  double label_smoothing = 0;            ///< share of the target that spreads over all classes, 0..1
  Reduction reduction = Reduction::mean;
};

/// Options of `nll_loss`.
template <Field T>
struct NllOptions {
  std::optional<Tensor<T>> weight = {};  ///< (C): factor of the losses of each class
  Index ignore_index = -100;             ///< rows with this target count for nothing
  Reduction reduction = Reduction::mean;
};

namespace detail {

template <Scalar T>
void check_class_weight(std::string_view op, const std::optional<Tensor<T>>& w, const Shape& x) {
  if (!w) return;
  if (w->shape() != Shape{x.back()})
    fail<ShapeError>(op, "weight must hold one number a class; x is ", x, ", weight is ", w->shape(),
                     "; expected ", Shape{x.back()});
  if (w->requires_grad() && grad_enabled())
    fail<ValueError>(op, "weight asks for a gradient, which this operator does not give; weight is ",
                     w->shape(), "; expected a constant; pass its detach()");
}

/// The shape of targets for x: all but the last axis.
inline Shape rows_of(std::string_view op, const Shape& x) {
  if (x.rank() == 0)
    fail<ShapeError>(op, "x has no class axis; x is ", x, "; expected rank 1 or more, classes last");
  Shape rows = x;
  rows.erase(x.rank() - 1);
  return rows;
}

/// Every target is a class or `ignored`; throws IndexError otherwise, ShapeError for shapes that do not fit.
template <Scalar T, std::integral I>
void check_targets(std::string_view op, const Tensor<T>& x, const Tensor<I>& targets, const Tensor<I>& packed,
                   Index ignored) {
  const Index classes = x.shape().back();
  for (Index r = 0; r < packed.size(); ++r) {
    const Index t = static_cast<Index>(packed.data()[r]);
    if (t != ignored && (t < 0 || t >= classes))
      fail<IndexError>(op, "target ", t, " at position ", r, " is out of range; x is ", x.shape(),
                       ", targets are ", targets.shape(), "; expected ",
                       classes == 0 ? std::string("no class") : text("0..", classes - 1),
                       ", or ignore_index ", ignored);
  }
}

template <Scalar T, Scalar U>
void check_targets_shape(std::string_view op, const Tensor<T>& x, const Tensor<U>& targets,
                         const Shape& rows) {
  if (targets.shape() != rows)
    fail<ShapeError>(op, "shapes do not fit; x is ", x.shape(), ", targets are ", targets.shape(),
                     "; expected targets of ", rows, ": one class for each row of x, classes last");
}

template <Scalar T, std::integral I>
kernels::ClassRows<T, I> class_rows(const Tensor<T>& x, const Tensor<I>& targets, const Tensor<T>& weight,
                                    Index ignored) {
  return {x.data(), targets.data(), weight.data(), targets.size(), x.shape().back(), ignored};
}

/// Joins the losses of rows; `total` is what a mean divides by, and the mean is 0 when that is 0. `scale`
/// gets the factor of the gradient.
template <Scalar T>
Tensor<T> join_rows(const Tensor<T>& losses, Reduction reduction, T total, T& scale) {
  scale = T(1);
  if (reduction == Reduction::none) return losses;
  if (reduction == Reduction::mean) scale = total == T(0) ? T(0) : static_cast<T>(T(1) / total);
  Tensor<T> y{Shape()};
  kernels::fold_rows<kernels::FoldSum>(losses.data(), 1, losses.size(), y.fresh_data());
  T& out = *y.fresh_data();
  if (reduction == Reduction::mean) out = total == T(0) ? T(0) : static_cast<T>(out / total);
  return y;
}

template <Field T, std::integral I>
struct CrossEntropyRule {
  static constexpr std::string_view name = "cross_entropy";
  Saved<T> x, weight;
  Saved<I> targets;
  Saved<kernels::RowSoftmax<T>> softmax;
  Index ignored;
  T smoothing, scale;
  bool each;
  auto saved() const { return std::tie(x, weight, targets, softmax); }

  void backward(Vjp& v) const {
    if (!v.wants(0)) return;
    const Tensor<T> logits = x.value().packed();
    const GradRef<T> dx = v.into<T>(0);
    kernels::cross_entropy_vjp(class_rows(logits, targets.value(), weight.value(), ignored), smoothing,
                               softmax.data(), v.dy<T>(), each, scale, dx.data, dx.add);
  }
};

template <Field T>
struct SoftCrossEntropyRule {
  static constexpr std::string_view name = "cross_entropy";
  Saved<T> x, targets, weight, mass;
  Saved<kernels::RowSoftmax<T>> softmax;
  T smoothing, scale;
  bool each;
  auto saved() const { return std::tie(x, targets, weight, mass, softmax); }

  void backward(Vjp& v) const {
    const Tensor<T> logits = x.value().packed(), t = targets.value().packed();
    const Index classes = logits.shape().back(), rows = mass.value().size();
    const kernels::SoftTargets<T> q{t.data(), static_cast<T>(T(1) - smoothing),
                                    static_cast<T>(smoothing / static_cast<T>(classes)), weight.data()};
    GradRef<T> dx{nullptr, false}, dt{nullptr, false};
    if (v.wants(0)) dx = v.into<T>(0);
    if (v.wants(1)) dt = v.into<T>(1);
    kernels::soft_cross_entropy_vjp(logits.data(), q, rows, classes, softmax.data(), mass.data(), v.dy<T>(),
                                    each, scale, dx.data, dx.add, dt.data, dt.add);
  }
};

template <Field T, std::integral I>
struct NllRule {
  static constexpr std::string_view name = "nll_loss";
  Saved<T> weight;
  Saved<I> targets;
  Index classes, ignored;
  T scale;
  bool each;
  auto saved() const { return std::tie(weight, targets); }

  void backward(Vjp& v) const {
    if (!v.wants(0)) return;
    const GradRef<T> dx = v.into<T>(0);
    const kernels::ClassRows<T, I> rows{nullptr, targets.data(), weight.data(), targets.value().size(),
                                        classes, ignored};
    kernels::nll_vjp(rows, v.dy<T>(), each, scale, dx.data, dx.add);
  }
};

template <Scalar T>
Tensor<T> given_weight(const std::optional<Tensor<T>>& w) {
  return w ? w->packed() : Tensor<T>();
}

inline void check_smoothing(double smoothing) {
  if (!(smoothing >= 0 && smoothing <= 1))
    fail<ValueError>("cross_entropy", "label_smoothing is ", smoothing, "; expected 0..1");
}

}  // namespace detail

/// Softmax cross-entropy of logits x and a class for each row, in one record.
///   l_r = (1 - s) * w_t * (lse - x_t) + s / C * sum of w_c * (lse - x_c)
///   s: label_smoothing, lse: logsumexp(x), x: (..., C), classes last; targets: (...), of any integer type
///   y   = sum of l / sum of w_t, sum of l, or l;  y: () or, with reduction none, (...)
///   dx += dy * (softmax(x) - onehot(t)) * w_t / sum of w_t, for s = 0
/// Saves x, targets and two numbers a row. Rows of ignore_index count for nothing; a mean over none is 0. A
/// row of -inf has loss inf and gradient 0. Throws ShapeError for shapes that do not fit, IndexError for a
/// target that is no class, ValueError for label_smoothing outside 0..1 and for a weight that asks for a
/// gradient.
template <Field T, std::integral I>
Tensor<T> cross_entropy(const Tensor<T>& x, const Tensor<I>& targets,
                        const CrossEntropyOptions<T>& options = {}) {
  constexpr std::string_view op = "cross_entropy";
  const Shape rows = detail::rows_of(op, x.shape());
  detail::check_targets_shape(op, x, targets, rows);
  detail::check_class_weight(op, options.weight, x.shape());
  detail::check_smoothing(options.label_smoothing);
  const Tensor<I> ts = targets.packed();
  detail::check_targets(op, x, targets, ts, options.ignore_index);
  const Recorder rec(op, x);
  const Tensor<T> xs = x.packed(), w = detail::given_weight(options.weight);
  const auto c = detail::class_rows(xs, ts, w, options.ignore_index);
  const T smoothing = static_cast<T>(options.label_smoothing);
  Tensor<T> losses(rows);
  Tensor<kernels::RowSoftmax<T>> softmax(rows);
  kernels::cross_entropy(c, smoothing, losses.fresh_data(), softmax.fresh_data());
  T scale;
  const T total = options.reduction == Reduction::mean ? c.total_weight() : T(1);
  Tensor<T> y = detail::join_rows(losses, options.reduction, total, scale);
  rec.record(y, [&]() noexcept {
    return detail::CrossEntropyRule<T, I>{save(x),
                                          save(w),
                                          save(ts),
                                          save(softmax),
                                          options.ignore_index,
                                          smoothing,
                                          scale,
                                          options.reduction == Reduction::none};
  });
  return y;
}

/// Softmax cross-entropy of logits x and probabilities t of each class, in one record.
///   l_r = sum of w_c * q_c * (lse - x_c)      q = (1 - s) * t + s / C; a q of 0 contributes 0
///   x, targets: (..., C), classes last; y: () or, with reduction none, (...)
///   y   = sum of l / number of rows, sum of l, or l
///   dx += dy * (softmax(x) * sum of w * q - w * q) [/ rows];  dt += dy * (1 - s) * w * (lse - x) [/ rows]
/// Saves x, targets and three numbers a row. Throws as above; ignore_index plays no part.
template <Field T>
Tensor<T> cross_entropy(const Tensor<T>& x, const Tensor<T>& targets,
                        const CrossEntropyOptions<T>& options = {}) {
  constexpr std::string_view op = "cross_entropy";
  const Shape rows = detail::rows_of(op, x.shape());
  if (targets.shape() != x.shape())
    fail<ShapeError>(op, "shapes differ; x is ", x.shape(), ", targets are ", targets.shape(),
                     "; expected equal shapes for probabilities, or integers of ", rows);
  detail::check_class_weight(op, options.weight, x.shape());
  detail::check_smoothing(options.label_smoothing);
  const Recorder rec(op, x, targets);
  const Tensor<T> xs = x.packed(), ts = targets.packed(), w = detail::given_weight(options.weight);
  const Index classes = x.shape().back();
  const T smoothing = static_cast<T>(options.label_smoothing);
  const kernels::SoftTargets<T> q{ts.data(), static_cast<T>(T(1) - smoothing),
                                  static_cast<T>(smoothing / static_cast<T>(classes)), w.data()};
  Tensor<T> losses(rows), mass(rows);
  Tensor<kernels::RowSoftmax<T>> softmax(rows);
  kernels::soft_cross_entropy(xs.data(), q, rows.size(), classes, losses.fresh_data(), softmax.fresh_data(),
                              mass.fresh_data());
  T scale;
  Tensor<T> y = detail::join_rows(losses, options.reduction, static_cast<T>(rows.size()), scale);
  if (rec)
    rec.record(y, detail::SoftCrossEntropyRule<T>{save(x), save(targets), save(w), save(mass), save(softmax),
                                                  smoothing, scale, options.reduction == Reduction::none});
  return y;
}

/// Negative log-likelihood of log-probabilities x, such as log_softmax gives, and a class for each row.
///   l_r   = -w_t * x_t;  y = sum of l / sum of w_t, sum of l, or l
///   dx_t -= dy * w_t [/ sum of w_t]             saves the targets
/// Shapes, ignored rows and errors are those of `cross_entropy`, which is faster and more exact than this on
/// log_softmax.
template <Field T, std::integral I>
Tensor<T> nll_loss(const Tensor<T>& x, const Tensor<I>& targets, const NllOptions<T>& options = {}) {
  constexpr std::string_view op = "nll_loss";
  const Shape rows = detail::rows_of(op, x.shape());
  detail::check_targets_shape(op, x, targets, rows);
  detail::check_class_weight(op, options.weight, x.shape());
  const Tensor<I> ts = targets.packed();
  detail::check_targets(op, x, targets, ts, options.ignore_index);
  const Recorder rec(op, x);
  const Tensor<T> xs = x.packed(), w = detail::given_weight(options.weight);
  const auto c = detail::class_rows(xs, ts, w, options.ignore_index);
  Tensor<T> losses(rows);
  kernels::nll(c, losses.fresh_data());
  T scale;
  const T total = options.reduction == Reduction::mean ? c.total_weight() : T(1);
  Tensor<T> y = detail::join_rows(losses, options.reduction, total, scale);
  if (rec)
    rec.record(y, detail::NllRule<T, I>{save(w), save(ts), c.classes, options.ignore_index, scale,
                                        options.reduction == Reduction::none});
  return y;
}

}  // namespace wengert::inline WENGERT_ISA
