// Elementary and activation functions on `Vec<T>`: float and double by SIMD, other types through their own
// scalar functions. NaN in gives NaN out in every one of them. Floor: kernels.
#pragma once

#include <wengert/kernels/math_double.hpp>
#include <wengert/kernels/math_float.hpp>
#include <wengert/kernels/math_scalar.hpp>
#include <wengert/kernels/vec.hpp>

namespace wengert::inline WENGERT_ISA::kernels {

/// y = e^x; float: 1.1 ULP, results below 1.18e-38 (x < -87.34) flush to 0. double: 1.5 ULP, inf from 709.43,
/// 0 below -708.4.
template <Scalar T>
WENGERT_INLINE Vec<T> exp(Vec<T> x) noexcept {
  if constexpr (std::same_as<T, float>)
    return detail::exp_float(x.v);
  else if constexpr (std::same_as<T, double>)
    return xsimd::exp(x.v);
  else
    return static_cast<T>(exp(x.v));
}

/// y = e^x - 1 without cancellation near 0; float: 1.7 ULP, double: 2 ULP.
template <Scalar T>
WENGERT_INLINE Vec<T> expm1(Vec<T> x) noexcept {
  if constexpr (std::same_as<T, float>)
    return detail::expm1_float(x.v);
  else if constexpr (std::same_as<T, double>)
    return xsimd::expm1(x.v);
  else
    return static_cast<T>(expm1(x.v));
}

/// Natural logarithm; log(0) = -inf, NaN below 0. float and double: 0.9 ULP, denormals included.
template <Scalar T>
WENGERT_INLINE Vec<T> log(Vec<T> x) noexcept {
  if constexpr (std::same_as<T, float>)
    return detail::log_float(x.v);
  else if constexpr (std::same_as<T, double>)
    return detail::log_double(x.v);
  else
    return static_cast<T>(log(x.v));
}

/// y = log(1 + x) without cancellation near 0; -inf at -1, NaN below. float and double: 1.5 ULP.
template <Scalar T>
WENGERT_INLINE Vec<T> log1p(Vec<T> x) noexcept {
  if constexpr (std::same_as<T, float>)
    return detail::log1p_float(x.v);
  else if constexpr (std::same_as<T, double>)
    return detail::log1p_double(x.v);
  else
    return static_cast<T>(log1p(x.v));
}

/// Hyperbolic tangent, never beyond +-1; float: 5.2 ULP (3.1e-7 relative), double: 1.3 ULP.
template <Scalar T>
WENGERT_INLINE Vec<T> tanh(Vec<T> x) noexcept {
  if constexpr (std::same_as<T, float>)
    return detail::tanh_float(x.v);
  else if constexpr (std::same_as<T, double>)
    return xsimd::tanh(x.v);
  else
    return static_cast<T>(tanh(x.v));
}

/// y = 1 / (1 + e^-x); float: 2.3 ULP, and 0 below -88.72. double: 3 ULP.
template <Scalar T>
WENGERT_INLINE Vec<T> sigmoid(Vec<T> x) noexcept {
  if constexpr (SimdScalar<T>)
    return 1 / (1 + exp(-x));
  else if constexpr (requires { sigmoid(x.v); })
    return static_cast<T>(sigmoid(x.v));
  else
    return formula::sigmoid(x.v);
}

/// Error function, never beyond +-1; float: 4.5e-7, double: 1e-14, both relative and so absolute too.
template <Scalar T>
WENGERT_INLINE Vec<T> erf(Vec<T> x) noexcept {
  if constexpr (std::same_as<T, float>)
    return detail::erf_float(x.v);
  else if constexpr (std::same_as<T, double>)
    return detail::erf_double(x.v);
  else
    return static_cast<T>(erf(x.v));
}

/// y = x * Phi(x), with Phi the normal distribution function, by erf; float: 6e-7 max(1, |x|) absolute,
/// double: 1e-14. gelu(-inf) = 0.
template <Scalar T>
WENGERT_INLINE Vec<T> gelu(Vec<T> x) noexcept {
  if constexpr (SimdScalar<T>)
    return 0.5 * max_or_second(Vec<T>(-40), x) * (1 + erf(x * (0.5 * std::numbers::sqrt2)));
  else if constexpr (requires { gelu(x.v); })
    return static_cast<T>(gelu(x.v));
  else
    return formula::gelu(x.v);
}

/// y = x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))); float: 6e-7 max(1, |x|) absolute.
/// gelu_tanh(-inf) = 0.
template <Scalar T>
WENGERT_INLINE Vec<T> gelu_tanh(Vec<T> x) noexcept {
  if constexpr (SimdScalar<T>)
    return 0.5 * max_or_second(Vec<T>(-20), x) *
           (1 + tanh(x * (std::numbers::sqrt2 * std::numbers::inv_sqrtpi) * (1 + 0.044715 * x * x)));
  else if constexpr (requires { gelu_tanh(x.v); })
    return static_cast<T>(gelu_tanh(x.v));
  else
    return formula::gelu_tanh(x.v);
}

/// y = x * sigmoid(x); float: 3 ULP, double: 4 ULP. silu(-inf) = 0.
template <Scalar T>
WENGERT_INLINE Vec<T> silu(Vec<T> x) noexcept {
  if constexpr (SimdScalar<T>)
    return max_or_second(Vec<T>(-1000), x) * sigmoid(x);  // sigmoid(-1000) is 0
  else
    return x * sigmoid(x);
}

/// y = log(1 + e^x) without overflow, and exact in the tails (no threshold). float: 3 ULP, double: 3 ULP.
template <Scalar T>
WENGERT_INLINE Vec<T> softplus(Vec<T> x) noexcept {
  if constexpr (std::same_as<T, float>)
    return max_or_second(Vec<T>(0), x) + Vec<T>(detail::log1p_unit(exp(-abs(x)).v));
  else if constexpr (std::same_as<T, double>)
    return max_or_second(Vec<T>(0), x) + log1p(exp(-abs(x)));
  else if constexpr (requires { softplus(x.v); })
    return static_cast<T>(softplus(x.v));
  else
    return formula::softplus(x.v);
}

/// y = max(x, 0); NaN stays NaN.
template <Scalar T>
WENGERT_INLINE Vec<T> relu(Vec<T> x) noexcept {
  if constexpr (SimdScalar<T>)
    return max_or_second(Vec<T>(0), x);
  else
    return x.v < T(0) ? T(0) : x.v;
}

/// y = x^2.
template <Scalar T>
WENGERT_INLINE Vec<T> square(Vec<T> x) noexcept {
  return x * x;
}

/// y = 1 / sqrt(x), by a division: as exact as two roundings are.
template <Scalar T>
WENGERT_INLINE Vec<T> rsqrt(Vec<T> x) noexcept {
  return 1 / sqrt(x);
}

/// y = 1 / x.
template <Scalar T>
WENGERT_INLINE Vec<T> reciprocal(Vec<T> x) noexcept {
  return 1 / x;
}

/// y = 1 above 0, -1 below, 0 at 0.
template <Scalar T>
WENGERT_INLINE Vec<T> sign(Vec<T> x) noexcept {
  return where(x > 0, Vec<T>(1), where(x < 0, Vec<T>(-1), x));
}

/// Sine; float and double: 2.2 ULP for any finite x, NaN at +-inf.
template <Scalar T>
WENGERT_INLINE Vec<T> sin(Vec<T> x) noexcept {
  if constexpr (SimdScalar<T>)
    return xsimd::sin(x.v);
  else
    return static_cast<T>(sin(x.v));
}
/// Cosine; as sin.
template <Scalar T>
WENGERT_INLINE Vec<T> cos(Vec<T> x) noexcept {
  if constexpr (SimdScalar<T>)
    return xsimd::cos(x.v);
  else
    return static_cast<T>(cos(x.v));
}

/// y = a^b with IEEE's special values: pow(x, 0) = 1 for every x, pow(0, b > 0) = 0, NaN for a < 0 unless b
/// is whole. float and double: 1 ULP; float flushes denormal results only where the instruction set does.
template <Scalar T>
WENGERT_INLINE Vec<T> pow(Vec<T> a, Vec<T> b) noexcept {
  if constexpr (std::same_as<T, float>)
    return detail::pow_float(a.v, b.v);
  else if constexpr (std::same_as<T, double>)
    return detail::pow_double(a.v, b.v);
  else
    return static_cast<T>(pow(a.v, b.v));
}
/// The same for a constant exponent, which is much faster for -2, -1, -1/2, 0, 1/2, 1, 2, 3 and 4.
template <Scalar T, class A>
requires std::is_arithmetic_v<A> WENGERT_INLINE Vec<T> pow(Vec<T> a, A b)
noexcept {
  const double p = static_cast<double>(b);
  if (p == 2) return a * a;
  if (p == 1) return a;
  if (p == 0) return 1;
  if (p == 3) return a * a * a;
  if (p == 4) return (a * a) * (a * a);
  if (p == 0.5)
    return where(a == -std::numeric_limits<double>::infinity(), -a, sqrt(a) + 0);  // pow(-0, 1/2) = +0
  if (p == -0.5) return where(a == -std::numeric_limits<double>::infinity(), 0, 1 / (sqrt(a) + 0));
  if (p == -1) return 1 / a;
  if (p == -2) return 1 / (a * a);
  return pow(a, Vec<T>(b));
}
/// The same for a constant base.
template <Scalar T, class A>
requires std::is_arithmetic_v<A> WENGERT_INLINE Vec<T> pow(A a, Vec<T> b)
noexcept { return pow(Vec<T>(a), b); }

}  // namespace wengert::inline WENGERT_ISA::kernels
