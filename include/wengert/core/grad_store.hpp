// GradStore: the arena that keeps the gradients of leaves, contiguous and in order, across steps. Floor:
// core.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include <wengert/base/list.hpp>
#include <wengert/core/tensor.hpp>

namespace wengert::inline WENGERT_ISA {

/// Where a backward rule puts the gradient of one input: it stores when `add` is false and adds when it is
/// true. Contiguous, in the input's shape.
template <class T>
struct GradRef {
  T* data;
  bool add;
};

/// Gradients of leaves. Each leaf has a lasting slot in one flat array; `zero()` makes all of them stale
/// without touching memory, and the first contribution after it stores where later ones add. One owner; kept
/// across steps, it allocates nothing once every leaf has been seen. Gradients of intermediates live only
/// while backward walks, in pooled scratch that is given up as soon as its record has been passed.
class GradStore {
 public:
  GradStore() = default;
  /// Lays the slots of `parameters` out in their order, before the first backward.
  template <Field T>
  explicit GradStore(const std::vector<Tensor<T>>& parameters) {
    for (const Tensor<T>& p : parameters) add_leaf(p.place().leaf());
    settle();
  }

  /// Makes every gradient stale. Keeps the memory and touches none of it.
  void zero() noexcept { ++epoch_; }

  /// The gradient of `x`, a view of the store; zeros when nothing has reached it since `zero()`.
  /// Throws ValueError when `x` does not ask for a gradient.
  template <Field T>
  Tensor<T> operator[](const Tensor<T>& x) {
    const detail::LeafRef& leaf = x.place().leaf();
    if (!leaf)
      fail<ValueError>("grads", "the tensor keeps no gradient; shape is ", x.shape(),
                       "; expected a leaf (requires_grad(true)) or retain_grad() before backward");
    const std::uint32_t e = add_leaf(leaf);
    settle();
    make_zero_if_stale(entries_[e]);
    return view<T>(entries_[e], x.shape());
  }

  /// The gradient of `x`, or nothing when no backward has reached it since `zero()`.
  template <Field T>
  std::optional<Tensor<T>> find(const Tensor<T>& x) const {
    const Entry* e = entry(x.place().leaf());
    if (e == nullptr || e->reached != epoch_) return std::nullopt;
    return view<T>(*e, x.shape());
  }

  /// Every leaf's gradient as one array, in layout order with unused gaps at zero: for an all-reduce or a
  /// norm. Stale slots are zeroed. Throws ValueError when a leaf holds another element type.
  template <Field T>
  std::span<T> flat() {
    for (Entry& e : entries_) {
      if (e.leaf->type != &detail::element_type<T>)
        fail<ValueError>("flat", "the store holds gradients of several element types; asked for ",
                         dtype_name<T>(), "; expected one type");
      if (!e.own) make_zero_if_stale(e);
    }
    return {region_.as<T>(), used_ / sizeof(T)};
  }

  /// Number of tensors that have a slot, and the bytes of all slots.
  std::size_t size() const noexcept { return entries_.size(); }
  std::size_t bytes() const noexcept { return used_; }

  // What follows serves backward and the optimizers.
  static constexpr std::size_t slot_alignment = 64;

  /// Whether `memory` is where this store keeps gradients.
  bool keeps(const Buffer& memory) const noexcept {
    for (const Entry& e : entries_)
      if (e.own && e.memory == memory) return true;
    return memory == region_;
  }

  /// Null when no backward has reached the leaf since `zero()`.
  template <Field T>
  T* reached(const detail::LeafRef& leaf) const noexcept {
    const Entry* e = entry(leaf);
    return e == nullptr || e->reached != epoch_ ? nullptr : data<T>(*e);
  }
  /// The same question, for tensors without elements too.
  bool has_reached(const detail::LeafRef& leaf) const noexcept {
    const Entry* e = entry(leaf);
    return e != nullptr && e->reached == epoch_;
  }

  /// Gives the leaf a slot; `settle` must follow before the slot is used. `apart` keeps it out of the flat
  /// array.
  std::uint32_t add_leaf(const detail::LeafRef& leaf, bool apart = false) {
    if (leaf && leaf->id < index_.size() && index_[leaf->id] != none) return index_[leaf->id];
    return add_fresh_leaf(leaf, apart);
  }

  /// Makes room for the slots that `add_leaf` gave out; gradients already there are kept.
  void settle() {
    if (used_ <= region_.capacity()) return;
    Buffer larger(std::max(used_, region_.capacity() * 3 / 2));
    std::memset(larger.bytes() + settled_, 0, larger.capacity() - settled_);  // the gaps of `flat` stay zero
    if (settled_ != 0) std::memcpy(larger.bytes(), region_.bytes(), settled_);
    region_ = std::move(larger);
    settled_ = region_.capacity();
  }

  /// The slot of a leaf that a contribution is about to reach.
  template <class T>
  GradRef<T> into(const detail::LeafRef& leaf) {
    Entry& e = entries_[index_[leaf->id]];
    const GradRef<T> ref{data<T>(e), e.filled == epoch_};
    e.filled = e.reached = epoch_;
    e.sparse = false;
    return ref;
  }

  /// Adds a finished gradient, of the leaf's type and size.
  void add(const detail::LeafRef& leaf, const void* gradient) {
    const GradRef<std::byte> to = into<std::byte>(leaf);
    leaf->type->accumulate(gradient, leaf->size, to.data, to.add);
  }

  /// As `into`, for rules that add to few rows: everything else is zero already, and only rows that were
  /// touched before are zeroed. The caller adds.
  template <Field T>
  T* into_rows(const detail::LeafRef& leaf, std::span<const Index> rows, Index width) {
    Entry& e = entries_[index_[leaf->id]];
    T* const g = data<T>(e);
    if (e.filled != epoch_) {
      if (e.sparse && e.width == width) {
        for (const Index r : e.rows) std::fill_n(g + r * width, width, T(0));
      } else {
        kernels::fill(g, e.leaf->size, T(0));
      }
      e.rows.clear();
      e.sparse = true;
      e.width = width;
    }
    if (e.sparse && (e.rows.size() + rows.size()) * static_cast<std::size_t>(width) <
                        static_cast<std::size_t>(e.leaf->size))
      e.rows.append(rows);
    else
      e.sparse = false;
    e.filled = e.reached = epoch_;
    return g;
  }

 private:
  static constexpr std::uint32_t none = ~std::uint32_t{0};

  struct Entry {
    static constexpr bool relocatable = true;

    detail::LeafRef leaf;
    std::size_t offset = 0;
    bool own = false;  // in `memory` of its own instead of the flat array
    Buffer memory;
    std::uint64_t filled = 0;   // epoch in which it last held a value
    std::uint64_t reached = 0;  // epoch in which a backward last reached it
    bool sparse = false;        // zero outside `rows`, each of `width` elements
    Index width = 0;
    detail::List<Index> rows;
  };

  const Entry* entry(const detail::LeafRef& leaf) const noexcept {
    if (!leaf || leaf->id >= index_.size() || index_[leaf->id] == none) return nullptr;
    return &entries_[index_[leaf->id]];
  }
  template <class T>
  T* data(const Entry& e) const noexcept {
    return e.own ? e.memory.as<T>() : reinterpret_cast<T*>(region_.bytes() + e.offset);
  }
  template <class T>
  Tensor<T> view(const Entry& e, const Shape& shape) const {
    const Index offset = e.own ? 0 : static_cast<Index>(e.offset / sizeof(T));
    return Tensor<T>(e.own ? e.memory : region_, shape, contiguous_strides(shape), offset);
  }
  [[gnu::cold, gnu::noinline]] std::uint32_t add_fresh_leaf(const detail::LeafRef& leaf, bool apart) {
    if (!leaf) fail<ValueError>("grads", "a tensor keeps no gradient; expected a leaf (requires_grad(true))");
    if (leaf->id >= index_.size()) index_.resize(leaf->id + 1, none);
    Entry fresh;
    fresh.leaf = leaf;
    fresh.own = apart;
    if (apart) fresh.memory = Buffer(leaf->bytes);
    std::uint32_t e = orphan(apart, leaf->bytes);
    if (e != none) {
      index_[entries_[e].leaf->id] = none;
      fresh.offset = entries_[e].offset;
      entries_[e] = std::move(fresh);
    } else {
      e = static_cast<std::uint32_t>(entries_.size());
      if (!apart) {
        fresh.offset = used_;
        used_ += (leaf->bytes + slot_alignment - 1) / slot_alignment * slot_alignment;
      }
      entries_.push_back(std::move(fresh));
    }
    return index_[leaf->id] = e;
  }
  void make_zero_if_stale(Entry& e) {
    if (e.filled == epoch_) return;
    if (e.leaf->bytes != 0) std::memset(data<std::byte>(e), 0, e.leaf->bytes);
    e.filled = epoch_;
    e.sparse = true;
    e.rows.clear();
    e.width = 0;
  }
  // A slot whose leaf only the store still knows serves the next leaf of its size, so that inputs which ask
  // for gradients in every step do not make the store grow.
  std::uint32_t orphan(bool apart, std::size_t bytes) const noexcept {
    for (std::uint32_t i = 0; i < entries_.size(); ++i) {
      const Entry& e = entries_[i];
      if (e.own == apart && (apart || e.leaf->bytes == bytes) && e.leaf.unique()) return i;
    }
    return none;
  }

  detail::List<Entry> entries_;
  detail::List<std::uint32_t> index_;  // by leaf number
  Buffer region_;
  std::size_t used_ = 0, settled_ = 0;
  std::uint64_t epoch_ = 1;
};

}  // namespace wengert::inline WENGERT_ISA
