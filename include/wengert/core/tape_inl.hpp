// How the tape keeps its records, counts and memory. Included by tape.hpp. Floor: core.
#pragma once

#include <wengert/core/tape.hpp>

namespace wengert::inline WENGERT_ISA {

inline std::uint32_t Tape::new_slot(Index size, std::uint16_t bytes_each) {
  std::uint32_t i = free_head_;
  if (i != detail::no_slot) {
    free_head_ = slots_[i].next;
    --free_slots_;
  } else {
    i = static_cast<std::uint32_t>(slots_.size());
    slots_.push_back({});
  }
  detail::Slot& s = slots_[i];
  s.refs = 0;
  s.size = size;
  s.bytes_each = bytes_each;
  return i;
}

inline std::uint32_t Tape::leaf_slot(const detail::LeafRef& leaf, std::uint16_t bytes_each) {
  if (leaf->id >= leaf_slots_.size()) leaf_slots_.resize(leaf->id + 1, detail::no_slot);
  std::uint32_t& i = leaf_slots_[leaf->id];
  if (i == detail::no_slot) {
    i = new_slot(leaf->size, bytes_each);
    slots_[i].leaf = leaf;
  }
  return i;
}

inline detail::Record& Tape::append(const detail::Descriptor& op, std::span<const std::uint32_t> inputs,
                                    const Shape& shape, std::uint16_t bytes_each, std::size_t rule_bytes) {
  if (walking_)
    fail<TapeError>(op.name,
                    "recorded while backward walks this tape; open a NestedTape inside a backward rule");
  const std::size_t dims_at = (inputs.size_bytes() + 7) / 8 * 8;
  const std::size_t rule_at =
      (dims_at + static_cast<std::size_t>(shape.rank()) * sizeof(Index) + 15) / 16 * 16;
  const std::size_t bytes = rule_at + rule_bytes;
  if (inputs.size() > 0xFFFF || rule_at > 0xFFFF)
    fail<ValueError>(op.name, "too many inputs; got ", inputs.size(), "; expected at most 16000");
  if (records_.size() == records_.capacity()) records_.reserve(records_.empty() ? 64 : 2 * records_.size());
  const std::uint32_t output = new_slot(shape.size(), bytes_each);
  auto* block = static_cast<std::byte*>(arena_.allocate(bytes));
  auto* const slots = reinterpret_cast<std::uint32_t*>(block);
  for (std::size_t i = 0; i < inputs.size(); ++i) slots[i] = inputs[i];
  auto* const dims = reinterpret_cast<Index*>(block + dims_at);
  for (int i = 0; i < shape.rank(); ++i) dims[i] = shape[i];
  slots_[output].record = static_cast<std::uint32_t>(records_.size());
  records_.push_back({&op, block, static_cast<std::uint32_t>(bytes), output,
                      static_cast<std::uint16_t>(inputs.size()), static_cast<std::uint16_t>(shape.rank()),
                      static_cast<std::uint16_t>(rule_at)});
  return records_.back();
}

/// A slot's count reached zero: it dies, then whatever only it kept alive, one after another.
inline void Tape::bury(std::uint32_t slot) noexcept {
  slots_[slot].next = dying_head_;
  dying_head_ = slot;
  if (burying_) return;  // a dying rule let go of a handle: the loop below gets to it
  burying_ = true;
  while (dying_head_ != detail::no_slot) {
    const std::uint32_t i = dying_head_;
    dying_head_ = slots_[i].next;
    kill(i);
  }
  burying_ = false;
  if (!walking_ && !consumed_) sweep();
}

inline void Tape::kill(std::uint32_t slot) noexcept {
  if (walking_ || consumed_) return;  // the tape is about to be cleared as a whole
  if (slots_[slot].produced()) {
    const std::uint32_t at = slots_[slot].record;
    const detail::Record r = records_[at];
    end_rule(records_[at]);
    ++dead_;
    for (const std::uint32_t in : r.input_slots())
      if (in != detail::no_slot && --slots_[in].refs == 0) {
        slots_[in].next = dying_head_;
        dying_head_ = in;
      }
    arena_.free(r.block, r.block_bytes);
  } else if (slots_[slot].leaf) {
    leaf_slots_[slots_[slot].leaf->id] = detail::no_slot;
  }
  detail::Slot& s = slots_[slot];
  s = detail::Slot{};
  s.next = free_head_;
  free_head_ = slot;
  ++free_slots_;
}

/// Drops dead records: at the end at once, elsewhere when they outnumber the living.
inline void Tape::sweep() noexcept {
  while (!records_.empty() && records_.back().op == nullptr) {
    records_.pop_back();
    --dead_;
  }
  if (dead_ < 64 || 2 * dead_ < records_.size()) return;
  std::uint32_t kept = 0;
  for (const detail::Record& r : records_)
    if (r.op != nullptr) {
      slots_[r.output].record = kept;
      records_[kept++] = r;
    }
  while (records_.size() > kept) records_.pop_back();
  dead_ = 0;
}

inline void Tape::clear() noexcept {
  if (clearing_) return;
  clearing_ = true;
  // Handles that a rule holds find a newer generation and leave the counts alone.
  std::uint32_t next = generation() + 1;
  generation_.store(next == 0 ? 1 : next, std::memory_order_relaxed);
  for (std::size_t i = records_.size(); i-- > 0;)
    if (records_[i].op != nullptr) end_rule(records_[i]);
  records_.clear();
  for (const detail::Slot& s : slots_)
    if (s.leaf && !s.produced()) leaf_slots_[s.leaf->id] = detail::no_slot;
  slots_.clear();
  free_head_ = dying_head_ = detail::no_slot;
  free_slots_ = dead_ = 0;
  arena_.reset();
  consumed_ = false;
  clearing_ = false;
}

inline void Tape::release_elsewhere(std::uint32_t slot, std::uint32_t gen) noexcept {
  const std::lock_guard lock(elsewhere_mutex_);
  if (gen != generation()) return;
  elsewhere_.push_back({slot, gen});
  has_elsewhere_.store(true, std::memory_order_relaxed);
}

inline void Tape::drain() noexcept {
  // One at a time, since a release may run destructors that come back here.
  for (;;) {
    Elsewhere dead;
    {
      const std::lock_guard lock(elsewhere_mutex_);
      if (elsewhere_.empty()) {
        has_elsewhere_.store(false, std::memory_order_relaxed);
        return;
      }
      dead = elsewhere_.back();
      elsewhere_.pop_back();
    }
    if (dead.generation == generation()) release(dead.slot);
  }
}

namespace detail {

/// Tapes without a thread, ready for the next. Never destroyed: a handle may outlive the thread that recorded
/// it.
struct IdleTapes {
  std::mutex mutex;
  Tape* head = nullptr;
  static IdleTapes& instance() {
    static IdleTapes* tapes = new IdleTapes;
    return *tapes;
  }
};

}  // namespace detail

/// Lends tapes to threads.
struct TapeLease {
  static Tape* take() {
    detail::IdleTapes& idle = detail::IdleTapes::instance();
    Tape* t = nullptr;
    {
      const std::lock_guard lock(idle.mutex);
      t = idle.head;
      if (t != nullptr) idle.head = t->outer_;
    }
    if (t == nullptr) t = new Tape;
    t->outer_ = nullptr;
    t->owner_.store(detail::this_thread(), std::memory_order_relaxed);
    return t;
  }
  static void give_back(Tape* t) noexcept {
    t->clear();
    t->owner_.store(nullptr, std::memory_order_relaxed);
    detail::IdleTapes& idle = detail::IdleTapes::instance();
    const std::lock_guard lock(idle.mutex);
    t->outer_ = idle.head;
    idle.head = t;
  }

  TapeLease() { detail::thread_state.tape = take(); }
  ~TapeLease() { give_back(std::exchange(detail::thread_state.tape, nullptr)); }
  TapeLease(const TapeLease&) = delete;
  TapeLease& operator=(const TapeLease&) = delete;
};

inline Tape& Tape::current() {
  if (detail::thread_state.tape == nullptr) {
    thread_local TapeLease lease;
    if (detail::thread_state.tape == nullptr)
      fail<TapeError>("tape",
                      "the thread is ending; expected recording to stop before its thread-locals die");
  }
  return *detail::thread_state.tape;
}

inline NestedTape::NestedTape() {
  Tape& outer = Tape::current();
  tape_ = TapeLease::take();
  tape_->outer_ = &outer;
  detail::thread_state.tape = tape_;
}

inline NestedTape::~NestedTape() {
  detail::thread_state.tape = tape_->outer_;
  TapeLease::give_back(tape_);
}

}  // namespace wengert::inline WENGERT_ISA
