// Elementary functions of each element: exp, log, sqrt, square, abs, pow, ... Floor: ops.
#pragma once

#include <wengert/ops/map.hpp>

namespace wengert::inline WENGERT_ISA {

namespace detail {

/// The slope of a function at x, from its dual number.
template <class V, class F>
V slope(V x, F f) {
  return f(kernels::Dual<V, 1>::variable(x)).d[0];
}

struct Exp {
  static constexpr std::string_view name = "exp";
  static constexpr unsigned saves = saves_y;
  static constexpr bool has_poles = true;
  static auto value(auto x) { return exp(x); }
  static auto vjp(auto dy, auto y, auto) { return std::array{dy * y}; }
};
struct Expm1 {
  static constexpr std::string_view name = "expm1";
  static constexpr unsigned saves = saves_y;
  static constexpr bool has_poles = true;
  static auto value(auto x) { return expm1(x); }
  static auto vjp(auto dy, auto y, auto) { return std::array{dy * (y + 1)}; }
};
struct Log {
  static constexpr std::string_view name = "log";
  static constexpr unsigned saves = saves_x();
  static constexpr bool has_poles = true;
  static auto value(auto x) { return log(x); }
  static auto vjp(auto dy, auto, auto x) { return std::array{dy / x}; }
};
struct Log1p {
  static constexpr std::string_view name = "log1p";
  static constexpr unsigned saves = saves_x();
  static constexpr bool has_poles = true;
  static auto value(auto x) { return log1p(x); }
  static auto vjp(auto dy, auto, auto x) { return std::array{dy / (x + 1)}; }
};
struct Sqrt {
  static constexpr std::string_view name = "sqrt";
  static constexpr unsigned saves = saves_y;
  static constexpr bool has_poles = true;
  static auto value(auto x) { return sqrt(x); }
  static auto vjp(auto dy, auto y, auto) { return std::array{dy / (y + y)}; }
};
struct Square {
  static constexpr std::string_view name = "square";
  static constexpr unsigned saves = saves_x();
  static auto value(auto x) { return x * x; }
  static auto vjp(auto dy, auto, auto x) { return std::array{dy * (x + x)}; }
};
struct Abs {
  static constexpr std::string_view name = "abs";
  static constexpr unsigned saves = saves_x();
  static auto value(auto x) { return abs(x); }
  static auto vjp(auto dy, auto, auto x) { return std::array{dy * sign(x)}; }
};
struct Sin {
  static constexpr std::string_view name = "sin";
  static constexpr unsigned saves = saves_x();
  static auto value(auto x) { return sin(x); }
  static auto vjp(auto dy, auto, auto x) { return std::array{dy * cos(x)}; }
};
struct Cos {
  static constexpr std::string_view name = "cos";
  static constexpr unsigned saves = saves_x();
  static auto value(auto x) { return cos(x); }
  static auto vjp(auto dy, auto, auto x) { return std::array{-(dy * sin(x))}; }
};
struct Erf {
  static constexpr std::string_view name = "erf";
  static constexpr unsigned saves = saves_x();
  static auto value(auto x) { return erf(x); }
  static auto vjp(auto dy, auto, auto x) {
    return std::array{dy * slope(x, [](const auto& d) { return erf(d); })};
  }
};
template <class T>
struct PowNumber {
  static constexpr std::string_view name = "pow";
  static constexpr unsigned saves = saves_x();
  static constexpr bool has_poles = true;
  double p;
  auto value(auto x) const { return pow(x, p); }
  auto vjp(auto dy, auto, auto x) const {
    if (p == 0) return std::array{decltype(x)(0)};
    return std::array{dy * (pow(x, p - 1) * p)};
  }
};
struct Pow {
  static constexpr std::string_view name = "pow";
  static constexpr unsigned saves = saves_x(0) | saves_x(1) | saves_y;
  static constexpr bool has_poles = true;
  static auto value(auto a, auto b) { return pow(a, b); }
  static auto vjp(auto dy, auto y, auto a, auto b) {
    using V = decltype(dy);
    const V da = where(b == 0, V(0), dy * b * pow(a, b - 1));
    const V db = where((a == 0) & (b >= 0), V(0), dy * y * log(a));
    return std::array{da, db};
  }
};

}  // namespace detail

/// y = e^x.   dx += dy * y. Saves y. Numeric promise: kernels/math.hpp.
template <Field T>
Tensor<T> exp(const Tensor<T>& x) {
  return detail::map_op(detail::Exp{}, x);
}
/// y = e^x - 1, without cancellation near 0.   dx += dy * (y + 1). Saves y.
template <Field T>
Tensor<T> expm1(const Tensor<T>& x) {
  return detail::map_op(detail::Expm1{}, x);
}
/// Natural logarithm; log(0) = -inf, NaN below 0.   dx += dy / x. Saves x.
template <Field T>
Tensor<T> log(const Tensor<T>& x) {
  return detail::map_op(detail::Log{}, x);
}
/// y = log(1 + x), without cancellation near 0.   dx += dy / (1 + x). Saves x.
template <Field T>
Tensor<T> log1p(const Tensor<T>& x) {
  return detail::map_op(detail::Log1p{}, x);
}
/// Square root, NaN below 0.   dx += dy / (2 y), infinite at 0. Saves y.
template <Field T>
Tensor<T> sqrt(const Tensor<T>& x) {
  return detail::map_op(detail::Sqrt{}, x);
}
/// y = x^2.   dx += dy * 2 x. Saves x.
template <Field T>
Tensor<T> square(const Tensor<T>& x) {
  return detail::map_op(detail::Square{}, x);
}
/// Absolute value.   dx += dy * sign(x), 0 at 0. Saves x.
template <Field T>
Tensor<T> abs(const Tensor<T>& x) {
  return detail::map_op(detail::Abs{}, x);
}
/// Sine.   dx += dy * cos(x). Saves x.
template <Field T>
Tensor<T> sin(const Tensor<T>& x) {
  return detail::map_op(detail::Sin{}, x);
}
/// Cosine.   dx -= dy * sin(x). Saves x.
template <Field T>
Tensor<T> cos(const Tensor<T>& x) {
  return detail::map_op(detail::Cos{}, x);
}
/// Error function.   dx += dy * 2 / sqrt(pi) * e^(-x^2). Saves x.
template <Field T>
Tensor<T> erf(const Tensor<T>& x) {
  return detail::map_op(detail::Erf{}, x);
}
/// y = x^p for a number p.   dx += dy * p * x^(p - 1), 0 for p = 0 whatever x is. Saves x.
template <Field T, class S>
requires std::is_arithmetic_v<S> Tensor<T> pow(const Tensor<T>& x, S p) {
  return detail::map_op(detail::PowNumber<T>{static_cast<double>(p)}, x);
}
/// y = a^b, broadcast.   da += dy * b * a^(b - 1), 0 where b = 0;   db += dy * y * log(a), 0 where a = 0 and
/// b >= 0; summed over stretched axes. pow(0, 0) = 1 with both slopes 0. Saves a, b and y. Throws ShapeError
/// when the shapes do not broadcast.
template <Field T>
Tensor<T> pow(const Tensor<T>& a, const Tensor<T>& b) {
  return detail::map_op(detail::Pow{}, a, b);
}

}  // namespace wengert::inline WENGERT_ISA
