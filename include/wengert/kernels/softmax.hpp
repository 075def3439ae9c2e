// Softmax and log-softmax along the middle axis of (outer, n, inner), and the shifted sum of exponentials
// they share with logsumexp and cross-entropy. A row of -inf counts as a row without mass. Floor: kernels.
#pragma once

#include <wengert/kernels/reduce.hpp>

namespace wengert::inline WENGERT_ISA::kernels {

inline constexpr Index softmax_grain = 8 * 1024;  // elements of one task; about 3 us

/// What is subtracted before exp: the largest element, or 0 for a row of -inf (and of +inf, if `keeps_inf`).
template <Scalar T>
WENGERT_INLINE T exp_shift(T largest, bool keeps_inf = false) noexcept {
  const bool finite = largest - largest == T(0);
  return finite || !(largest < T(0) || (keeps_inf && largest > T(0))) ? largest : T(0);
}
template <Scalar T>
WENGERT_INLINE Vec<T> exp_shift(Vec<T> largest) noexcept {
  return where((largest - largest != 0) & (largest < 0), Vec<T>(T(0)), largest);
}

/// sum of exp(x[i] - shift) over n elements.
template <Scalar T>
WENGERT_INLINE T sum_exp(const T* x, Index n, T shift) noexcept {
  const Vec<T> m = Vec<T>::broadcast(shift);
  return fold_span<FoldSum, 4>(x, n, [=](Vec<T> v) WENGERT_INLINE_LAMBDA { return exp(v - m); });
}

/// y[i] = f(i, n) for i in steps of n <= lanes elements.
template <Scalar T, class F>
WENGERT_INLINE void put_vectors(T* y, Index size, F f) noexcept {
  constexpr Index lanes = Vec<T>::lanes;
  Index i = 0;
  for (; i + lanes <= size; i += lanes) f(i, lanes).store(y + i);
  if (i < size) f(i, size - i).store_partial(y + i, size - i);
}

/// dx[i] = f(i, n), or += when `add`.
template <Scalar T, class F>
WENGERT_INLINE void put_vectors(T* dx, bool add, Index size, F f) noexcept {
  put_vectors(dx, size, [=](Index i, Index n) WENGERT_INLINE_LAMBDA {
    const Vec<T> d = f(i, n);
    return add ? load_n(dx + i, n) + d : d;
  });
}

namespace detail {

template <Scalar T>
void softmax_row(const T* x, Index n, T* y) noexcept {
  using V = Vec<T>;
  const V m = V::broadcast(exp_shift(fold_span<FoldLargest>(x, n)));
  const T s = sum_vectors<4, T>(n, [=](Index i, Index k) WENGERT_INLINE_LAMBDA {
    const V e = exp(load_n(x + i, k) - m);
    store_n(e, y + i, k);
    return e;
  });
  const V scale = V::broadcast(s == T(0) ? T(0) : static_cast<T>(T(1) / s));
  put_vectors(y, n, [=](Index i, Index k) WENGERT_INLINE_LAMBDA { return load_n(y + i, k) * scale; });
}

template <Scalar T>
void log_softmax_row(const T* x, Index n, T* y) noexcept {
  using V = Vec<T>;
  const T shift = exp_shift(fold_span<FoldLargest>(x, n)), s = sum_exp(x, n, shift);
  const V m = V::broadcast(shift), log_s = V::broadcast(s == T(0) ? T(0) : static_cast<T>(log(s)));
  put_vectors(y, n, [=](Index i, Index k) WENGERT_INLINE_LAMBDA { return load_n(x + i, k) - m - log_s; });
}

template <Scalar T>
void softmax_row_vjp(const T* dy, const T* y, Index n, T* dx, bool add) noexcept {
  using V = Vec<T>;
  const V dot = V::broadcast(sum_vectors<8, T>(
      n, [=](Index i, Index k) WENGERT_INLINE_LAMBDA { return load_n(dy + i, k) * load_n(y + i, k); }));
  put_vectors(dx, add, n, [=](Index i, Index k) WENGERT_INLINE_LAMBDA {
    return load_n(y + i, k) * (load_n(dy + i, k) - dot);
  });
}

// Whether a row of log-probabilities came from a row of -inf; the first element nearly always tells.
template <Scalar T>
bool has_no_mass(const T* y, Index n, Index stride) noexcept {
  for (Index i = 0; i < n; ++i)
    if (!(y[i * stride] < T(0) && y[i * stride] - y[i * stride] != T(0))) return false;
  return true;
}

template <Scalar T>
void log_softmax_row_vjp(const T* dy, const T* y, Index n, T* dx, bool add) noexcept {
  using V = Vec<T>;
  if (has_no_mass(y, n, 1)) return put_vectors(dx, add, n, [](Index, Index) { return V(T(0)); });
  const V sum = V::broadcast(fold_span<FoldSum>(dy, n));
  put_vectors(dx, add, n, [=](Index i, Index k) WENGERT_INLINE_LAMBDA {
    return load_n(dy + i, k) - exp(load_n(y + i, k)) * sum;
  });
}

// Columns beside each other that one task handles, row after row: their maxima and sums stay in L1.
inline constexpr Index softmax_columns_wide = 256;

// n <= softmax_columns_wide columns; rows are `width` apart.
template <bool logs, Scalar T>
void softmax_columns(const T* x, Index rows, Index width, Index n, T* y) noexcept {
  using V = Vec<T>;
  T largest[softmax_columns_wide], sums[softmax_columns_wide];
  T *m = largest, *s = sums;
  std::copy(x, x + n, m);
  std::fill(s, s + n, T(0));
  for (Index r = 1; r < rows; ++r)
    put_vectors(m, n, [=](Index i, Index k) WENGERT_INLINE_LAMBDA {
      return max_or_second(load_n(m + i, k), load_n(x + r * width + i, k));
    });
  put_vectors(m, n, [=](Index i, Index k) WENGERT_INLINE_LAMBDA { return exp_shift(load_n(m + i, k)); });
  for (Index r = 0; r < rows; ++r)
    put_vectors(s, n, [=](Index i, Index k) WENGERT_INLINE_LAMBDA {
      const V e = exp(load_n(x + r * width + i, k) - load_n(m + i, k));
      if constexpr (!logs) store_n(e, y + r * width + i, k);
      return load_n(s + i, k) + e;
    });
  put_vectors(s, n, [=](Index i, Index k) WENGERT_INLINE_LAMBDA {
    const V v = load_n(s + i, k);
    return where(v == 0, V(T(0)), logs ? V(log(v)) : V(T(1)) / v);
  });
  for (Index r = 0; r < rows; ++r)
    put_vectors(y + r * width, n, [=](Index i, Index k) WENGERT_INLINE_LAMBDA {
      if constexpr (logs)
        return load_n(x + r * width + i, k) - load_n(m + i, k) - load_n(s + i, k);
      else
        return load_n(y + r * width + i, k) * load_n(s + i, k);
    });
}

template <bool logs, Scalar T>
void softmax_columns_vjp(const T* dy, const T* y, Index rows, Index width, Index n, T* dx,
                         bool add) noexcept {
  using V = Vec<T>;
  T sums[softmax_columns_wide], masses[softmax_columns_wide];
  T *s = sums, *mass = masses;  // mass: 0 for columns of -inf
  std::fill(s, s + n, T(0));
  std::fill(mass, mass + n, T(logs ? 0 : 1));
  for (Index r = 0; r < rows; ++r)
    put_vectors(s, n, [=](Index i, Index k) WENGERT_INLINE_LAMBDA {
      const V d = load_n(dy + r * width + i, k), p = load_n(y + r * width + i, k);
      if constexpr (logs) store_n(where((p < 0) & (p - p != 0), load_n(mass + i, k), V(T(1))), mass + i, k);
      return load_n(s + i, k) + (logs ? d : d * p);
    });
  for (Index r = 0; r < rows; ++r)
    put_vectors(dx + r * width, add, n, [=](Index i, Index k) WENGERT_INLINE_LAMBDA {
      const V d = load_n(dy + r * width + i, k), p = load_n(y + r * width + i, k), t = load_n(s + i, k);
      if constexpr (logs)
        return where(load_n(mass + i, k) == 0, V(T(0)), d - exp(p) * t);
      else
        return p * (d - t);
    });
}

// Calls row(offset) for rows without gaps, or columns(offset, n) for n columns beside each other.
template <class Row, class Columns>
void along_axis(const ReduceView& v, Row row, Columns columns) {
  if (v.outputs() == 0 || v.reduce == 0) return;
  if (v.inner == 1) {
    parallel_for(v.outer, softmax_grain / v.reduce, [=](Index begin, Index end) {
      for (Index o = begin; o < end; ++o) row(o * v.reduce);
    });
    return;
  }
  const Index wide = std::min(v.inner, softmax_columns_wide), chunks = (v.inner - 1) / wide + 1;
  parallel_for(v.outer * chunks, softmax_grain / (v.reduce * wide), [=](Index begin, Index end) {
    for (Index j = begin; j < end; ++j) {
      const Index from = j % chunks * wide;
      columns(j / chunks * v.reduce * v.inner + from, std::min(wide, v.inner - from));
    }
  });
}

}  // namespace detail

/// y = exp(x) / sum(exp(x)) along the reduced axis of `v`; `logs`: the logarithm of that. y may be x.
template <bool logs, Scalar T>
void softmax(const ReduceView& v, const T* x, T* y) {
  detail::along_axis(
      v,
      [=](Index at) {
        if constexpr (logs)
          detail::log_softmax_row(x + at, v.reduce, y + at);
        else
          detail::softmax_row(x + at, v.reduce, y + at);
      },
      [=](Index at, Index n) { detail::softmax_columns<logs>(x + at, v.reduce, v.inner, n, y + at); });
}

/// dx += y * (dy - sum(dy * y)), or dy - exp(y) * sum(dy) for `logs`; dx = without `add`, and then dx may be
/// dy.
template <bool logs, Scalar T>
void softmax_vjp(const ReduceView& v, const T* dy, const T* y, T* dx, bool add) {
  detail::along_axis(
      v,
      [=](Index at) {
        if constexpr (logs)
          detail::log_softmax_row_vjp(dy + at, y + at, v.reduce, dx + at, add);
        else
          detail::softmax_row_vjp(dy + at, y + at, v.reduce, dx + at, add);
      },
      [=](Index at, Index n) {
        detail::softmax_columns_vjp<logs>(dy + at, y + at, v.reduce, v.inner, n, dx + at, add);
      });
}

}  // namespace wengert::inline WENGERT_ISA::kernels
