// Identity of a tensor that asks for a gradient: what a GradStore indexes by. Floor: core.
#pragma once

#include <atomic>
#include <mutex>
#include <utility>

#include <wengert/base/list.hpp>
#include <wengert/kernels/copy.hpp>

namespace wengert::inline WENGERT_ISA::detail {

/// What the engine must know of an element type at run time; its address tells types apart.
struct ElementType {
  void (*accumulate)(const void* x, Index n, void* y, bool add);
};
template <class T>
inline constexpr ElementType element_type{[](const void* x, Index n, void* y, bool add) {
  kernels::accumulate(static_cast<const T*>(x), n, static_cast<T*>(y), add);
}};

/// A leaf's dense number; numbers of dead leaves are given out again, so tables indexed by them stay small.
struct Leaf {
  std::atomic<std::uint32_t> refs{1};
  std::uint32_t id = 0;
  Index size = 0;
  std::size_t bytes = 0;
  const ElementType* type = nullptr;
};

struct LeafNumbers {
  std::mutex mutex;
  std::uint32_t next = 0;
  List<std::uint32_t> idle;

  static LeafNumbers& instance() {
    static LeafNumbers* numbers = new LeafNumbers;  // outlives tensors with static storage
    return *numbers;
  }
};

/// A counted reference to a Leaf; null for tensors that ask for nothing. Any thread may copy and drop it.
class LeafRef {
 public:
  static constexpr bool relocatable = true;

  LeafRef() noexcept = default;
  LeafRef(const LeafRef& other) noexcept : leaf_(other.leaf_) {
    if (leaf_ != nullptr) leaf_->refs.fetch_add(1, std::memory_order_relaxed);
  }
  LeafRef(LeafRef&& other) noexcept : leaf_(std::exchange(other.leaf_, nullptr)) {}
  LeafRef& operator=(LeafRef other) noexcept {
    std::swap(leaf_, other.leaf_);
    return *this;
  }
  ~LeafRef() {
    if (leaf_ != nullptr) let_go();
  }

  template <class T>
  static LeafRef make(Index size) {
    return make(size, sizeof(T), element_type<T>);
  }
  [[gnu::cold, gnu::noinline]] static LeafRef make(Index size, std::size_t bytes_each,
                                                   const ElementType& type) {
    LeafRef ref;
    ref.leaf_ = new Leaf;
    ref.leaf_->size = size;
    ref.leaf_->bytes = static_cast<std::size_t>(size) * bytes_each;
    ref.leaf_->type = &type;
    LeafNumbers& numbers = LeafNumbers::instance();
    const std::lock_guard lock(numbers.mutex);
    if (numbers.idle.empty()) {
      numbers.idle.reserve(++numbers.next);  // so that giving a number back never allocates
      ref.leaf_->id = numbers.next - 1;
    } else {
      ref.leaf_->id = numbers.idle.back();
      numbers.idle.pop_back();
    }
    return ref;
  }

  explicit operator bool() const noexcept { return leaf_ != nullptr; }
  const Leaf* operator->() const noexcept { return leaf_; }
  const Leaf* get() const noexcept { return leaf_; }
  bool unique() const noexcept { return leaf_->refs.load(std::memory_order_acquire) == 1; }
  friend bool operator==(const LeafRef&, const LeafRef&) noexcept = default;

 private:
  [[gnu::noinline]] void let_go() noexcept {
    if (leaf_->refs.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    {
      LeafNumbers& numbers = LeafNumbers::instance();
      const std::lock_guard lock(numbers.mutex);
      numbers.idle.push_back(leaf_->id);
    }
    delete leaf_;
  }

  Leaf* leaf_ = nullptr;
};

}  // namespace wengert::inline WENGERT_ISA::detail
