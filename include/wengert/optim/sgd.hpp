// Stochastic gradient descent. Floor: optim.
#pragma once

#include <wengert/optim/optimizer.hpp>

namespace wengert::inline WENGERT_ISA::optim {

/// Options of SGD, with PyTorch's names and meanings.
struct SgdOptions {
  double lr = 1e-3;         ///< learning rate
  double momentum = 0;      ///< share of the old direction that is kept
  double dampening = 0;     ///< share of the gradient that momentum ignores
  double weight_decay = 0;  ///< adds weight_decay * p to the gradient
  bool nesterov = false;    ///< looks ahead along the direction; needs momentum, and no dampening
};

namespace detail {

struct SgdRule {
  using Options = SgdOptions;
  static constexpr std::string_view name = "sgd";
  static constexpr std::string_view states[] = {"momentum_buffer"};

  static void check(const Options& o) {
    check_not_negative(name, "lr", o.lr);
    check_not_negative(name, "momentum", o.momentum);
    check_not_negative(name, "weight_decay", o.weight_decay);
    if (!std::isfinite(o.dampening))
      fail<ValueError>(name, "bad dampening; got ", o.dampening, "; expected a finite number");
    if (o.nesterov && (o.momentum == 0 || o.dampening != 0))
      fail<ValueError>(name, "nesterov does not fit; momentum is ", o.momentum, ", dampening is ",
                       o.dampening, "; expected momentum > 0 and dampening == 0");
  }
  static std::span<const std::string_view> state_names(const Options& o) {
    return {states, o.momentum == 0 ? std::size_t{0} : std::size_t{1}};
  }
};

}  // namespace detail

/// Stochastic gradient descent as PyTorch defines it, one fused pass over memory. With g the gradient:
///   d = g + weight_decay * p
///   b = momentum * b + (1 - dampening) * d; the first time b = d
///   p -= lr * b, with nesterov p -= lr * (d + momentum * b), without momentum p -= lr * d
/// A parameter that no backward has reached since `grads.zero()` is left alone. Throws ValueError on wrong
/// options, on no parameters, on a tensor that is no leaf or is given twice; ShapeError on one with gaps.
template <Field T>
class Sgd : public Optimizer<T, detail::SgdRule> {
 public:
  using Base = Optimizer<T, detail::SgdRule>;
  using Group = typename Base::Group;

  explicit Sgd(std::vector<Tensor<T>> parameters, SgdOptions options = {})
      : Sgd(One(Group{std::move(parameters), options}), 0) {}
  explicit Sgd(std::vector<Group> groups) : Base(groups) {}

  /// Updates every parameter that `grads` has reached, in place. Allocates nothing.
  void step(const GradStore& grads) {
    this->template pass<kernels::SgdUpdate<T>>(
        grads, [](const SgdOptions& o) { return o.momentum == 0; },
        [](const SgdOptions& o, Index) {
          return kernels::SgdUpdate<T>{static_cast<T>(o.lr), static_cast<T>(o.weight_decay)};
        });
    this->template pass<kernels::MomentumUpdate<T>>(
        grads, [](const SgdOptions& o) { return o.momentum != 0; },
        [](const SgdOptions& o, Index step) {
          return kernels::MomentumUpdate<T>{static_cast<T>(o.lr), static_cast<T>(o.weight_decay),
                                            static_cast<T>(o.momentum),
                                            static_cast<T>(step == 1 ? 1.0 : 1.0 - o.dampening), o.nesterov};
        });
  }

 private:
  using One = optim::detail::OneGroup<Group>;
  Sgd(const One& one, int) : Base(std::span<const Group>(&one.group, 1)) {}
};

}  // namespace wengert::inline WENGERT_ISA::optim
