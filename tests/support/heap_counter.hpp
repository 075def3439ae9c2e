// Counts what the program asks the heap for, by any thread and any way: operator new in all its forms, and on
// glibc the malloc family as well. Include it in one file of a program.
#pragma once

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <new>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HEAP_COUNTER_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HEAP_COUNTER_SANITIZED 1
#endif
#endif

namespace heap {

inline std::atomic<std::size_t> requests{0};

/// How often `f()` asks the heap for memory.
template <class F>
std::size_t requests_of(F&& f) {
  const std::size_t before = requests.load();
  f();
  return requests.load() - before;
}

}  // namespace heap

#if defined(__GLIBC__) && !defined(HEAP_COUNTER_SANITIZED)

// operator new calls malloc or aligned_alloc, so that these alone are counted.
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);

void* malloc(std::size_t bytes) {
  heap::requests.fetch_add(1, std::memory_order_relaxed);
  return __libc_malloc(bytes);
}
void* calloc(std::size_t n, std::size_t bytes) {
  heap::requests.fetch_add(1, std::memory_order_relaxed);
  return __libc_calloc(n, bytes);
}
void* realloc(void* p, std::size_t bytes) {
  heap::requests.fetch_add(1, std::memory_order_relaxed);
  return __libc_realloc(p, bytes);
}
void* memalign(std::size_t alignment, std::size_t bytes) {
  heap::requests.fetch_add(1, std::memory_order_relaxed);
  return __libc_memalign(alignment, bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) { return memalign(alignment, bytes); }
int posix_memalign(void** p, std::size_t alignment, std::size_t bytes) {
  *p = memalign(alignment, bytes);
  return *p == nullptr ? ENOMEM : 0;
}
}

#else

namespace heap::detail {

inline void* take(std::size_t bytes, std::size_t alignment) {
  requests.fetch_add(1, std::memory_order_relaxed);
  void* p = nullptr;
  if (posix_memalign(&p, alignment < sizeof(void*) ? sizeof(void*) : alignment, bytes) != 0)
    throw std::bad_alloc();
  return p;
}

}  // namespace heap::detail

void* operator new(std::size_t bytes) { return heap::detail::take(bytes, alignof(std::max_align_t)); }
void* operator new[](std::size_t bytes) { return heap::detail::take(bytes, alignof(std::max_align_t)); }
void* operator new(std::size_t bytes, std::align_val_t a) {
  return heap::detail::take(bytes, static_cast<std::size_t>(a));
}
void* operator new[](std::size_t bytes, std::align_val_t a) {
  return heap::detail::take(bytes, static_cast<std::size_t>(a));
}
// Not inlined: g++ compares std::free, once it sees it, with an operator new whose body it did not look at.
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete[](void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete[](void* p, std::size_t) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete[](void* p, std::align_val_t) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete[](void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }

#endif
