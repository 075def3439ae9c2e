// The tape as text, one line a record: what was computed from what. Floor: tools.
#pragma once

#include <initializer_list>
#include <span>
#include <string>

#include <wengert/core/tensor.hpp>

namespace wengert::inline WENGERT_ISA {

/// A leaf and what to call it: `{"weight", w}`. Made from any pair of a name and a tensor; a tensor that is
/// no leaf names nothing.
struct LeafName {
  std::string name;
  detail::LeafRef leaf;
  template <Scalar T>
  LeafName(std::string n, const Tensor<T>& x) : name(std::move(n)), leaf(x.place().leaf()) {}
};

namespace detail {

inline std::string slot_text(const Tape& tape, std::uint32_t slot, std::span<const LeafName> names) {
  if (slot == no_slot) return "const";
  const Slot& s = tape.slot(slot);
  if (s.produced() || !s.leaf) return text("%", slot);
  const auto key = [](const LeafRef& l) { return l ? l->id + std::uint64_t{1} : 0; };
  for (const LeafName& n : names)
    if (key(n.leaf) == key(s.leaf)) return n.name;
  return text("leaf ", s.leaf->id);
}

}  // namespace detail

/// The live records of a tape, oldest first:
///   0  matmul       %2 (32, 10) <- x, weight
///   1  relu         %3 (32, 10) <- %2
/// Number, operator, output slot and shape, inputs: another record's slot, a leaf by its name or number, or
/// `const` for what asks for no gradient. Records that nobody can differentiate any more are left out.
inline std::string print_tape(std::span<const LeafName> names, const Tape& tape = Tape::current()) {
  std::size_t widest = 0, number = 0;
  for (const detail::Record& r : tape.records())
    if (r.op != nullptr) widest = std::max(widest, r.op->name.size());
  const std::size_t digits = std::to_string(tape.records().size()).size();
  std::string out;
  for (const detail::Record& r : tape.records()) {
    const std::string n = std::to_string(number++);
    if (r.op == nullptr) continue;
    out.append(digits - n.size(), ' ').append(n).append("  ").append(r.op->name);
    out.append(widest - r.op->name.size(), ' ');
    out += detail::text("  %", r.output, " ", r.shape(), " <- ");
    bool first = true;
    for (const std::uint32_t slot : r.input_slots()) {
      if (!std::exchange(first, false)) out += ", ";
      out += detail::slot_text(tape, slot, names);
    }
    out += '\n';
  }
  return out;
}
inline std::string print_tape(std::initializer_list<LeafName> names = {},
                              const Tape& tape = Tape::current()) {
  return print_tape(std::span<const LeafName>(names.begin(), names.size()), tape);
}

}  // namespace wengert::inline WENGERT_ISA
