// What all optimizers share: parameter groups, their checks, state laid out flat, the pass over segments.
// Floor: optim.
#pragma once

#include <cmath>

#include <wengert/core/grad_store.hpp>
#include <wengert/kernels/optim.hpp>
#include <wengert/nn/named_tensor.hpp>

namespace wengert::inline WENGERT_ISA::optim {

/// Parameters that share one set of options.
template <Field T, class Options>
struct ParameterGroup {
  std::vector<Tensor<T>> parameters;
  Options options;
};

/// The part of an optimizer that does not depend on its formula, which `Rule` holds: `Options`, `name`,
/// `check(options)` and `state_names(options)`. The optimizer keeps handles on the parameters, so it updates
/// the tensors of the model that gave them, for as long as the model keeps those tensors. One owner.
template <Field T, class Rule>
class Optimizer {
 public:
  using Options = typename Rule::Options;
  using Group = ParameterGroup<T, Options>;

  /// The parameters of all groups, in order; the same list at every call, for clipping.
  const std::vector<Tensor<T>>& parameters() const noexcept { return parameters_; }

  Index groups() const noexcept { return static_cast<Index>(options_.size()); }
  /// Throws IndexError, as all that take the number of a group.
  const Options& options(Index group = 0) const { return options_[checked(group)]; }
  double lr(Index group = 0) const { return options(group).lr; }
  /// Sets the learning rate of one group, or of every group. Throws ValueError unless it is finite and >= 0.
  void set_lr(Index group, double lr) {
    Options changed = options(group);
    changed.lr = lr;
    Rule::check(changed);
    options_[checked(group)] = changed;
  }
  void set_lr(double lr) {
    for (Index group = 0; group < groups(); ++group) set_lr(group, lr);
  }

  /// How many updates the most often updated parameter has had.
  Index steps() const noexcept {
    Index most = 0;
    for (const Entry& e : entries_) most = std::max(most, e.steps);
    return most;
  }

  /// What must be saved to go on later: for parameter i, "i.step", and by kind of optimizer
  /// "i.momentum_buffer", or "i.exp_avg", "i.exp_avg_sq", "i.max_exp_avg_sq". Views of the state, but for the
  /// step, which is a number of type T: exact up to 2^24 in float. Options are not part of it.
  std::vector<NamedTensor<T>> state() const {
    std::vector<NamedTensor<T>> out;
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      Tensor<T> step((Shape()));
      *step.fresh_data() = T(static_cast<double>(entries_[i].steps));
      out.push_back({wengert::detail::text(i, ".step"), step});
      for (std::size_t k = 0; k < entries_[i].names.size(); ++k)
        out.push_back({wengert::detail::text(i, ".", entries_[i].names[k]), state_view(i, k)});
    }
    return out;
  }
  /// Takes over what `state()` of an optimizer for the same parameters gave. Throws ValueError when names
  /// differ or a step is no count, ShapeError when shapes do, and then changes nothing.
  void load_state(const std::vector<NamedTensor<T>>& saved) requires std::is_arithmetic_v<T> {
    for (const NamedTensor<T>& s : saved)
      if (s.name.ends_with(".step") && s.tensor.size() == 1 &&
          !(*s.tensor.data() >= T(0) && *s.tensor.data() <= T(0x1p53) &&
            *s.tensor.data() == std::trunc(*s.tensor.data())))
        fail<ValueError>("load_state", s.name, " is no number of steps; it is ", *s.tensor.data(),
                         "; expected a whole number >= 0");
    const std::vector<NamedTensor<T>> own = state();
    wengert::detail::load_named("load_state", saved, own);
    std::size_t at = 0;
    for (Entry& e : entries_) {
      e.steps = static_cast<Index>(*own[at].tensor.data());
      at += 1 + e.names.size();
    }
  }

 protected:
  /// A parameter's place in the state and the number of its updates.
  struct Entry {
    std::size_t group;
    std::span<const std::string_view> names;  // of its state
    std::array<Index, 3> offset{};            // in `state_`, in elements
    Index steps = 0;
  };

  [[gnu::cold]] explicit Optimizer(std::span<const Group> groups) {
    for (std::size_t g = 0; g < groups.size(); ++g) {
      Rule::check(groups[g].options);
      options_.push_back(groups[g].options);
      for (const Tensor<T>& p : groups[g].parameters) add(p, g);
    }
    if (parameters_.empty()) fail<ValueError>(Rule::name, "no parameters; expected at least one");
    for (std::size_t k = 0; k < state_.size(); ++k) {
      state_[k] = Tensor<T>(Shape{state_size_[k]});
      kernels::fill(state_[k].fresh_data(), state_size_[k], T(0));
    }
  }

  /// One pass over the parameters of the groups that `takes(options)` and that `grads` has reached. Each
  /// one's numbers come from `numbers(options, steps)`, its steps counting this one.
  template <class Update, class Takes, class Numbers>
  void pass(const GradStore& grads, Takes takes, Numbers numbers) {
    const Scratch<kernels::UpdateSegment<Update>> segments(static_cast<Index>(entries_.size()));
    Index count = 0, total = 0;
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      Entry& e = entries_[i];
      Tensor<T>& p = parameters_[i];
      const Options& options = options_[e.group];
      if (!takes(options)) continue;
      const T* const gradient = grads.template reached<T>(p.place().leaf());
      if (gradient == nullptr && (p.size() != 0 || !grads.has_reached(p.place().leaf()))) continue;
      ++e.steps;
      if (p.size() == 0) continue;
      kernels::UpdateSegment<Update>& s = segments[count++];
      s = {p.mutable_data(), gradient, {}, total, numbers(options, e.steps)};
      for (std::size_t k = 0; k < Update::states && k < e.names.size(); ++k)
        s.state[k] = state_[k].fresh_data() + e.offset[k];
      total += p.size();
    }
    kernels::update_parameters(segments.data(), count, total);
  }

 private:
  static constexpr Index alignment = 64 / Index{sizeof(T)};  // of each parameter's state, in elements

  std::size_t checked(Index group) const {
    if (group < 0 || group >= groups())
      fail<IndexError>(Rule::name, "group ", group, " is out of range; expected 0..", groups() - 1);
    return static_cast<std::size_t>(group);
  }

  [[gnu::cold]] void add(const Tensor<T>& p, std::size_t group) {
    const std::size_t i = parameters_.size();
    if (!p.place().leaf() || p.place().on_tape())
      fail<ValueError>(Rule::name, "parameter ", i, " is no leaf; shape is ", p.shape(),
                       "; expected a tensor with requires_grad(true)");
    if (!p.is_contiguous())
      fail<ShapeError>(Rule::name, "parameter ", i, " is not contiguous; shape is ", p.shape(),
                       ", strides are ", p.strides(), "; expected contiguous(x)");
    for (std::size_t k = 0; k < i; ++k)
      if (parameters_[k].place().leaf() == p.place().leaf())
        fail<ValueError>(Rule::name, "parameters ", k, " and ", i, " are the same; shape is ", p.shape(),
                         "; expected each parameter once");
    Entry e{group, Rule::state_names(options_[group])};
    for (std::size_t k = 0; k < e.names.size(); ++k) {
      e.offset[k] = state_size_[k];
      state_size_[k] += (p.size() + alignment - 1) / alignment * alignment;
    }
    entries_.push_back(e);
    parameters_.push_back(p);
  }

  Tensor<T> state_view(std::size_t i, std::size_t k) const {
    const Shape& shape = parameters_[i].shape();
    return Tensor<T>(state_[k].buffer(), shape, contiguous_strides(shape), entries_[i].offset[k]);
  }

  wengert::detail::List<Options> options_;  // by group
  std::vector<Tensor<T>> parameters_;
  wengert::detail::List<Entry> entries_;  // by parameter
  std::array<Tensor<T>, 3> state_;
  std::array<Index, 3> state_size_{};
};

namespace detail {

/// Tells a constructor for one group from those that users call with braces.
template <class Group>
struct OneGroup {
  explicit OneGroup(Group&& g) : group(std::move(g)) {}
  Group group;
};

/// Throws ValueError unless `value` is finite and at least 0.
[[gnu::cold, gnu::noinline]] inline void check_not_negative(std::string_view op, const char* name,
                                                            double value) {
  if (!(value >= 0) || !std::isfinite(value))
    fail<ValueError>(op, "bad ", name, "; got ", value, "; expected a finite number >= 0");
}

/// Throws ValueError unless 0 <= value < 1.
[[gnu::cold, gnu::noinline]] inline void check_fraction(std::string_view op, const char* name, double value) {
  if (!(value >= 0 && value < 1))
    fail<ValueError>(op, "bad ", name, "; got ", value, "; expected 0 <= ", name, " < 1");
}

}  // namespace detail

}  // namespace wengert::inline WENGERT_ISA::optim
