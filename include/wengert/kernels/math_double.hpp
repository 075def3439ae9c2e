// Functions of `Vec<double>` where xsimd's do not serve, and powers, which float too takes by way of double;
// math.hpp dispatches here. Floor: kernels.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include <wengert/kernels/math_float.hpp>

namespace wengert::inline WENGERT_ISA::kernels::detail {

// log of a positive normal number. Not xsimd's: it selects 64-bit integers, which g++ 12 cannot build for
// AVX-512 without optimisation.
WENGERT_INLINE Batch<double> log_normal(const Batch<double>& x, double bias) noexcept {
  using Bits = xsimd::batch<std::uint64_t>;
  constexpr std::uint64_t one = 0x3FF0000000000000u, sqrt_half = 0x3FE6A09E667F3BCDu;
  // x = 2^e m with m in [sqrt(1/2), sqrt(2)); the biased e goes into the low bits of 2^52 to become a double.
  const Bits shifted = xsimd::bitwise_cast<Bits>(x) + Bits(one - sqrt_half);
  const Batch<double> e = xsimd::bitwise_cast<Batch<double>>((shifted >> 52) | Bits(0x4330000000000000u)) -
                          Batch<double>(4503599627370496.0 + bias);
  const Bits mantissa = (shifted & Bits(0x000FFFFFFFFFFFFFu)) + Bits(sqrt_half);
  const Batch<double> f = xsimd::bitwise_cast<Batch<double>>(mantissa) - Batch<double>(1.0);
  // log(m) = 2 atanh(s), arranged so that the error of s counts little.
  const Batch<double> s = f / (f + Batch<double>(2.0)), z = s * s, half_square = Batch<double>(0.5) * f * f;
  Batch<double> r(0.14795869327095823);
  for (double c : {0.15314059164347146, 0.18183563960849333, 0.22222198580938826, 0.28571428742302207,
                   0.39999999999415131, 0.66666666666667340})
    r = xsimd::fma(r, z, Batch<double>(c));
  const Batch<double> low =
      xsimd::fma(e, Batch<double>(1.90821492927058770002e-10), s * xsimd::fma(r, z, half_square));
  return xsimd::fma(e, Batch<double>(6.93147180369123816490e-01), f - (half_square - low));
}

WENGERT_INLINE Batch<double> log_double(const Batch<double>& x) noexcept {
  constexpr double inf = std::numeric_limits<double>::infinity(),
                   normal_min = std::numeric_limits<double>::min();
  const Batch<double> zero(0.0), tiny(normal_min), huge(inf);
  Batch<double> y = log_normal(x, 1023.0);
  if (!xsimd::all((x >= tiny) & (x < huge))) [[unlikely]] {
    y = xsimd::select(x < tiny, log_normal(x * Batch<double>(0x1p54), 1023.0 + 54.0), y);
    y = xsimd::select(x < huge, y, x);  // inf and NaN
    y = xsimd::select(x < zero, Batch<double>(std::numeric_limits<double>::quiet_NaN()), y);
    y = xsimd::select(x == zero, -huge, y);
  }
  return y;
}

WENGERT_INLINE Batch<double> log1p_double(const Batch<double>& x) noexcept {
  constexpr double inf = std::numeric_limits<double>::infinity();
  const Batch<double> one(1.0), u = x + one, lost = x - (u - one);
  Batch<double> y = log_normal(u, 1023.0) + lost / u;
  y = xsimd::select(x < Batch<double>(inf), y, x);
  y = xsimd::select(x < -one, Batch<double>(std::numeric_limits<double>::quiet_NaN()), y);
  y = xsimd::select(x == Batch<double>(0.0), x, y);
  return xsimd::select(x == -one, Batch<double>(-inf), y);
}

WENGERT_INLINE Batch<double> erf_double(const Batch<double>& x) noexcept {  // far out xsimd's overflows
  return xsimd::erf(xsimd::min(Batch<double>(6.0), xsimd::max(Batch<double>(-6.0), x)));
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
    const auto log_base = log_double(Batch<double>::load_aligned(wide + i));
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

[[gnu::noinline]] inline Batch<double> pow_double(const Batch<double>& a, const Batch<double>& b) noexcept {
  alignas(64) double base[simd_lanes<double>], exponent[simd_lanes<double>];
  a.store_aligned(base);
  b.store_aligned(exponent);
  for (Index i = 0; i < simd_lanes<double>; ++i) base[i] = std::pow(base[i], exponent[i]);
  return Batch<double>::load_aligned(base);
}

}  // namespace wengert::inline WENGERT_ISA::kernels::detail
