// The functions of math.hpp on dual numbers: each is the value and, beside it, the slope. Included by
// dual.hpp, which is what one includes. Floor: kernels.
#pragma once

#include <wengert/kernels/dual.hpp>

namespace wengert::inline WENGERT_ISA::kernels {

/// y = e^x, slope y.
template <class V, int K>
WENGERT_INLINE Dual<V, K> exp(const Dual<V, K>& x) noexcept {
  const V y = exp(x.value);
  return x.chain(y, y);
}

/// y = e^x - 1, slope y + 1.
template <class V, int K>
WENGERT_INLINE Dual<V, K> expm1(const Dual<V, K>& x) noexcept {
  const V y = expm1(x.value);
  return x.chain(y, y + V(1));
}

/// Slope 1 / x.
template <class V, int K>
WENGERT_INLINE Dual<V, K> log(const Dual<V, K>& x) noexcept {
  return x.chain_at_pole(log(x.value), V(1) / x.value);
}

/// Slope 1 / (1 + x).
template <class V, int K>
WENGERT_INLINE Dual<V, K> log1p(const Dual<V, K>& x) noexcept {
  return x.chain_at_pole(log1p(x.value), V(1) / (V(1) + x.value));
}

/// Slope 1 - y^2.
template <class V, int K>
WENGERT_INLINE Dual<V, K> tanh(const Dual<V, K>& x) noexcept {
  const V y = tanh(x.value);
  return x.chain(y, V(1) - y * y);
}

/// Slope y (1 - y).
template <class V, int K>
WENGERT_INLINE Dual<V, K> sigmoid(const Dual<V, K>& x) noexcept {
  const V y = sigmoid(x.value);
  return x.chain(y, y * (V(1) - y));
}

/// Slope 2 / sqrt(pi) * e^(-x^2).
template <class V, int K>
WENGERT_INLINE Dual<V, K> erf(const Dual<V, K>& x) noexcept {
  return x.chain(erf(x.value), V(2 * std::numbers::inv_sqrtpi) * exp(-(x.value * x.value)));
}

/// Slope Phi(x) + x phi(x), with phi the normal density.
template <class V, int K>
WENGERT_INLINE Dual<V, K> gelu(const Dual<V, K>& x) noexcept {
  constexpr double inv_sqrt_2pi = 0.5 * std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
  const V phi_big = V(0.5) + V(0.5) * erf(x.value * V(0.5 * std::numbers::sqrt2));
  const V c = clamp(x.value, V(-40), V(40));  // beyond, the density is 0; keeps inf * 0 out
  return x.chain(gelu(x.value), phi_big + c * (V(inv_sqrt_2pi) * exp(V(-0.5) * (c * c))));
}

/// With u = sqrt(2 / pi) (x + 0.044715 x^3), t = tanh(u): slope (1 + t) / 2 + x (1 - t^2) u' / 2.
template <class V, int K>
WENGERT_INLINE Dual<V, K> gelu_tanh(const Dual<V, K>& x) noexcept {
  constexpr double a = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
  constexpr double b = 0.044715;
  const V c = clamp(x.value, V(-20), V(20));  // beyond, t is +-1 exactly; keeps inf * 0 out
  const V s = c * c;
  const V t = tanh(V(a) * c * (V(1) + V(b) * s));
  const V half = V(0.5) * (V(1) + t);
  return x.chain(gelu_tanh(x.value), half + c * (V(1) - t) * half * (V(a) + V(3 * a * b) * s));
}

/// With s = sigmoid(x): slope s (1 + x (1 - s)).
template <class V, int K>
WENGERT_INLINE Dual<V, K> silu(const Dual<V, K>& x) noexcept {
  const V s = sigmoid(x.value);
  const V c = clamp(x.value, V(-1000), V(1000));  // beyond, s is 0 or 1; keeps inf * 0 out
  return x.chain(silu(x.value), s * (V(1) + c * (V(1) - s)));
}

/// Slope sigmoid(x).
template <class V, int K>
WENGERT_INLINE Dual<V, K> softplus(const Dual<V, K>& x) noexcept {
  return x.chain(softplus(x.value), sigmoid(x.value));
}

/// Slope 1 above 0, else 0.
template <class V, int K>
WENGERT_INLINE Dual<V, K> relu(const Dual<V, K>& x) noexcept {
  const auto positive = x.value > V(0);
  return Dual<V, K>::make(relu(x.value),
                          [&](int k) WENGERT_INLINE_LAMBDA { return where(positive, x.d[k], V(0)); });
}

/// Slope sign(x), 0 at 0.
template <class V, int K>
WENGERT_INLINE Dual<V, K> abs(const Dual<V, K>& x) noexcept {
  const auto positive = x.value > V(0), negative = x.value < V(0);
  return Dual<V, K>::make(abs(x.value), [&](int k) WENGERT_INLINE_LAMBDA {
    return where(positive, x.d[k], where(negative, V(-x.d[k]), V(0)));
  });
}

/// Slope 2 x.
template <class V, int K>
WENGERT_INLINE Dual<V, K> square(const Dual<V, K>& x) noexcept {
  return x.chain(x.value * x.value, x.value + x.value);
}

/// Slope 1 / (2 y): infinite at 0, where a partial of 0 stays 0.
template <class V, int K>
WENGERT_INLINE Dual<V, K> sqrt(const Dual<V, K>& x) noexcept {
  const V y = sqrt(x.value);
  return x.chain_at_pole(y, V(0.5) / y);
}

/// Slope -y / (2 x).
template <class V, int K>
WENGERT_INLINE Dual<V, K> rsqrt(const Dual<V, K>& x) noexcept {
  const V y = rsqrt(x.value);
  return x.chain_at_pole(y, V(-0.5) * y / x.value);
}

/// Slope -y^2.
template <class V, int K>
WENGERT_INLINE Dual<V, K> reciprocal(const Dual<V, K>& x) noexcept {
  const V y = reciprocal(x.value);
  return x.chain_at_pole(y, -(y * y));
}

/// Slope 0 everywhere, also at the steps.
template <class V, int K>
WENGERT_INLINE Dual<V, K> sign(const Dual<V, K>& x) noexcept {
  return Dual<V, K>(sign(x.value));
}
template <class V, int K>
WENGERT_INLINE Dual<V, K> floor(const Dual<V, K>& x) noexcept {
  return Dual<V, K>(floor(x.value));
}
template <class V, int K>
WENGERT_INLINE Dual<V, K> round(const Dual<V, K>& x) noexcept {
  return Dual<V, K>(round(x.value));
}

template <class V, int K>
WENGERT_INLINE Dual<V, K> sin(const Dual<V, K>& x) noexcept {
  return x.chain(sin(x.value), cos(x.value));
}
template <class V, int K>
WENGERT_INLINE Dual<V, K> cos(const Dual<V, K>& x) noexcept {
  return x.chain(cos(x.value), -sin(x.value));
}

namespace detail {

// d(a^b)/da = b a^(b-1), and 0 where b = 0.
template <class V>
WENGERT_INLINE V pow_slope_base(const V& a, const V& b) noexcept {
  return where(b == V(0), V(0), V(b * pow(a, V(b - V(1)))));
}
// d(a^b)/db = y log(a), and 0 where a = 0 and b >= 0.
template <class V>
WENGERT_INLINE V pow_slope_exponent(const V& a, const V& b, const V& y) noexcept {
  return where(a == V(0) && b >= V(0), V(0), V(y * log(a)));
}

}  // namespace detail

/// a^b: slopes b a^(b-1) towards a, 0 where b = 0; y log(a) towards b, 0 where a = 0 and b >= 0.
template <class V, int K>
WENGERT_INLINE Dual<V, K> pow(const Dual<V, K>& a, const Dual<V, K>& b) noexcept {
  const V y = pow(a.value, b.value);
  const V sa = detail::pow_slope_base(a.value, b.value);
  const V sb = detail::pow_slope_exponent(a.value, b.value, y);
  return Dual<V, K>::make(y, [&](int k) WENGERT_INLINE_LAMBDA {
    return detail::guarded_product(a.d[k], sa) + detail::guarded_product(b.d[k], sb);
  });
}
/// The same for a constant exponent.
template <class V, int K, detail::ConstantOf<Dual<V, K>, V> C>
WENGERT_INLINE Dual<V, K> pow(const Dual<V, K>& a, const C& b) noexcept {
  if constexpr (std::is_arithmetic_v<C> && !std::is_arithmetic_v<V>) {
    const double p = static_cast<double>(b);  // keeps the fast paths of constant exponents
    const V slope = p == 0 ? V(0) : V(p * pow(a.value, p - 1));
    return a.chain_at_pole(pow(a.value, p), slope);
  } else {
    const V p = detail::lift<V>(b);
    return a.chain_at_pole(pow(a.value, p), detail::pow_slope_base(a.value, p));
  }
}
/// The same for a constant base.
template <class V, int K, detail::ConstantOf<Dual<V, K>, V> C>
WENGERT_INLINE Dual<V, K> pow(const C& a, const Dual<V, K>& b) noexcept {
  const V base = detail::lift<V>(a), y = pow(base, b.value);
  return b.chain_at_pole(y, detail::pow_slope_exponent(base, b.value, y));
}

}  // namespace wengert::inline WENGERT_ISA::kernels
