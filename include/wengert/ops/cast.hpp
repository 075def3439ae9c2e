// Copies: clone, contiguous, and cast to another element type. Floor: ops.
#pragma once

#include <wengert/kernels/cast.hpp>
#include <wengert/ops/view_rule.hpp>

namespace wengert::inline WENGERT_ISA {

/// A contiguous copy of x in memory of its own.
///   dx += dy             saves nothing; the gradient's memory is handed on
template <Scalar T>
Tensor<T> clone(const Tensor<T>& x) {
  const Recorder rec("clone", x);
  Tensor<T> y = x.packed_copy();
  detail::record_if(rec, y, [] { return detail::SameOrderRule<"clone", T>{}; });
  return y;
}

/// x itself where its elements lie in row-major order without gaps, otherwise a copy in which they do.
///   dx += dy             saves nothing; the gradient's memory is handed on
template <Scalar T>
Tensor<T> contiguous(const Tensor<T>& x) {
  const Recorder rec("contiguous", x);
  if (x.is_contiguous()) return rec ? x : x.detach();
  Tensor<T> y = x.packed_copy();
  detail::record_if(rec, y, [] { return detail::SameOrderRule<"contiguous", T>{}; });
  return y;
}

namespace detail {

/// dx += dy, converted back.
template <Field T, Field U>
struct CastRule {
  static constexpr std::string_view name = "cast";
  void backward(Vjp& v) const {
    if (!v.wants(0)) return;
    const GradRef<T> dx = v.into<T>(0);
    kernels::cast(v.dy<U>(), v.size(), dx.data, dx.add);
  }
};

}  // namespace detail

/// x with elements of type U: `cast<double>(x)`; x itself when it has them already.
///   dx += dy, converted back             saves nothing
/// From floats to an integer type, fractions are cut off, numbers beyond its range are held to it, NaN
/// becomes 0; between integer types numbers wrap around; towards bool, everything but 0 is true. Throws
/// TapeError when x asks for a gradient and U cannot carry it.
template <Scalar U, Scalar T>
requires requires(T v) { static_cast<U>(v); }
Tensor<U> cast(const Tensor<T>& x) {
  constexpr bool differentiable = Field<T> && Field<U> && requires(U v) { static_cast<T>(v); };
  if constexpr (!differentiable)
    if (x.requires_grad() && grad_enabled())
      fail<TapeError>("cast", "x asks for a gradient, which a cast from ", dtype_name<T>(), " to ",
                      dtype_name<U>(), " severs; x is ", x.shape(),
                      "; expected a constant; pass its detach()");
  const Recorder rec("cast", x);
  if constexpr (std::same_as<T, U>) {
    return rec ? x : x.detach();
  } else {
    if constexpr (sizeof(U) > sizeof(T)) checked_size("cast", x.shape(), sizeof(U));
    const Tensor<T> from = x.packed();
    Tensor<U> y(x.shape());
    kernels::cast(from.data(), x.size(), y.fresh_data());
    if constexpr (differentiable)
      if (rec) rec.record(y, detail::CastRule<T, U>{});
    return y;
  }
}

}  // namespace wengert::inline WENGERT_ISA
