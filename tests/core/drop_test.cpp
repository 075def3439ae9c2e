// Promise: nothing leaks, even when the user forgets. Ten thousand forward passes with no backward and no
// no_grad leave memory flat, whichever way their results are let go; and a training step asks the heap for
// nothing.
#include <gtest/gtest.h>

#include "support/heap_counter.hpp"
#include "support/toy.hpp"

using namespace wengert;

namespace {

constexpr int many = 10'000;

Tensor<float> filled(const Shape& shape, float value) {
  Tensor<float> x(shape);
  x.fill(value);
  return x;
}

/// What a program holds that could grow.
struct Held {
  std::size_t records = Tape::current().size(), slots = Tape::current().slots_in_use(),
              tape_bytes = Tape::current().bytes();
  PoolStats pool = pool_stats();
};

class Dropping : public ::testing::Test {
 protected:
  void SetUp() override { w_.requires_grad(true); }
  void TearDown() override { Tape::current().clear(); }

  Tensor<float> forward(const Tensor<float>& x) { return toy::dot(toy::mul(toy::mul(x, w_), w_), ones_); }
  Tensor<float> forward() { return forward(w_); }

  /// `pass` may hold on to something from one call to the next, but not to more each time.
  template <class Pass>
  void expect_flat(Pass pass) {
    for (int i = 0; i < 300; ++i) pass(i);  // dead records in the middle go when they are many
    const Held before;
    const std::size_t requests = heap::requests_of([&] {
      for (int i = 0; i < many; ++i) pass(i);
    });
    const Held after;
    EXPECT_EQ(requests, 0U) << "heap requests";
    EXPECT_LE(after.records, before.records + 8);
    EXPECT_LE(after.slots, before.slots + 8);
    EXPECT_EQ(after.tape_bytes, before.tape_bytes);
    EXPECT_EQ(after.pool.system_requests, before.pool.system_requests);
    EXPECT_LE(after.pool.bytes_in_use, before.pool.bytes_in_use + 4096);
  }

  Tensor<float> w_ = filled({16}, 1), ones_ = filled({16}, 1);
};

TEST_F(Dropping, ResultsThatGoOutOfScope) {
  expect_flat([&](int) { const Tensor<float> y = forward(); });
  EXPECT_EQ(Tape::current().size(), 0U);
}

TEST_F(Dropping, ResultsThatAreReassigned) {
  Tensor<float> y;
  expect_flat([&](int) { y = forward(); });
  EXPECT_EQ(Tape::current().size(), 3U) << "the last pass: two products and a sum";
  GradStore grads;
  backward(y, grads);
  EXPECT_EQ(grads[w_].to_vector(), std::vector<float>(16, 3)) << "d(w^3)/dw at 1";
}

TEST_F(Dropping, ResultsLeftByContinue) {
  float sum = 0;
  expect_flat([&](int i) {
    for (int k = 0; k < 2; ++k) {
      const Tensor<float> y = forward();
      if ((i + k) % 2 == 0) continue;
      sum += y.item();
    }
  });
  EXPECT_EQ(Tape::current().size(), 0U);
  EXPECT_GT(sum, 0);
}

TEST_F(Dropping, ResultsOfALongLivedIntermediateInFront) {
  const Tensor<float> h = toy::mul(w_, w_);
  expect_flat([&](int) { const Tensor<float> y = forward(h); });
  EXPECT_EQ(Tape::current().size(), 1U);
  GradStore grads;
  backward(toy::dot(h, ones_), grads);
  EXPECT_EQ(grads[w_].to_vector(), std::vector<float>(16, 2));
}

TEST_F(Dropping, ResultsBehindAndBeforeOneThatMoves) {
  Tensor<float> kept[3];
  expect_flat([&](int i) { kept[i % 3] = forward(); });
  EXPECT_EQ(Tape::current().size(), 9U);
}

TEST_F(Dropping, StateCarriedOnDetached) {
  Tensor<float> h = filled({16}, 1);
  expect_flat([&](int) { h = toy::mul(h, w_).detach(); });
  EXPECT_EQ(Tape::current().size(), 0U);
}

TEST_F(Dropping, ResultsLeftByAnException) {
  const auto pass = [&] {
    try {
      const Tensor<float> y = toy::mul(w_, w_);
      toy::mul(y, toy::mul(y, filled({3}, 1)));
    } catch (const ShapeError&) {
    }
  };
  for (int i = 0; i < 10; ++i) pass();
  const Held before;
  for (int i = 0; i < many; ++i) pass();
  const Held after;
  EXPECT_EQ(after.records, 0U);
  EXPECT_EQ(after.slots, before.slots);
  EXPECT_EQ(after.tape_bytes, before.tape_bytes);
  EXPECT_EQ(after.pool.bytes_in_use, before.pool.bytes_in_use);
  EXPECT_EQ(after.pool.system_requests, before.pool.system_requests);
}

TEST_F(Dropping, ForgottenPassesAmongTrainingSteps) {
  GradStore grads;
  expect_flat([&](int i) {
    const Tensor<float> forgotten = forward();
    if (i % 3 == 0) return;
    backward(forward(), grads);
    grads.zero();
  });
}

TEST_F(Dropping, ValuesSavedByDeadRecordsGoAtOnce) {
  const std::size_t before = pool_stats().bytes_in_use;
  const Tensor<float> big = filled({1 << 20}, 1);
  Tensor<float> v = filled({1 << 20}, 2);
  v.requires_grad(true);
  {
    const Tensor<float> y = toy::mul(toy::mul(v, big), big);
    EXPECT_GE(pool_stats().bytes_in_use, before + (4U << 22))
        << "two saved inputs, an intermediate, a result";
  }
  EXPECT_LE(pool_stats().bytes_in_use, before + (2U << 22) + (1U << 17))
      << "only the two inputs are left, and a chunk of the tape's arena";
}

TEST_F(Dropping, TrainingStepsAskTheHeapForNothing) {
  GradStore grads;
  Tensor<float> v = filled({16}, 2);
  v.requires_grad(true);
  expect_flat([&](int) {
    const Tensor<float> y = toy::mul(toy::combine(forward(), 1.0F, forward(v), 0.5F), forward());
    backward(y, grads);
    for (Tensor<float>* p : {&w_, &v}) {
      const Tensor<float> g = grads[*p];
      float* at = p->mutable_data();
      for (Index i = 0; i < p->size(); ++i) at[i] -= 0.0F * g.data()[i];
    }
    grads.zero();
  });
}

TEST_F(Dropping, ValueAndGradAsksTheHeapForNothing) {
  expect_flat([&](int) {
    const auto [y, dw] = value_and_grad([&](const auto& w) { return toy::dot(toy::mul(w, w), ones_); }, w_);
    ASSERT_EQ(dw.data()[3], 2 * w_.data()[3]);
  });
}

TEST_F(Dropping, CounterCounts) {
  void* volatile p = nullptr;
  EXPECT_EQ(heap::requests_of([&] {
              p = ::operator new(100);
              ::operator delete(p);
            }),
            1U);
  EXPECT_EQ(heap::requests_of([&] {
              p = ::operator new (100, std::align_val_t{64});
              ::operator delete (p, std::align_val_t{64});
            }),
            1U);
#if defined(__GLIBC__) && !defined(HEAP_COUNTER_SANITIZED)
  EXPECT_EQ(heap::requests_of([&] {
              p = std::malloc(10);
              p = std::realloc(p, 2000);
              std::free(p);
              p = std::calloc(3, 3);
              std::free(p);
            }),
            3U);
#endif
}

}  // namespace
