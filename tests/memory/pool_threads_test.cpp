// Blocks that travel between threads go home to the pool they came from.
#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <wengert/memory/buffer.hpp>

using namespace wengert;

namespace {

TEST(PoolThreads, BlocksLetGoElsewhereComeHome) {
  const std::size_t in_use = pool_stats().bytes_in_use;
  std::vector<Buffer> held;
  for (int i = 0; i < 50; ++i) held.emplace_back(10'000);
  EXPECT_GT(pool_stats().bytes_in_use, in_use);
  std::thread([moved = std::move(held)]() mutable {
    moved.clear();
    EXPECT_EQ(pool_stats().bytes_cached, 0U) << "not into this thread's cache";
  }).join();
  EXPECT_EQ(pool_stats().bytes_in_use, in_use);
  const std::size_t requests = pool_stats().system_requests;
  for (int i = 0; i < 50; ++i) held.emplace_back(10'000);
  EXPECT_EQ(pool_stats().system_requests, requests) << "they serve again";
}

TEST(PoolThreads, ALoaderAndATrainerStayFlat) {
  constexpr int batches = 2000;
  std::atomic<std::size_t> requests_early{0}, requests_late{0};
  std::vector<std::atomic<Buffer*>> ring(4);
  std::thread loader([&] {
    for (int i = 0; i < batches; ++i) {
      std::atomic<Buffer*>& place = ring[static_cast<std::size_t>(i % 4)];
      while (place.load(std::memory_order_acquire) != nullptr) std::this_thread::yield();
      auto* batch = new Buffer(4096);
      batch->as<int>()[0] = i;
      place.store(batch, std::memory_order_release);
      if (i == 100) requests_early = pool_stats().system_requests;
    }
    requests_late = pool_stats().system_requests;
  });
  for (int i = 0; i < batches; ++i) {
    std::atomic<Buffer*>& place = ring[static_cast<std::size_t>(i % 4)];
    Buffer* batch = nullptr;
    while ((batch = place.load(std::memory_order_acquire)) == nullptr) std::this_thread::yield();
    ASSERT_EQ(batch->as<int>()[0], i);
    delete batch;
    place.store(nullptr, std::memory_order_release);
  }
  loader.join();
  EXPECT_LE(requests_late, requests_early + 8);
}

TEST(PoolThreads, OneBufferReadAndDroppedByMany) {
  for (int round = 0; round < 50; ++round) {
    Buffer shared(256);
    shared.as<int>()[5] = round;
    std::vector<std::thread> readers;
    for (int t = 0; t < 4; ++t)
      readers.emplace_back([copy = shared, round] {
        const Buffer again = copy;
        ASSERT_EQ(again.as<int>()[5], round);
      });
    shared = Buffer();
    for (std::thread& r : readers) r.join();
  }
}

TEST(PoolThreads, BuffersOutliveTheirThread) {
  std::vector<Buffer> kept;
  for (int i = 0; i < 20; ++i)
    std::thread([&] {
      kept.emplace_back(100);
      kept.back().as<int>()[0] = static_cast<int>(kept.size());
    }).join();
  for (std::size_t i = 0; i < kept.size(); ++i) EXPECT_EQ(kept[i].as<int>()[0], static_cast<int>(i) + 1);
}

}  // namespace
