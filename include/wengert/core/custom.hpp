// custom: a user's own operator on whole tensors, from a struct with `value` and `vjp`. Floor: core.
// Two other levels: `map` for element-wise functions (ops/map.hpp), and a raw record (Recorder in
// core/record.hpp).
#pragma once

#include <wengert/core/backward.hpp>

namespace wengert::inline WENGERT_ISA {

namespace detail {

template <class Op, class R, class... Ts>
struct CustomRule {
  static constexpr std::string_view name = Op::name;
  Op op;
  std::tuple<Saved<Ts>...> x;
  Saved<R> y;

  auto saved() const {
    return std::apply([this](const auto&... s) { return std::tie(s..., y); }, x);
  }
  void backward(Vjp& v) {
    const auto dx =
        std::apply([&](const auto&... s) { return op.vjp(v.dy_tensor<R>(), y.value(), s.value()...); }, x);
    if constexpr (requires { std::tuple_size<std::remove_cvref_t<decltype(dx)>>::value; }) {
      static_assert(std::tuple_size_v<std::remove_cvref_t<decltype(dx)>> == sizeof...(Ts),
                    "vjp returns one gradient for each input of value");
      std::apply([&](const auto&... d) { add_all(v, std::index_sequence_for<Ts...>(), d...); }, dx);
    } else {
      static_assert(sizeof...(Ts) == 1, "vjp returns a std::tuple of one gradient for each input of value");
      add_all(v, std::index_sequence<0>(), dx);
    }
  }

 private:
  template <std::size_t... i, class... D>
  void add_all(Vjp& v, std::index_sequence<i...>, const D&... dx) const {
    // All of them before the first is added.
    (check(v, static_cast<int>(i), std::get<i>(x).shape(), dx), ...);
    (add(v, static_cast<int>(i), dx), ...);
  }
  template <class D>
  static void check(const Vjp& v, int i, const Shape& input, const D& dx) {
    if constexpr (!std::same_as<D, std::nullptr_t>)
      if (v.wants(i) && dx.shape() != input)
        fail<ShapeError>(name, "the gradient of input ", i, " has another shape; gradient is ", dx.shape(),
                         "; expected ", input);
  }
  template <class T>
  static void add(Vjp& v, int i, const Tensor<T>& dx) {
    v.add(i, dx);
  }
  static void add(Vjp&, int, std::nullptr_t) {}  // an input without gradient
};

}  // namespace detail

/// Runs `op` on tensors and records it. `Op` is a struct with
///   static constexpr std::string_view name;
///   Tensor<R> value(const Tensor<Ts>&... x) const;
///   auto vjp(const Tensor<R>& dy, const Tensor<R>& y, const Tensor<Ts>&... x) const;
/// where vjp returns the gradient of the one input, or a std::tuple with one for each (nullptr: none). Both
/// run without recording; members of `op` are kept with the record. Saves the inputs and y. Throws TapeError
/// when an input asks for a gradient and Op has no vjp; backward throws ShapeError when a gradient's shape is
/// not its input's.
template <class Op, Scalar... Ts>
auto custom(const Op& op, const Tensor<Ts>&... x) {
  const Recorder rec(Op::name, x...);
  auto y = [&] {
    const NoGrad no_grad;
    return op.value(x.detach()...).detach();
  }();
  using R = typename decltype(y)::value_type;
  if constexpr (requires { op.vjp(y, y, x...); }) {
    if (rec) rec.record(y, detail::CustomRule<Op, R, Ts...>{op, {save(x)...}, save(y)});
  } else if (rec) {
    fail<TapeError>(Op::name,
                    "the operation has no vjp and cannot be differentiated; expected inputs without "
                    "gradient; pass their detach()");
  }
  return y;
}

}  // namespace wengert::inline WENGERT_ISA
