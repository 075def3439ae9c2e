// `Vec<T>`: what element-wise code computes with. A SIMD register for float and double, one element for every
// other type, so that one generic lambda serves them all and tails run the very code of the body. Floor:
// kernels.
#pragma once

#include <cmath>
#include <concepts>
#include <type_traits>

#include <wengert/kernels/simd.hpp>

namespace wengert::inline WENGERT_ISA::kernels {

template <Scalar T>
struct Vec;

namespace detail {

template <class T>
struct VecTraits {
  using Reg = T;
  using MaskReg = bool;
  static constexpr Index lanes = 1;
};
template <SimdScalar T>
struct VecTraits<T> {
  using Reg = Batch<T>;
  using MaskReg = BatchMask<T>;
  static constexpr Index lanes = simd_lanes<T>;
};

#if defined(__AVX__) && !defined(__AVX512F__)
// The first n lanes set; n in 0..lanes.
template <SimdScalar T>
WENGERT_INLINE __m256i lane_mask(Index n) noexcept {
  if constexpr (std::same_as<T, float>) {
    alignas(64) static constexpr int window[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(window + 8 - n));
  } else {
    alignas(64) static constexpr long long window[8] = {-1, -1, -1, -1};
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(window + 4 - n));
  }
}
#endif

template <SimdScalar T>
WENGERT_INLINE Batch<T> load_partial(const T* p, Index n) noexcept {
#if defined(__AVX512F__)
  const unsigned bits = (1u << static_cast<unsigned>(n)) - 1u;
  if constexpr (std::same_as<T, float>)
    return _mm512_maskz_loadu_ps(static_cast<__mmask16>(bits), p);
  else
    return _mm512_maskz_loadu_pd(static_cast<__mmask8>(bits), p);
#elif defined(__AVX__)
  if constexpr (std::same_as<T, float>)
    return _mm256_maskload_ps(p, lane_mask<T>(n));
  else
    return _mm256_maskload_pd(p, lane_mask<T>(n));
#else
  alignas(64) T buffer[VecTraits<T>::lanes] = {};
  for (Index i = 0; i < n; ++i) buffer[i] = p[i];
  return Batch<T>::load_aligned(buffer);
#endif
}

template <SimdScalar T>
WENGERT_INLINE void store_partial(T* p, const Batch<T>& v, Index n) noexcept {
#if defined(__AVX512F__)
  const unsigned bits = (1u << static_cast<unsigned>(n)) - 1u;
  if constexpr (std::same_as<T, float>)
    _mm512_mask_storeu_ps(p, static_cast<__mmask16>(bits), v);
  else
    _mm512_mask_storeu_pd(p, static_cast<__mmask8>(bits), v);
#elif defined(__AVX__)
  if constexpr (std::same_as<T, float>)
    _mm256_maskstore_ps(p, lane_mask<T>(n), v);
  else
    _mm256_maskstore_pd(p, lane_mask<T>(n), v);
#else
  alignas(64) T buffer[VecTraits<T>::lanes];
  v.store_aligned(buffer);
  for (Index i = 0; i < n; ++i) p[i] = buffer[i];
#endif
}

template <Scalar T, class F>
WENGERT_INLINE T fold_lanes(const Vec<T>& a, F f) noexcept {
  if constexpr (SimdScalar<T>) {
    alignas(64) T lane[VecTraits<T>::lanes];
    a.store_aligned(lane);
    T m = lane[0];
    for (Index i = 1; i < VecTraits<T>::lanes; ++i) m = f(m, lane[i]);
    return m;
  } else {
    return a.v;
  }
}

}  // namespace detail

/// Result of comparing two `Vec<T>`: one truth value a lane. `&&` and `||` evaluate both sides.
template <Scalar T>
struct Mask {
  using Reg = typename detail::VecTraits<T>::MaskReg;
  static constexpr Index lanes = detail::VecTraits<T>::lanes;
  Reg v;

  Mask() = default;
  WENGERT_INLINE Mask(Reg r) noexcept : v(r) {}
  WENGERT_INLINE Mask(bool b) noexcept requires(!std::same_as<Reg, bool>) : v(b) {}

  /// Lanes are true where the byte is not 0; `load_partial` reads `n <= lanes` bytes, the rest is false.
  static WENGERT_INLINE Mask load(const Byte* p) noexcept { return load_partial(p, lanes); }
  static WENGERT_INLINE Mask load_partial(const Byte* p, Index n) noexcept {
    if constexpr (!SimdScalar<T>) {
      return Mask(n > 0 && *p != 0);
    } else {
#if defined(__AVX512BW__) && defined(__AVX512VL__)
      const __mmask16 in = static_cast<__mmask16>((1u << static_cast<unsigned>(n)) - 1u);
      const __m128i bytes = _mm_maskz_loadu_epi8(in, p);
      return Mask(Reg(static_cast<typename Reg::register_type>(_mm_test_epi8_mask(bytes, bytes))));
#else
      alignas(64) T buffer[lanes] = {};
      for (Index i = 0; i < n; ++i) buffer[i] = T(p[i] != 0);
      return Mask(Batch<T>::load_aligned(buffer) != Batch<T>(T(0)));
#endif
    }
  }
  /// Writes 1 for true and 0 for false.
  WENGERT_INLINE void store(Byte* p) const noexcept { store_partial(p, lanes); }
  WENGERT_INLINE void store_partial(Byte* p, Index n) const noexcept {
    if constexpr (!SimdScalar<T>) {
      if (n > 0) *p = v;
    } else {
#if defined(__AVX512BW__) && defined(__AVX512VL__)
      const __mmask16 out = static_cast<__mmask16>((1u << static_cast<unsigned>(n)) - 1u);
      _mm_mask_storeu_epi8(p, out, _mm_maskz_set1_epi8(static_cast<__mmask16>(v.data), 1));
#else
      alignas(64) T buffer[lanes];
      xsimd::select(v, Batch<T>(T(1)), Batch<T>(T(0))).store_aligned(buffer);
      for (Index i = 0; i < n; ++i) p[i] = buffer[i] != T(0);
#endif
    }
  }

  friend WENGERT_INLINE Mask operator&(Mask a, Mask b) noexcept { return Reg(a.v & b.v); }
  friend WENGERT_INLINE Mask operator|(Mask a, Mask b) noexcept { return Reg(a.v | b.v); }
  friend WENGERT_INLINE Mask operator^(Mask a, Mask b) noexcept { return (a | b) & !(a & b); }
  friend WENGERT_INLINE Mask operator&&(Mask a, Mask b) noexcept { return a & b; }
  friend WENGERT_INLINE Mask operator||(Mask a, Mask b) noexcept { return a | b; }
  friend WENGERT_INLINE Mask operator!(Mask a) noexcept { return Reg(!a.v); }

  /// True if one lane is; true if every lane is.
  friend WENGERT_INLINE bool any(Mask a) noexcept {
    if constexpr (SimdScalar<T>)
      return xsimd::any(a.v);
    else
      return a.v;
  }
  friend WENGERT_INLINE bool all(Mask a) noexcept {
    if constexpr (SimdScalar<T>)
      return xsimd::all(a.v);
    else
      return a.v;
  }

  /// `a` where the mask is true, else `b`; the other side's value leaves no trace, NaN or not.
  friend WENGERT_INLINE Vec<T> where(Mask m, Vec<T> a, Vec<T> b) noexcept {
    if constexpr (SimdScalar<T>)
      return xsimd::select(m.v, a.v, b.v);
    else
      return m.v ? a : b;
  }
  friend WENGERT_INLINE Vec<T> select(Mask m, Vec<T> a, Vec<T> b) noexcept { return where(m, a, b); }
};

/// `lanes` elements of `T`, computed side by side. Constants of any arithmetic type convert to `T`, so `0.5 *
/// x` stays in `T`. Every function is found by argument-dependent lookup: write `max(x, 0)`, not `std::max`.
template <Scalar T>
struct Vec {
  using value_type = T;
  using Reg = typename detail::VecTraits<T>::Reg;
  /// Elements in one Vec.
  static constexpr Index lanes = detail::VecTraits<T>::lanes;
  Reg v;

  Vec() = default;
  WENGERT_INLINE Vec(Reg r) noexcept : v(r) {}
  WENGERT_INLINE Vec(T s) noexcept requires(SimdScalar<T>) : v(s) {}
  template <class A>
  requires(std::is_arithmetic_v<A> && !std::same_as<A, T>) WENGERT_INLINE Vec(A s)
  noexcept : v(static_cast<T>(s)) {}

  static WENGERT_INLINE Vec broadcast(T s) noexcept { return Vec(s); }
  /// `lanes` elements at `p`, of any alignment.
  static WENGERT_INLINE Vec load(const T* p) noexcept {
    WENGERT_KEEP_BRANCH();
    if constexpr (SimdScalar<T>)
      return Reg::load_unaligned(p);
    else
      return *p;
  }
  /// `lanes` elements at `p`, aligned to the register.
  static WENGERT_INLINE Vec load_aligned(const T* p) noexcept {
    WENGERT_KEEP_BRANCH();
    if constexpr (SimdScalar<T>)
      return Reg::load_aligned(p);
    else
      return *p;
  }
  /// The first `n` elements, 0 <= n <= lanes, and 0 in the other lanes; memory beyond `n` is never touched.
  static WENGERT_INLINE Vec load_partial(const T* p, Index n) noexcept {
    WENGERT_KEEP_BRANCH();
    if constexpr (SimdScalar<T>)
      return detail::load_partial<T>(p, n);
    else
      return n > 0 ? *p : T(0);
  }
  WENGERT_INLINE void store(T* p) const noexcept {
    WENGERT_KEEP_BRANCH();
    if constexpr (SimdScalar<T>)
      v.store_unaligned(p);
    else
      *p = v;
  }
  WENGERT_INLINE void store_aligned(T* p) const noexcept {
    WENGERT_KEEP_BRANCH();
    if constexpr (SimdScalar<T>)
      v.store_aligned(p);
    else
      *p = v;
  }
  /// Stores the first `n` lanes, 0 <= n <= lanes.
  WENGERT_INLINE void store_partial(T* p, Index n) const noexcept {
    WENGERT_KEEP_BRANCH();
    if constexpr (SimdScalar<T>)
      detail::store_partial<T>(p, v, n);
    else if (n > 0)
      *p = v;
  }
  /// The element in lane `i`; slow, for tests and the ends of reductions.
  WENGERT_INLINE T get(Index i) const noexcept {
    if constexpr (SimdScalar<T>)
      return v.get(static_cast<std::size_t>(i));
    else
      return static_cast<void>(i), v;
  }

  friend WENGERT_INLINE Vec operator+(Vec a, Vec b) noexcept { return static_cast<Reg>(a.v + b.v); }
  friend WENGERT_INLINE Vec operator-(Vec a, Vec b) noexcept { return static_cast<Reg>(a.v - b.v); }
  friend WENGERT_INLINE Vec operator*(Vec a, Vec b) noexcept { return static_cast<Reg>(a.v * b.v); }
  friend WENGERT_INLINE Vec operator/(Vec a, Vec b) noexcept { return static_cast<Reg>(a.v / b.v); }
  friend WENGERT_INLINE Vec operator+(Vec a) noexcept { return a; }
  friend WENGERT_INLINE Vec operator-(Vec a) noexcept {
    if constexpr (SimdScalar<T>)
      return a.v ^ Reg(T(-0.0));  // 0 - a would lose the sign of 0
    else
      return static_cast<T>(-a.v);
  }
  WENGERT_INLINE Vec& operator+=(Vec b) noexcept { return *this = *this + b; }
  WENGERT_INLINE Vec& operator-=(Vec b) noexcept { return *this = *this - b; }
  WENGERT_INLINE Vec& operator*=(Vec b) noexcept { return *this = *this * b; }
  WENGERT_INLINE Vec& operator/=(Vec b) noexcept { return *this = *this / b; }

  friend WENGERT_INLINE Mask<T> operator==(Vec a, Vec b) noexcept { return a.v == b.v; }
  // Not xsimd's !=, which some instruction sets hold false for NaN.
  friend WENGERT_INLINE Mask<T> operator!=(Vec a, Vec b) noexcept { return !(a == b); }
  friend WENGERT_INLINE Mask<T> operator<(Vec a, Vec b) noexcept { return a.v < b.v; }
  friend WENGERT_INLINE Mask<T> operator<=(Vec a, Vec b) noexcept { return a.v <= b.v; }
  friend WENGERT_INLINE Mask<T> operator>(Vec a, Vec b) noexcept { return a.v > b.v; }
  friend WENGERT_INLINE Mask<T> operator>=(Vec a, Vec b) noexcept { return a.v >= b.v; }
  friend WENGERT_INLINE Mask<T> isnan(Vec a) noexcept {
    if constexpr (SimdScalar<T>)
      return xsimd::isnan(a.v);
    else
      return a.v != a.v;
  }

  /// The larger of the two; NaN if either is NaN.
  friend WENGERT_INLINE Vec max(Vec a, Vec b) noexcept {
    if constexpr (SimdScalar<T>)  // the instruction returns b where one operand is NaN
      return where(isnan(a), a, max_or_second(a, b));
    else
      return a.v > b.v || a.v != a.v ? a : b;
  }
  /// The smaller of the two; NaN if either is NaN.
  friend WENGERT_INLINE Vec min(Vec a, Vec b) noexcept {
    if constexpr (SimdScalar<T>)
      return where(isnan(a), a, min_or_second(a, b));
    else
      return a.v < b.v || a.v != a.v ? a : b;
  }
  friend WENGERT_INLINE Vec maximum(Vec a, Vec b) noexcept { return max(a, b); }
  friend WENGERT_INLINE Vec minimum(Vec a, Vec b) noexcept { return min(a, b); }
  /// One instruction: the larger of the two, `b` where `b` is NaN, unspecified where only `a` is.
  friend WENGERT_INLINE Vec max_or_second(Vec a, Vec b) noexcept {
    if constexpr (SimdScalar<T>)
      return xsimd::max(a.v, b.v);
    else
      return a.v > b.v ? a : b;
  }
  friend WENGERT_INLINE Vec min_or_second(Vec a, Vec b) noexcept {
    if constexpr (SimdScalar<T>)
      return xsimd::min(a.v, b.v);
    else
      return a.v < b.v ? a : b;
  }

  /// x held to [lo, hi]; NaN stays NaN.
  friend WENGERT_INLINE Vec clamp(Vec x, Vec lo, Vec hi) noexcept {
    if constexpr (SimdScalar<T>)
      return min_or_second(hi, max_or_second(lo, x));
    else
      return x.v < lo.v ? lo : x.v > hi.v ? hi : x;
  }
  /// a * b + c; rounded once where `simd_has_fma`.
  friend WENGERT_INLINE Vec fma(Vec a, Vec b, Vec c) noexcept {
    if constexpr (SimdScalar<T>)
      return xsimd::fma(a.v, b.v, c.v);
    else
      return static_cast<T>(a.v * b.v + c.v);
  }

  /// Sum of the lanes, in an order that depends only on the instruction set.
  friend WENGERT_INLINE T hsum(Vec a) noexcept {
    if constexpr (SimdScalar<T>)
      return xsimd::hadd(a.v);
    else
      return a.v;
  }
  /// The largest lane; NaN if one lane is NaN.
  friend WENGERT_INLINE T hmax(Vec a) noexcept {
    return detail::fold_lanes(a, [](T x, T y) { return y > x || y != y ? y : x; });
  }
  /// The smallest lane; NaN if one lane is NaN.
  friend WENGERT_INLINE T hmin(Vec a) noexcept {
    return detail::fold_lanes(a, [](T x, T y) { return y < x || y != y ? y : x; });
  }
};

/// Absolute value; -0 gives 0.
template <Scalar T>
WENGERT_INLINE Vec<T> abs(Vec<T> x) noexcept {
  if constexpr (SimdScalar<T>)
    return xsimd::abs(x.v);
  else if constexpr (std::integral<T>)
    return x.v < T(0) ? static_cast<T>(-x.v) : x.v;
  else {
    using std::abs;
    return static_cast<T>(abs(x.v));
  }
}

/// Square root, correctly rounded; NaN below 0.
template <Scalar T>
WENGERT_INLINE Vec<T> sqrt(Vec<T> x) noexcept {
  if constexpr (SimdScalar<T>)
    return xsimd::sqrt(x.v);
  else {
    using std::sqrt;
    return static_cast<T>(sqrt(x.v));
  }
}

/// The largest integer not above x.
template <Scalar T>
WENGERT_INLINE Vec<T> floor(Vec<T> x) noexcept {
  if constexpr (SimdScalar<T>)
    return xsimd::floor(x.v);
  else {
    using std::floor;
    return static_cast<T>(floor(x.v));
  }
}

/// The nearest integer; halves go to the even one, as in PyTorch.
template <Scalar T>
WENGERT_INLINE Vec<T> round(Vec<T> x) noexcept {
  if constexpr (SimdScalar<T>)
    return xsimd::nearbyint(x.v);
  else if constexpr (std::is_arithmetic_v<T>)
    return static_cast<T>(std::nearbyint(x.v));
  else
    return static_cast<T>(round(x.v));
}

}  // namespace wengert::inline WENGERT_ISA::kernels
