// The pool behind every buffer: size classes, alignment, reuse, blocks given back by other threads, trimming.
#include <cstdint>
#include <set>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <wengert/memory/buffer.hpp>

using namespace wengert;
using detail::SizeClass;

namespace {

TEST(SizeClasses, HoldWhatWasAskedAndWasteAtMostAQuarter) {
  for (std::size_t bytes = 1; bytes < 100'000; ++bytes) {
    const std::uint32_t k = SizeClass::of(bytes);
    ASSERT_GE(SizeClass::bytes(k), bytes);
    if (bytes > 64) {
      ASSERT_LE(SizeClass::bytes(k), bytes + bytes / 4 + 1) << bytes;
      ASSERT_LT(SizeClass::bytes(k - 1), bytes) << "the smallest class that fits";
    }
  }
  for (int log = 7; log < 50; ++log)
    for (const std::size_t off : {std::size_t{0}, std::size_t{1}}) {
      const std::size_t bytes = (std::size_t{1} << log) + off;
      ASSERT_GE(SizeClass::bytes(SizeClass::of(bytes)), bytes);
    }
}

TEST(SizeClasses, AreOrdered) {
  for (std::uint32_t k = 1; k < SizeClass::count; ++k) {
    ASSERT_LT(SizeClass::bytes(k - 1), SizeClass::bytes(k));
    ASSERT_EQ(SizeClass::of(SizeClass::bytes(k)), k);
  }
}

TEST(Buffer, IsAlignedToCacheLines) {
  for (const std::size_t bytes : {1U, 63U, 64U, 65U, 1000U, 100'000U, 5'000'000U}) {
    const Buffer b(bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(b.bytes()) % 64, 0U) << bytes;
    EXPECT_GE(b.capacity(), bytes);
    std::memset(b.bytes(), 0x5A, b.capacity());
  }
}

TEST(Buffer, OfNothingIsNull) {
  const Buffer none, zero(0);
  EXPECT_FALSE(none);
  EXPECT_FALSE(zero);
  EXPECT_EQ(zero.bytes(), nullptr);
  EXPECT_EQ(zero.capacity(), 0U);
  EXPECT_EQ(zero.version(), 0U);
  EXPECT_FALSE(zero.unique());
  zero.raise_version();
  EXPECT_TRUE(none == zero);
}

TEST(Buffer, BeyondEveryClassIsBadAlloc) {
  EXPECT_THROW(Buffer(std::size_t{1} << 60), std::bad_alloc);
  EXPECT_THROW(Buffer(~std::size_t{0} >> 1), std::bad_alloc);
}

TEST(Buffer, CountsItsReferences) {
  Buffer a(100);
  EXPECT_TRUE(a.unique());
  {
    const Buffer b = a;
    EXPECT_FALSE(a.unique());
    EXPECT_TRUE(a == b);
    EXPECT_EQ(a.bytes(), b.bytes());
    b.raise_version();
    EXPECT_EQ(a.version(), 1U) << "copies share the version";
  }
  EXPECT_TRUE(a.unique());
  const Buffer moved = std::move(a);
  EXPECT_TRUE(moved.unique());
  a = moved;
  a = *&a;
  EXPECT_TRUE(a == moved);
}

TEST(Pool, ReusesTheBlockThatWasLetGoLast) {
  const std::byte* first = Buffer(1000).bytes();
  const std::size_t requests = pool_stats().system_requests;
  for (int i = 0; i < 100; ++i) {
    const Buffer again(980);
    again.raise_version();
    ASSERT_EQ(again.bytes(), first);
    ASSERT_EQ(again.version(), 1U) << "versions start anew";
  }
  EXPECT_EQ(pool_stats().system_requests, requests);
}

TEST(Pool, CountsBytesInUseAndCached) {
  trim_pool();
  const PoolStats before = pool_stats();
  EXPECT_EQ(before.bytes_cached, 0U);
  {
    const Buffer a(1000), b(64);
    const std::size_t held = a.capacity() + b.capacity();
    EXPECT_EQ(pool_stats().bytes_in_use, before.bytes_in_use + held);
    EXPECT_EQ(pool_stats().system_requests, before.system_requests + 2);
  }
  EXPECT_EQ(pool_stats().bytes_in_use, before.bytes_in_use);
  EXPECT_EQ(pool_stats().bytes_cached, SizeClass::bytes(SizeClass::of(1000)) + 64);
  trim_pool();
  EXPECT_EQ(pool_stats().bytes_cached, 0U);
  const Buffer c(1000);
  EXPECT_EQ(pool_stats().system_requests, before.system_requests + 3) << "trimmed blocks are gone";
}

TEST(Pool, BlocksInUseNeverOverlap) {
  std::vector<Buffer> held;
  std::set<const std::byte*> ends;
  for (std::size_t i = 0; i < 500; ++i) {
    held.emplace_back(1 + i * 37 % 3000);
    std::memset(held.back().bytes(), static_cast<int>(i % 251), held.back().capacity());
    if (i % 3 == 0) held.erase(held.begin() + static_cast<std::ptrdiff_t>(i / 5 % held.size()));
  }
  for (const Buffer& b : held) {
    const std::byte mark = b.bytes()[0];
    for (std::size_t k = 0; k < b.capacity(); ++k) ASSERT_EQ(b.bytes()[k], mark);
  }
}

TEST(Pool, ScratchIsTypedRoom) {
  const Scratch<double> s(10);
  s[9] = 4.5;
  EXPECT_EQ(s.data()[9], 4.5);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(s.data()) % 64, 0U);
}

}  // namespace
