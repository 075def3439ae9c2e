// backward: one loop over the records, last to first; and value_and_grad. Floor: core.
#pragma once

#include <tuple>

#include <wengert/core/record.hpp>

namespace wengert::inline WENGERT_ISA {

/// How `backward` leaves the tape.
struct BackwardOptions {
  bool retain = false;  ///< keep the tape, for another backward through it
};

/// The reverse walk over one tape. Without a store, only the inputs of a nested tape collect gradients.
class Walk {
 public:
  enum class After { clear, keep };  // what becomes of the tape

  Walk(Tape& tape, GradStore* store) : tape_(tape), store_(store) {
    if (tape.walking_)
      fail<TapeError>("backward", "called from a backward rule; expected a NestedTape there");
  }

  /// Seeds slot `root` with `dy` and walks from its producer to the front. With `retain`, rules survive.
  template <class T>
  void run(std::uint32_t root, const Tensor<T>& dy, bool retain, After after) {
    const std::uint32_t last = tape_.slots_[root].record;
    const std::size_t n = last == detail::no_slot ? 0 : last + std::size_t{1};
    // Faults that can be told beforehand are, while nothing has been accumulated.
    for (std::size_t i = n; i-- > 0;)
      if (const detail::Record& r = tape_.records_[i]; r.op != nullptr) r.op->verify(r);
    if (store_ != nullptr) {
      for (const detail::Slot& s : tape_.slots_)
        if (s.leaf) store_->add_leaf(s.leaf, s.produced());
      store_->settle();
    }
    const NoGrad no_grad;
    tape_.consumed_ = !retain;
    const Finish finish(*this, after);
    seed(tape_.slots_[root], dy);
    for (std::size_t i = n; i-- > 0;) {
      detail::Record& r = tape_.records_[i];
      if (r.op == nullptr) continue;
      if (detail::Slot& y = tape_.slots_[r.output]; y.has_gradient) {
        if (y.leaf && store_ != nullptr) store_->add(y.leaf, y.gradient.bytes());
        Vjp vjp(tape_, r, store_);
        r.op->backward(r.rule(), vjp);
        y.gradient = Buffer();
        y.has_gradient = false;
      }
      if (!retain) tape_.end_rule(r);
    }
  }

 private:
  /// Also when a rule throws: the tape is usable afterwards.
  struct Finish {
    Finish(Walk& walk, After after) noexcept : tape(walk.tape_), after(after) { tape.walking_ = true; }
    Finish(const Finish&) = delete;
    Finish& operator=(const Finish&) = delete;
    ~Finish() {
      tape.walking_ = false;
      if (after == After::clear) {
        tape.clear();
        return;
      }
      for (detail::Slot& s : tape.slots_)
        if (s.produced()) {  // what an exception left behind
          s.gradient = Buffer();
          s.has_gradient = false;
        }
    }
    Tape& tape;
    After after;
  };

  /// Shares the caller's memory when it lies as gradients do; rules then leave it as it is. A gradient of the
  /// store itself is copied, since the walk writes there.
  template <class T>
  void seed(detail::Slot& s, const Tensor<T>& dy) const {
    const bool shares =
        dy.is_contiguous() && dy.offset() == 0 && (store_ == nullptr || !store_->keeps(dy.buffer()));
    s.gradient = shares ? dy.buffer() : dy.packed_copy().buffer();
    s.has_gradient = true;
  }

  Tape& tape_;
  GradStore* store_;
};

/// Adds d(sum(y * dy)) / dw to `grads` for every leaf w that `y` depends on, then clears the tape (unless
/// `retain`). `dy` is the seed, of y's shape. Gradients accumulate over calls until `grads.zero()`.
/// Throws ShapeError when the shapes differ; TapeError when y is a constant, when the tape it was recorded on
/// is gone, or when a value it needs was written in place. These leave tape and store as they were. If a
/// custom rule throws midway, the tape is cleared and the store holds a partial sum: call `grads.zero()`.
template <Field T>
void backward(const Tensor<T>& y, const Tensor<T>& dy, GradStore& grads, BackwardOptions options = {}) {
  if (dy.shape() != y.shape())
    fail<ShapeError>("backward", "the seed's shape differs; y is ", y.shape(), ", seed is ", dy.shape(),
                     "; expected equal shapes");
  const detail::Place& place = y.place();
  if (!place.tracked())
    fail<TapeError>("backward", "nothing that asks for a gradient led to this tensor; shape is ", y.shape(),
                    "; expected the result of recorded operations on a leaf; call requires_grad(true) on the "
                    "parameters, and record outside no_grad");
  if (!place.on_tape()) {
    grads.add_leaf(place.leaf());
    grads.settle();
    grads.add(place.leaf(), dy.packed().data());
    return;
  }
  if (place.tape()->owned_by_this_thread() && !place.live())
    fail<TapeError>(
        "backward", "the tape of this tensor has been consumed; shape is ", y.shape(),
        "; expected one backward a forward; pass {.retain = true} to the earlier backward, or run the "
        "forward pass again");
  place.check("backward", "y");
  Walk(*place.tape(), &grads)
      .run(place.slot(), dy, options.retain, options.retain ? Walk::After::keep : Walk::After::clear);
}

/// As above for a loss of one element, seeded with 1. Throws ShapeError for more elements.
template <Field T>
void backward(const Tensor<T>& loss, GradStore& grads, BackwardOptions options = {}) {
  if (loss.size() != 1)
    fail<ShapeError>("backward", "loss must hold one element; got ", loss.shape(),
                     "; reduce it, or pass a seed of that shape");
  Tensor<T> one(loss.shape());
  *one.fresh_data() = T(1);
  backward(loss, one, grads, options);
}

namespace detail {

/// `x` as an input of a nested tape: a slot without producer, whose gradient stays there after the walk.
template <Field T>
Tensor<T> nested_input(Tape& tape, const Tensor<T>& x) {
  Tensor<T> input = x.detach();
  input.set_place(Place(tape, tape.new_slot(x.size(), sizeof(T))));
  return input;
}

/// The gradient that a walk left for a nested input; zeros when it was not reached.
template <Field T>
Tensor<T> nested_gradient(Tape& tape, const Tensor<T>& input) {
  Slot& s = tape.slots()[input.place().slot()];
  if (s.has_gradient) return Tensor<T>(s.gradient, input.shape(), contiguous_strides(input.shape()), 0);
  Tensor<T> zero(input.shape());
  kernels::fill(zero.fresh_data(), zero.size(), T(0));
  return zero;
}

}  // namespace detail

/// The value of `f(x...)`, of one element, and its gradient with respect to each x: `auto [y, dx, dw] =
/// value_and_grad(f, x, w)`. Works on a tape of its own and needs no GradStore; leaves that f captures count
/// as constants. Results are not recorded, so an x that is itself the result of a recorded operation throws
/// TapeError: pass its detach(). Throws ShapeError when f returns more than one element.
template <class F, Field... Ts>
auto value_and_grad(F&& f, const Tensor<Ts>&... x) {
  if (grad_enabled() && (x.place().on_tape() || ...))
    fail<TapeError>("value_and_grad",
                    "an argument is the result of a recorded operation, and the results here "
                    "would not carry its gradient; expected leaves or constants; pass its detach()");
  const NestedTape nested;
  const EnableGrad enable;
  Tape& tape = nested.tape();
  const std::tuple<Tensor<Ts>...> inputs(detail::nested_input(tape, x)...);
  const auto y = std::apply(std::forward<F>(f), inputs);
  using T = typename std::remove_cvref_t<decltype(y)>::value_type;
  if (y.size() != 1)
    fail<ShapeError>("value_and_grad", "f must return one element; got ", y.shape(), "; reduce it");
  if (y.place().on_tape()) {
    y.place().check("value_and_grad", "f(x)");
    Tensor<T> one(y.shape());
    *one.fresh_data() = T(1);
    Walk(tape, nullptr).run(y.place().slot(), one, false, Walk::After::keep);
  }
  return std::apply(
      [&](const auto&... input) { return std::tuple(y.detach(), detail::nested_gradient(tape, input)...); },
      inputs);
}

}  // namespace wengert::inline WENGERT_ISA
