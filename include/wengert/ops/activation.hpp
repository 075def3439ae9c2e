// Activation functions. Floor: ops.
#pragma once

#include <wengert/ops/functions.hpp>

namespace wengert::inline WENGERT_ISA {

/// Which formula `gelu` uses.
enum class Gelu : std::uint8_t { erf, tanh };

namespace detail {

struct Tanh {
  static constexpr std::string_view name = "tanh";
  static constexpr unsigned saves = saves_y;
  static auto value(auto x) { return tanh(x); }
  static auto vjp(auto dy, auto y, auto) { return std::array{dy * (1 - y * y)}; }
};
struct Sigmoid {
  static constexpr std::string_view name = "sigmoid";
  static constexpr unsigned saves = saves_y;
  static auto value(auto x) { return sigmoid(x); }
  static auto vjp(auto dy, auto y, auto) { return std::array{dy * (y * (1 - y))}; }
};
struct Relu {
  static constexpr std::string_view name = "relu";
  static constexpr unsigned saves = saves_y;
  static auto value(auto x) { return relu(x); }
  static auto vjp(auto dy, auto y, auto) { return std::array{where(y <= 0, decltype(dy)(0), dy)}; }
};
template <class T>
struct LeakyRelu {
  static constexpr std::string_view name = "leaky_relu";
  static constexpr unsigned saves = saves_x();
  T slope;
  auto value(auto x) const { return where(x > 0, x, x * decltype(x)(slope)); }
  auto vjp(auto dy, auto, auto x) const { return std::array{where(x > 0, dy, dy * decltype(x)(slope))}; }
};
struct GeluErf {
  static constexpr std::string_view name = "gelu";
  static constexpr unsigned saves = saves_x();
  static auto value(auto x) { return gelu(x); }
  static auto vjp(auto dy, auto, auto x) {
    return std::array{dy * slope(x, [](const auto& d) { return gelu(d); })};
  }
};
struct GeluTanh {
  static constexpr std::string_view name = "gelu";
  static constexpr unsigned saves = saves_x();
  static auto value(auto x) { return gelu_tanh(x); }
  static auto vjp(auto dy, auto, auto x) {
    return std::array{dy * slope(x, [](const auto& d) { return gelu_tanh(d); })};
  }
};
struct Silu {
  static constexpr std::string_view name = "silu";
  static constexpr unsigned saves = saves_x();
  static auto value(auto x) { return silu(x); }
  static auto vjp(auto dy, auto, auto x) {
    return std::array{dy * slope(x, [](const auto& d) { return silu(d); })};
  }
};
struct Softplus {
  static constexpr std::string_view name = "softplus";
  static constexpr unsigned saves = saves_x();
  static auto value(auto x) { return softplus(x); }
  static auto vjp(auto dy, auto, auto x) { return std::array{dy * sigmoid(x)}; }
};

}  // namespace detail

/// Hyperbolic tangent.   dx += dy * (1 - y^2). Saves y.
template <Field T>
Tensor<T> tanh(const Tensor<T>& x) {
  return detail::map_op(detail::Tanh{}, x);
}
/// y = 1 / (1 + e^-x).   dx += dy * y * (1 - y). Saves y.
template <Field T>
Tensor<T> sigmoid(const Tensor<T>& x) {
  return detail::map_op(detail::Sigmoid{}, x);
}
/// y = max(x, 0); NaN stays NaN.   dx += dy where x > 0, and 0 at 0. Saves y.
template <Field T>
Tensor<T> relu(const Tensor<T>& x) {
  return detail::map_op(detail::Relu{}, x);
}
/// y = x where x > 0, else slope * x.   dx += dy, or dy * slope; slope at 0. Saves x.
template <Field T>
Tensor<T> leaky_relu(const Tensor<T>& x, double slope = 0.01) {
  return detail::map_op(detail::LeakyRelu<T>{static_cast<T>(slope)}, x);
}
/// y = x * Phi(x), with Phi the normal distribution function, by erf; or its tanh approximation
/// x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))).
///   dx += dy * (Phi(x) + x * phi(x)), or the slope of the approximation. Saves x.
template <Field T>
Tensor<T> gelu(const Tensor<T>& x, Gelu formula = Gelu::erf) {
  return formula == Gelu::erf ? detail::map_op(detail::GeluErf{}, x) : detail::map_op(detail::GeluTanh{}, x);
}
/// y = x * sigmoid(x).   dx += dy * s * (1 + x * (1 - s)) with s = sigmoid(x). Saves x.
template <Field T>
Tensor<T> silu(const Tensor<T>& x) {
  return detail::map_op(detail::Silu{}, x);
}
/// y = log(1 + e^x), without overflow.   dx += dy * sigmoid(x). Saves x.
template <Field T>
Tensor<T> softplus(const Tensor<T>& x) {
  return detail::map_op(detail::Softplus{}, x);
}

}  // namespace wengert::inline WENGERT_ISA
