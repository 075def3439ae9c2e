// Element-wise losses: one pass that computes and sums them, one that accumulates the gradients of both
// operands. Floor: kernels.
#pragma once

#include <wengert/kernels/reduce.hpp>

namespace wengert::inline WENGERT_ISA::kernels {

/// Squared error: (x - t)^2.
template <Scalar T>
struct SquaredError {
  static constexpr Index grain_blocks = 8;  // blocks of `fold_block` elements that are worth a task
  const T* x;
  const T* t;

  WENGERT_INLINE Vec<T> value(Index i, Index n) const noexcept {
    const Vec<T> d = load_n(x + i, n) - load_n(t + i, n);
    return d * d;
  }
  WENGERT_INLINE Vec<T> slope_x(Index i, Index n) const noexcept {
    return 2 * (load_n(x + i, n) - load_n(t + i, n));
  }
  WENGERT_INLINE Vec<T> slope_t(Index i, Index n) const noexcept { return -slope_x(i, n); }
};

/// Binary cross-entropy from logits x and probabilities t:
///   w * (p * t * softplus(-x) + (1 - t) * softplus(x)),   w and p: 1, or given for each element.
template <Scalar T>
struct BinaryCrossEntropy {
  static constexpr Index grain_blocks = 1;
  const T* x;
  const T* t;
  const T* w;  // or null
  const T* p;  // or null

  WENGERT_INLINE Vec<T> weighted(Vec<T> v, Index i, Index n) const noexcept {
    return w == nullptr ? v : v * load_n(w + i, n);
  }
  WENGERT_INLINE Vec<T> positive(Vec<T> t_or_1, Index i, Index n) const noexcept {
    return p == nullptr ? t_or_1 : t_or_1 * load_n(p + i, n);
  }
  WENGERT_INLINE Vec<T> value(Index i, Index n) const noexcept {
    const Vec<T> a = load_n(x + i, n), b = load_n(t + i, n);
    const Vec<T> pb = positive(b, i, n), c = 1 - b;
    // softplus(x) = max(x, 0) + log1p(exp(-|x|)): nothing cancels for either sign
    const Vec<T> l = log1p(exp(-abs(a)));
    return weighted((pb + c) * l + where(a > 0, c * a, -(pb * a)), i, n);
  }
  WENGERT_INLINE Vec<T> slope_x(Index i, Index n) const noexcept {
    const Vec<T> b = load_n(t + i, n), pb = positive(b, i, n), s = sigmoid(load_n(x + i, n));
    return weighted(p == nullptr ? s - b : (1 - b + pb) * s - pb, i, n);
  }
  WENGERT_INLINE Vec<T> slope_t(Index i, Index n) const noexcept {
    const Vec<T> a = load_n(x + i, n);
    return weighted(positive(softplus(-a), i, n) - softplus(a), i, n);
  }
};

/// The sum of n losses.
template <Scalar T, class Loss>
T sum_losses(Index n, Loss loss) {
  if (n == 0) return T(0);
  const Index blocks = (n - 1) / fold_block + 1;
  const Scratch<T> partial(blocks);
  T* part = partial.data();
  parallel_for(blocks, Loss::grain_blocks, [=](Index begin, Index end) {
    for (Index b = begin; b < end; ++b) {
      const Index from = b * fold_block;
      part[b] =
          sum_vectors<4, T>(std::min(fold_block, n - from),
                            [=](Index i, Index k) WENGERT_INLINE_LAMBDA { return loss.value(from + i, k); });
    }
  });
  return FoldSum::total(part, blocks);
}

/// y[i] = loss i.
template <Scalar T, class Loss>
void each_loss(Index n, Loss loss, T* y) {
  parallel_for(n, Loss::grain_blocks * fold_block, [=](Index begin, Index end) {
    constexpr Index lanes = Vec<T>::lanes;
    Index i = begin;
    for (; i + lanes <= end; i += lanes) loss.value(i, lanes).store(y + i);
    if (i < end) loss.value(i, end - i).store_partial(y + i, end - i);
  });
}

/// Where the gradient of a loss goes: stored, or added; null when nobody asked.
template <Scalar T>
struct LossGradient {
  T* data = nullptr;
  bool add = false;
};

/// dx[i] += dy * scale * slope_x(i) and dt likewise, where dy is one number, or one an element with `each`.
/// dx and dt may be one place if dt adds.
template <Scalar T, class Loss>
void losses_vjp(Index n, Loss loss, const T* dy, bool each, T scale, LossGradient<T> dx, LossGradient<T> dt) {
  if (n == 0) return;
  const Vec<T> one = Vec<T>::broadcast(static_cast<T>(scale * *dy));
  parallel_for(n, Loss::grain_blocks * fold_block, [=](Index begin, Index end) {
    constexpr Index lanes = Vec<T>::lanes;
    const auto put = [=](const LossGradient<T>& to, Vec<T> d, Index i, Index k) WENGERT_INLINE_LAMBDA {
      if (to.add) d += load_n(to.data + i, k);
      store_n(d, to.data + i, k);
    };
    const auto step = [=](Index i, Index k) WENGERT_INLINE_LAMBDA {
      const Vec<T> g = each ? load_n(dy + i, k) : one;
      if (dx.data != nullptr) put(dx, g * loss.slope_x(i, k), i, k);
      if (dt.data != nullptr) put(dt, g * loss.slope_t(i, k), i, k);
    };
    Index i = begin;
    for (; i + lanes <= end; i += lanes) step(i, lanes);
    if (i < end) step(i, end - i);
  });
}

}  // namespace wengert::inline WENGERT_ISA::kernels
