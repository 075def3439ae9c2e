// Softmax and cross-entropy in one: forward reads each row of logits twice while it is in L1, backward once.
// Also the negative log-likelihood. Rows are (n, classes) without gaps. Floor: kernels.
#pragma once

#include <wengert/kernels/softmax.hpp>

namespace wengert::inline WENGERT_ISA::kernels {

/// What a loss over rows of classes is made of. `weight` (one a class) may be null, `targets` too for targets
/// that are probabilities.
template <Scalar T, class I>
struct ClassRows {
  const T* x;
  const I* targets;
  const T* weight;
  Index rows, classes;
  Index ignored;  // rows with this target count for nothing

  WENGERT_INLINE bool counts(Index r) const noexcept { return static_cast<Index>(targets[r]) != ignored; }
  WENGERT_INLINE Index target(Index r) const noexcept { return static_cast<Index>(targets[r]); }
  WENGERT_INLINE T weight_of(Index r) const noexcept { return weight == nullptr ? T(1) : weight[target(r)]; }
  /// Sum of the weights of the rows that count: what `mean` divides by.
  T total_weight() const noexcept {
    Wide<T> total = static_cast<Wide<T>>(0);
    for (Index r = 0; r < rows; ++r)
      if (counts(r)) total += static_cast<Wide<T>>(weight_of(r));
    return static_cast<T>(total);
  }
};

/// What backward needs of a row: exp(x - shift) * scale are its probabilities; scale is 0 for a row of -inf.
template <Scalar T>
struct RowSoftmax {
  T shift, scale;
};

namespace detail {

// What a row's logits look like after the shift: log(sum of exp), and that row's RowSoftmax.
template <Scalar T>
WENGERT_INLINE T softmax_of_row(const T* x, Index n, RowSoftmax<T>* out) noexcept {
  const T shift = exp_shift(fold_span<FoldLargest>(x, n)), s = sum_exp(x, n, shift);
  *out = {shift, s == T(0) ? T(0) : static_cast<T>(T(1) / s)};
  return static_cast<T>(log(s));
}

// sum of w_c * (log_s - (x_c - shift)): the loss of a target that spreads over all classes.
template <Scalar T>
[[gnu::noinline]] T spread_loss(const T* x, Index n, T shift, T log_s, const T* weight) noexcept {
  using V = Vec<T>;
  const V top = V::broadcast(shift), bottom = V::broadcast(log_s);
  return sum_vectors<4, T>(n, [=](Index i, Index k) WENGERT_INLINE_LAMBDA {
    const V l = bottom - (load_n(x + i, k) - top);
    return weight == nullptr ? l : l * load_n(weight + i, k);
  });
}

}  // namespace detail

/// loss[r] = (1 - smoothing) * w_t * (lse - x_t) + smoothing / classes * sum of w_c * (lse - x_c) for target
/// t, where lse = log(sum(exp(x[r, :]))); 0 for rows that are ignored. `softmax` gets what backward needs.
template <Scalar T, class I>
void cross_entropy(const ClassRows<T, I>& c, T smoothing, T* loss, RowSoftmax<T>* softmax) {
  parallel_for(c.rows, softmax_grain / std::max<Index>(1, c.classes), [=](Index begin, Index end) {
    for (Index r = begin; r < end; ++r) {
      if (!c.counts(r)) {
        loss[r] = T(0);
        softmax[r] = {T(0), T(0)};
        continue;
      }
      const T* x = c.x + r * c.classes;
      const T log_s = detail::softmax_of_row(x, c.classes, softmax + r), shift = softmax[r].shift;
      T l = static_cast<T>((log_s - (x[c.target(r)] - shift)) * c.weight_of(r));
      if (!(smoothing == T(0)))
        l = static_cast<T>((T(1) - smoothing) * l +
                           smoothing / static_cast<T>(c.classes) *
                               detail::spread_loss(x, c.classes, shift, log_s, c.weight));
      loss[r] =
          softmax[r].scale == T(0) ? static_cast<T>(-log_s) : l;  // a row of -inf: no mass on any target
    }
  });
}

/// dx += g * d(loss of the row)/dx with g = dy * scale; dy is one number, or one a row with `each`.
template <Scalar T, class I>
void cross_entropy_vjp(const ClassRows<T, I>& c, T smoothing, const RowSoftmax<T>* softmax, const T* dy,
                       bool each, T scale, T* dx, bool add) {
  using V = Vec<T>;
  const T share = static_cast<T>(smoothing / static_cast<T>(c.classes));
  const T all_weights =
      c.weight == nullptr ? static_cast<T>(c.classes) : fold_span<FoldSum>(c.weight, c.classes);
  parallel_for(c.rows, softmax_grain / std::max<Index>(1, c.classes), [=](Index begin, Index end) {
    for (Index r = begin; r < end; ++r) {
      T* to = dx + r * c.classes;
      if (softmax[r].scale == T(0)) {
        if (!add) std::fill(to, to + c.classes, T(0));
        continue;
      }
      const T* x = c.x + r * c.classes;
      const T g = static_cast<T>(scale * dy[each ? r : 0]);
      const T spot = static_cast<T>(g * (T(1) - smoothing) * c.weight_of(r));
      const V m = V::broadcast(softmax[r].shift), base = V::broadcast(static_cast<T>(g * share));
      const V a = V::broadcast(static_cast<T>((spot + g * share * all_weights) * softmax[r].scale));
      put_vectors(to, add, c.classes, [=](Index i, Index n) WENGERT_INLINE_LAMBDA {
        const V spread = c.weight == nullptr ? base : base * load_n(c.weight + i, n);
        return exp(load_n(x + i, n) - m) * a - spread;
      });
      T& d = to[c.target(r)];
      d = static_cast<T>(d - spot);
    }
  });
}

/// Targets that are probabilities: with q = (1 - smoothing) * t + smoothing / classes and u_c = w_c * q_c,
/// loss[r] = sum of u_c * (lse - x_c), where a q of 0 contributes 0. `mass[r]` gets the sum of u_c.
template <Scalar T>
struct SoftTargets {
  const T* t;
  T keep, share;  // 1 - smoothing, smoothing / classes
  const T* weight;

  WENGERT_INLINE Vec<T> mass(Index at, Index i, Index n) const noexcept {
    const Vec<T> q = load_n(t + at + i, n) * Vec<T>::broadcast(keep) + Vec<T>::broadcast(share);
    return weight == nullptr ? q : q * load_n(weight + i, n);
  }
};

template <Scalar T>
void soft_cross_entropy(const T* x, const SoftTargets<T>& q, Index rows, Index classes, T* loss,
                        RowSoftmax<T>* softmax, T* mass) {
  using V = Vec<T>;
  parallel_for(rows, softmax_grain / std::max<Index>(1, classes), [=](Index begin, Index end) {
    for (Index r = begin; r < end; ++r) {
      const Index at = r * classes;
      const V log_s = V::broadcast(detail::softmax_of_row(x + at, classes, softmax + r));
      const V m = V::broadcast(softmax[r].shift);
      mass[r] = sum_vectors<4, T>(classes,
                                  [=](Index i, Index n) WENGERT_INLINE_LAMBDA { return q.mass(at, i, n); });
      loss[r] = sum_vectors<4, T>(classes, [=](Index i, Index n) WENGERT_INLINE_LAMBDA {
        const V u = q.mass(at, i, n);
        return where(u == 0, V(T(0)), u * (log_s - (load_n(x + at + i, n) - m)));
      });
    }
  });
}

/// dx_c += g * (softmax_c * mass - u_c), dt_c += g * keep * w_c * (lse - x_c); either may be null.
template <Scalar T>
void soft_cross_entropy_vjp(const T* x, const SoftTargets<T>& q, Index rows, Index classes,
                            const RowSoftmax<T>* softmax, const T* mass, const T* dy, bool each, T scale,
                            T* dx, bool add_x, T* dt, bool add_t) {
  using V = Vec<T>;
  parallel_for(rows, softmax_grain / std::max<Index>(1, classes), [=](Index begin, Index end) {
    for (Index r = begin; r < end; ++r) {
      const Index at = r * classes;
      const bool dead = softmax[r].scale == T(0);  // a row of -inf has gradient 0
      const T g = dead ? T(0) : static_cast<T>(scale * dy[each ? r : 0]);
      const V m = V::broadcast(softmax[r].shift), gv = V::broadcast(g);
      const V a = V::broadcast(static_cast<T>(g * mass[r] * softmax[r].scale));
      if (dx != nullptr)
        put_vectors(dx + at, add_x, classes, [=](Index i, Index n) WENGERT_INLINE_LAMBDA {
          return exp(load_n(x + at + i, n) - m) * a - gv * q.mass(at, i, n);
        });
      if (dt == nullptr) continue;
      const V log_s = V::broadcast(dead ? T(0) : static_cast<T>(-log(softmax[r].scale)));
      const V keep = V::broadcast(static_cast<T>(g * q.keep));
      put_vectors(dt + at, add_t, classes, [=](Index i, Index n) WENGERT_INLINE_LAMBDA {
        const V l = dead ? V(T(0)) : keep * (log_s - (load_n(x + at + i, n) - m));
        return q.weight == nullptr ? l : l * load_n(q.weight + i, n);
      });
    }
  });
}

/// loss[r] = -w_t * x[r, t]; 0 for rows that are ignored.
template <Scalar T, class I>
void nll(const ClassRows<T, I>& c, T* loss) {
  for (Index r = 0; r < c.rows; ++r)
    loss[r] = c.counts(r) ? static_cast<T>(-(c.x[r * c.classes + c.target(r)] * c.weight_of(r))) : T(0);
}

/// dx[r, t] -= g * w_t with g = dy * scale, into zeros unless `add`.
template <Scalar T, class I>
void nll_vjp(const ClassRows<T, I>& c, const T* dy, bool each, T scale, T* dx, bool add) {
  parallel_for(c.rows, std::max<Index>(1, fold_grain / std::max<Index>(1, c.classes)),
               [=](Index begin, Index end) {
                 if (!add) std::fill(dx + begin * c.classes, dx + end * c.classes, T(0));
                 for (Index r = begin; r < end; ++r) {
                   if (!c.counts(r)) continue;
                   T& d = dx[r * c.classes + c.target(r)];
                   d = static_cast<T>(d - scale * dy[each ? r : 0] * c.weight_of(r));
                 }
               });
}

}  // namespace wengert::inline WENGERT_ISA::kernels
