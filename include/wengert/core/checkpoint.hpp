// checkpoint: trade memory for time by recomputing a part of the forward pass during backward. Floor: core.
#pragma once

#include <wengert/base/random.hpp>
#include <wengert/core/backward.hpp>

namespace wengert::inline WENGERT_ISA {

namespace detail {

template <class F, class... Ts>
struct CheckpointRule {
  static constexpr std::string_view name = "checkpoint";
  F f;
  std::tuple<Saved<Ts>...> x;
  RandomJournal journal;  // where f's generators stood, so that it draws the same numbers again

  auto saved() const {
    return std::apply([](const auto&... s) { return std::tie(s...); }, x);
  }

  void backward(Vjp& v) { backward(v, std::index_sequence_for<Ts...>{}); }

 private:
  template <std::size_t... i>
  void backward(Vjp& v, std::index_sequence<i...>) {
    const NestedTape nested;
    Tape& tape = nested.tape();
    const std::tuple<Tensor<Ts>...> inputs(input<Ts>(tape, v.wants(i), std::get<i>(x).value())...);
    const auto y = [&] {
      const EnableGrad enable;
      const RandomJournal::Replay replay(journal);
      return std::apply(f, inputs);
    }();
    using T = typename std::remove_cvref_t<decltype(y)>::value_type;
    if (y.shape() != v.shape())
      fail<ShapeError>("checkpoint", "f returned another shape when it was run again; first ", v.shape(),
                       ", then ", y.shape(), "; expected a function of its arguments alone");
    if (!y.place().on_tape()) {  // f returned a leaf, or nothing that depends on one
      if (y.place().leaf() && v.store() != nullptr) {
        v.store()->add_leaf(y.place().leaf());
        v.store()->settle();
        v.store()->add(y.place().leaf(), v.dy<T>());
      }
      return;
    }
    y.place().check("checkpoint", "f(x)");
    Walk(tape, v.store()).run(y.place().slot(), v.dy_tensor<T>(), false, Walk::After::keep);
    (add<Ts>(v, static_cast<int>(i), tape, std::get<i>(inputs)), ...);
  }

  template <class T>
  static Tensor<T> input(Tape& tape, bool wanted, const Tensor<T>& x) {
    if constexpr (Field<T>)
      if (wanted) return nested_input(tape, x);
    return x;
  }
  template <class T>
  static void add(Vjp& v, int i, Tape& tape, const Tensor<T>& x) {
    if constexpr (Field<T>)
      if (v.wants(i)) v.add(i, nested_gradient(tape, x));
  }
};

}  // namespace detail

/// y = f(x...), keeping only the arguments: backward calls f again, on a tape of its own, and differentiates
/// that. Memory for f's intermediates is needed only then; time grows by one more forward of f. Gradients
/// reach the arguments and the leaves that f captures. f is copied; what it refers to must live until
/// backward, must not change in between, and generators that it draws from are rewound for the second run. f
/// runs twice, so whatever else it does (batch norm's running statistics) happens twice. Throws TapeError
/// when f uses a recorded tensor that is not among its arguments.
template <class F, Scalar... Ts>
auto checkpoint(F f, const Tensor<Ts>&... x) {
  using Rule = detail::CheckpointRule<F, Ts...>;
  static_assert(std::is_nothrow_move_constructible_v<F>, "checkpoint keeps f on the tape");
  const Recorder rec("checkpoint", x...);
  const bool recording = detail::thread_state.mode != detail::GradMode::off;
  RandomJournal journal;
  bool& saw_leaf = detail::thread_state.checkpoint_saw_leaf;
  const bool outer_saw = std::exchange(saw_leaf, false);
  auto y = [&] {
    const detail::ModeScope mode(recording ? detail::GradMode::checkpoint : detail::GradMode::off);
    const RandomJournal::Scope scope(journal);
    return f(x.detach()...);
  }();
  const bool inner_saw = std::exchange(saw_leaf, outer_saw || saw_leaf);
  y = y.detach();
  if (grad_enabled() && (rec || inner_saw))
    rec.record_anyway(y, Rule{std::move(f), {save(x)...}, std::move(journal)});
  return y;
}

}  // namespace wengert::inline WENGERT_ISA
