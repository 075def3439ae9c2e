// A tensor's place on a tape: the counted handle that notices when its tape has moved on. Floor: core.
#pragma once

#include <utility>

#include <wengert/core/tape.hpp>

namespace wengert::inline WENGERT_ISA::detail {

/// Nowhere (a constant), a leaf, or a slot of one generation of one tape. Slots are counted by plain
/// integers, since a recorded tensor belongs to the thread that recorded it; copies made elsewhere are not
/// counted and can only be read.
class Place {
 public:
  Place() noexcept = default;
  explicit Place(LeafRef leaf) noexcept : leaf_(std::move(leaf)) {}
  /// Takes a reference to `slot`.
  Place(Tape& tape, std::uint32_t slot) noexcept : tape_(&tape), slot_(slot), generation_(tape.generation()) {
    tape.retain(slot);
  }
  Place(const Place& other) noexcept
      : tape_(other.tape_), slot_(other.slot_), generation_(other.generation_), leaf_(other.leaf_) {
    if (tape_ == nullptr || generation_ == uncounted) return;
    if (!tape_->owned_by_this_thread())
      generation_ = uncounted;
    else if (generation_ == tape_->generation())
      tape_->retain(slot_);
  }
  Place(Place&& other) noexcept
      : tape_(std::exchange(other.tape_, nullptr)),
        slot_(other.slot_),
        generation_(other.generation_),
        leaf_(std::move(other.leaf_)) {}
  Place& operator=(Place other) noexcept {
    std::swap(tape_, other.tape_);
    std::swap(slot_, other.slot_);
    std::swap(generation_, other.generation_);
    std::swap(leaf_, other.leaf_);
    return *this;
  }
  ~Place() {
    if (tape_ != nullptr) let_go();
  }

  /// Puts a tensor that was nowhere on a tape, at a slot whose count it joins.
  void enter(Tape& tape, std::uint32_t slot) noexcept {
    tape_ = &tape;
    slot_ = slot;
    generation_ = tape.generation();
    tape.retain(slot);
  }

  /// Whether an operation on the tensor is to be recorded.
  bool tracked() const noexcept { return tape_ != nullptr || leaf_; }
  bool on_tape() const noexcept { return tape_ != nullptr; }
  const LeafRef& leaf() const noexcept { return leaf_; }
  Tape* tape() const noexcept { return tape_; }
  std::uint32_t slot() const noexcept { return slot_; }
  /// Its slot still exists and belongs to this thread.
  bool live() const noexcept {
    return tape_ != nullptr && tape_->owned_by_this_thread() && generation_ == tape_->generation();
  }
  void keep_gradient_in(LeafRef leaf) {
    tape_->slots()[slot_].leaf = leaf;
    leaf_ = std::move(leaf);
  }

  /// Throws TapeError unless the tensor, the operand `name` of `op`, can be recorded on this thread's
  /// innermost tape.
  void check(std::string_view op, const char* name) const {
    if (tape_ != nullptr && (tape_ != thread_state.tape || generation_ != tape_->generation()))
      refuse(op, name);
  }

 private:
  static constexpr std::uint32_t uncounted = 0;  // no tape has this generation

  [[gnu::noinline]] void let_go() noexcept {
    if (generation_ == uncounted) return;
    if (!tape_->owned_by_this_thread())
      tape_->release_elsewhere(slot_, generation_);
    else if (generation_ == tape_->generation())
      tape_->release(slot_);
  }

  [[noreturn]] [[gnu::noinline]] [[gnu::cold]] void refuse(std::string_view op, const char* name) const {
    if (!tape_->owned_by_this_thread() || generation_ == uncounted)
      fail<TapeError>(op, name, " was recorded by another thread or on a tape that has ended",
                      "; expected a tensor of this thread's tape; pass its detach()");
    if (generation_ != tape_->generation())
      fail<TapeError>(op, name, " was recorded on a tape that has been cleared since (generation ",
                      generation_, " of ", tape_->generation(),
                      "); expected a tensor of the present forward pass; "
                      "record it again, or pass its detach()");
    fail<TapeError>(
        op, name, " belongs to an outer tape",
        "; expected a tensor of the innermost tape; pass it as an argument, or pass its detach()");
  }

  Tape* tape_ = nullptr;
  std::uint32_t slot_ = no_slot;
  std::uint32_t generation_ = uncounted;
  LeafRef leaf_;
};

}  // namespace wengert::inline WENGERT_ISA::detail
