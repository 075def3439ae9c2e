// Elementary and activation functions on `Vec<T>`: float and double by SIMD, other types through their own
// scalar functions. NaN in gives NaN out in every one of them. Floor: kernels.
#pragma once

#include <wengert/kernels/math_scalar.hpp>
#include <wengert/kernels/vec.hpp>

namespace wengert::inline WENGERT_ISA::kernels {

/// y = e^x.
template <Scalar T>
WENGERT_INLINE Vec<T> exp(Vec<T> x) noexcept {
  if constexpr (SimdScalar<T>)
    return xsimd::exp(x.v);
  else
    return static_cast<T>(exp(x.v));
}

/// y = e^x - 1, without cancellation near 0.
template <Scalar T>
WENGERT_INLINE Vec<T> expm1(Vec<T> x) noexcept {
  if constexpr (SimdScalar<T>)
    return xsimd::expm1(x.v);
  else
    return static_cast<T>(expm1(x.v));
}

/// Natural logarithm; log(0) = -inf, NaN below 0.
template <Scalar T>
WENGERT_INLINE Vec<T> log(Vec<T> x) noexcept {
  if constexpr (SimdScalar<T>)
    return xsimd::log(x.v);
  else
    return static_cast<T>(log(x.v));
}

/// y = log(1 + x), without cancellation near 0.
template <Scalar T>
WENGERT_INLINE Vec<T> log1p(Vec<T> x) noexcept {
  if constexpr (SimdScalar<T>)
    return xsimd::log1p(x.v);
  else
    return static_cast<T>(log1p(x.v));
}

/// Hyperbolic tangent.
template <Scalar T>
WENGERT_INLINE Vec<T> tanh(Vec<T> x) noexcept {
  if constexpr (SimdScalar<T>)
    return xsimd::tanh(x.v);
  else
    return static_cast<T>(tanh(x.v));
}

/// y = 1 / (1 + e^-x).
template <Scalar T>
WENGERT_INLINE Vec<T> sigmoid(Vec<T> x) noexcept {
  if constexpr (SimdScalar<T>)
    return 1 / (1 + exp(-x));
  else if constexpr (requires { sigmoid(x.v); })
    return static_cast<T>(sigmoid(x.v));
  else
    return formula::sigmoid(x.v);
}

/// Error function.
template <Scalar T>
WENGERT_INLINE Vec<T> erf(Vec<T> x) noexcept {
  if constexpr (SimdScalar<T>)
    return xsimd::erf(x.v);
  else
    return static_cast<T>(erf(x.v));
}

/// y = x * Phi(x), with Phi the normal distribution function, by erf.
template <Scalar T>
WENGERT_INLINE Vec<T> gelu(Vec<T> x) noexcept {
  if constexpr (SimdScalar<T>)
    return 0.5 * x * (1 + erf(x * (0.5 * std::numbers::sqrt2)));
  else if constexpr (requires { gelu(x.v); })
    return static_cast<T>(gelu(x.v));
  else
    return formula::gelu(x.v);
}

/// y = x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))).
template <Scalar T>
WENGERT_INLINE Vec<T> gelu_tanh(Vec<T> x) noexcept {
  if constexpr (SimdScalar<T>)
    return 0.5 * x *
           (1 + tanh(x * (std::numbers::sqrt2 * std::numbers::inv_sqrtpi) * (1 + 0.044715 * x * x)));
  else if constexpr (requires { gelu_tanh(x.v); })
    return static_cast<T>(gelu_tanh(x.v));
  else
    return formula::gelu_tanh(x.v);
}

/// y = x * sigmoid(x).
template <Scalar T>
WENGERT_INLINE Vec<T> silu(Vec<T> x) noexcept {
  return x * sigmoid(x);
}

/// y = log(1 + e^x) without overflow.
template <Scalar T>
WENGERT_INLINE Vec<T> softplus(Vec<T> x) noexcept {
  if constexpr (SimdScalar<T>)
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

/// Sine and cosine.
template <Scalar T>
WENGERT_INLINE Vec<T> sin(Vec<T> x) noexcept {
  if constexpr (SimdScalar<T>)
    return xsimd::sin(x.v);
  else
    return static_cast<T>(sin(x.v));
}
template <Scalar T>
WENGERT_INLINE Vec<T> cos(Vec<T> x) noexcept {
  if constexpr (SimdScalar<T>)
    return xsimd::cos(x.v);
  else
    return static_cast<T>(cos(x.v));
}

/// y = a^b, with IEEE's special values: pow(x, 0) = 1, pow(0, b > 0) = 0, NaN for a < 0 and b not an integer.
template <Scalar T>
WENGERT_INLINE Vec<T> pow(Vec<T> a, Vec<T> b) noexcept {
  if constexpr (SimdScalar<T>)
    return xsimd::pow(a.v, b.v);
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
  if (p == -1) return 1 / a;
  if (p == -2) return 1 / (a * a);
  return pow(a, Vec<T>(b));
}
/// The same for a constant base.
template <Scalar T, class A>
requires std::is_arithmetic_v<A> WENGERT_INLINE Vec<T> pow(A a, Vec<T> b)
noexcept { return pow(Vec<T>(a), b); }

}  // namespace wengert::inline WENGERT_ISA::kernels
