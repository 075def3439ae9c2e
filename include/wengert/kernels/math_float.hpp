// Own polynomials for `Vec<float>`, and repairs to xsimd's functions of double; math.hpp dispatches here and
// states what each promises. Coefficients are minimax fits of relative error, made for this library. Floor:
// kernels.
#pragma once

#include <cmath>
#include <limits>
#include <numbers>

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

// By way of log and exp in double, whose error a float does not see; then IEEE's special cases.
[[gnu::noinline]] inline FloatBatch pow_float(const FloatBatch& a, const FloatBatch& b) noexcept {
  constexpr Index n = simd_lanes<float>;
  alignas(64) float base[n], exponent[n];
  alignas(64) double wide[n], wide_exponent[n];
  xsimd::abs(a).store_aligned(base);
  b.store_aligned(exponent);
  for (Index i = 0; i < n; ++i) wide[i] = double{base[i]};
  for (Index i = 0; i < n; ++i) wide_exponent[i] = double{exponent[i]};
  for (Index i = 0; i < n; i += simd_lanes<double>) {
    const auto log_base = xsimd::log(Batch<double>::load_aligned(wide + i));
    xsimd::exp(log_base * Batch<double>::load_aligned(wide_exponent + i)).store_aligned(wide + i);
  }
  for (Index i = 0; i < n; ++i) base[i] = static_cast<float>(wide[i]);
  FloatBatch y = FloatBatch::load_aligned(base);

  const FloatBatch zero(0.f), one(1.f), inf(float_inf), half = b * FloatBatch(0.5f);
  const auto whole = xsimd::floor(b) == b;
  const auto odd = whole & (xsimd::floor(half) != half);
  const FloatBatch sign = from_bits(to_bits(a) & IntBatch(std::numeric_limits<std::int32_t>::min()));
  y = xsimd::select(odd, from_bits(to_bits(y) | to_bits(sign)), y);
  y = xsimd::select((a < zero) & (a != -inf) & !whole, FloatBatch(float_nan), y);
  const auto sure = (b == zero) | (a == one) | ((a == -one) & (xsimd::abs(b) == inf));
  return xsimd::select(sure, one, y);
}

WENGERT_INLINE Batch<double> log_double(const Batch<double>& x) noexcept {
  const auto denormal = x < Batch<double>(std::numeric_limits<double>::min());
  Batch<double> y = xsimd::log(x);
  if (xsimd::any(denormal)) [[unlikely]]
    y = xsimd::select(denormal, xsimd::log(x * Batch<double>(0x1p54)) - Batch<double>(54 * std::numbers::ln2),
                      y);
  return y;
}

WENGERT_INLINE Batch<double> erf_double(const Batch<double>& x) noexcept {  // far out xsimd's overflows
  return xsimd::erf(xsimd::min(Batch<double>(6.0), xsimd::max(Batch<double>(-6.0), x)));
}

[[gnu::noinline]] inline Batch<double> pow_double(const Batch<double>& a, const Batch<double>& b) noexcept {
  alignas(64) double base[simd_lanes<double>], exponent[simd_lanes<double>];
  a.store_aligned(base);
  b.store_aligned(exponent);
  for (Index i = 0; i < simd_lanes<double>; ++i) base[i] = std::pow(base[i], exponent[i]);
  return Batch<double>::load_aligned(base);
}

}  // namespace wengert::inline WENGERT_ISA::kernels::detail
