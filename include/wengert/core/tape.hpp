// The Wengert tape: a flat, append-only list of records, the slots they read and write, and the rule that
// lets go at once of what nobody can differentiate any more. It names no operator. Floor: core.
#pragma once

#include <atomic>
#include <mutex>
#include <span>
#include <string_view>

#include <wengert/base/list.hpp>
#include <wengert/base/shape.hpp>
#include <wengert/core/leaf.hpp>
#include <wengert/memory/arena.hpp>

namespace wengert::inline WENGERT_ISA {

class Vjp;
class Tape;

namespace detail {

inline constexpr std::uint32_t no_slot = ~std::uint32_t{0};

struct Record;

/// What is the same for all records of one rule: static data, referred to by pointer.
struct Descriptor {
  std::string_view name;
  void (*backward)(void* rule, Vjp& vjp);
  void (*verify)(const Record& record);  // throws when a saved value was written since
  void (*destroy)(void* rule) noexcept;
};

/// One recorded operation. `block` holds the input slots, the output's dimensions and the rule.
struct Record {
  const Descriptor* op;  // null once dead
  std::byte* block;
  std::uint32_t block_bytes, output;
  std::uint16_t inputs, rank, rule_offset;

  std::span<const std::uint32_t> input_slots() const noexcept {
    return {reinterpret_cast<const std::uint32_t*>(block), inputs};
  }
  Shape shape() const {
    const std::size_t at = (inputs * sizeof(std::uint32_t) + 7) / 8 * 8;
    return Shape(std::span(reinterpret_cast<const Index*>(block + at), rank));
  }
  void* rule() const noexcept { return block + rule_offset; }
};

/// A value on the tape: the output of a record, a leaf, or an input of a nested tape.
struct Slot {
  static constexpr bool relocatable = true;

  std::uint32_t refs = 0;          // handles and records that refer to it
  std::uint32_t record = no_slot;  // its producer
  std::uint32_t next = no_slot;    // in the free list, or in the list of those about to die
  std::uint16_t bytes_each = 0;
  bool has_gradient = false;
  Index size = 0;
  Buffer gradient;
  LeafRef leaf;  // of a leaf; of an intermediate: where its gradient is kept on request

  bool produced() const noexcept { return record != no_slot; }
};

/// Recording can be off, or on; while a checkpoint runs forward it is off and notes what it would have
/// recorded.
enum class GradMode : std::uint8_t { on, off, checkpoint };

struct ThreadState {
  Tape* tape = nullptr;  // innermost
  GradMode mode = GradMode::on;
  bool checkpoint_saw_leaf = false;
};
inline thread_local constinit ThreadState thread_state;

/// An address that tells threads apart.
inline const void* this_thread() noexcept { return &thread_state; }

}  // namespace detail

/// A thread's list of recorded operations, last to first the order of `backward`. Users meet it through
/// tensors; `tools/print_tape.hpp` shows it. One owner: the thread that records.
class Tape {
 public:
  Tape() = default;
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  /// The calling thread's innermost tape.
  static Tape& current();

  /// Number of records that can still take part in a backward.
  std::size_t size() const noexcept { return records_.size() - dead_; }
  bool empty() const noexcept { return size() == 0; }
  /// Slots in use, by records or handles.
  std::size_t slots_in_use() const noexcept { return slots_.size() - free_slots_; }
  /// Bytes that the tape itself holds: records, slots and saved rules, without the tensors these share.
  std::size_t bytes() const noexcept {
    return records_.capacity() * sizeof(detail::Record) + slots_.capacity() * sizeof(detail::Slot) +
           arena_.capacity();
  }
  /// Raised whenever the tape is cleared; handles remember the one they were made in.
  std::uint32_t generation() const noexcept { return generation_.load(std::memory_order_relaxed); }

  /// Forgets all records. Tensors recorded so far keep their values; using one in a recorded operation
  /// throws.
  void clear() noexcept;

  // What follows serves record.hpp, backward.hpp and the tools.
  bool owned_by_this_thread() const noexcept {
    return owner_.load(std::memory_order_relaxed) == detail::this_thread();
  }
  std::span<const detail::Record> records() const noexcept { return {records_.data(), records_.size()}; }
  std::span<detail::Slot> slots() noexcept { return {slots_.data(), slots_.size()}; }
  const detail::Slot& slot(std::uint32_t i) const noexcept { return slots_[i]; }
  bool walking() const noexcept { return walking_; }

  void retain(std::uint32_t slot) noexcept { ++slots_[slot].refs; }
  void release(std::uint32_t slot) noexcept {
    if (--slots_[slot].refs == 0) bury(slot);
  }
  /// A counted handle died on another thread; its owner learns of it at the next record.
  void release_elsewhere(std::uint32_t slot, std::uint32_t generation) noexcept;
  /// Lets go of what died on other threads. Comes before the input slots of a record are looked up: it may
  /// free the slot of a leaf that no other record refers to.
  void collect() noexcept {
    if (has_elsewhere_.load(std::memory_order_relaxed)) drain();
  }

  std::uint32_t leaf_slot(const detail::LeafRef& leaf, std::uint16_t bytes_each);
  std::uint32_t new_slot(Index size, std::uint16_t bytes_each);

  /// Appends a record whose rule the caller constructs at `rule()`; its input slots must already be counted.
  /// Allocates before it changes anything.
  detail::Record& append(const detail::Descriptor& op, std::span<const std::uint32_t> inputs,
                         const Shape& shape, std::uint16_t bytes_each, std::size_t rule_bytes);

 private:
  friend class NestedTape;
  friend struct TapeLease;
  friend class Walk;

  struct Elsewhere {
    std::uint32_t slot, generation;
  };

  void bury(std::uint32_t slot) noexcept;
  void kill(std::uint32_t slot) noexcept;
  void sweep() noexcept;
  void drain() noexcept;
  void end_rule(detail::Record& r) noexcept {
    const detail::Descriptor* op = r.op;
    r.op = nullptr;
    op->destroy(r.rule());
  }

  detail::List<detail::Record> records_;
  detail::List<detail::Slot> slots_;
  detail::List<std::uint32_t> leaf_slots_;  // by leaf number
  std::uint32_t free_head_ = detail::no_slot, dying_head_ = detail::no_slot;
  std::size_t free_slots_ = 0, dead_ = 0;
  Arena arena_;
  bool walking_ = false, consumed_ = false;  // consumed: its rules have ended, its gradients are still wanted
  bool burying_ = false, clearing_ = false;
  std::atomic<std::uint32_t> generation_{1};
  std::atomic<const void*> owner_{nullptr};

  std::mutex elsewhere_mutex_;
  detail::List<Elsewhere> elsewhere_;
  std::atomic<bool> has_elsewhere_{false};

  Tape* outer_ = nullptr;  // the tape below this one on its thread, or the next idle tape
};

/// Pushes a fresh tape for its scope: what is recorded inside ends with it, also by an exception.
/// Checkpointing and `value_and_grad` use it; recording with a tensor of an outer tape throws meanwhile.
class NestedTape {
 public:
  NestedTape();
  ~NestedTape();
  NestedTape(const NestedTape&) = delete;
  NestedTape& operator=(const NestedTape&) = delete;
  Tape& tape() const noexcept { return *tape_; }

 private:
  Tape* tape_;
};

namespace detail {

class ModeScope {
 public:
  explicit ModeScope(GradMode mode) noexcept : before_(thread_state.mode) { thread_state.mode = mode; }
  ~ModeScope() { thread_state.mode = before_; }
  ModeScope(const ModeScope&) = delete;
  ModeScope& operator=(const ModeScope&) = delete;

 private:
  GradMode before_;
};

}  // namespace detail

/// While it lives, the calling thread records nothing: `wg::NoGrad no_grad;`.
class NoGrad : detail::ModeScope {
 public:
  NoGrad() noexcept : ModeScope(detail::GradMode::off) {}
};

/// While it lives, the calling thread records again, inside a NoGrad.
class EnableGrad : detail::ModeScope {
 public:
  EnableGrad() noexcept : ModeScope(detail::GradMode::on) {}
};

/// Whether operations on the calling thread are recorded.
inline bool grad_enabled() noexcept { return detail::thread_state.mode == detail::GradMode::on; }

/// Calls `f` and returns its result, recording nothing.
template <class F>
decltype(auto) no_grad(F&& f) {
  const NoGrad scope;
  return std::forward<F>(f)();
}

}  // namespace wengert::inline WENGERT_ISA

#include <wengert/core/tape_inl.hpp>
