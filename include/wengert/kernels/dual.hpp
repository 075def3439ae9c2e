// Forward-mode dual numbers: a value and K partial derivatives, over scalars, Vecs or dual numbers. `map`
// runs a user's lambda on `Dual<Vec<T>, K>` to get every slope in one pass; `Dual<T>` is an element type.
// Floor: kernels.
#pragma once

#include <concepts>
#include <numbers>
#include <type_traits>
#include <utility>

#include <wengert/kernels/math.hpp>

namespace wengert::inline WENGERT_ISA::kernels {

template <class V, int K = 1>
struct Dual;

namespace detail {

template <class A>
inline constexpr bool is_dual = false;
template <class V, int K>
inline constexpr bool is_dual<Dual<V, K>> = true;

// What acts as a constant towards D = Dual<V, K>: anything else that becomes a V.
template <class C, class D, class V>
concept ConstantOf = !std::same_as<C, D> && (std::is_arithmetic_v<C> || std::convertible_to<const C&, V>);

template <class V, class C>
WENGERT_INLINE V lift(const C& c) noexcept {
  if constexpr (std::is_arithmetic_v<V>)
    return static_cast<V>(c);
  else
    return V(c);
}

// True where v and, for dual numbers, all its partials are 0.
template <class V>
WENGERT_INLINE auto vanishes(const V& v) noexcept {
  if constexpr (is_dual<V>) {
    auto m = vanishes(v.value);
    for (const auto& p : v.d) m = m && vanishes(p);
    return m;
  } else {
    return v == V(0);
  }
}

// d * slope, and 0 where d is 0 even if the slope is infinite or NaN.
template <class V>
WENGERT_INLINE V guarded_product(const V& d, const V& slope) noexcept {
  return where(vanishes(d), V(0), V(d * slope));
}

}  // namespace detail

/// A value and its `K` partial derivatives. `V`: float, double, `Vec<T>`, or a Dual for higher derivatives.
/// Constants convert with partials 0; comparisons look at values only. A partial that is 0 stays 0 across the
/// infinite slopes of division, sqrt, log, pow, rsqrt and reciprocal.
template <class V, int K>
struct Dual {
  using MaskType = decltype(std::declval<V>() < std::declval<V>());
  V value;
  V d[K];

  Dual() = default;
  template <class C>
  requires detail::ConstantOf<C, Dual, V> WENGERT_INLINE Dual(const C& c)
  noexcept : Dual(make(detail::lift<V>(c), [](int) WENGERT_INLINE_LAMBDA { return V(0); })) {}
  /// The value and the one partial of a dual number with K = 1.
  WENGERT_INLINE Dual(const V& v, const V& partial) noexcept requires(K == 1) : value(v), d{partial} {}
  /// Input `k` of K: partial 1 towards itself, 0 towards the others.
  static WENGERT_INLINE Dual variable(const V& v, int k = 0) noexcept {
    return make(v, [k](int i) WENGERT_INLINE_LAMBDA { return i == k ? V(1) : V(0); });
  }
  /// The value `v` and the partials `partial(0)`, ..., `partial(K - 1)`.
  template <class F>
  static WENGERT_INLINE Dual make(const V& v, F partial) noexcept {
    return make(v, partial, std::make_integer_sequence<int, K>{});
  }

  friend WENGERT_INLINE Dual operator+(const Dual& a) noexcept { return a; }
  friend WENGERT_INLINE Dual operator-(const Dual& a) noexcept {
    return make(-a.value, [&](int k) WENGERT_INLINE_LAMBDA { return -a.d[k]; });
  }
  friend WENGERT_INLINE Dual operator+(const Dual& a, const Dual& b) noexcept {
    return make(a.value + b.value, [&](int k) WENGERT_INLINE_LAMBDA { return a.d[k] + b.d[k]; });
  }
  friend WENGERT_INLINE Dual operator-(const Dual& a, const Dual& b) noexcept {
    return make(a.value - b.value, [&](int k) WENGERT_INLINE_LAMBDA { return a.d[k] - b.d[k]; });
  }
  friend WENGERT_INLINE Dual operator*(const Dual& a, const Dual& b) noexcept {
    return make(a.value * b.value,
                [&](int k) WENGERT_INLINE_LAMBDA { return a.value * b.d[k] + a.d[k] * b.value; });
  }
  friend WENGERT_INLINE Dual operator/(const Dual& a, const Dual& b) noexcept {
    const V y = a.value / b.value, r = V(1) / b.value, s = -(y * r);
    return make(y, [&](int k) WENGERT_INLINE_LAMBDA {
      return detail::guarded_product(a.d[k], r) + detail::guarded_product(b.d[k], s);
    });
  }

  // With a constant operand its partials cost nothing.
  template <detail::ConstantOf<Dual, V> C>
  friend WENGERT_INLINE Dual operator+(const Dual& a, const C& c) noexcept {
    return make(a.value + detail::lift<V>(c), [&](int k) WENGERT_INLINE_LAMBDA { return a.d[k]; });
  }
  template <detail::ConstantOf<Dual, V> C>
  friend WENGERT_INLINE Dual operator+(const C& c, const Dual& b) noexcept {
    return b + c;
  }
  template <detail::ConstantOf<Dual, V> C>
  friend WENGERT_INLINE Dual operator-(const Dual& a, const C& c) noexcept {
    return make(a.value - detail::lift<V>(c), [&](int k) WENGERT_INLINE_LAMBDA { return a.d[k]; });
  }
  template <detail::ConstantOf<Dual, V> C>
  friend WENGERT_INLINE Dual operator-(const C& c, const Dual& b) noexcept {
    return make(detail::lift<V>(c) - b.value, [&](int k) WENGERT_INLINE_LAMBDA { return -b.d[k]; });
  }
  template <detail::ConstantOf<Dual, V> C>
  friend WENGERT_INLINE Dual operator*(const Dual& a, const C& c) noexcept {
    const V s = detail::lift<V>(c);
    return make(a.value * s, [&](int k) WENGERT_INLINE_LAMBDA { return a.d[k] * s; });
  }
  template <detail::ConstantOf<Dual, V> C>
  friend WENGERT_INLINE Dual operator*(const C& c, const Dual& b) noexcept {
    return b * c;
  }
  template <detail::ConstantOf<Dual, V> C>
  friend WENGERT_INLINE Dual operator/(const Dual& a, const C& c) noexcept {
    const V s = detail::lift<V>(c), r = V(1) / s;
    return make(a.value / s, [&](int k) WENGERT_INLINE_LAMBDA { return detail::guarded_product(a.d[k], r); });
  }
  template <detail::ConstantOf<Dual, V> C>
  friend WENGERT_INLINE Dual operator/(const C& c, const Dual& b) noexcept {
    const V y = detail::lift<V>(c) / b.value;
    return b.chain_at_pole(y, -(y / b.value));
  }

  template <class B>
  WENGERT_INLINE Dual& operator+=(const B& b) noexcept {
    return *this = *this + b;
  }
  template <class B>
  WENGERT_INLINE Dual& operator-=(const B& b) noexcept {
    return *this = *this - b;
  }
  template <class B>
  WENGERT_INLINE Dual& operator*=(const B& b) noexcept {
    return *this = *this * b;
  }
  template <class B>
  WENGERT_INLINE Dual& operator/=(const B& b) noexcept {
    return *this = *this / b;
  }

  friend WENGERT_INLINE MaskType operator==(const Dual& a, const Dual& b) noexcept {
    return a.value == b.value;
  }
  friend WENGERT_INLINE MaskType operator!=(const Dual& a, const Dual& b) noexcept {
    return a.value != b.value;
  }
  friend WENGERT_INLINE MaskType operator<(const Dual& a, const Dual& b) noexcept {
    return a.value < b.value;
  }
  friend WENGERT_INLINE MaskType operator<=(const Dual& a, const Dual& b) noexcept {
    return a.value <= b.value;
  }
  friend WENGERT_INLINE MaskType operator>(const Dual& a, const Dual& b) noexcept {
    return a.value > b.value;
  }
  friend WENGERT_INLINE MaskType operator>=(const Dual& a, const Dual& b) noexcept {
    return a.value >= b.value;
  }
  friend WENGERT_INLINE MaskType isnan(const Dual& a) noexcept { return a.value != a.value; }

  /// `a` where the mask is true, else `b`; the other side contributes exactly 0 to every partial.
  friend WENGERT_INLINE Dual where(const MaskType& m, const Dual& a, const Dual& b) noexcept {
    return make(where(m, a.value, b.value),
                [&](int k) WENGERT_INLINE_LAMBDA { return where(m, a.d[k], b.d[k]); });
  }
  friend WENGERT_INLINE Dual select(const MaskType& m, const Dual& a, const Dual& b) noexcept {
    return where(m, a, b);
  }
  /// The larger; equal values share the derivative in halves.
  friend WENGERT_INLINE Dual max(const Dual& a, const Dual& b) noexcept {
    return pick(max(a.value, b.value), a.value > b.value, a.value < b.value, a, b);
  }
  /// The smaller; equal values share the derivative in halves.
  friend WENGERT_INLINE Dual min(const Dual& a, const Dual& b) noexcept {
    return pick(min(a.value, b.value), a.value<b.value, a.value> b.value, a, b);
  }
  friend WENGERT_INLINE Dual maximum(const Dual& a, const Dual& b) noexcept { return max(a, b); }
  friend WENGERT_INLINE Dual minimum(const Dual& a, const Dual& b) noexcept { return min(a, b); }
  /// x held to [lo, hi]; on an edge the derivative is x's.
  friend WENGERT_INLINE Dual clamp(const Dual& x, const Dual& lo, const Dual& hi) noexcept {
    const MaskType below = x.value<lo.value, above = x.value> hi.value;
    return make(clamp(x.value, lo.value, hi.value), [&](int k) WENGERT_INLINE_LAMBDA {
      return where(below, lo.d[k], where(above, hi.d[k], x.d[k]));
    });
  }
  friend WENGERT_INLINE Dual fma(const Dual& a, const Dual& b, const Dual& c) noexcept { return a * b + c; }

  /// y(x) by the chain rule: partials `slope * d[k]`.
  WENGERT_INLINE Dual chain(const V& y, const V& slope) const noexcept {
    return make(y, [&](int k) WENGERT_INLINE_LAMBDA { return slope * d[k]; });
  }
  /// The same where the slope may be infinite or NaN: a partial of 0 stays 0.
  WENGERT_INLINE Dual chain_at_pole(const V& y, const V& slope) const noexcept {
    return make(y, [&](int k) WENGERT_INLINE_LAMBDA { return detail::guarded_product(d[k], slope); });
  }

 private:
  template <class F, int... k>
  static WENGERT_INLINE Dual make(const V& v, F partial, std::integer_sequence<int, k...>) noexcept {
    Dual y;
    y.value = v;
    ((y.d[k] = partial(k)), ...);
    return y;
  }
  static WENGERT_INLINE Dual pick(const V& y, const MaskType& first, const MaskType& second, const Dual& a,
                                  const Dual& b) noexcept {
    return make(y, [&](int k) WENGERT_INLINE_LAMBDA {
      return where(first, a.d[k], where(second, b.d[k], V(V(0.5) * (a.d[k] + b.d[k]))));
    });
  }
};

}  // namespace wengert::inline WENGERT_ISA::kernels

namespace wengert::inline WENGERT_ISA {

using kernels::Dual;

}  // namespace wengert::inline WENGERT_ISA

#include <wengert/kernels/math_dual.hpp>
