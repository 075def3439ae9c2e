// Adam and AdamW. Floor: optim.
#pragma once

#include <wengert/optim/optimizer.hpp>

namespace wengert::inline WENGERT_ISA::optim {

/// Options of Adam, with PyTorch's names, meanings and defaults.
struct AdamOptions {
  double lr = 1e-3;                         ///< learning rate
  std::array<double, 2> betas{0.9, 0.999};  ///< of the running means of the gradient and of its square
  double eps = 1e-8;                        ///< added to the denominator
  double weight_decay = 0;                  ///< adds weight_decay * p to the gradient
  bool amsgrad = false;                     ///< divides by the largest mean square so far
};

/// Options of AdamW: those of Adam, with weight decay apart from the gradient.
struct AdamWOptions {
  double lr = 1e-3;
  std::array<double, 2> betas{0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 1e-2;  ///< p shrinks by lr * weight_decay before each update
  bool amsgrad = false;
};

namespace detail {

template <class O>
struct AdamRule {
  using Options = O;
  static constexpr bool decoupled = std::is_same_v<O, AdamWOptions>;
  static constexpr std::string_view name = decoupled ? "adamw" : "adam";
  static constexpr std::string_view states[] = {"exp_avg", "exp_avg_sq", "max_exp_avg_sq"};

  static void check(const Options& o) {
    check_not_negative(name, "lr", o.lr);
    check_fraction(name, "betas[0]", o.betas[0]);
    check_fraction(name, "betas[1]", o.betas[1]);
    check_not_negative(name, "eps", o.eps);
    check_not_negative(name, "weight_decay", o.weight_decay);
  }
  static std::span<const std::string_view> state_names(const Options& o) {
    return {states, o.amsgrad ? std::size_t{3} : std::size_t{2}};
  }

  /// The bias corrections are taken in double, as libtorch does.
  template <class T>
  static kernels::AdamUpdate<T> numbers(const Options& o, Index step) {
    const double t = static_cast<double>(step);
    const double correction1 = 1 - std::pow(o.betas[0], t), correction2 = 1 - std::pow(o.betas[1], t);
    const double keep = decoupled ? 1 - o.lr * o.weight_decay : 1;
    return {static_cast<T>(o.betas[0]),
            static_cast<T>(1 - o.betas[0]),
            static_cast<T>(o.betas[1]),
            static_cast<T>(1 - o.betas[1]),
            static_cast<T>(o.eps),
            static_cast<T>(keep),
            static_cast<T>(decoupled ? 0.0 : o.weight_decay),
            static_cast<T>(o.lr / correction1),
            static_cast<T>(1 / std::sqrt(correction2)),
            o.amsgrad};
  }
};

template <Field T, class O>
class AdamFamily : public Optimizer<T, AdamRule<O>> {
 public:
  using Base = Optimizer<T, AdamRule<O>>;
  using Base::Base;

  /// Updates every parameter that `grads` has reached, in place. Allocates nothing.
  void step(const GradStore& grads) {
    this->template pass<kernels::AdamUpdate<T>>(
        grads, [](const O&) { return true; },
        [](const O& o, Index step) { return AdamRule<O>::template numbers<T>(o, step); });
  }
};

}  // namespace detail

/// Adam as PyTorch defines it, one fused pass over memory. With g the gradient and t the parameter's step:
///   g += weight_decay * p
///   m = beta1 * m + (1 - beta1) * g;  v = beta2 * v + (1 - beta2) * g^2
///   p -= lr / (1 - beta1^t) * m / (sqrt(v) / sqrt(1 - beta2^t) + eps); amsgrad takes the largest v so far
/// A parameter that no backward has reached since `grads.zero()` is left alone, and its t stands. Throws
/// ValueError on wrong options, on no parameters, on a tensor that is no leaf or is given twice; ShapeError
/// on one with gaps.
template <Field T>
class Adam : public detail::AdamFamily<T, AdamOptions> {
 public:
  using Group = ParameterGroup<T, AdamOptions>;
  explicit Adam(std::vector<Tensor<T>> parameters, AdamOptions options = {})
      : Adam(One(Group{std::move(parameters), options}), 0) {}
  explicit Adam(std::vector<Group> groups) : detail::AdamFamily<T, AdamOptions>(groups) {}

 private:
  using One = optim::detail::OneGroup<Group>;
  Adam(const One& one, int) : detail::AdamFamily<T, AdamOptions>(std::span<const Group>(&one.group, 1)) {}
};

/// AdamW as PyTorch defines it: Adam, but instead of adding to the gradient, weight decay first shrinks the
/// parameter, p *= 1 - lr * weight_decay. 28 bytes of memory traffic a float parameter. Throws as Adam.
template <Field T>
class AdamW : public detail::AdamFamily<T, AdamWOptions> {
 public:
  using Group = ParameterGroup<T, AdamWOptions>;
  explicit AdamW(std::vector<Tensor<T>> parameters, AdamWOptions options = {})
      : AdamW(One(Group{std::move(parameters), options}), 0) {}
  explicit AdamW(std::vector<Group> groups) : detail::AdamFamily<T, AdamWOptions>(groups) {}

 private:
  using One = optim::detail::OneGroup<Group>;
  AdamW(const One& one, int) : detail::AdamFamily<T, AdamWOptions>(std::span<const Group>(&one.group, 1)) {}
};

}  // namespace wengert::inline WENGERT_ISA::optim
