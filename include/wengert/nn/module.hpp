// The base of modules: names, parameters and state of a model, and whether it trains. Floor: nn.
#pragma once

#include <wengert/nn/members.hpp>
#include <wengert/nn/named_tensor.hpp>
#include <wengert/nn/summary.hpp>

namespace wengert::inline WENGERT_ISA::nn {

/// What every module is, whatever its type.
class ModuleBase : public detail::Listed {
 public:
  using Listed::Listed;

  /// Whether the module trains, as it does from the beginning, or is evaluated.
  bool training() const noexcept { return training_; }
  /// Switches this module alone; see `Module::train`.
  void set_training(bool on) noexcept { training_ = on; }

  /// For modules: tells a running `summary` the shape of the output. Returns y.
  template <Scalar U>
  const Tensor<U>& noted(const Tensor<U>& y) const {
    if (detail::output_shapes != nullptr) [[unlikely]]
      detail::output_shapes->note(this, y.shape());
    return y;
  }

 private:
  bool training_ = true;
};

/// A model, or a part of one. Derive from it, list the members, define the call:
///
///   struct Mlp : nn::Module<Mlp> {                                // of float; nn::Module<Mlp, double>
///     Generator gen{42};                                          // seeds are explicit
///     nn::Linear<float> hidden{784, 128, gen}, out{128, 10, gen};
///     void members(auto& list) { list("hidden", hidden, "out", out); }
///     Tensor<float> operator()(const Tensor<float>& x) { return out(relu(hidden(x))); }
///   };
///
/// Tensors of one's own are members of type nn::Parameter<T> (trained) or nn::Buffer<T> (kept, not trained).
/// Without `members` a model does not compile; one that forgets a member is refused with a ValueError by
/// every function below. No virtual functions: the call is an ordinary function. A copy of a model shares
/// nothing with it; a moved model takes its tensors along, so optimizers made before the move still serve.
template <class Derived, Field T = float>
class Module : public ModuleBase {
 public:
  using value_type = T;

  Module() : ModuleBase(detail::type_name_of<Derived>) {}

  /// The parameters that ask for a gradient, in the order of the lists: handles, for an optimizer. Frozen
  /// ones (requires_grad(false)) are left out.
  std::vector<Tensor<T>> parameters() const {
    std::vector<Tensor<T>> out;
    for (const Members<T> members = list(); const auto& t : members.tensors)
      if (t.is_parameter && t.tensor->requires_grad()) out.push_back(*t.tensor);
    return out;
  }
  /// All parameters, frozen ones among them, by dotted names such as "hidden.weight".
  std::vector<NamedTensor<T>> named_parameters() const {
    return named([](const auto& t) { return t.is_parameter; }, false);
  }
  std::vector<NamedTensor<T>> named_buffers() const {
    return named([](const auto& t) { return !t.is_parameter; }, false);
  }
  /// Parameters and buffers: all that `load_state` needs. Constants that share the elements.
  std::vector<NamedTensor<T>> state() const {
    return named([](const auto&) { return true; }, true);
  }
  /// Copies saved values into the parameters and buffers of the same names; optimizers and gradients stay
  /// valid. Throws ValueError naming what is missing, unexpected or double, ShapeError where a shape differs,
  /// and then changes nothing.
  void load_state(const std::vector<NamedTensor<T>>& saved) {
    wengert::detail::load_named("load_state", saved, state());
  }

  /// The generators that modules list, for exact continuation: (seed, counter) is their state.
  std::vector<std::pair<std::string, Generator*>> named_generators() {
    std::vector<std::pair<std::string, Generator*>> out;
    for (const Members<T> members = list(); const auto& g : members.generators)
      out.emplace_back(std::string(g.name), g.generator);
    return out;
  }

  /// Number of elements in all parameters, frozen ones among them.
  Index parameter_count() const {
    Index n = 0;
    for (const Members<T> members = list(); const auto& t : members.tensors)
      if (t.is_parameter) n += t.tensor->size();
    return n;
  }

  /// Switches this module and all modules in it to training, or to evaluation: batch norm and dropout differ.
  void train(bool on = true) {
    for (const Members<T> members = list(); const auto& m : members.modules) m.module->set_training(on);
  }
  void eval() { train(false); }

  /// A table of the modules with output shapes and numbers of parameters, from one call of the model with
  /// `x...` in evaluation, outside the tape; afterwards each module trains or not as before. The output of a
  /// module that does not note it (see `noted`) is "-".
  template <class... X>
  std::string summary(const X&... x) {
    const Members<T> members = list();
    detail::OutputShapes shapes;
    {
      const detail::EvaluateAll<Members<T>> evaluate(members);
      const NoGrad no_grad;
      const detail::OutputShapes::Scope scope(shapes);
      noted(derived()(x...));
    }
    return detail::summary_text(members, shapes);
  }

 private:
  Derived& derived() const { return const_cast<Derived&>(static_cast<const Derived&>(*this)); }
  Members<T> list() const { return Members<T>(derived()); }  // listing changes nothing
  template <class Wanted>
  std::vector<NamedTensor<T>> named(Wanted wanted, bool detached) const {
    std::vector<NamedTensor<T>> out;
    for (const Members<T> members = list(); const auto& t : members.tensors)
      if (wanted(t)) out.push_back({std::string(t.name), detached ? t.tensor->detach() : *t.tensor});
    return out;
  }
};

}  // namespace wengert::inline WENGERT_ISA::nn
