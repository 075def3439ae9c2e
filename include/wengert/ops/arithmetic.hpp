// + - * / on tensors and numbers, negation. Floor: ops.
#pragma once

#include <cmath>

#include <wengert/ops/map.hpp>

namespace wengert::inline WENGERT_ISA {

namespace detail {

/// What may stand beside a Tensor<T>: any number, converted to T without a warning.
template <class S, class T>
concept NumberFor = std::is_arithmetic_v<S> || std::same_as<S, T>;

/// Whether the integer type T holds the number s.
template <std::integral T, class S>
bool holds(S s) noexcept {
  if constexpr (std::is_floating_point_v<S>) {
    const S limit = std::ldexp(S(1), std::numeric_limits<T>::digits);
    return s == std::trunc(s) && s < limit && s >= (std::is_signed_v<T> ? -limit : S(0));
  } else {
    return static_cast<S>(static_cast<T>(s)) == s && (s < S(0)) == (static_cast<T>(s) < T(0));
  }
}

/// `s` as an element of a tensor. Throws ValueError when that is an integer type which does not hold it.
template <Scalar T, class S>
T number(std::string_view op, S s) {
  if constexpr (std::integral<T> && !std::same_as<T, S>) {
    if (!holds<T>(s))
      fail<ValueError>(op, "the number does not fit the elements; elements are ", dtype_name<T>(),
                       ", number is ", s, "; expected a whole number from ", std::numeric_limits<T>::min(),
                       " to ", std::numeric_limits<T>::max(), "; cast the tensor first");
  }
  return static_cast<T>(s);
}

struct Add {
  static constexpr std::string_view name = "add";
  static constexpr unsigned saves = saves_nothing, identity = saves_x(0) | saves_x(1);
  static auto value(auto a, auto b) { return a + b; }
  static auto vjp(auto dy, auto, auto, auto) { return std::array{dy, dy}; }
};
struct Sub {
  static constexpr std::string_view name = "sub";
  static constexpr unsigned saves = saves_nothing, identity = saves_x(0);
  static auto value(auto a, auto b) { return a - b; }
  static auto vjp(auto dy, auto, auto, auto) { return std::array{dy, -dy}; }
};
struct Mul {
  static constexpr std::string_view name = "mul";
  static constexpr unsigned saves = saves_x(0) | saves_x(1);
  static auto value(auto a, auto b) { return a * b; }
  static auto vjp(auto dy, auto, auto a, auto b) { return std::array{dy * b, dy * a}; }
};
struct Div {
  static constexpr std::string_view name = "div";
  static constexpr unsigned saves = saves_x(1) | saves_y;
  static constexpr bool has_poles = true;
  static auto value(auto a, auto b) { return a / b; }
  static auto vjp(auto dy, auto y, auto, auto b) {
    const auto da = dy / b;
    return std::array{da, -(da * y)};
  }
};
struct Neg {
  static constexpr std::string_view name = "neg";
  static constexpr unsigned saves = saves_nothing;
  static auto value(auto x) { return -x; }
  static auto vjp(auto dy, auto, auto) { return std::array{-dy}; }
};
template <class T>
struct AddNumber {
  static constexpr std::string_view name = "add";
  static constexpr unsigned saves = saves_nothing, identity = saves_x(0);
  T s;
  auto value(auto x) const { return x + decltype(x)(s); }
  auto vjp(auto dy, auto, auto) const { return std::array{dy}; }
};
template <class T>
struct SubFromNumber {
  static constexpr std::string_view name = "sub";
  static constexpr unsigned saves = saves_nothing;
  T s;
  auto value(auto x) const { return decltype(x)(s) - x; }
  auto vjp(auto dy, auto, auto) const { return std::array{-dy}; }
};
template <class T>
struct MulNumber {
  static constexpr std::string_view name = "mul";
  static constexpr unsigned saves = saves_nothing;
  T s;
  auto value(auto x) const { return x * decltype(x)(s); }
  auto vjp(auto dy, auto, auto) const { return std::array{dy * decltype(dy)(s)}; }
};
template <class T>
struct DivByNumber {
  static constexpr std::string_view name = "div";
  static constexpr unsigned saves = saves_nothing;
  T s;
  auto value(auto x) const { return x / decltype(x)(s); }
  auto vjp(auto dy, auto, auto) const { return std::array{dy / decltype(dy)(s)}; }
};
template <class T>
struct DivNumberBy {
  static constexpr std::string_view name = "div";
  static constexpr unsigned saves = saves_x() | saves_y;
  static constexpr bool has_poles = true;
  T s;
  auto value(auto x) const { return decltype(x)(s) / x; }
  auto vjp(auto dy, auto y, auto x) const { return std::array{-(dy * y / x)}; }
};

}  // namespace detail

/// y = a + b, broadcast.   da += dy, db += dy, summed over stretched axes. Saves nothing.
/// Throws ShapeError when the shapes do not broadcast.
template <Scalar T>
Tensor<T> operator+(const Tensor<T>& a, const Tensor<T>& b) {
  return detail::map_op(detail::Add{}, a, b);
}
/// y = a - b, broadcast.   da += dy, db -= dy, summed over stretched axes. Saves nothing.
template <Scalar T>
Tensor<T> operator-(const Tensor<T>& a, const Tensor<T>& b) {
  return detail::map_op(detail::Sub{}, a, b);
}
/// y = a * b, broadcast.   da += dy * b, db += dy * a, summed over stretched axes. Saves a and b.
template <Scalar T>
Tensor<T> operator*(const Tensor<T>& a, const Tensor<T>& b) {
  return detail::map_op(detail::Mul{}, a, b);
}
/// y = a / b, broadcast.   da += dy / b, db -= dy * y / b, summed over stretched axes. Saves b and y.
template <Field T>
Tensor<T> operator/(const Tensor<T>& a, const Tensor<T>& b) {
  return detail::map_op(detail::Div{}, a, b);
}
/// y = -x.   dx -= dy
template <Scalar T>
Tensor<T> operator-(const Tensor<T>& x) {
  return detail::map_op(detail::Neg{}, x);
}

/// y = x + s for a number s, converted to T.   dx += dy
/// Throws ValueError when T is an integer type that does not hold s, as all that follow.
template <Scalar T, detail::NumberFor<T> S>
Tensor<T> operator+(const Tensor<T>& x, S s) {
  return detail::map_op(detail::AddNumber<T>{detail::number<T>("add", s)}, x);
}
/// y = s + x.   dx += dy
template <Scalar T, detail::NumberFor<T> S>
Tensor<T> operator+(S s, const Tensor<T>& x) {
  return x + s;
}
/// y = x - s.   dx += dy
template <Scalar T, detail::NumberFor<T> S>
Tensor<T> operator-(const Tensor<T>& x, S s) {
  return detail::map_op(detail::AddNumber<T>{static_cast<T>(-detail::number<T>("sub", s))}, x);
}
/// y = s - x.   dx -= dy
template <Scalar T, detail::NumberFor<T> S>
Tensor<T> operator-(S s, const Tensor<T>& x) {
  return detail::map_op(detail::SubFromNumber<T>{detail::number<T>("sub", s)}, x);
}
/// y = x * s.   dx += dy * s
template <Scalar T, detail::NumberFor<T> S>
Tensor<T> operator*(const Tensor<T>& x, S s) {
  return detail::map_op(detail::MulNumber<T>{detail::number<T>("mul", s)}, x);
}
/// y = s * x.   dx += dy * s
template <Scalar T, detail::NumberFor<T> S>
Tensor<T> operator*(S s, const Tensor<T>& x) {
  return x * s;
}
/// y = x / s.   dx += dy / s
template <Field T, detail::NumberFor<T> S>
Tensor<T> operator/(const Tensor<T>& x, S s) {
  return detail::map_op(detail::DivByNumber<T>{detail::number<T>("div", s)}, x);
}
/// y = s / x.   dx -= dy * y / x. Saves x and y.
template <Field T, detail::NumberFor<T> S>
Tensor<T> operator/(S s, const Tensor<T>& x) {
  return detail::map_op(detail::DivNumberBy<T>{detail::number<T>("div", s)}, x);
}

/// x = x + b and its kin: the name is bound to a fresh result, so what was saved of x stays valid.
template <Scalar T, class B>
requires requires(const Tensor<T>& x, const B& b) { x + b; }
Tensor<T>& operator+=(Tensor<T>& x, const B& b) { return x = x + b; }
template <Scalar T, class B>
requires requires(const Tensor<T>& x, const B& b) { x - b; }
Tensor<T>& operator-=(Tensor<T>& x, const B& b) { return x = x - b; }
template <Scalar T, class B>
requires requires(const Tensor<T>& x, const B& b) { x* b; }
Tensor<T>& operator*=(Tensor<T>& x, const B& b) { return x = x * b; }
template <Field T, class B>
requires requires(const Tensor<T>& x, const B& b) { x / b; }
Tensor<T>& operator/=(Tensor<T>& x, const B& b) { return x = x / b; }

}  // namespace wengert::inline WENGERT_ISA
