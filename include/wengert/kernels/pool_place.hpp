// The tap that won, kept in one byte a window where that holds it: how bytes meet registers. Floor: kernels.
#pragma once

#include <cstring>

#include <wengert/kernels/vec.hpp>

namespace wengert::inline WENGERT_ISA::kernels {

/// Windows of at most this many taps number them in bytes.
inline constexpr Index pool_byte_taps = 256;
/// Taps are counted exactly in every SIMD type up to here.
inline constexpr Index pool_most_taps = Index{1} << 24;

/// How taps of larger windows are stored: as the element type itself, which counts them exactly.
template <Scalar T>
using WidePlace = std::conditional_t<SimdScalar<T>, T, Index>;

namespace detail {

#if defined(__SSE2__)
// The lanes, whole numbers 0..255, as the first bytes of a register.
template <SimdScalar T>
WENGERT_INLINE __m128i lanes_to_bytes(const Batch<T>& v) noexcept {
#if defined(__AVX512F__)
  if constexpr (std::same_as<T, float>)
    return _mm512_cvtepi32_epi8(_mm512_cvttps_epi32(v));
  else
    return _mm512_cvtepi32_epi8(_mm512_zextsi256_si512(_mm512_cvttpd_epi32(v)));
#else
  __m128i words;
#if defined(__AVX__)
  if constexpr (std::same_as<T, float>) {
    const __m256i whole = _mm256_cvttps_epi32(v);
    words = _mm_packs_epi32(_mm256_castsi256_si128(whole), _mm256_extractf128_si256(whole, 1));
  } else {
    const __m128i whole = _mm256_cvttpd_epi32(v);
    words = _mm_packs_epi32(whole, whole);
  }
#else
  __m128i whole;
  if constexpr (std::same_as<T, float>)
    whole = _mm_cvttps_epi32(v);
  else
    whole = _mm_cvttpd_epi32(v);
  words = _mm_packs_epi32(whole, whole);
#endif
  return _mm_packus_epi16(words, words);
#endif
}
#endif

/// Stores the first n lanes, whole numbers 0..255.
template <SimdScalar T>
WENGERT_INLINE void store_places(Vec<T> at, Byte* p, Index n) noexcept {
#if defined(__SSE2__)
  const __m128i bytes = lanes_to_bytes<T>(at.v);
  if (n == Vec<T>::lanes)
    std::memcpy(p, &bytes, static_cast<std::size_t>(Vec<T>::lanes));
  else
    std::memcpy(p, &bytes, static_cast<std::size_t>(n));
#else
  alignas(64) T lane[Vec<T>::lanes];
  at.store_aligned(lane);
  for (Index i = 0; i < n; ++i) p[i] = static_cast<Byte>(lane[i]);
#endif
}
template <SimdScalar T>
WENGERT_INLINE void store_places(Vec<T> at, T* p, Index n) noexcept {
  if (n == Vec<T>::lanes)
    at.store(p);
  else
    at.store_partial(p, n);
}

/// Which of the n places are `tap`; the other lanes are unspecified.
template <SimdScalar T>
WENGERT_INLINE Mask<T> places_equal(const Byte* p, Index n, Index tap) noexcept {
  using Reg [[maybe_unused]] = typename Mask<T>::Reg;
  [[maybe_unused]] constexpr auto lanes = static_cast<std::size_t>(Vec<T>::lanes);
#if defined(__AVX512BW__) && defined(__AVX512VL__)
  const __m128i wanted = _mm_set1_epi8(static_cast<char>(tap));
  __m128i bytes;
  if (n < Vec<T>::lanes)
    bytes = _mm_maskz_loadu_epi8(static_cast<__mmask16>((1u << static_cast<unsigned>(n)) - 1u), p);
  else if constexpr (std::same_as<T, float>)
    bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  else
    bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
  return Reg(static_cast<typename Reg::register_type>(_mm_cmpeq_epi8_mask(bytes, wanted)));
#elif defined(__AVX2__) && !defined(__AVX512F__)
  alignas(16) Byte near[16] = {};
  if (n == Vec<T>::lanes)
    std::memcpy(near, p, lanes);
  else
    std::memcpy(near, p, static_cast<std::size_t>(n));
  const __m128i bytes = _mm_load_si128(reinterpret_cast<const __m128i*>(near));
  if constexpr (std::same_as<T, float>)
    return Reg(_mm256_castsi256_ps(
        _mm256_cmpeq_epi32(_mm256_cvtepu8_epi32(bytes), _mm256_set1_epi32(static_cast<int>(tap)))));
  else
    return Reg(_mm256_castsi256_pd(_mm256_cmpeq_epi64(_mm256_cvtepu8_epi64(bytes), _mm256_set1_epi64x(tap))));
#else
  alignas(64) T lane[lanes] = {};
  for (Index i = 0; i < n; ++i) lane[i] = static_cast<T>(p[i]);
  return Vec<T>::load_aligned(lane) == Vec<T>(static_cast<T>(tap));
#endif
}
template <SimdScalar T>
WENGERT_INLINE Mask<T> places_equal(const T* p, Index n, Index tap) noexcept {
  const Vec<T> at = n == Vec<T>::lanes ? Vec<T>::load(p) : Vec<T>::load_partial(p, n);
  return at == Vec<T>(static_cast<T>(tap));
}
template <Scalar T, class Place>
requires(!SimdScalar<T>) WENGERT_INLINE Mask<T> places_equal(const Place* p, Index, Index tap)
noexcept { return static_cast<Index>(*p) == tap; }

}  // namespace detail

}  // namespace wengert::inline WENGERT_ISA::kernels
