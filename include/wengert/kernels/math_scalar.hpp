// The functions of math.hpp on plain floating-point numbers and, as formulas, on any field type that brings
// its own exp, log, tanh and erf. Inner values of scalar dual numbers use these. Floor: kernels.
#pragma once

#include <cmath>
#include <concepts>
#include <limits>
#include <numbers>

#include <wengert/kernels/vec.hpp>

namespace wengert::inline WENGERT_ISA::kernels {

template <std::floating_point S>
S exp(S x) noexcept {
  return std::exp(x);
}
template <std::floating_point S>
S expm1(S x) noexcept {
  return std::expm1(x);
}
template <std::floating_point S>
S log(S x) noexcept {
  return std::log(x);
}
template <std::floating_point S>
S log1p(S x) noexcept {
  return std::log1p(x);
}
template <std::floating_point S>
S tanh(S x) noexcept {
  return std::tanh(x);
}
template <std::floating_point S>
S erf(S x) noexcept {
  return std::erf(x);
}
template <std::floating_point S>
S sin(S x) noexcept {
  return std::sin(x);
}
template <std::floating_point S>
S cos(S x) noexcept {
  return std::cos(x);
}
template <std::floating_point S>
S sqrt(S x) noexcept {
  return std::sqrt(x);
}
template <std::floating_point S>
S floor(S x) noexcept {
  return std::floor(x);
}
template <std::floating_point S>
S round(S x) noexcept {
  return std::nearbyint(x);
}
template <std::floating_point S>
S abs(S x) noexcept {
  return std::abs(x);
}
template <std::floating_point S>
S pow(S x, S p) noexcept {
  return std::pow(x, p);
}
template <std::floating_point S>
bool isnan(S x) noexcept {
  return x != x;
}
template <std::floating_point S>
S max(S a, S b) noexcept {
  return a > b || a != a ? a : b;
}
template <std::floating_point S>
S min(S a, S b) noexcept {
  return a < b || a != a ? a : b;
}
template <std::floating_point S>
S clamp(S x, S lo, S hi) noexcept {
  return x < lo ? lo : x > hi ? hi : x;
}
template <std::floating_point S>
S fma(S a, S b, S c) noexcept {
  return std::fma(a, b, c);
}
template <std::floating_point S>
S where(bool m, S a, S b) noexcept {
  return m ? a : b;
}

/// Formulas shared by floating-point numbers and one-element Vecs; `S` brings exp, expm1, log1p, tanh, erf,
/// sqrt by ADL.
namespace formula {

template <class S>
S sigmoid(const S& x) {
  return S(1) / (S(1) + exp(-x));
}
template <class S>
S softplus(const S& x) {
  return x > S(0) ? S(x + log1p(exp(-x))) : S(log1p(exp(x)));
}
template <class S>
S gelu(const S& x) {
  return S(0.5) * x * (S(1) + erf(x * S(0.5 * std::numbers::sqrt2)));
}
template <class S>
S gelu_tanh(const S& x) {
  constexpr double c = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;  // sqrt(2 / pi)
  return S(0.5) * x * (S(1) + tanh(S(c) * (x + S(0.044715) * x * x * x)));
}

}  // namespace formula

template <std::floating_point S>
S sigmoid(S x) noexcept {
  return formula::sigmoid(x);
}
template <std::floating_point S>
S softplus(S x) noexcept {
  return formula::softplus(x);
}
template <std::floating_point S>
S gelu(S x) noexcept {
  return formula::gelu(x);
}
template <std::floating_point S>
S gelu_tanh(S x) noexcept {
  return formula::gelu_tanh(x);
}
template <std::floating_point S>
S silu(S x) noexcept {
  return x * sigmoid(x);
}
template <std::floating_point S>
S relu(S x) noexcept {
  return x < S(0) ? S(0) : x;
}
template <std::floating_point S>
S square(S x) noexcept {
  return x * x;
}
template <std::floating_point S>
S rsqrt(S x) noexcept {
  return S(1) / std::sqrt(x);
}
template <std::floating_point S>
S reciprocal(S x) noexcept {
  return S(1) / x;
}
template <std::floating_point S>
S sign(S x) noexcept {
  return x > S(0) ? S(1) : x < S(0) ? S(-1) : x;
}

}  // namespace wengert::inline WENGERT_ISA::kernels
