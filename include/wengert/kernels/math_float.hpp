// Own polynomials for `Vec<float>`; math.hpp dispatches here and states what each promises. The
// coefficients are minimax fits of relative error, made for this library. Floor: kernels.
#pragma once

#include <cstdint>
#include <limits>

#include <wengert/kernels/vec.hpp>

namespace wengert::inline WENGERT_ISA::kernels::detail {

using FloatBatch = Batch<float>;
using IntBatch = xsimd::batch<std::int32_t>;

inline constexpr float float_inf = std::numeric_limits<float>::infinity();
inline constexpr float float_nan = std::numeric_limits<float>::quiet_NaN();

WENGERT_INLINE FloatBatch from_bits(const IntBatch& i) noexcept { return xsimd::bitwise_cast<FloatBatch>(i); }
WENGERT_INLINE IntBatch to_bits(const FloatBatch& x) noexcept { return xsimd::bitwise_cast<IntBatch>(x); }

// c[0] x^n + c[1] x^(n-1) + ... + c[n].
template <class... C>
WENGERT_INLINE FloatBatch horner(const FloatBatch& x, float c, C... rest) noexcept {
  FloatBatch y(c);
  ((y = xsimd::fma(y, x, FloatBatch(rest))), ...);
  return y;
}

// The nearest integer; anything but a crash for NaN and beyond the range.
WENGERT_INLINE IntBatch nearest_int(const FloatBatch& x) noexcept {
#if defined(__AVX512F__)
  return _mm512_cvtps_epi32(x);
#elif defined(__AVX__)
  return _mm256_cvtps_epi32(x);
#elif defined(__SSE2__)
  return _mm_cvtps_epi32(x);
#else
  return xsimd::to_int(xsimd::nearbyint(x));
#endif
}

// x = n ln2 + r with |r| <= ln2 / 2 and n an integer.
struct ExpParts {
  IntBatch n;
  FloatBatch r;
};
WENGERT_INLINE ExpParts reduce_exp(const FloatBatch& x) noexcept {
  const IntBatch n = nearest_int(x * FloatBatch(1.44269504f));
  const FloatBatch f = xsimd::to_float(n);
  const FloatBatch r =
      xsimd::fma(f, FloatBatch(-0.693359375f), x);  // 10 bits: the product is exact without fma too
  return {n, xsimd::fma(f, FloatBatch(2.12194440e-4f), r)};
}

// e^r - 1 for |r| <= ln2 / 2.
WENGERT_INLINE FloatBatch expm1_reduced(const FloatBatch& r) noexcept {
  const FloatBatch q = horner(r, 0.00138981047f, 0.0083660444f, 0.0416668568f, 0.166665487f, 0.5f);
  return xsimd::fma(q, r * r, r);
}

WENGERT_INLINE FloatBatch exp_float(const FloatBatch& x) noexcept {
  const auto [n, r] = reduce_exp(x);
  const FloatBatch p = expm1_reduced(r) + FloatBatch(1.f);
  // Adding n to the exponent is exact wherever neither of the two cases below holds.
  FloatBatch y = from_bits(to_bits(p) + (n << 23));
  y = xsimd::select(x < FloatBatch(-87.3365448f), FloatBatch(0.f), y);
  return xsimd::select(x > FloatBatch(88.7228394f), FloatBatch(float_inf), y);
}

WENGERT_INLINE FloatBatch expm1_float(const FloatBatch& x) noexcept {
  const FloatBatch held = xsimd::max(FloatBatch(-20.f), x);  // e^-20 - 1 rounds to -1; NaN passes
  const auto [n, r] = reduce_exp(held);
  const FloatBatch half_scale = from_bits((n + IntBatch(126)) << 23);  // 2^(n-1) exists up to n = 128
  const FloatBatch half = xsimd::fma(half_scale, expm1_reduced(r), half_scale - FloatBatch(0.5f));
  FloatBatch y = half + half;
  y = xsimd::select(x == FloatBatch(0.f), x, y);  // keeps the sign of -0
  return xsimd::select(x > FloatBatch(88.7228394f), FloatBatch(float_inf), y);
}

// log of a positive normal number.
WENGERT_INLINE FloatBatch log_normal(const FloatBatch& x, const FloatBatch& bias) noexcept {
  // x = 2^e m with m in [sqrt(1/2), sqrt(2)).
  const IntBatch shifted = to_bits(x) + IntBatch(0x3f800000 - 0x3f3504f3);
  const FloatBatch e = xsimd::to_float(shifted >> 23) - bias;
  const FloatBatch f = from_bits((shifted & IntBatch(0x007fffff)) + IntBatch(0x3f3504f3)) - FloatBatch(1.f);
  const FloatBatch p = horner(f, -0.0763462512f, 0.127616468f, -0.131601628f, 0.142017465f, -0.166233586f,
                              0.200012274f, -0.25000821f, 0.333333317f);
  const FloatBatch f2 = f * f;
  FloatBatch y = xsimd::fma(e, FloatBatch(-2.12194440e-4f), f2 * f * p);
  y = xsimd::fma(f2, FloatBatch(-0.5f), y);
  return xsimd::fma(e, FloatBatch(0.693359375f), y + f);
}

WENGERT_INLINE FloatBatch log_float(const FloatBatch& x) noexcept {
  constexpr float normal_min = std::numeric_limits<float>::min();
  FloatBatch y = log_normal(x, FloatBatch(127.f));
  if (!xsimd::all((x >= FloatBatch(normal_min)) & (x < FloatBatch(float_inf)))) [[unlikely]] {
    y = xsimd::select(x < FloatBatch(normal_min),
                      log_normal(x * FloatBatch(0x1p23f), FloatBatch(127.f + 23.f)), y);
    y = xsimd::select(x < FloatBatch(float_inf), y, x);  // inf and NaN
    y = xsimd::select(x < FloatBatch(0.f), FloatBatch(float_nan), y);
    y = xsimd::select(x == FloatBatch(0.f), FloatBatch(-float_inf), y);
  }
  return y;
}

WENGERT_INLINE FloatBatch log1p_float(const FloatBatch& x) noexcept {
  const FloatBatch u = x + FloatBatch(1.f);
  const FloatBatch lost = x - (u - FloatBatch(1.f));  // what rounding took from u
  FloatBatch y = log_normal(u, FloatBatch(127.f)) + lost / u;
  y = xsimd::select(x < FloatBatch(float_inf), y, x);
  y = xsimd::select(x < FloatBatch(-1.f), FloatBatch(float_nan), y);
  y = xsimd::select(x == FloatBatch(0.f), x, y);
  return xsimd::select(x == FloatBatch(-1.f), FloatBatch(-float_inf), y);
}

// log(1 + t) for t in [0, 1], as t - t^2 p / q.
WENGERT_INLINE FloatBatch log1p_unit(const FloatBatch& t) noexcept {
  const FloatBatch p = horner(t, 0.0765718895f, 0.461079511f, 0.499999995f);
  const FloatBatch q = horner(t, 0.0803908637f, 0.712377663f, 1.58882467f, 1.f);
  return xsimd::fnma(t * t, p / q, t);
}

WENGERT_INLINE FloatBatch held_to(const FloatBatch& x, float limit) noexcept {  // NaN passes
  return xsimd::min(FloatBatch(limit), xsimd::max(FloatBatch(-limit), x));
}

WENGERT_INLINE FloatBatch tanh_float(const FloatBatch& x) noexcept {
  const FloatBatch c = held_to(x, 9.1f), t = c * c;
  const FloatBatch p = horner(t, 5.03813446e-08f, 3.14806804e-05f, 0.00400352712f, 0.137814557f, 1.f);
  const FloatBatch q =
      horner(t, 7.29778029e-10f, 1.60908169e-06f, 0.000419839781f, 0.0277195037f, 0.47114788f, 1.f);
  return held_to(c * p / q, 1.f);
}

WENGERT_INLINE FloatBatch erf_float(const FloatBatch& x) noexcept {
  const FloatBatch c = held_to(x, 4.f), t = c * c;
  const FloatBatch p =
      horner(t, 1.98661814e-06f, 0.000284563634f, 0.00388362625f, 0.0531026337f, 0.193552816f, 1.12837914f);
  const FloatBatch q =
      horner(t, 3.74183361e-05f, 0.00118562249f, 0.0152078402f, 0.115353075f, 0.504864273f, 1.f);
  return held_to(c * p / q, 1.f);
}

}  // namespace wengert::inline WENGERT_ISA::kernels::detail
