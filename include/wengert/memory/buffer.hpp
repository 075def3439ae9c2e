// A shared, versioned block of 64-byte-aligned memory from the pool. Floor: memory.
#pragma once

#include <cstring>
#include <utility>

#include <wengert/memory/pool.hpp>

namespace wengert::inline WENGERT_ISA {

/// A counted reference to pooled memory. Copies share the bytes; any thread may copy, read and drop them.
/// `version` counts in-place writes, so that what the tape saved can tell that it was changed since.
class Buffer {
 public:
  static constexpr bool relocatable = true;

  Buffer() noexcept = default;
  /// At least `bytes` uninitialised bytes; none when `bytes` is 0. Throws std::bad_alloc.
  explicit Buffer(std::size_t bytes)
      : block_(bytes == 0 ? nullptr : detail::this_thread_pool().allocate(bytes)) {}
  Buffer(const Buffer& other) noexcept : block_(other.block_) {
    if (block_ != nullptr) detail::add_count(block_->refs, 1, std::memory_order_relaxed);
  }
  Buffer(Buffer&& other) noexcept : block_(std::exchange(other.block_, nullptr)) {}
  Buffer& operator=(Buffer other) noexcept {
    std::swap(block_, other.block_);
    return *this;
  }
  ~Buffer() {
    if (block_ != nullptr) let_go();
  }

  explicit operator bool() const noexcept { return block_ != nullptr; }
  std::byte* bytes() const noexcept { return block_ == nullptr ? nullptr : block_->bytes(); }
  template <class T>
  T* as() const noexcept {
    return reinterpret_cast<T*>(bytes());
  }
  /// Bytes that fit, at least what was asked for.
  std::size_t capacity() const noexcept {
    return block_ == nullptr ? 0 : detail::SizeClass::bytes(block_->size_class);
  }
  bool unique() const noexcept {
    return block_ != nullptr && block_->refs.load(std::memory_order_acquire) == 1;
  }
  std::uint32_t version() const noexcept { return block_ == nullptr ? 0 : block_->version; }
  void raise_version() const noexcept {
    if (block_ != nullptr) ++block_->version;
  }
  friend bool operator==(const Buffer& a, const Buffer& b) noexcept { return a.block_ == b.block_; }

 private:
  // A call, since most buffers that end were moved from: inlined, it would make a call of the whole
  // destructor.
  [[gnu::noinline]] void let_go() noexcept {
    // A sole owner needs no read-modify-write: nobody else can gain a reference.
    if (block_->refs.load(std::memory_order_acquire) == 1 ||
        detail::add_count(block_->refs, -1, std::memory_order_acq_rel) == 1)
      detail::release_block(block_);
  }

  detail::Block* block_ = nullptr;
};

/// Scratch for one kernel call: uninitialised room for `n` values of T from the pool.
template <Scalar T>
class Scratch {
 public:
  explicit Scratch(Index n) : buffer_(static_cast<std::size_t>(n) * sizeof(T)) {}
  T* data() const noexcept { return buffer_.as<T>(); }
  T& operator[](Index i) const noexcept { return data()[i]; }

 private:
  Buffer buffer_;
};

}  // namespace wengert::inline WENGERT_ISA
