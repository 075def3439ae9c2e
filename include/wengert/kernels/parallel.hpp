// The one door to threads: a pool of our own that spins briefly and then sleeps, and work cut into blocks
// that do not depend on the number of threads, so that results have the same bits at one thread and at many.
// Floor: kernels.
#pragma once

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <memory>
#include <mutex>
#include <pthread.h>
#include <type_traits>
#include <unistd.h>
#include <utility>

#include <wengert/base/error.hpp>
#include <wengert/base/list.hpp>
#include <wengert/memory/buffer.hpp>

namespace wengert::inline WENGERT_ISA {

namespace kernels::detail {

inline constexpr int max_threads = 1024;
inline constexpr int spin_pauses = 20'000;  // 0.4 to 1 ms: longer than the serial code between two kernels
inline constexpr int spin_pauses_crowded =
    100;                                   // more threads than cores: a spinner would steal a worker's core
inline constexpr int join_pauses = 4'000;  // the caller waits for blocks that are already running

inline void cpu_pause() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// True on a pool's own threads, and on a caller while its blocks run on the pool.
inline constinit thread_local bool inside_parallel = false;

inline int hardware_threads() noexcept {
  const long n = ::sysconf(_SC_NPROCESSORS_ONLN);
  return n < 1 ? 1 : n > max_threads ? max_threads : static_cast<int>(n);
}

/// The number in `text`, or the hardware's when it is missing or not a whole number from 1 to `max_threads`.
inline int parse_num_threads(const char* text) noexcept {
  if (text == nullptr || *text == '\0') return hardware_threads();
  char* end = nullptr;
  errno = 0;
  const long n = std::strtol(text, &end, 10);
  return errno != 0 || *end != '\0' || n < 1 || n > max_threads ? hardware_threads() : static_cast<int>(n);
}

inline std::atomic<int>& wanted_threads() noexcept {
  static std::atomic<int> n{parse_num_threads(std::getenv("WENGERT_NUM_THREADS"))};
  return n;
}

/// Workers that help one caller at a time. The caller never waits for a worker that has not begun: a sleeping
/// worker costs nothing but its help.
class ThreadPool {
 public:
  using Run = void (*)(void* body, Index begin, Index end, int helper);

  /// Never destroyed, so that static destructors may still call `parallel_for`; its threads end at process
  /// exit.
  static ThreadPool& instance() {
    static ThreadPool* pool = new ThreadPool;
    static const AtExit at_exit{pool};
    return *pool;
  }

  /// Runs every block and returns true, or returns false at once when another thread has the pool.
  bool try_run(Index n, Index grain, Index blocks, int threads, Run run, void* body) {
    if (busy_.exchange(true, std::memory_order_acquire)) return false;
    if (workers_ != threads - 1) resize(threads - 1);
    run_ = run;
    body_ = body;
    n_ = n;
    grain_ = grain;
    blocks_ = blocks;
    next_.store(0, std::memory_order_relaxed);
    joined_.store(0, std::memory_order_relaxed);
    gate_.fetch_add(one_epoch | gate_open, std::memory_order_acq_rel);
    gate_.notify_all();

    inside_parallel = true;
    run_blocks(0);
    inside_parallel = false;

    std::uint32_t gate = gate_.fetch_and(~gate_open, std::memory_order_acq_rel) & ~gate_open;
    for (int i = 0; (gate & gate_helpers) != 0; gate = gate_.load(std::memory_order_acquire)) {
      if (++i < join_pauses)
        cpu_pause();
      else
        gate_.wait(gate, std::memory_order_acquire);
    }
    const std::exception_ptr error = std::exchange(error_, nullptr);
    busy_.store(false, std::memory_order_release);
    if (error) std::rethrow_exception(error);
    return true;
  }

 private:
  // The gate holds, from the low bits up: helpers at work, whether more may join, and the epoch.
  static constexpr std::uint32_t gate_helpers = 0x7fff, gate_open = 0x8000, one_epoch = 0x10000;

  struct AtExit {
    ThreadPool* pool;
    ~AtExit() { pool->shut_down(); }
  };

  void run_blocks(int helper) noexcept {
    for (;;) {
      const Index i = next_.fetch_add(1, std::memory_order_relaxed);
      if (i >= blocks_) return;
      const Index begin = i * grain_, end = i + 1 == blocks_ ? n_ : begin + grain_;
      try {
        run_(body_, begin, end, helper);
      } catch (...) {
        // Blocks are claimed in order, so the error of the lowest faulty block is always seen, and wins.
        const std::lock_guard lock(error_mutex_);
        if (!error_ || i < error_block_) {
          error_ = std::current_exception();
          error_block_ = i;
        }
        next_.store(blocks_, std::memory_order_relaxed);
      }
    }
  }

  /// A thread and what it begins with. Not std::thread, whose headers and functions would be a fortieth of a
  /// program's compile time.
  struct Worker {
    ThreadPool* pool;
    int id;
    std::uint32_t gate;
    int pauses;
    ::pthread_t thread;
  };

  static void* start(void* worker) noexcept {
    const auto* const w = static_cast<const Worker*>(worker);  // whose `thread` may not be written yet
    w->pool->work(w->id, w->gate, w->pauses);
    return nullptr;
  }

  void work(int id, std::uint32_t gate, int pauses) noexcept {
    inside_parallel = true;
    for (;;) {
      const std::uint32_t seen = gate / one_epoch;
      for (int i = 0; (gate = gate_.load(std::memory_order_acquire)) / one_epoch == seen;) {
        if (++i < pauses)
          cpu_pause();
        else
          gate_.wait(gate, std::memory_order_acquire);
      }
      if (id >= limit_.load(std::memory_order_acquire)) return;
      std::uint32_t now = gate;
      while ((now & gate_open) != 0) {
        if (!gate_.compare_exchange_weak(now, now + 1, std::memory_order_acq_rel)) continue;
        run_blocks(joined_.fetch_add(1, std::memory_order_relaxed) + 1);
        gate_.fetch_sub(1, std::memory_order_acq_rel);
        gate_.notify_all();
        break;
      }
    }
  }

  /// By the owner of `busy_`, with the gate closed.
  [[gnu::cold, gnu::noinline]] void resize(int workers) {
    const std::lock_guard lock(threads_mutex_);
    if (closed_) return;
    end_workers(workers);
    threads_.reserve(static_cast<std::size_t>(workers));
    const int pauses = workers + 1 > hardware_threads() ? spin_pauses_crowded : spin_pauses;
    if (pauses != pauses_) end_workers(0);
    pauses_ = pauses;
    limit_.store(workers, std::memory_order_release);
    workers_ = workers;
    const std::uint32_t gate = gate_.load(std::memory_order_relaxed);
    while (static_cast<int>(threads_.size()) < workers) {
      auto* const worker = new Worker{this, static_cast<int>(threads_.size()), gate, pauses, {}};
      if (::pthread_create(&worker->thread, nullptr, &start, worker) != 0) {
        delete worker;  // the system refuses more threads: go on with those there are
        break;
      }
      threads_.push_back(worker);
    }
    process_ = ::getpid();
  }

  void end_workers(int keep) {
    if (static_cast<int>(threads_.size()) <= keep) return;
    limit_.store(keep, std::memory_order_release);
    gate_.fetch_add(one_epoch, std::memory_order_acq_rel);
    gate_.notify_all();
    while (static_cast<int>(threads_.size()) > keep) {
      Worker* const last = threads_.back();
      threads_.pop_back();
      // After a fork the child has no such threads to wait for.
      const bool forked = process_ != ::getpid();
      if (forked || ::pthread_equal(last->thread, ::pthread_self()) != 0)  // a body called std::exit
        ::pthread_detach(last->thread);
      else
        ::pthread_join(last->thread, nullptr);
      delete last;
    }
  }

  void shut_down() {
    const std::lock_guard lock(threads_mutex_);
    closed_ = true;
    end_workers(0);
  }

  alignas(64) std::atomic<std::uint32_t> gate_{0};
  alignas(64) std::atomic<Index> next_{0};
  alignas(64) std::atomic<bool> busy_{false};
  std::atomic<int> limit_{0};
  std::atomic<int> joined_{0};  // helpers that have come to the present work
  Run run_ = nullptr;
  void* body_ = nullptr;
  Index n_ = 0, grain_ = 0, blocks_ = 0;
  int workers_ = 0;
  int pauses_ = spin_pauses;

  std::mutex error_mutex_;
  std::exception_ptr error_;
  Index error_block_ = 0;

  std::mutex threads_mutex_;
  wengert::detail::List<Worker*> threads_;
  bool closed_ = false;
  ::pid_t process_ = 0;
};

}  // namespace kernels::detail

/// Sets how many threads, the caller included, share the work of later `parallel_for` calls of this process.
/// The default is WENGERT_NUM_THREADS, or the hardware's number. Throws ValueError unless 1 <= n <= 1024.
inline void set_num_threads(int n) {
  if (n < 1 || n > kernels::detail::max_threads)
    fail<ValueError>("set_num_threads", "n is ", n, "; expected 1..", kernels::detail::max_threads);
  kernels::detail::wanted_threads().store(n, std::memory_order_relaxed);
}

/// How many threads share the work of a `parallel_for`, the caller included.
inline int num_threads() noexcept {
  return kernels::detail::wanted_threads().load(std::memory_order_relaxed);
}

namespace kernels {

namespace detail {

/// What every parallel loop comes down to, compiled once: at most `threads` threads run the blocks, and each
/// tells the body its number, 0 .. threads - 1.
[[gnu::noinline]] inline void parallel_run(Index n, Index grain, int threads, ThreadPool::Run run,
                                           void* body) {
  if (n <= 0) return;
  if (grain < 1) grain = 1;
  if (n <= grain) {  // the division costs as much as a small operator's own work
    run(body, 0, n, 0);
    return;
  }
  const Index blocks = (n - 1) / grain + 1;
  if (threads > 1 && !inside_parallel && ThreadPool::instance().try_run(n, grain, blocks, threads, run, body))
    return;
  for (Index i = 0; i < blocks; ++i) run(body, i * grain, i + 1 == blocks ? n : (i + 1) * grain, 0);
}

/// `body` as parallel_run takes it.
template <class Body>
void* erased(Body& body) noexcept {
  return const_cast<void*>(static_cast<const void*>(std::addressof(body)));
}

}  // namespace detail

/// Calls `body(begin, end)` for every block [i * grain, min(n, (i + 1) * grain)), on several threads when
/// that pays. Blocks depend on n and grain alone. One block, one thread, a call from inside a body that runs
/// on the pool, or a pool that another thread is using: the blocks run on the caller, in order. Choose
/// `grain` so that a block is worth at least 3 us: less is not worth handing over. Allocates nothing once the
/// threads run. Throws what the body of the lowest faulty block threw, after every block that had begun;
/// later blocks may be skipped.
template <class Body>
void parallel_for(Index n, Index grain, Body&& body) {
  detail::parallel_run(
      n, grain, num_threads(),
      [](void* callable, Index begin, Index end, int) {
        (*static_cast<std::remove_reference_t<Body>*>(callable))(begin, end);
      },
      detail::erased(body));
}

/// As `parallel_for`, with `body(begin, end, scratch)`: uninitialised room for `size` values of T, aligned to
/// 64 bytes, that no other block uses at the time. The caller asks for all of it: a thread that comes late to
/// its first block asks the system for nothing, so that a steady state allocates nothing.
template <Scalar T, class Body>
void parallel_for_scratch(Index n, Index grain, Index size, Body&& body) {
  constexpr Index line = 64 / Index{sizeof(T)};
  const int threads = n <= grain || detail::inside_parallel ? 1 : num_threads();
  const Index step = (size + line - 1) / line * line;
  const Scratch<T> scratch(threads * step);
  auto numbered = [&body, data = scratch.data(), step](Index begin, Index end, int thread) {
    body(begin, end, data + thread * step);
  };
  detail::parallel_run(
      n, grain, threads,
      [](void* callable, Index begin, Index end, int thread) {
        (*static_cast<decltype(numbered)*>(callable))(begin, end, thread);
      },
      detail::erased(numbered));
}

}  // namespace kernels

}  // namespace wengert::inline WENGERT_ISA
