// Activations and reshaping as modules, for Sequential. They hold no parameters and serve every element type.
// Floor: nn.
#pragma once

#include <wengert/nn/module.hpp>
#include <wengert/ops/activation.hpp>
#include <wengert/ops/view.hpp>

namespace wengert::inline WENGERT_ISA::nn {

namespace detail {

/// A module without members, whose output is `f(x)` of its derived class.
template <class Derived>
class Stateless : public Module<Derived> {
 public:
  static constexpr bool serves_every_type = true;

  template <Field T>
  Tensor<T> operator()(const Tensor<T>& x) const {
    Tensor<T> y = static_cast<const Derived&>(*this).apply(x);
    this->noted(y);
    return y;
  }
  void members(auto&) {}
};

}  // namespace detail

/// y = max(x, 0); see `wengert::relu`.
struct ReLU : detail::Stateless<ReLU> {
  template <Field T>
  static Tensor<T> apply(const Tensor<T>& x) {
    return relu(x);
  }
};

/// Hyperbolic tangent; see `wengert::tanh`.
struct Tanh : detail::Stateless<Tanh> {
  template <Field T>
  static Tensor<T> apply(const Tensor<T>& x) {
    return tanh(x);
  }
};

/// y = 1 / (1 + e^-x); see `wengert::sigmoid`.
struct Sigmoid : detail::Stateless<Sigmoid> {
  template <Field T>
  static Tensor<T> apply(const Tensor<T>& x) {
    return sigmoid(x);
  }
};

/// y = x * Phi(x), by erf or by the tanh formula; see `wengert::gelu`.
struct GELU : detail::Stateless<GELU> {
  explicit GELU(Gelu formula = Gelu::erf) : formula(formula) {}
  template <Field T>
  Tensor<T> apply(const Tensor<T>& x) const {
    return gelu(x, formula);
  }
  Gelu formula;
};

/// y = x * sigmoid(x); see `wengert::silu`.
struct SiLU : detail::Stateless<SiLU> {
  template <Field T>
  static Tensor<T> apply(const Tensor<T>& x) {
    return silu(x);
  }
};

/// y = log(1 + e^x); see `wengert::softplus`.
struct Softplus : detail::Stateless<Softplus> {
  template <Field T>
  static Tensor<T> apply(const Tensor<T>& x) {
    return softplus(x);
  }
};

/// Makes the axes from `first` to `last` one; by default all but the batch. See `wengert::flatten`.
struct Flatten : detail::Stateless<Flatten> {
  explicit Flatten(Index first = 1, Index last = -1) : first(first), last(last) {}
  template <Field T>
  Tensor<T> apply(const Tensor<T>& x) const {
    return flatten(x, first, last);
  }
  Index first, last;
};

}  // namespace wengert::inline WENGERT_ISA::nn
