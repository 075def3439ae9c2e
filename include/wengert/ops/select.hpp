// Choices between elements: where, masked_fill, maximum, minimum, clamp, and the comparisons that make masks.
// Floor: ops.
#pragma once

#include <wengert/ops/arithmetic.hpp>
#include <wengert/ops/cast.hpp>

namespace wengert::inline WENGERT_ISA {

namespace detail {

struct Maximum {
  static constexpr std::string_view name = "maximum";
  static constexpr unsigned saves = saves_x(0) | saves_x(1);
  static auto value(auto a, auto b) { return max(a, b); }
  static auto vjp(auto dy, auto, auto a, auto b) {
    using V = decltype(dy);
    const V half = where(a == b, dy * 0.5, dy);
    return std::array{where(a < b, V(0), half), where(a > b, V(0), half)};
  }
};
struct Minimum {
  static constexpr std::string_view name = "minimum";
  static constexpr unsigned saves = saves_x(0) | saves_x(1);
  static auto value(auto a, auto b) { return min(a, b); }
  static auto vjp(auto dy, auto, auto a, auto b) {
    using V = decltype(dy);
    const V half = where(a == b, dy * 0.5, dy);
    return std::array{where(a > b, V(0), half), where(a < b, V(0), half)};
  }
};
template <class T>
struct Clamp {
  static constexpr std::string_view name = "clamp";
  static constexpr unsigned saves = saves_x();
  T lo, hi;
  auto value(auto x) const { return clamp(x, decltype(x)(lo), decltype(x)(hi)); }
  auto vjp(auto dy, auto, auto x) const {
    using V = decltype(x);
    return std::array{where((x >= V(lo)) & (x <= V(hi)), dy, V(0))};
  }
};
struct Where {
  static constexpr std::string_view name = "where", operands[] = {"mask", "a", "b"};
  static constexpr unsigned saves = saves_x(0);
  static auto value(auto mask, auto a, auto b) { return where(mask != 0, a, b); }
  static auto vjp(auto dy, auto, auto mask, auto, auto) {
    using V = decltype(dy);
    return std::array{V(0), where(mask != 0, dy, V(0)), where(mask != 0, V(0), dy)};
  }
};
template <class T>
struct MaskedFill {
  static constexpr std::string_view name = "masked_fill", operands[] = {"mask", "x"};
  static constexpr unsigned saves = saves_x(0);
  T s;
  auto value(auto mask, auto x) const { return where(mask != 0, decltype(x)(s), x); }
  auto vjp(auto dy, auto, auto mask, auto) const {
    using V = decltype(dy);
    return std::array{V(0), where(mask != 0, V(0), dy)};
  }
};

struct Less {
  static auto value(auto a, auto b) { return a < b; }
};
struct LessEqual {
  static auto value(auto a, auto b) { return a <= b; }
};
struct Equal {
  static auto value(auto a, auto b) { return a == b; }
};
struct NotEqual {
  static auto value(auto a, auto b) { return a != b; }
};

/// Op of a and b, or of b and a when `swapped`.
template <class Op, bool swapped = false, Scalar T>
Tensor<Byte> compare(std::string_view name, const Tensor<T>& a, const Tensor<T>& b) {
  Shape storage;
  const Shape& shape = common_shape(name, operand_letters, sizeof(T), storage, a.shape(), b.shape());
  const Operands<T, 2> x{swapped ? &b : &a, swapped ? &a : &b};
  return map_forward<Byte, Op, T, 2>(Op{}, shape, x, all_dense(shape, x));
}
/// A number as a tensor of rank 0, which broadcasts.
template <Scalar T, class S>
Tensor<T> rank_0(std::string_view op, S s) {
  const T value = number<T>(op, s);
  Tensor<T> x{Shape{}};
  *x.fresh_data() = value;
  return x;
}

}  // namespace detail

/// The larger of a and b, broadcast; NaN if either is.   da += dy where a > b, db += dy where b > a, half
/// each where they are equal; summed over stretched axes. Saves a and b. Throws ShapeError when the shapes do
/// not broadcast.
template <Field T>
Tensor<T> maximum(const Tensor<T>& a, const Tensor<T>& b) {
  return detail::map_op(detail::Maximum{}, a, b);
}
/// The smaller of a and b; as `maximum`.
template <Field T>
Tensor<T> minimum(const Tensor<T>& a, const Tensor<T>& b) {
  return detail::map_op(detail::Minimum{}, a, b);
}
/// x held to [lo, hi]; NaN stays NaN.   dx += dy where lo <= x <= hi. Saves x.
/// Throws ValueError unless lo <= hi.
template <Field T, detail::NumberFor<T> L, detail::NumberFor<T> H>
Tensor<T> clamp(const Tensor<T>& x, L lo, H hi) {
  const detail::Clamp<T> op{detail::number<T>("clamp", lo), detail::number<T>("clamp", hi)};
  if (!(op.lo <= op.hi)) fail<ValueError>("clamp", "lo is ", lo, ", hi is ", hi, "; expected lo <= hi");
  return detail::map_op(op, x);
}
/// y = a where the mask is not 0, else b; all three broadcast.   da += dy where it is, db += dy where it is
/// not; the branch not taken gets exactly 0. Saves the mask. Throws ShapeError when the shapes do not
/// broadcast.
template <Field T, std::integral M>
Tensor<T> where(const Tensor<M>& mask, const Tensor<T>& a, const Tensor<T>& b) {
  return detail::map_op(detail::Where{}, cast<T>(mask), a, b);
}
template <Field T, std::integral M, detail::NumberFor<T> S>
Tensor<T> where(const Tensor<M>& mask, const Tensor<T>& a, S b) {
  return where(mask, a, detail::rank_0<T>("where", b));
}
template <Field T, std::integral M, detail::NumberFor<T> S>
Tensor<T> where(const Tensor<M>& mask, S a, const Tensor<T>& b) {
  return where(mask, detail::rank_0<T>("where", a), b);
}
/// y = s where the mask is not 0, else x; both broadcast.   dx += dy where the mask is 0. Saves the mask.
template <Field T, std::integral M, detail::NumberFor<T> S>
Tensor<T> masked_fill(const Tensor<T>& x, const Tensor<M>& mask, S s) {
  return detail::map_op(detail::MaskedFill<T>{detail::number<T>("masked_fill", s)}, cast<T>(mask), x);
}

/// Comparisons of each pair of elements, broadcast, or of each element with a number: 1 where true, else 0.
/// Comparisons with NaN are false, but for `!=`. Masks carry no gradient. Throws ShapeError when the shapes
/// do not broadcast, ValueError when T is an integer type that does not hold the number.
template <Scalar T>
Tensor<Byte> operator<(const Tensor<T>& a, const Tensor<T>& b) {
  return detail::compare<detail::Less>("less", a, b);
}
template <Scalar T>
Tensor<Byte> operator<=(const Tensor<T>& a, const Tensor<T>& b) {
  return detail::compare<detail::LessEqual>("less_equal", a, b);
}
template <Scalar T>
Tensor<Byte> operator>(const Tensor<T>& a, const Tensor<T>& b) {
  return detail::compare<detail::Less, true>("greater", a, b);
}
template <Scalar T>
Tensor<Byte> operator>=(const Tensor<T>& a, const Tensor<T>& b) {
  return detail::compare<detail::LessEqual, true>("greater_equal", a, b);
}
template <Scalar T>
Tensor<Byte> operator==(const Tensor<T>& a, const Tensor<T>& b) {
  return detail::compare<detail::Equal>("equal", a, b);
}
template <Scalar T>
Tensor<Byte> operator!=(const Tensor<T>& a, const Tensor<T>& b) {
  return detail::compare<detail::NotEqual>("not_equal", a, b);
}
template <Scalar T, detail::NumberFor<T> S>
Tensor<Byte> operator<(const Tensor<T>& x, S s) {
  return x < detail::rank_0<T>("less", s);
}
template <Scalar T, detail::NumberFor<T> S>
Tensor<Byte> operator<=(const Tensor<T>& x, S s) {
  return x <= detail::rank_0<T>("less_equal", s);
}
template <Scalar T, detail::NumberFor<T> S>
Tensor<Byte> operator>(const Tensor<T>& x, S s) {
  return x > detail::rank_0<T>("greater", s);
}
template <Scalar T, detail::NumberFor<T> S>
Tensor<Byte> operator>=(const Tensor<T>& x, S s) {
  return x >= detail::rank_0<T>("greater_equal", s);
}
template <Scalar T, detail::NumberFor<T> S>
Tensor<Byte> operator==(const Tensor<T>& x, S s) {
  return x == detail::rank_0<T>("equal", s);
}
template <Scalar T, detail::NumberFor<T> S>
Tensor<Byte> operator!=(const Tensor<T>& x, S s) {
  return x != detail::rank_0<T>("not_equal", s);
}

}  // namespace wengert::inline WENGERT_ISA
