// Runs of neighbouring elements: filled, copied, added, scaled. What kernels that move images are made of;
// short runs, such as a pixel's channels, cost no call. Floor: kernels.
#pragma once

#include <wengert/kernels/vec.hpp>

namespace wengert::inline WENGERT_ISA::kernels {

namespace detail {

/// Calls `f(i, load, store)` for the vectors of a row of n; the last may be partial.
template <class T, class F>
WENGERT_INLINE void for_vectors(Index n, F f) {
  using V = Vec<T>;
  Index i = 0;
  for (; i + V::lanes <= n; i += V::lanes)
    f(
        i, [](const T* p) WENGERT_INLINE_LAMBDA { return V::load(p); },
        [](const auto& v, auto* p) WENGERT_INLINE_LAMBDA { v.store(p); });
  if constexpr (V::lanes > 1) {
    const Index left = n - i;
    if (left > 0)
      f(
          i, [left](const T* p) WENGERT_INLINE_LAMBDA { return V::load_partial(p, left); },
          [left](const auto& v, auto* p) WENGERT_INLINE_LAMBDA { v.store_partial(p, left); });
  }
}

/// Calls `strip<registers>(c, n)` for all channels c .. of a pixel: four vectors at a time, then one, then
/// the n that are left.
template <class T, class Strip>
WENGERT_INLINE void for_channel_strips(Index channels, Strip strip) {
  constexpr Index lanes = Vec<T>::lanes;
  Index c = 0;
  if constexpr (lanes > 1)
    for (; c + 4 * lanes <= channels; c += 4 * lanes) strip.template operator()<4>(c, lanes);
  for (; c + lanes <= channels; c += lanes) strip.template operator()<1>(c, lanes);
  if (c < channels) strip.template operator()<1>(c, channels - c);
}

}  // namespace detail

/// y[i] = value for n elements.
template <Scalar T>
WENGERT_INLINE void fill_run(T value, Index n, T* y) noexcept {
  const Vec<T> v(value);
  detail::for_vectors<T>(n, [=](Index i, auto, auto store) WENGERT_INLINE_LAMBDA { store(v, y + i); });
}

/// y[i] = x[i], or += with Add, for n elements.
template <bool Add, Scalar T>
WENGERT_INLINE void copy_run(const T* x, Index n, T* y) noexcept {
  detail::for_vectors<T>(n, [=](Index i, auto load, auto store) WENGERT_INLINE_LAMBDA {
    Vec<T> v = load(x + i);
    if constexpr (Add) v = load(y + i) + v;
    store(v, y + i);
  });
}

/// y[i] = w x[i], or += with Add, for n elements.
template <bool Add, Field T>
WENGERT_INLINE void scale_run(const T* x, T w, Index n, T* y) noexcept {
  const Vec<T> s(w);
  detail::for_vectors<T>(n, [=](Index i, auto load, auto store) WENGERT_INLINE_LAMBDA {
    Vec<T> v = s * load(x + i);
    if constexpr (Add) v = load(y + i) + v;
    store(v, y + i);
  });
}

/// y[i] = v x0[i] + w x1[i] for n elements.
template <Field T>
WENGERT_INLINE void blend_run(const T* x0, T v, const T* x1, T w, Index n, T* y) noexcept {
  const Vec<T> s(v), t(w);
  detail::for_vectors<T>(n, [=](Index i, auto load, auto store)
                                WENGERT_INLINE_LAMBDA { store(s * load(x0 + i) + t * load(x1 + i), y + i); });
}

}  // namespace wengert::inline WENGERT_ISA::kernels
