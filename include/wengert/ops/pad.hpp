// Padding: pad, around the spatial axes of images or around any axes. Floor: ops.
#pragma once

#include <wengert/core/record.hpp>
#include <wengert/kernels/pad.hpp>

namespace wengert::inline WENGERT_ISA {

/// Elements put before and after those of one axis.
struct PadWidth {
  Index before = 0, after = 0;
};

/// The widths of a padding: `2` for two on either side of every spatial axis, or a pair for each axis:
/// `{{1, 1}, {0, 2}}`.
class PadWidths {
 public:
  template <std::integral I>
  requires(!std::same_as<I, bool>) constexpr PadWidths(I all)
      : before_{static_cast<Index>(all)}, after_(before_), everywhere_(true) {}
  constexpr PadWidths(std::initializer_list<PadWidth> each) {
    for (const PadWidth& w : each) {
      before_.push_back(w.before);
      after_.push_back(w.after);
    }
  }

  /// Number of pairs; -1 where one number serves every spatial axis.
  constexpr int pairs() const noexcept { return everywhere_ ? -1 : before_.rank(); }
  constexpr Index before(int pair) const noexcept { return before_[everywhere_ ? 0 : pair]; }
  constexpr Index after(int pair) const noexcept { return after_[everywhere_ ? 0 : pair]; }
  /// "2", or "((1, 1), (0, 2))".
  std::string str() const {
    if (everywhere_) return std::to_string(before_[0]);
    std::string s = "(";
    for (int i = 0; i < pairs(); ++i) s += (i > 0 ? ", " : "") + Shape{before_[i], after_[i]}.str();
    return s + ")";
  }

 private:
  Shape before_, after_;
  bool everywhere_ = false;
};

/// How `pad` fills.
struct PadOptions {
  PadMode mode = PadMode::constant;
  double value = 0;  ///< of constant padding
};

namespace detail {

template <Field T>
struct PadRule {
  static constexpr std::string_view name = "pad";
  kernels::PadPlan plan;
  void backward(Vjp& v) const {
    if (!v.wants(0)) return;
    const GradRef<T> dx = v.into<T>(0);
    kernels::pad_vjp(plan, v.dy<T>(), dx.data, dx.add);
  }
};

/// Widths for every axis of x, checked.
inline void check_pad(const Shape& x, const PadWidths& widths, PadMode mode, Shape& before, Shape& after,
                      Shape& y) {
  const int rank = x.rank(), pairs = widths.pairs();
  const bool spatial = pairs != rank;
  if (spatial && (rank < 3 || (pairs >= 0 && pairs != rank - 2)))
    fail<ShapeError>("pad", "number of widths does not fit; x is ", x, ", widths are ", widths,
                     "; expected a pair for each axis, or for each but the first and the last");
  before = after = Shape::filled(rank, 0);
  y = x;
  for (int i = spatial ? 1 : 0; i < (spatial ? rank - 1 : rank); ++i) {
    const int pair = spatial ? i - 1 : i;
    before[i] = widths.before(pair);
    after[i] = widths.after(pair);
    const Index widest = std::max(before[i], after[i]);
    if (std::min(before[i], after[i]) < 0)
      fail<ValueError>("pad", "a width is negative; x is ", x, ", widths are ", widths,
                       "; expected widths >= 0; use slice to cut");
    if (mode == PadMode::reflect && widest > 0 && widest >= x[i])
      fail<ShapeError>("pad", "a width is too large to reflect axis ", i, "; x is ", x, ", widths are ",
                       widths, "; expected widths < ", x[i]);
    if (mode == PadMode::replicate && widest > 0 && x[i] == 0)
      fail<ShapeError>("pad", "axis ", i, " has no element to replicate; x is ", x, ", widths are ", widths,
                       "; expected a size >= 1");
    if (__builtin_add_overflow(y[i], before[i], &y[i]) || __builtin_add_overflow(y[i], after[i], &y[i]))
      fail<ShapeError>("pad", "axis ", i, " overflows; x is ", x, ", widths are ", widths,
                       "; expected a tensor that fits memory");
  }
}

}  // namespace detail

/// x with more elements around it: `pad(x, 1)` on every side of the spatial axes of (N, ..., C);
/// `pad(x, {{1, 1}, {0, 2}})` with a pair (before, after) for each spatial axis, or for each axis of x.
///   constant:  y = options.value outside x                        dx += dy[x's part]
///   reflect:   y[-k] = x[k], the edge not repeated                dx += the sum of dy where x was copied
///   replicate: y[-k] = x[0]                                       dx += the sum of dy where x was copied
/// Saves only the widths. Gradients are summed in one order at any number of threads.
/// Throws ShapeError when the pairs fit neither way, when a reflected width is not below the size of its axis
/// and when there is nothing to replicate; ValueError for negative widths (PyTorch cuts there; use slice).
template <Scalar T>
Tensor<T> pad(const Tensor<T>& x, const PadWidths& widths, const PadOptions& options = {}) {
  Shape before, after, shape;
  detail::check_pad(x.shape(), widths, options.mode, before, after, shape);
  checked_size("pad", shape, sizeof(T));
  const Recorder rec("pad", x);
  const Tensor<T> xc = x.packed();
  Tensor<T> y(shape);
  const kernels::PadPlan plan(x.shape(), before, after, options.mode);
  kernels::pad(plan, xc.data(), static_cast<T>(options.value), y.fresh_data());
  if constexpr (Field<T>)
    if (rec) rec.record(y, detail::PadRule<T>{plan});
  return y;
}

}  // namespace wengert::inline WENGERT_ISA
