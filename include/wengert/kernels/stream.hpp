// Stores past the cache, for results that it could not keep: a line is then written without being read first.
// Floor: kernels.
#pragma once

#include <concepts>
#include <cstdint>

#include <wengert/kernels/vec.hpp>

namespace wengert::inline WENGERT_ISA::kernels::detail {

/// Outputs of at least this size are written past the cache, which could not keep them.
inline constexpr Index stream_bytes = Index{16} << 20;

/// Whether the rows of y, of `columns` elements each, are large and aligned enough for `stream`.
template <class T>
bool streams(Index rows, Index columns, const T* y) {
  return rows * columns * Index{sizeof(T)} >= stream_bytes && columns % Vec<T>::lanes == 0 &&
         reinterpret_cast<std::uintptr_t>(y) % 64 == 0;
}

/// Stores past the cache: saves reading the line first. p is aligned to the register; `stream_fence` follows.
template <class T>
WENGERT_INLINE void stream(T* p, Vec<T> v) noexcept {
  WENGERT_KEEP_BRANCH();
#if defined(__AVX512F__)
  if constexpr (std::same_as<T, float>) return _mm512_stream_ps(p, v.v);
  if constexpr (std::same_as<T, double>) return _mm512_stream_pd(p, v.v);
#elif defined(__AVX__)
  if constexpr (std::same_as<T, float>) return _mm256_stream_ps(p, v.v);
  if constexpr (std::same_as<T, double>) return _mm256_stream_pd(p, v.v);
#endif
  v.store(p);
}
/// Ends a block of stores past the cache, which do not wait for the order that atomics keep.
inline void stream_fence() noexcept {
#if defined(__AVX__)
  _mm_sfence();
#endif
}

}  // namespace wengert::inline WENGERT_ISA::kernels::detail
