// Bump arena for what the tape saves: pointers stay valid until freed, freed blocks are reused, capacity is
// kept. Floor: memory.
#pragma once

#include <bit>
#include <cstddef>
#include <vector>

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
    while (chunk_ < chunks_.size() && used_ + need > chunks_[chunk_].capacity()) {
      ++chunk_;
      used_ = 0;
    }
    if (chunk_ == chunks_.size()) chunks_.emplace_back(need > chunk_bytes ? need : chunk_bytes);
    void* p = chunks_[chunk_].bytes() + used_;
    used_ += need;
    return p;
  }

  void free(void* block, std::size_t bytes) noexcept {
    const std::size_t k = size_class(bytes);
    free_[k] = ::new (block) Free{free_[k]};
  }

  /// Forgets every block at once and keeps the chunks.
  void reset() noexcept {
    for (Free*& f : free_) f = nullptr;
    chunk_ = used_ = 0;
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

  std::vector<Buffer> chunks_;
  std::size_t chunk_ = 0, used_ = 0;
  Free* free_[small_classes + 48] = {};
};

}  // namespace wengert::inline WENGERT_ISA
