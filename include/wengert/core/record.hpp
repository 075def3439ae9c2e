// How an operator records itself: Recorder checks the operands and writes the record, Saved keeps a value and
// notices writes to it, Vjp hands a backward rule its gradients. Floor: core.
#pragma once

#include <array>
#include <new>

#include <wengert/core/grad_store.hpp>

namespace wengert::inline WENGERT_ISA {

/// A tensor's values as a rule keeps them for backward: no gradient flows through, and `get` throws TapeError
/// when they were written in place since.
template <Scalar T>
class Saved {
 public:
  Saved() = default;
  explicit Saved(const Tensor<T>& x) : value_(x.detach()), version_(x.version()) {}

  void verify(std::string_view op) const {
    if (value_.version() != version_) refuse(op, value_.shape(), value_.version(), version_);
  }
  const Tensor<T>& get(std::string_view op) const {
    verify(op);
    return value_;
  }
  /// The value after `verify` has passed: backward verifies all rules that list it in `saved()` before it
  /// starts.
  const Tensor<T>& value() const noexcept { return value_; }
  const T* data() const noexcept { return value_.data(); }
  const Shape& shape() const noexcept { return value_.shape(); }

  [[noreturn]] [[gnu::cold]] static void refuse(std::string_view op, const Shape& shape,
                                                std::uint32_t version, std::uint32_t expected) {
    fail<TapeError>("backward", "a tensor that ", op, " saved was written in place since; shape is ", shape,
                    ", version is ", version, "; expected version ", expected,
                    "; write to a clone, or after backward");
  }

 private:
  Tensor<T> value_;
  std::uint32_t version_ = 0;
};

template <Scalar T>
Saved<T> save(const Tensor<T>& x) {
  return Saved<T>(x);
}

namespace detail {

/// A Saved for contiguous values of the record's own shape, at a fifth of the bytes.
template <Scalar T>
class SavedFlat {
 public:
  SavedFlat() = default;
  explicit SavedFlat(const Tensor<T>& x) : buffer_(x.buffer()), offset_(x.offset()), version_(x.version()) {}
  void verify(std::string_view op, const Record& record) const {
    if (buffer_.version() != version_) Saved<T>::refuse(op, record.shape(), buffer_.version(), version_);
  }
  const T* data() const noexcept { return buffer_ ? buffer_.template as<T>() + offset_ : nullptr; }

 private:
  Buffer buffer_;
  Index offset_ = 0;
  std::uint32_t version_ = 0;
};

}  // namespace detail

/// What a backward rule works with: the gradient of the record's output, and a place for that of each input.
/// Rules accumulate into raw memory, so there is no backward of a backward.
class Vjp {
 public:
  Vjp(Tape& tape, const detail::Record& record, GradStore* store) noexcept
      : tape_(tape), record_(record), store_(store), dy_(tape.slot(record.output).gradient.bytes()) {}

  std::string_view name() const noexcept { return record_.op->name; }
  int inputs() const noexcept { return record_.inputs; }
  Shape shape() const { return record_.shape(); }
  Index size() const noexcept { return tape_.slot(record_.output).size; }

  /// The gradient of the output: contiguous, in its shape.
  template <class T>
  const T* dy() const noexcept {
    return reinterpret_cast<const T*>(dy_);
  }
  /// The same as a tensor; not after `into_over_dy`.
  template <class T>
  Tensor<T> dy_tensor() const {
    return Tensor<T>(tape_.slot(record_.output).gradient, shape(), contiguous_strides(shape()), 0);
  }

  /// Whether input i asks for a gradient.
  bool wants(int i) const noexcept {
    const std::uint32_t s = slot_of(i);
    return s != detail::no_slot && (store_ != nullptr || is_scratch(tape_.slot(s)));
  }

  /// Where the gradient of input i goes; the rule must write all of it (store, or add). Only if `wants(i)`.
  template <class T>
  GradRef<T> into(int i) {
    detail::Slot& s = tape_.slots()[slot_of(i)];
    if (!is_scratch(s)) return store_->into<T>(s.leaf);
    if (s.has_gradient) return {s.gradient.template as<T>(), true};
    s.gradient = Buffer(static_cast<std::size_t>(s.size) * sizeof(T));
    s.has_gradient = true;
    return {s.gradient.template as<T>(), false};
  }

  /// As `into`, for a rule that reads dy[k] before it writes dx[k] and never after: dx may be given the
  /// memory of dy. At most once a rule, and last.
  template <class T>
  GradRef<T> into_over_dy(int i) {
    detail::Slot& s = tape_.slots()[slot_of(i)];
    detail::Slot& out = tape_.slots()[record_.output];
    const bool fits = is_scratch(s) && !s.has_gradient && out.gradient.unique() && s.size == out.size &&
                      s.bytes_each == out.bytes_each && out.bytes_each == sizeof(T);
    if (!fits) return into<T>(i);
    s.gradient = std::move(out.gradient);
    s.has_gradient = true;
    return {s.gradient.template as<T>(), false};
  }

  /// dx_i += dx for a contiguous or strided tensor of the input's shape.
  template <class T>
  void add(int i, const Tensor<T>& dx) {
    if (!wants(i)) return;
    if (dx.size() != tape_.slot(slot_of(i)).size)
      fail<ShapeError>(name(), "the gradient of input ", i, " has another size; gradient is ", dx.shape(),
                       "; expected ", tape_.slot(slot_of(i)).size, " elements");
    const GradRef<T> to = into<T>(i);
    const Strides dense = contiguous_strides(dx.shape());
    if (to.add)
      kernels::copy_add(dx.shape(), dx.data(), dx.strides(), to.data, dense);
    else
      kernels::copy(dx.shape(), dx.data(), dx.strides(), to.data, dense);
  }

  /// For rules that add to few rows of input i, each of `width` elements: memory that is valid to add to.
  template <class T>
  T* into_rows(int i, std::span<const Index> rows, Index width) {
    const detail::Slot& s = tape_.slot(slot_of(i));
    if (!is_scratch(s)) return store_->into_rows<T>(s.leaf, rows, width);
    const GradRef<T> to = into<T>(i);
    if (!to.add) kernels::fill(to.data, s.size, T(0));
    return to.data;
  }

  /// The store that this walk fills; null inside `value_and_grad`.
  GradStore* store() const noexcept { return store_; }

 private:
  std::uint32_t slot_of(int i) const noexcept { return record_.input_slots()[static_cast<std::size_t>(i)]; }
  static bool is_scratch(const detail::Slot& s) noexcept { return s.produced() || !s.leaf; }

  Tape& tape_;
  detail::Record record_;
  GradStore* store_;
  const std::byte* dy_;
};

namespace detail {

template <class Rule>
void verify_rule(const Record& record) {
  if constexpr (requires(const Rule& r) { r.saved(); }) {
    const auto verify = [&record](const auto& one) {
      if constexpr (requires { one.verify(Rule::name, record); })
        one.verify(Rule::name, record);
      else
        one.verify(Rule::name);
    };
    std::apply([&verify](const auto&... s) { (verify(s), ...); },
               static_cast<const Rule*>(record.rule())->saved());
  }
}

template <class Rule>
inline constexpr Descriptor descriptor{
    Rule::name,
    [](void* rule, Vjp& vjp) { static_cast<Rule*>(rule)->backward(vjp); },
    &verify_rule<Rule>,
    [](void* rule) noexcept { static_cast<Rule*>(rule)->~Rule(); },
};

inline std::uint32_t slot_for(Tape& tape, const Place& p, std::size_t bytes_each) {
  if (p.on_tape()) return p.slot();
  return p.leaf() ? tape.leaf_slot(p.leaf(), static_cast<std::uint16_t>(bytes_each)) : no_slot;
}

/// Whether an operand is to be recorded, after checking that it can be.
inline bool wants_record(std::string_view op, const char* name, const Place& p) {
  if (!p.tracked()) return false;
  if (thread_state.mode == GradMode::checkpoint) {
    if (p.on_tape())
      fail<TapeError>("checkpoint", name, " of ", op, " was recorded outside",
                      "; expected it among the arguments of checkpoint, or its detach()");
    thread_state.checkpoint_saw_leaf = true;
    return false;
  }
  p.check(op, name);
  return true;
}

/// An operand as the tape sees it.
struct Operand {
  const Place* place;
  std::size_t bytes_each;
};

/// Appends a record of `op` that leads from `operands` to `y`, which is nowhere yet; its rule is to be
/// constructed at the address it returns. `slots` is room for a number an operand.
[[gnu::noinline]] inline void* append_record(const Descriptor& op, std::size_t rule_bytes,
                                             std::span<const Operand> operands, std::uint32_t* slots,
                                             const Shape& shape, std::size_t bytes_each, Place& y) {
  Tape& tape = Tape::current();
  tape.collect();
  for (std::size_t i = 0; i < operands.size(); ++i)
    slots[i] = slot_for(tape, *operands[i].place, operands[i].bytes_each);
  const Record& r =
      tape.append(op, {slots, operands.size()}, shape, static_cast<std::uint16_t>(bytes_each), rule_bytes);
  for (const std::uint32_t in : r.input_slots())
    if (in != no_slot) tape.retain(in);
  y.enter(tape, r.output);
  return r.rule();
}

template <class Rule>
void check_rule() noexcept {
  static_assert(std::is_nothrow_move_constructible_v<Rule>, "a rule is moved onto the tape without failing");
  static_assert(alignof(Rule) <= Arena::alignment);
}

inline constexpr const char* operand_names[] = {"operand 1", "operand 2", "operand 3", "operand 4",
                                                "operand 5", "operand 6", "operand 7", "operand 8"};

}  // namespace detail

/// First line of an operator: throws when an operand is stale or foreign, before anything is computed, and is
/// true when the operation must be recorded. `record` then puts `rule` on the tape as the producer of `y`.
///
/// A rule is a struct with `static constexpr std::string_view name`, `void backward(Vjp&)`, the values it
/// saves as members, and `auto saved() const { return std::tie(...); }` listing its Saved members.
template <Scalar... Ts>
class Recorder {
 public:
  explicit Recorder(std::string_view op, const Tensor<Ts>&... inputs)
      : operands_{detail::Operand{&inputs.place(), sizeof(Ts)}...} {
    if (detail::thread_state.mode == detail::GradMode::off) return;
    for (std::size_t i = 0; i < sizeof...(Ts); ++i)
      active_ |=
          detail::wants_record(op, sizeof...(Ts) == 1 ? "x" : detail::operand_names[i], *operands_[i].place);
  }
  explicit operator bool() const noexcept { return active_; }

  template <class Rule, Scalar U>
  requires(!std::is_reference_v<Rule> && !std::is_invocable_v<Rule>) void record(Tensor<U>& y,
                                                                                 Rule&& rule) const {
    if (active_) record_anyway(y, std::move(rule));
  }

  /// As above with a rule that `make()`, which is noexcept, returns: it is made where it stays.
  template <class Make, Scalar U>
  requires std::is_nothrow_invocable_v<Make>
  void record(Tensor<U>& y, const Make& make) const {
    static_assert(Field<U>);
    if (!active_) return;
    using Rule = std::invoke_result_t<Make>;
    detail::check_rule<Rule>();
    std::uint32_t slots[sizeof...(Ts)];
    ::new (detail::append_record(detail::descriptor<Rule>, sizeof(Rule), operands_, slots, y.shape(),
                                 sizeof(U), y.own_place())) Rule(make());
  }

  /// Also when no operand asks for a gradient: for operations that reach leaves of their own.
  template <class Rule, Scalar U>
  void record_anyway(Tensor<U>& y, Rule&& rule) const {
    static_assert(Field<U>);
    detail::check_rule<Rule>();
    std::uint32_t slots[sizeof...(Ts)];
    ::new (detail::append_record(detail::descriptor<Rule>, sizeof(Rule), operands_, slots, y.shape(),
                                 sizeof(U), y.own_place())) Rule(std::move(rule));
  }

 private:
  std::array<detail::Operand, sizeof...(Ts)> operands_;
  bool active_ = false;
};
template <Scalar... Ts>
Recorder(std::string_view, const Tensor<Ts>&...) -> Recorder<Ts...>;

/// As Recorder, for operators that take a list of tensors.
template <Scalar T>
class ListRecorder {
 public:
  ListRecorder(std::string_view op, std::span<const Tensor<T>> inputs) : inputs_(inputs) {
    if (detail::thread_state.mode == detail::GradMode::off) return;
    for (const Tensor<T>& x : inputs) active_ |= detail::wants_record(op, "an operand", x.place());
  }
  explicit operator bool() const noexcept { return active_; }

  template <class Rule>
  void record(Tensor<T>& y, Rule rule) const {
    if (!active_) return;
    detail::check_rule<Rule>();
    const std::size_t n = inputs_.size();
    const Scratch<std::uint32_t> slots(static_cast<Index>(n));
    const Scratch<detail::Operand> operands(static_cast<Index>(n));
    for (std::size_t i = 0; i < n; ++i)
      ::new (operands.data() + i) detail::Operand{&inputs_[i].place(), sizeof(T)};
    void* const at = detail::append_record(detail::descriptor<Rule>, sizeof(Rule), {operands.data(), n},
                                           slots.data(), y.shape(), sizeof(T), y.own_place());
    ::new (at) Rule(std::move(rule));
  }

 private:
  std::span<const Tensor<T>> inputs_;
  bool active_ = false;
};

}  // namespace wengert::inline WENGERT_ISA
