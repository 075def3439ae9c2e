// Fused update loops of the optimizers: value, gradient and state of every parameter in one pass over memory.
// Floor: kernels.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <wengert/kernels/parallel.hpp>
#include <wengert/kernels/vec.hpp>

namespace wengert::inline WENGERT_ISA::kernels {

/// One parameter in a pass of `Update`: its memory, where it lies among all elements of the pass, and the
/// numbers of its step. Of the `states` arrays an update may have, the last is null where it is not used
/// (`always` are).
template <class Update>
struct UpdateSegment {
  using T = typename Update::value_type;
  T* value;
  const T* gradient;
  std::array<T*, Update::states> state;
  Index begin;  // elements of the segments before this one
  Update update;
};

namespace detail {

/// State below the normal numbers counts as 0. Decay alone never ends there: 0.9 times the smallest denormal
/// rounds to itself, and a parameter without gradient would cost a slow denormal product in every later step.
template <class T>
WENGERT_INLINE Vec<T> without_denormals(Vec<T> x) {
  if constexpr (SimdScalar<T>)
    return where(abs(x) < Vec<T>(std::numeric_limits<T>::min()), Vec<T>(T(0)), x);
  else
    return x;
}

inline constexpr Index update_grain = 16 * 1024;  // elements; 3 to 5 us of AdamW in the cache

template <class Update>
void update_range(const UpdateSegment<Update>& s, Index begin, Index end) {
  using T = typename Update::value_type;
  using V = Vec<T>;
  constexpr std::size_t states = Update::states;
  const Update update = s.update;
  T* const value = s.value;
  const T* const gradient = s.gradient;
  const std::array<T*, states> state = s.state;
  const bool all = Update::always == Update::states || state[states - 1] != nullptr;
  const auto held = [=](std::size_t k) { return k < Update::always || all; };
  Index i = begin;
  for (; i + V::lanes <= end; i += V::lanes) {
    V v[states + 1];
    for (std::size_t k = 0; k < states; ++k)
      if (held(k)) v[k] = V::load(state[k] + i);
    const V next = update(V::load(value + i), V::load(gradient + i), v);
    for (std::size_t k = 0; k < states; ++k)
      if (held(k)) without_denormals(v[k]).store(state[k] + i);
    next.store(value + i);
  }
  if (const Index n = end - i; n > 0) {
    V v[states + 1];
    for (std::size_t k = 0; k < states; ++k)
      if (held(k)) v[k] = V::load_partial(state[k] + i, n);
    const V next = update(V::load_partial(value + i, n), V::load_partial(gradient + i, n), v);
    for (std::size_t k = 0; k < states; ++k)
      if (held(k)) without_denormals(v[k]).store_partial(state[k] + i, n);
    next.store_partial(value + i, n);
  }
}

}  // namespace detail

/// Updates the elements of all segments, `total` of them; blocks cross segments, so that many small
/// parameters cost one pass. Segments are in the order of `begin`, and none is empty.
template <class Update>
void update_parameters(const UpdateSegment<Update>* segments, Index count, Index total) {
  parallel_for(total, detail::update_grain, [=](Index begin, Index end) {
    const auto after =
        std::upper_bound(segments, segments + count, begin,
                         [](Index at, const UpdateSegment<Update>& s) { return at < s.begin; });
    for (const UpdateSegment<Update>* s = after - 1; s != segments + count && s->begin < end; ++s) {
      const Index last = s + 1 == segments + count ? total : (s + 1)->begin;
      detail::update_range(*s, std::max(begin, s->begin) - s->begin, std::min(end, last) - s->begin);
    }
  });
}

/// Stochastic gradient descent without momentum: p -= lr * (g + decay * p).
template <Scalar T>
struct SgdUpdate {
  using value_type = T;
  static constexpr std::size_t states = 0, always = 0;
  T lr, decay;

  WENGERT_INLINE Vec<T> operator()(Vec<T> p, Vec<T> g, Vec<T>*) const {
    if (decay != T(0)) g = fma(Vec<T>(decay), p, g);
    return p - Vec<T>(lr) * g;
  }
};

/// With momentum: m = momentum * m + share * d, where d = g + decay * p; p -= lr * m, or, with Nesterov's
/// look-ahead, p -= lr * (d + momentum * m).
template <Scalar T>
struct MomentumUpdate {
  using value_type = T;
  static constexpr std::size_t states = 1, always = 1;
  T lr, decay, momentum, share;
  bool nesterov;

  WENGERT_INLINE Vec<T> operator()(Vec<T> p, Vec<T> g, Vec<T>* m) const {
    if (decay != T(0)) g = fma(Vec<T>(decay), p, g);
    m[0] = fma(Vec<T>(share), g, Vec<T>(momentum) * m[0]);
    return p - Vec<T>(lr) * (nesterov ? fma(Vec<T>(momentum), m[0], g) : m[0]);
  }
};

/// Adam and AdamW. With m and v the running means of g and g^2, and v the largest v so far with `amsgrad`:
/// p = keep * p - step * m / (sqrt(v) * root + eps). `keep` and `l2` hold the weight decay of AdamW and Adam;
/// `step` and `root` hold the bias corrections.
template <Scalar T>
struct AdamUpdate {
  using value_type = T;
  static constexpr std::size_t states = 3, always = 2;  // the third with `amsgrad` alone
  T beta1, one_minus_beta1, beta2, one_minus_beta2, eps, keep, l2, step, root;
  bool amsgrad;

  WENGERT_INLINE Vec<T> operator()(Vec<T> p, Vec<T> g, Vec<T>* s) const {
    if (l2 != T(0)) g = fma(Vec<T>(l2), p, g);
    s[0] = fma(Vec<T>(one_minus_beta1), g, Vec<T>(beta1) * s[0]);
    s[1] = fma(Vec<T>(one_minus_beta2) * g, g, Vec<T>(beta2) * s[1]);
    Vec<T> v = s[1];
    if (amsgrad) v = s[2] = max(s[2], s[1]);
    const Vec<T> denominator = fma(sqrt(v), Vec<T>(root), Vec<T>(eps));
    return Vec<T>(keep) * p - Vec<T>(step) * s[0] / denominator;
  }
};

namespace detail {

inline constexpr Index clip_block = 4096;  // elements whose squares are summed in T

/// Sum of squares, in T by blocks and in double over them; a block that overflows T is summed in double.
template <class T>
double sum_of_squares(const T* x, Index n) {
  using V = Vec<T>;
  V sum[4] = {V(T(0)), V(T(0)), V(T(0)), V(T(0))};
  Index i = 0;
  for (; i + 4 * V::lanes <= n; i += 4 * V::lanes)
    for (int k = 0; k < 4; ++k) {
      const V v = V::load(x + i + k * V::lanes);
      sum[k] = fma(v, v, sum[k]);
    }
  for (; i < n; i += V::lanes) {
    const V v = V::load_partial(x + i, std::min(n - i, V::lanes));
    sum[0] = fma(v, v, sum[0]);
  }
  const double total = static_cast<double>(hsum((sum[0] + sum[1]) + (sum[2] + sum[3])));
  if (std::isfinite(total)) return total;
  double exact = 0;
  for (i = 0; i < n; ++i) exact += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  return exact;
}

}  // namespace detail

/// Sum of squares of n elements. `partial` has room for (n + clip_block - 1) / clip_block doubles, which are
/// added in order: the same bits at any number of threads.
template <class T>
double sum_of_squares(const T* x, Index n, double* partial) {
  constexpr Index block = detail::clip_block;
  parallel_for(n, 4 * block, [=](Index begin, Index end) {
    for (Index i = begin; i < end; i += block)
      partial[i / block] = detail::sum_of_squares(x + i, std::min(block, end - i));
  });
  double total = 0;
  for (Index i = 0; i < (n + block - 1) / block; ++i) total += partial[i];
  return total;
}

/// x *= factor.
template <class T>
void scale(T* x, Index n, T factor) {
  using V = Vec<T>;
  parallel_for(n, 2 * detail::update_grain, [=](Index begin, Index end) {
    Index i = begin;
    for (; i + V::lanes <= end; i += V::lanes) (V::load(x + i) * V(factor)).store(x + i);
    if (i < end) (V::load_partial(x + i, end - i) * V(factor)).store_partial(x + i, end - i);
  });
}

/// x = clamp(x, -limit, limit); NaN stays NaN.
template <class T>
void clip(T* x, Index n, T limit) {
  using V = Vec<T>;
  parallel_for(n, 2 * detail::update_grain, [=](Index begin, Index end) {
    const V lo(static_cast<T>(-limit)), hi(limit);
    Index i = begin;
    for (; i + V::lanes <= end; i += V::lanes) clamp(V::load(x + i), lo, hi).store(x + i);
    if (i < end) clamp(V::load_partial(x + i, end - i), lo, hi).store_partial(x + i, end - i);
  });
}

}  // namespace wengert::inline WENGERT_ISA::kernels
