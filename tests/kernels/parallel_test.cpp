// The thread pool: every block exactly once, same blocks at any thread count, nesting, several callers,
// errors.
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <wengert/kernels/parallel.hpp>

#include "support/heap_counter.hpp"

namespace wg = wengert;
using wg::Index;
using wg::kernels::parallel_for;
using wg::kernels::parallel_for_scratch;

namespace {

/// Restores the number of threads when a test ends.
class Parallel : public ::testing::Test {
 protected:
  ~Parallel() override { wg::set_num_threads(before_); }

 private:
  int before_ = wg::num_threads();
};

TEST_F(Parallel, CoversEveryElementOnce) {
  for (int threads : {1, 2, 3, 7}) {
    wg::set_num_threads(threads);
    ASSERT_EQ(wg::num_threads(), threads);
    for (Index n : {0, 1, 2, 3, 63, 64, 65, 1000})
      for (Index grain : {1, 2, 7, 64, 5000}) {
        std::vector<int> hits(static_cast<std::size_t>(n), 0);
        parallel_for(n, grain, [&](Index begin, Index end) {
          for (Index i = begin; i < end; ++i) ++hits[static_cast<std::size_t>(i)];
        });
        ASSERT_EQ(hits, std::vector<int>(static_cast<std::size_t>(n), 1)) << n << " by " << grain;
      }
  }
}

TEST_F(Parallel, BlocksDependOnSizeAndGrainAlone) {
  for (int threads : {1, 2, 5}) {
    wg::set_num_threads(threads);
    std::vector<std::pair<Index, Index>> blocks(4, {-1, -1});
    parallel_for(23, 7, [&](Index begin, Index end) {
      blocks[static_cast<std::size_t>(begin / 7)] = {begin, end};
    });
    EXPECT_EQ(blocks, (std::vector<std::pair<Index, Index>>{{0, 7}, {7, 14}, {14, 21}, {21, 23}}));
  }
}

TEST_F(Parallel, GrainBelowOneCountsAsOne) {
  wg::set_num_threads(1);
  std::vector<Index> begins;
  parallel_for(3, 0, [&](Index begin, Index) { begins.push_back(begin); });
  EXPECT_EQ(begins, (std::vector<Index>{0, 1, 2}));
}

TEST_F(Parallel, OneThreadRunsInOrderOnTheCaller) {
  wg::set_num_threads(1);
  std::vector<Index> begins;
  const auto caller = std::this_thread::get_id();
  parallel_for(5, 1, [&](Index begin, Index) {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    begins.push_back(begin);
  });
  EXPECT_EQ(begins, (std::vector<Index>{0, 1, 2, 3, 4}));
}

TEST_F(Parallel, UsesAnotherThread) {
  wg::set_num_threads(2);
  // Two blocks that wait for each other finish only when two threads run them.
  std::atomic<int> arrived{0};
  parallel_for(2, 1, [&](Index, Index) {
    ++arrived;
    while (arrived.load() < 2) std::this_thread::yield();
  });
  EXPECT_EQ(arrived.load(), 2);
}

TEST_F(Parallel, NestedCallsRunInlineAndInOrder) {
  wg::set_num_threads(3);
  std::vector<std::vector<Index>> inner(8);
  parallel_for(8, 1, [&](Index i, Index) {
    const auto self = std::this_thread::get_id();
    parallel_for(4, 1, [&](Index j, Index) {
      EXPECT_EQ(std::this_thread::get_id(), self);
      inner[static_cast<std::size_t>(i)].push_back(j);
    });
  });
  for (const auto& order : inner) EXPECT_EQ(order, (std::vector<Index>{0, 1, 2, 3}));
}

TEST_F(Parallel, BlocksAtWorkDoNotShareScratch) {
  constexpr Index size = 100;  // no multiple of a cache line
  for (int threads : {1, 2, 3, 7}) {
    wg::set_num_threads(threads);
    std::atomic<int> disturbed{0};
    parallel_for_scratch<float>(200, 1, size, [&](Index begin, Index end, float* scratch) {
      disturbed += reinterpret_cast<std::uintptr_t>(scratch) % 64 != 0;
      for (Index i = begin; i < end; ++i) {
        std::fill_n(scratch, size, static_cast<float>(i));
        std::this_thread::yield();
        for (Index k = 0; k < size; ++k) disturbed += scratch[k] != static_cast<float>(i);
      }
    });
    EXPECT_EQ(disturbed, 0) << threads << " threads";
  }
}

TEST_F(Parallel, ScratchIsAskedOfTheCallerAlone) {
  wg::set_num_threads(2);
  parallel_for_scratch<double>(2, 1, 1000, [](Index, Index, double*) {});
  EXPECT_EQ(heap::requests_of([] {
              std::atomic<int> begun{0};
              parallel_for_scratch<double>(2, 1, 1000, [&](Index, Index, double* scratch) {
                scratch[0] = 1;
                ++begun;
                // Both blocks at once, so that the worker has one.
                for (int i = 0; begun < 2 && i < 1000; ++i)
                  std::this_thread::sleep_for(std::chrono::milliseconds(1));
              });
            }),
            0U);
}

TEST_F(Parallel, ManyCallersAtOnce) {
  wg::set_num_threads(3);
  std::vector<Index> sums(6, 0);
  std::vector<std::thread> callers;
  for (std::size_t c = 0; c < sums.size(); ++c)
    callers.emplace_back([&sums, c] {
      for (int round = 0; round < 200; ++round) {
        std::vector<Index> parts(10, 0);
        parallel_for(100, 10, [&](Index begin, Index end) {
          for (Index i = begin; i < end; ++i) parts[static_cast<std::size_t>(begin / 10)] += i;
        });
        sums[c] += std::accumulate(parts.begin(), parts.end(), Index{0});
      }
    });
  for (auto& t : callers) t.join();
  EXPECT_EQ(sums, std::vector<Index>(6, 200 * 4950));
}

TEST_F(Parallel, TheLowestFaultyBlockWinsAndThePoolGoesOn) {
  for (int threads : {1, 2, 4}) {
    wg::set_num_threads(threads);
    for (int round = 0; round < 50; ++round) {
      std::atomic<int> running{0};
      try {
        parallel_for(20, 1, [&](Index i, Index) {
          ++running;
          if (i == 3 || i == 4 || i == 11) {
            --running;
            throw std::runtime_error("block " + std::to_string(i));
          }
          --running;
        });
        FAIL() << "no exception";
      } catch (const std::runtime_error& e) {
        EXPECT_STREQ(e.what(), "block 3");
      }
      EXPECT_EQ(running.load(), 0);
    }
    std::atomic<Index> sum{0};
    parallel_for(10, 1, [&](Index i, Index) { sum += i; });
    EXPECT_EQ(sum.load(), 45);
  }
}

TEST_F(Parallel, WakesSleepingWorkers) {
  wg::set_num_threads(2);
  for (int round = 0; round < 3; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));  // far beyond the spin
    std::atomic<int> arrived{0};
    parallel_for(2, 1, [&](Index, Index) {
      ++arrived;
      while (arrived.load() < 2) std::this_thread::yield();
    });
    EXPECT_EQ(arrived.load(), 2);
  }
}

TEST_F(Parallel, ResizingBetweenCalls) {
  for (int round = 0; round < 20; ++round)
    for (int threads : {1, 4, 2, 3}) {
      wg::set_num_threads(threads);
      std::atomic<Index> sum{0};
      parallel_for(16, 2, [&](Index begin, Index end) { sum += end - begin; });
      ASSERT_EQ(sum.load(), 16);
    }
}

TEST_F(Parallel, RefusesThreadCountsThatMakeNoSense) {
  const int before = wg::num_threads();
  for (int n : {0, -1, 1025}) try {
      wg::set_num_threads(n);
      ADD_FAILURE() << n;
    } catch (const wg::ValueError& e) {
      EXPECT_EQ(std::string(e.what()), "set_num_threads: n is " + std::to_string(n) + "; expected 1..1024");
    }
  EXPECT_EQ(wg::num_threads(), before);
}

TEST_F(Parallel, ReadsTheEnvironmentVariable) {
  using wg::kernels::detail::parse_num_threads;
  EXPECT_EQ(parse_num_threads("1"), 1);
  EXPECT_EQ(parse_num_threads("12"), 12);
  EXPECT_EQ(parse_num_threads("1024"), 1024);
  const unsigned cores = std::thread::hardware_concurrency();
  const int hardware = cores == 0 ? 1 : static_cast<int>(cores);
  for (const char* bad : {"", "0", "-2", "two", "2x", "1.5", "1025", "99999999999999999999"})
    EXPECT_EQ(parse_num_threads(bad), hardware) << bad;
  EXPECT_EQ(parse_num_threads(nullptr), hardware);
}

void exit_from_a_body() {
  wg::set_num_threads(3);
  parallel_for(3, 1, [](Index i, Index) {
    if (i == 0) std::exit(7);
  });
}

TEST(ParallelExit, LeavingFromABodyDoesNotHang) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(exit_from_a_body(), ::testing::ExitedWithCode(7), "");
}

}  // namespace
