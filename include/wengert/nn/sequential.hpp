// Modules one after another. Floor: nn.
#pragma once

#include <tuple>

#include <wengert/nn/activation.hpp>
#include <wengert/nn/linear.hpp>

namespace wengert::inline WENGERT_ISA::nn {

namespace detail {

template <class M>
inline constexpr bool is_linear = false;
template <class T>
inline constexpr bool is_linear<Linear<T>> = true;

// The element type of the first module that is bound to one.
template <class... Ms>
struct FirstType {
  using type = float;
};
template <class M, class... Ms>
struct FirstType<M, Ms...> {
  using type = typename std::conditional_t < requires { M::serves_every_type; }
  , FirstType<Ms...>, std::type_identity < typename M::value_type >> ::type;
};

}  // namespace detail

/// Calls its modules one after another, each with the output of the one before; they are named "0", "1", ...
///
///   nn::Sequential model{nn::Linear<float>(784, 128, gen), nn::ReLU(), nn::Linear<float>(128, 10, gen)};
///
/// Write braces, as here: between parentheses, C++ lets the compiler choose which layer draws from the
/// generator first. The modules are moved or copied in. A Linear followed by a ReLU runs as one record.
template <detail::ModuleType... Ms>
class Sequential : public Module<Sequential<Ms...>, typename detail::FirstType<Ms...>::type> {
 public:
  explicit Sequential(Ms... modules) : modules_(std::move(modules)...) {}

  template <Scalar X>
  auto operator()(const Tensor<X>& x) {
    auto y = run<0>(x);
    this->noted(y);
    return y;
  }

  static constexpr std::size_t size() noexcept { return sizeof...(Ms); }
  /// The module at position I.
  template <std::size_t I>
  auto& get() noexcept {
    return std::get<I>(modules_);
  }
  template <std::size_t I>
  const auto& get() const noexcept {
    return std::get<I>(modules_);
  }

  void members(auto& list) {
    std::apply(
        [&list](Ms&... m) {
          [[maybe_unused]] std::size_t i = 0;
          (list(std::to_string(i++), m), ...);
        },
        modules_);
  }

 private:
  // Module I and all after it. Lets x go before the next one runs, so that inference keeps one activation.
  template <std::size_t I, class X>
  auto run(X x) {
    if constexpr (I == sizeof...(Ms)) {
      return x;
    } else if constexpr (relu_follows<I>()) {
      auto y = std::get<I>(modules_).with_relu(x);
      std::get<I + 1>(modules_).noted(y);
      x = X();
      return run<I + 2>(std::move(y));
    } else {
      auto y = std::get<I>(modules_)(x);
      x = X();
      return run<I + 1>(std::move(y));
    }
  }

  template <std::size_t I>
  static constexpr bool relu_follows() {
    if constexpr (I + 1 < sizeof...(Ms)) {
      using M = std::tuple_element_t<I, std::tuple<Ms...>>;
      return detail::is_linear<M> && std::same_as<std::tuple_element_t<I + 1, std::tuple<Ms...>>, ReLU>;
    } else {
      return false;
    }
  }

  std::tuple<Ms...> modules_;
};

template <class... Ms>
Sequential(Ms...) -> Sequential<Ms...>;

}  // namespace wengert::inline WENGERT_ISA::nn
