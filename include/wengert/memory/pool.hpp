// The per-thread caching pool behind every buffer: size classes, so that a training loop stops asking the
// system for memory after its first step. Floor: memory.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>

#include <wengert/base/scalar.hpp>

#if defined(__linux__)
#include <sys/mman.h>
#endif
#if __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h>
#define WENGERT_HAS_SINGLE_THREADED
#endif

namespace wengert::inline WENGERT_ISA {

/// What the calling thread's pool holds; see `pool_stats`.
struct PoolStats {
  std::size_t bytes_in_use = 0;     ///< in blocks handed out by this thread and not yet given back
  std::size_t bytes_cached = 0;     ///< in free blocks kept for reuse
  std::size_t system_requests = 0;  ///< blocks ever asked from the system
};

namespace detail {

/// Adds to a count and returns what it was. While the process has one thread, no bus lock is needed: that
/// lock is 5 ns, and a small operator on the tape takes three.
inline std::uint32_t add_count(std::atomic<std::uint32_t>& count, int change,
                               std::memory_order order) noexcept {
  const auto by = static_cast<std::uint32_t>(change);
#if defined(WENGERT_HAS_SINGLE_THREADED)
  if (__libc_single_threaded) {
    const std::uint32_t before = count.load(std::memory_order_relaxed);
    count.store(before + by, std::memory_order_relaxed);
    return before;
  }
#endif
  return count.fetch_add(by, order);
}

inline constexpr std::size_t block_alignment = 64;        // a cache line and an AVX-512 register
inline constexpr std::size_t huge_page_bytes = 2U << 20;  // transparent huge pages on x86-64 and arm64

class Pool;

/// Header before each buffer's bytes. Readers on any thread share `refs`; `version` counts in-place writes.
struct alignas(block_alignment) Block {
  std::atomic<std::uint32_t> refs{1};
  std::uint32_t version = 0;
  std::uint32_t size_class = 0;
  Pool* owner = nullptr;
  Block* next = nullptr;  // in a free list

  std::byte* bytes() noexcept { return reinterpret_cast<std::byte*>(this) + sizeof(Block); }
};
static_assert(sizeof(Block) == block_alignment);

/// Four classes to each power of two: at most 25 % is lost to rounding. Class 0 holds 64 bytes.
struct SizeClass {
  static constexpr std::uint32_t count = 4 * 48;
  static constexpr std::uint32_t of(std::size_t bytes) noexcept {
    if (bytes <= 64) return 0;
    const auto log = static_cast<std::uint32_t>(std::bit_width(bytes - 1)) - 1;  // 2^log < bytes <= 2^(log+1)
    const auto quarter = static_cast<std::uint32_t>((bytes - 1) >> (log - 2)) & 3U;
    return (log - 6) * 4 + quarter + 1;
  }
  static constexpr std::size_t bytes(std::uint32_t k) noexcept {
    if (k == 0) return 64;
    const std::uint32_t log = (k - 1) / 4 + 6, quarter = (k - 1) % 4;
    return (std::size_t{1} << log) + (std::size_t{quarter} + 1) * (std::size_t{1} << (log - 2));
  }
};

/// A thread's free lists. Blocks that another thread lets go come back through `remote_`, so that a loader
/// thread feeding a trainer does not grow the trainer's cache. Pools outlive their threads and serve later
/// ones.
class Pool {
 public:
  Block* allocate(std::size_t bytes) {
    const std::uint32_t k = SizeClass::of(bytes);
    if (k >= SizeClass::count) throw std::bad_alloc();
    Block* b = free_[k];
    if (b == nullptr && has_remote_.load(std::memory_order_acquire)) {
      collect_remote();
      b = free_[k];
    }
    if (b != nullptr) {
      free_[k] = b->next;
      stats_.bytes_cached -= SizeClass::bytes(k);
      b->refs.store(1, std::memory_order_relaxed);
      b->version = 0;
    } else {
      b = from_system(k);
    }
    stats_.bytes_in_use += SizeClass::bytes(k);
    return b;
  }

  /// By the owning thread.
  void give_back(Block* b) noexcept {
    stats_.bytes_in_use -= SizeClass::bytes(b->size_class);
    stats_.bytes_cached += SizeClass::bytes(b->size_class);
    b->next = free_[b->size_class];
    free_[b->size_class] = b;
  }

  /// By any other thread.
  void give_back_remote(Block* b) noexcept {
    const std::lock_guard lock(mutex_);
    b->next = remote_;
    remote_ = b;
    has_remote_.store(true, std::memory_order_release);
  }

  /// Returns every cached block to the system.
  [[gnu::cold, gnu::noinline]] void trim() noexcept {
    collect_remote();
    for (Block*& head : free_) {
      while (head != nullptr) {
        Block* b = head;
        head = b->next;
        to_system(b);
      }
    }
    stats_.bytes_cached = 0;
  }

  const PoolStats& stats() noexcept {
    collect_remote();
    return stats_;
  }

  Pool* next_idle = nullptr;

 private:
  [[gnu::noinline]] void collect_remote() noexcept {
    Block* list = nullptr;
    {
      const std::lock_guard lock(mutex_);
      list = remote_;
      remote_ = nullptr;
      has_remote_.store(false, std::memory_order_relaxed);
    }
    while (list != nullptr) {
      Block* b = list;
      list = b->next;
      give_back(b);
    }
  }

  static std::size_t alignment(std::size_t bytes) noexcept {
    return bytes >= 2 * huge_page_bytes ? huge_page_bytes : block_alignment;
  }

  [[gnu::cold, gnu::noinline]] Block* from_system(std::uint32_t k) {
    const std::size_t bytes = SizeClass::bytes(k) + sizeof(Block);
    void* p = ::operator new (bytes, std::align_val_t{alignment(bytes)});
#if defined(__linux__)
    // Fewer page faults and TLB misses for large tensors; a refusal costs nothing.
    if (bytes >= 2 * huge_page_bytes) ::madvise(p, bytes, MADV_HUGEPAGE);
#endif
    ++stats_.system_requests;
    Block* b = new (p) Block;
    b->size_class = k;
    b->owner = this;
    return b;
  }

  static void to_system(Block* b) noexcept {
    const std::size_t bytes = SizeClass::bytes(b->size_class) + sizeof(Block);
    b->~Block();
    ::operator delete (b, std::align_val_t{alignment(bytes)});
  }

  Block* free_[SizeClass::count] = {};
  PoolStats stats_;
  std::mutex mutex_;
  Block* remote_ = nullptr;
  std::atomic<bool> has_remote_{false};
};

/// Idle pools, for the next thread that starts. Never destroyed: tensors with static storage may die after
/// it.
struct IdlePools {
  std::mutex mutex;
  Pool* head = nullptr;

  static IdlePools& instance() {
    static IdlePools* pools = new IdlePools;
    return *pools;
  }
  [[gnu::cold]] Pool* take() {
    {
      const std::lock_guard lock(mutex);
      if (Pool* p = head) {
        head = p->next_idle;
        return p;
      }
    }
    return new Pool;
  }
  [[gnu::cold]] void put(Pool* p) noexcept {
    p->trim();
    const std::lock_guard lock(mutex);
    p->next_idle = head;
    head = p;
  }
};

inline thread_local constinit Pool* thread_pool = nullptr;

/// Gives the pool back when its thread ends.
struct PoolLease {
  Pool* pool = thread_pool = IdlePools::instance().take();
  PoolLease() = default;
  PoolLease(const PoolLease&) = delete;
  PoolLease& operator=(const PoolLease&) = delete;
  ~PoolLease() {
    thread_pool = nullptr;
    IdlePools::instance().put(pool);
  }
};

[[gnu::noinline]] inline Pool& start_thread_pool() {
  thread_local PoolLease lease;
  // A thread that allocates while its thread-locals die has no lease any more; a shared pool would race.
  if (thread_pool == nullptr) return *new Pool;
  return *thread_pool;
}

inline Pool& this_thread_pool() { return thread_pool != nullptr ? *thread_pool : start_thread_pool(); }

inline void release_block(Block* b) noexcept {
  if (b->owner == thread_pool)
    b->owner->give_back(b);
  else
    b->owner->give_back_remote(b);
}

}  // namespace detail

/// What the calling thread's pool holds and has asked for.
inline PoolStats pool_stats() { return detail::this_thread_pool().stats(); }

/// Returns the memory that the calling thread's pool caches to the system.
inline void trim_pool() noexcept {
  if (detail::thread_pool != nullptr) detail::thread_pool->trim();
}

}  // namespace wengert::inline WENGERT_ISA
