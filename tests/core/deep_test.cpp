// Long and bushy graphs: no recursion anywhere, and one visit a record.
#include <pthread.h>

#include <gtest/gtest.h>

#include "support/toy.hpp"

using namespace wengert;

namespace {

/// Runs `f` on a thread whose stack has 256 KiB, which no recursion over a million records fits.
template <class F>
void on_small_stack(F f) {
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, 256 << 10), 0);
  pthread_t thread;
  const auto run = [](void* body) -> void* {
    (*static_cast<F*>(body))();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, run, &f), 0);
  ASSERT_EQ(pthread_join(thread, nullptr), 0);
  pthread_attr_destroy(&attributes);
}

constexpr int million = 1'000'000;

Tensor<float> scalar(float value) {
  Tensor<float> x((Shape()));
  x.fill(value);
  return x;
}

TEST(DeepGraphs, MillionOperatorsForwardAndDropped) {
  on_small_stack([] {
    Tensor<float> x = scalar(1);
    x.requires_grad(true);
    const Tensor<float> c = scalar(1);
    const std::size_t in_use = pool_stats().bytes_in_use;
    Tensor<float> y = x;
    for (int i = 0; i < million; ++i) y = toy::mul(y, c);  // saves each intermediate
    EXPECT_EQ(Tape::current().size(), static_cast<std::size_t>(million));
    EXPECT_EQ(y.item(), 1.0F);
    y = Tensor<float>();
    EXPECT_EQ(Tape::current().size(), 0U);
    EXPECT_LE(pool_stats().bytes_in_use, in_use + Tape::current().bytes()) << "only the tape keeps capacity";
  });
}

TEST(DeepGraphs, MillionOperatorsForwardAndBackward) {
  on_small_stack([] {
    Tensor<float> x = scalar(2);
    x.requires_grad(true);
    const Tensor<float> c = scalar(1);
    GradStore grads;
    Tensor<float> y = x;
    for (int i = 0; i < million; ++i) y = i % 2 == 0 ? toy::scale(y, 1.0F) : toy::mul(y, c);
    backward(y, grads);
    EXPECT_EQ(grads[x].item(), 1.0F);
    EXPECT_EQ(Tape::current().size(), 0U);
  });
}

TEST(DeepGraphs, MillionOperatorsClearedWithTheirTape) {
  on_small_stack([] {
    Tensor<float> x = scalar(2);
    x.requires_grad(true);
    const NestedTape nested;
    Tensor<float> y = x;
    for (int i = 0; i < million; ++i) y = toy::mul(y, y);
    EXPECT_EQ(nested.tape().size(), static_cast<std::size_t>(million));
  });
}

/// y = 0.5 (a + b) that counts how often backward visits it.
struct CountedMeanRule {
  static constexpr std::string_view name = "counted_mean";
  int* visits;
  void backward(Vjp& v) {
    ++*visits;
    const float dy = *v.dy<float>();
    for (const int i : {0, 1}) {
      const GradRef<float> dx = v.into<float>(i);
      *dx.data = dx.add ? *dx.data + 0.5F * dy : 0.5F * dy;
    }
  }
};
Tensor<float> counted_mean(const Tensor<float>& a, const Tensor<float>& b, int& visits) {
  const Recorder rec("counted_mean", a, b);
  Tensor<float> y = scalar(0.5F * (a.item() + b.item()));
  if (rec) rec.record(y, CountedMeanRule{&visits});
  return y;
}

TEST(DeepGraphs, TwoPathsAtEachOfAThousandLevelsAreWalkedOnce) {
  Tensor<float> x = scalar(3);
  x.requires_grad(true);
  int visits = 0;
  Tensor<float> y = x;
  for (int i = 0; i < 1000; ++i) y = counted_mean(y, y, visits);
  EXPECT_EQ(Tape::current().size(), 1000U);
  GradStore grads;
  backward(y, grads);
  EXPECT_EQ(grads[x].item(), 1.0F) << "exactly";
  EXPECT_EQ(visits, 1000) << "2^1000 paths, 1000 records";
}

TEST(DeepGraphs, OneTensorWithAHundredThousandConsumers) {
  Tensor<float> x = scalar(3);
  x.requires_grad(true);
  const Tensor<float> h = toy::scale(x, 2.0F);
  Tensor<float> sum = scalar(0);
  for (int i = 0; i < 100'000; ++i) sum = toy::combine(sum, 1.0F, h, 1.0F);
  GradStore grads;
  backward(sum, grads);
  EXPECT_EQ(grads[x].item(), 200'000.0F);
}

}  // namespace
