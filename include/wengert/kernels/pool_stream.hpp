// Stores past the caches, for results far larger than these: a line is then written without being read first.
// Floor: kernels.
#pragma once

#include <cstdint>

#include <wengert/kernels/vec.hpp>

namespace wengert::inline WENGERT_ISA::kernels {

/// Results of at least this many bytes are out of every cache before their reader comes.
inline constexpr Index stream_least_bytes = Index{32} << 20;

namespace detail {

/// Whether rows of `width` elements from p on can be stored by `stream_store`.
template <Scalar T>
bool can_stream(const T* p, Index width) noexcept {
#if defined(__SSE2__)
  if constexpr (SimdScalar<T>)
    return width % Vec<T>::lanes == 0 && reinterpret_cast<std::uintptr_t>(p) % simd_bytes == 0;
#endif
  return static_cast<void>(p), static_cast<void>(width), false;
}

/// Stores to p, aligned to the register; other threads see it after `stream_fence`.
template <Scalar T>
WENGERT_INLINE void stream_store(Vec<T> v, T* p) noexcept {
#if defined(__SSE2__)
  if constexpr (SimdScalar<T>) {
    WENGERT_KEEP_BRANCH();
#if defined(__AVX512F__)
    if constexpr (std::same_as<T, float>)
      return _mm512_stream_ps(p, v.v);
    else
      return _mm512_stream_pd(p, v.v);
#elif defined(__AVX__)
    if constexpr (std::same_as<T, float>)
      return _mm256_stream_ps(p, v.v);
    else
      return _mm256_stream_pd(p, v.v);
#else
    if constexpr (std::same_as<T, float>)
      return _mm_stream_ps(p, v.v);
    else
      return _mm_stream_pd(p, v.v);
#endif
  }
#endif
  v.store(p);
}

/// Ends a block of `stream_store`s: they do not wait for the order that atomics keep.
inline void stream_fence() noexcept {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

}  // namespace detail

}  // namespace wengert::inline WENGERT_ISA::kernels
