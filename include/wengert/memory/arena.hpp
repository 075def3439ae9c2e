// Bump arena for what the tape saves: pointers stay valid until freed, freed blocks are reused, capacity is
// kept. Floor: memory.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <utility>

#include <wengert/base/list.hpp>
#include <wengert/memory/buffer.hpp>

namespace wengert::inline WENGERT_ISA {

/// Allocates 16-byte-aligned blocks by bumping a pointer through chunks. A freed block goes to the list of
/// its size, so that a long-lived block at the front never pins the short-lived ones behind it. One owner.
class Arena {
 public:
  static constexpr std::size_t alignment = 16;

  void* allocate(std::size_t bytes) {
    const std::size_t k = size_class(bytes);
    if (Free* f = free_[k]) {
      free_[k] = f->next;
      return f;
    }
    const std::size_t need = class_bytes(k);
    if (static_cast<std::size_t>(end_ - cursor_) < need) next_chunk(need);
    return std::exchange(cursor_, cursor_ + need);
  }

  void free(void* block, std::size_t bytes) noexcept {
    const std::size_t k = size_class(bytes);
    free_[k] = ::new (block) Free{free_[k]};
  }

  /// Forgets every block at once and keeps the chunks.
  void reset() noexcept {
    for (Free*& f : free_) f = nullptr;
    chunk_ = 0;
    cursor_ = end_ = nullptr;
  }

  /// Bytes held in chunks.
  std::size_t capacity() const noexcept {
    std::size_t n = 0;
    for (const Buffer& c : chunks_) n += c.capacity();
    return n;
  }

 private:
  struct Free {
    Free* next;
  };
  static constexpr std::size_t chunk_bytes = std::size_t{64} << 10;
  static constexpr std::size_t small_step = 32,
                               small_classes = 32;  // 32, 64, .. 1024 bytes; then powers of two

  static constexpr std::size_t size_class(std::size_t bytes) noexcept {
    if (bytes <= small_step * small_classes) return bytes == 0 ? 0 : (bytes - 1) / small_step;
    return small_classes + static_cast<std::size_t>(std::bit_width(bytes - 1)) - 11;
  }
  static constexpr std::size_t class_bytes(std::size_t k) noexcept {
    return k < small_classes ? (k + 1) * small_step : std::size_t{1} << (k - small_classes + 11);
  }

  /// The first chunk from `chunk_` on that has room for `need` bytes, or a fresh one.
  [[gnu::noinline]] void next_chunk(std::size_t need) {
    while (chunk_ < chunks_.size() && chunks_[chunk_].capacity() < need) ++chunk_;
    if (chunk_ == chunks_.size()) chunks_.push_back(Buffer(std::max(need, chunk_bytes)));
    cursor_ = chunks_[chunk_].bytes();
    end_ = cursor_ + chunks_[chunk_++].capacity();
  }

  detail::List<Buffer> chunks_;
  std::size_t chunk_ = 0;  // the next to be used
  std::byte *cursor_ = nullptr, *end_ = nullptr;
  Free* free_[small_classes + 48] = {};
};

}  // namespace wengert::inline WENGERT_ISA
