// Runs of neighbouring elements: filled, copied, added, scaled. What kernels that move images are made of;
// short runs, such as a pixel's channels, cost no call. Floor: kernels.
#pragma once

#include <wengert/kernels/vec.hpp>

namespace wengert::inline WENGERT_ISA::kernels {

/// y[i] = value for n elements.
template <Scalar T>
WENGERT_INLINE void fill_run(T value, Index n, T* y) noexcept {
  constexpr Index lanes = Vec<T>::lanes;
  const Vec<T> v(value);
  Index i = 0;
  for (; i + lanes <= n; i += lanes) v.store(y + i);
  if (i < n) v.store_partial(y + i, n - i);
}

/// y[i] = x[i], or += with Add, for n elements.
template <bool Add, Scalar T>
WENGERT_INLINE void copy_run(const T* x, Index n, T* y) noexcept {
  constexpr Index lanes = Vec<T>::lanes;
  Index i = 0;
  for (; i + lanes <= n; i += lanes) {
    Vec<T> v = Vec<T>::load(x + i);
    if constexpr (Add) v = Vec<T>::load(y + i) + v;
    v.store(y + i);
  }
  if (i < n) {
    Vec<T> v = Vec<T>::load_partial(x + i, n - i);
    if constexpr (Add) v = Vec<T>::load_partial(y + i, n - i) + v;
    v.store_partial(y + i, n - i);
  }
}

/// y[i] = w x[i], or += with Add, for n elements.
template <bool Add, Field T>
WENGERT_INLINE void scale_run(const T* x, T w, Index n, T* y) noexcept {
  constexpr Index lanes = Vec<T>::lanes;
  const Vec<T> s(w);
  Index i = 0;
  for (; i + lanes <= n; i += lanes) {
    Vec<T> v = s * Vec<T>::load(x + i);
    if constexpr (Add) v = Vec<T>::load(y + i) + v;
    v.store(y + i);
  }
  if (i < n) {
    Vec<T> v = s * Vec<T>::load_partial(x + i, n - i);
    if constexpr (Add) v = Vec<T>::load_partial(y + i, n - i) + v;
    v.store_partial(y + i, n - i);
  }
}

/// y[i] = v x0[i] + w x1[i] for n elements.
template <Field T>
WENGERT_INLINE void blend_run(const T* x0, T v, const T* x1, T w, Index n, T* y) noexcept {
  constexpr Index lanes = Vec<T>::lanes;
  const Vec<T> s(v), t(w);
  Index i = 0;
  for (; i + lanes <= n; i += lanes) (s * Vec<T>::load(x0 + i) + t * Vec<T>::load(x1 + i)).store(y + i);
  if (i < n)
    (s * Vec<T>::load_partial(x0 + i, n - i) + t * Vec<T>::load_partial(x1 + i, n - i))
        .store_partial(y + i, n - i);
}

}  // namespace wengert::inline WENGERT_ISA::kernels
