// The tape's arena: alignment, reuse of freed blocks, capacity that is kept, blocks that never overlap.
#include <cstdint>
#include <cstring>
#include <map>
#include <vector>

#include <gtest/gtest.h>

#include <wengert/memory/arena.hpp>

using namespace wengert;

namespace {

TEST(Arena, AlignsAndReusesFreedBlocksOfASize) {
  Arena arena;
  void* a = arena.allocate(100);
  void* b = arena.allocate(100);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(a) % Arena::alignment, 0U);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(b) % Arena::alignment, 0U);
  EXPECT_NE(a, b);
  arena.free(a, 100);
  EXPECT_EQ(arena.allocate(97), a) << "same size class";
  arena.free(a, 97);
  arena.free(b, 100);
  EXPECT_EQ(arena.allocate(100), b) << "last freed, first used";
  EXPECT_EQ(arena.allocate(100), a);
}

TEST(Arena, ShortLivedBlocksBehindALongLivedOneStayFlat) {
  Arena arena;
  arena.allocate(64);
  const std::size_t held = [&] {
    arena.free(arena.allocate(500), 500);
    return arena.capacity();
  }();
  for (int i = 0; i < 100'000; ++i) {
    void* p = arena.allocate(500);
    void* q = arena.allocate(3000);
    arena.free(p, 500);
    arena.free(q, 3000);
  }
  EXPECT_EQ(arena.capacity(), held);
}

TEST(Arena, ResetKeepsItsChunks) {
  Arena arena;
  void* first = arena.allocate(48);
  for (int i = 0; i < 10'000; ++i) arena.allocate(static_cast<std::size_t>(i % 2000));
  const std::size_t held = arena.capacity();
  EXPECT_GT(held, 1'000'000U);
  for (int round = 0; round < 3; ++round) {
    arena.reset();
    EXPECT_EQ(arena.allocate(48), first);
    for (int i = 0; i < 10'000; ++i) arena.allocate(static_cast<std::size_t>(i % 2000));
    EXPECT_EQ(arena.capacity(), held);
  }
}

TEST(Arena, GivesBlocksOfAnySize) {
  Arena arena;
  for (const std::size_t bytes : {0U, 1U, 1023U, 1024U, 1025U, 2048U, 2049U, 65'536U, 65'537U, 10'000'000U}) {
    void* p = arena.allocate(bytes);
    std::memset(p, 0x77, bytes);
    arena.free(p, bytes);
    EXPECT_EQ(arena.allocate(bytes), p) << bytes;
  }
}

TEST(Arena, LiveBlocksNeverOverlap) {
  Arena arena;
  struct Live {
    unsigned char* p;
    std::size_t bytes;
    unsigned char mark;
  };
  std::vector<Live> live;
  std::uint32_t state = 1;
  const auto random = [&state] { return state = state * 1664525U + 1013904223U, state >> 8; };
  for (unsigned i = 0; i < 20'000; ++i) {
    if (live.empty() || random() % 5 < 3) {
      const std::size_t bytes = random() % 2500 + 8;
      auto* p = static_cast<unsigned char*>(arena.allocate(bytes));
      const auto mark = static_cast<unsigned char>(i);
      std::memset(p, mark, bytes);
      live.push_back({p, bytes, mark});
    } else {
      std::swap(live[random() % live.size()], live.back());
      const Live gone = live.back();
      live.pop_back();
      ASSERT_EQ(gone.p[0], gone.mark);
      ASSERT_EQ(gone.p[gone.bytes - 1], gone.mark);
      arena.free(gone.p, gone.bytes);
    }
  }
  for (const Live& l : live)
    for (std::size_t k = 0; k < l.bytes; ++k) ASSERT_EQ(l.p[k], l.mark);
}

}  // namespace
