// GradStore: layout, epochs, found against zero, row-sparse slots, slots that change hands, lifetimes.
#include <gtest/gtest.h>

#include "support/errors.hpp"
#include "support/toy.hpp"

using namespace wengert;
using Floats = std::vector<float>;

namespace {

Tensor<float> leaf(const Shape& shape, float value = 1) {
  Tensor<float> x(shape);
  x.fill(value).requires_grad(true);
  return x;
}
Tensor<float> constant(const Shape& shape, float value) { return leaf(shape, value).detach(); }
/// Adds `value` to every element of x's gradient.
void contribute(const Tensor<float>& x, float value, GradStore& grads) {
  backward(toy::dot(x, constant(x.shape(), value)), grads);
}

TEST(GradStore, LaysParametersOutInTheirOrder) {
  const std::vector<Tensor<float>> p = {leaf({3}), leaf({20}), leaf({2, 2})};
  GradStore grads(p);
  EXPECT_EQ(grads.size(), 3U);
  contribute(p[2], 3, grads);
  contribute(p[0], 1, grads);
  contribute(p[1], 2, grads);
  const std::span<float> flat = grads.flat<float>();
  Floats expected;  // slots start on cache lines of 16 floats
  for (const auto& [n, slot, value] : {std::tuple{3, 16, 1.0F}, {20, 32, 2.0F}, {4, 16, 3.0F}})
    for (int i = 0; i < slot; ++i) expected.push_back(i < n ? value : 0);
  EXPECT_EQ(Floats(flat.begin(), flat.end()), expected);
  EXPECT_EQ(grads.bytes(), expected.size() * sizeof(float));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(flat.data()) % 64, 0U);
  EXPECT_EQ(grads[p[1]].data(), flat.data() + 16);
  EXPECT_EQ(grads[p[2]].shape(), (Shape{2, 2}));
}

TEST(GradStore, ZeroKeepsTheMemoryAndTouchesNoneOfIt) {
  const Tensor<float> x = leaf({4});
  GradStore grads;
  contribute(x, 5, grads);
  const Tensor<float> view = grads[x];
  const float* memory = view.data();
  grads.zero();
  EXPECT_EQ(view.to_vector(), Floats(4, 5)) << "untouched";
  EXPECT_FALSE(grads.find(x));
  contribute(x, 2, grads);
  EXPECT_EQ(grads[x].data(), memory);
  EXPECT_EQ(grads[x].to_vector(), Floats(4, 2)) << "the first contribution stores";
  contribute(x, 2, grads);
  EXPECT_EQ(grads[x].to_vector(), Floats(4, 4)) << "later ones add";
}

TEST(GradStore, StoresOverWhatIsNotANumber) {
  const Tensor<float> x = leaf({4});
  GradStore grads;
  contribute(x, std::numeric_limits<float>::quiet_NaN(), grads);
  grads.zero();
  contribute(x, 1, grads);
  EXPECT_EQ(grads[x].to_vector(), Floats(4, 1)) << "0 * NaN never happened";
}

TEST(GradStore, TellsZeroFromUnreached) {
  const Tensor<float> x = leaf({2}), y = leaf({2}), c = constant({2}, 1);
  GradStore grads;
  contribute(x, 0, grads);
  ASSERT_TRUE(grads.find(x));
  EXPECT_EQ(grads.find(x)->to_vector(), (Floats{0, 0}));
  EXPECT_FALSE(grads.find(y));
  EXPECT_FALSE(grads.find(c));
  EXPECT_EQ(grads[y].to_vector(), (Floats{0, 0}));
  grads.zero();
  EXPECT_EQ(grads[x].to_vector(), (Floats{0, 0})) << "stale is zero";
  EXPECT_EQ(message_of<ValueError>([&] { grads[c]; }),
            "grads: the tensor keeps no gradient; shape is (2); expected a leaf (requires_grad(true)) or "
            "retain_grad() before backward");
  EXPECT_EQ(message_of<ValueError>([&] {
              GradStore bad(std::vector<Tensor<float>>{x, c});
            }),
            "grads: a tensor keeps no gradient; expected a leaf (requires_grad(true))");
}

TEST(GradStore, ReadingZerosDoesNotLoseALaterContribution) {
  const Tensor<float> x = leaf({2});
  GradStore grads;
  contribute(x, 9, grads);
  grads.zero();
  EXPECT_EQ(grads[x].to_vector(), (Floats{0, 0}));
  contribute(x, 3, grads);
  contribute(x, 3, grads);
  EXPECT_EQ(grads[x].to_vector(), (Floats{6, 6}));
}

TEST(GradStore, FlatHoldsOneElementType) {
  Tensor<double> d({2}, {1.0, 2.0});
  d.requires_grad(true);
  const Tensor<float> f = leaf({2});
  GradStore grads;
  contribute(f, 1, grads);
  EXPECT_EQ(grads.flat<float>().size(), 16U);
  backward(toy::dot(d, d.detach()), grads);
  EXPECT_EQ(grads[d].to_vector(), (std::vector<double>{1, 2}));
  EXPECT_EQ(grads[f].to_vector(), (Floats{1, 1}));
  EXPECT_EQ(message_of<ValueError>([&] { grads.flat<float>(); }),
            "flat: the store holds gradients of several element types; asked for float32; expected one type");
}

TEST(GradStore, FlatZeroesStaleSlots) {
  const std::vector<Tensor<float>> p = {leaf({2}), leaf({2})};
  GradStore grads(p);
  contribute(p[0], 1, grads);
  contribute(p[1], 1, grads);
  grads.zero();
  contribute(p[1], 4, grads);
  const std::span<float> flat = grads.flat<float>();
  EXPECT_EQ(Floats(flat.begin(), flat.begin() + 2), (Floats{0, 0}));
  EXPECT_EQ(Floats(flat.begin() + 16, flat.begin() + 18), (Floats{4, 4}));
  EXPECT_FALSE(grads.find(p[0]));
}

TEST(GradStore, RowsAreZeroWhereNothingWasAddedStepAfterStep) {
  const Tensor<float> table = leaf({5, 2});
  GradStore grads;
  const auto look_up = [&](std::initializer_list<Index> which) {
    const Tensor<Index> rows({static_cast<Index>(which.size())}, which);
    const Tensor<float> y = toy::rows(table, rows);
    backward(toy::dot(y, constant(y.shape(), 1)), grads);
  };
  look_up({1, 3, 1});
  EXPECT_EQ(grads[table].to_vector(), (Floats{0, 0, 2, 2, 0, 0, 1, 1, 0, 0}));
  look_up({3});
  EXPECT_EQ(grads[table].to_vector(), (Floats{0, 0, 2, 2, 0, 0, 2, 2, 0, 0})) << "a second batch adds";
  grads.zero();
  look_up({0});
  EXPECT_EQ(grads[table].to_vector(), (Floats{1, 1, 0, 0, 0, 0, 0, 0, 0, 0})) << "rows 1 and 3 are clean";
  grads.zero();
  EXPECT_EQ(grads[table].to_vector(), Floats(10, 0));
  look_up({2});
  EXPECT_EQ(grads[table].to_vector(), (Floats{0, 0, 0, 0, 1, 1, 0, 0, 0, 0}));
  grads.zero();
  grads.zero();
  look_up({4, 4, 4, 4, 4, 4, 4, 4});  // more rows than the table has: as good as dense
  EXPECT_EQ(grads[table].to_vector(), (Floats{0, 0, 0, 0, 0, 0, 0, 0, 8, 8}));
  grads.zero();
  look_up({1});
  EXPECT_EQ(grads[table].to_vector(), (Floats{0, 0, 1, 1, 0, 0, 0, 0, 0, 0}));
}

TEST(GradStore, RowsAndDenseContributionsMix) {
  const Tensor<float> table = leaf({3, 2});
  const Tensor<Index> row({1}, {Index{1}});
  const auto sparse = [&] { return toy::dot(toy::rows(table, row), constant({1, 2}, 1)); };
  const auto dense = [&] { return toy::dot(table, constant({3, 2}, 10)); };
  GradStore grads;
  const Floats both = {10, 10, 11, 11, 10, 10};
  backward(toy::combine(sparse(), 1.0F, dense(), 1.0F), grads);
  EXPECT_EQ(grads[table].to_vector(), both);
  grads.zero();
  backward(toy::combine(dense(), 1.0F, sparse(), 1.0F), grads);
  EXPECT_EQ(grads[table].to_vector(), both);
  grads.zero();
  backward(sparse(), grads);
  EXPECT_EQ(grads[table].to_vector(), (Floats{0, 0, 1, 1, 0, 0})) << "after a dense step all rows are stale";
  backward(dense(), grads);
  EXPECT_EQ(grads[table].to_vector(), both);
  grads.zero();
  backward(sparse(), grads);
  EXPECT_EQ(grads[table].to_vector(), (Floats{0, 0, 1, 1, 0, 0}));
}

TEST(GradStore, RowsOfAnIntermediate) {
  const Tensor<float> table = leaf({3, 2});
  const Tensor<Index> row({2}, {Index{1}, Index{1}});
  GradStore grads;
  backward(toy::dot(toy::rows(toy::scale(table, 3.0F), row), constant({2, 2}, 1)), grads);
  EXPECT_EQ(grads[table].to_vector(), (Floats{0, 0, 6, 6, 0, 0}));
}

TEST(GradStore, SlotsOfLeavesThatAreGoneServeTheNext) {
  const Tensor<float> w = leaf({8});
  GradStore grads(std::vector<Tensor<float>>{w});
  for (int step = 0; step < 50; ++step) {
    const Tensor<float> x = leaf({8}, static_cast<float>(step));  // an input that asks, new in every step
    backward(toy::dot(toy::mul(x, w), constant({8}, 1)), grads);
    EXPECT_EQ(grads[x].to_vector(), Floats(8, 1));
    EXPECT_EQ(grads[w].to_vector(), Floats(8, static_cast<float>(step)));
    grads.zero();
  }
  EXPECT_LE(grads.size(), 3U);
}

TEST(GradStore, ANewLeafNeverInheritsAGradient) {
  GradStore grads;
  {
    const Tensor<float> old = leaf({4});
    contribute(old, 7, grads);
  }
  const Tensor<float> x = leaf({4});
  EXPECT_FALSE(grads.find(x));
  EXPECT_EQ(grads[x].to_vector(), Floats(4, 0));
}

TEST(GradStore, GradientsOutliveTheStoreAndItsTensors) {
  Tensor<float> kept;
  {
    GradStore grads;
    const Tensor<float> x = leaf({2});
    contribute(x, 3, grads);
    kept = grads[x];
  }
  EXPECT_EQ(kept.to_vector(), (Floats{3, 3}));
}

TEST(GradStore, GrowsWithoutMovingWhatItSaid) {
  std::vector<Tensor<float>> p;
  GradStore grads;
  for (int i = 0; i < 40; ++i) {
    p.push_back(leaf({17}));
    contribute(p.back(), static_cast<float>(i), grads);
  }
  for (int i = 0; i < 40; ++i) {
    const auto at = static_cast<std::size_t>(i);
    EXPECT_EQ(grads[p[at]].to_vector(), Floats(17, static_cast<float>(i)));
  }
}

TEST(GradStore, TwoStoresKeepTwoSums) {
  const Tensor<float> x = leaf({2});
  GradStore a, b;
  contribute(x, 1, a);
  contribute(x, 10, b);
  contribute(x, 1, a);
  EXPECT_EQ(a[x].to_vector(), (Floats{2, 2}));
  EXPECT_EQ(b[x].to_vector(), (Floats{10, 10}));
}

TEST(GradStore, AnotherHandleOfALeafFindsItsGradient) {
  const Tensor<float> x = leaf({2});
  const Tensor<float> copy = x;
  GradStore grads;
  contribute(copy, 1, grads);
  EXPECT_EQ(grads[x].to_vector(), (Floats{1, 1}));
  EXPECT_FALSE(grads.find(x.detach()));
}

TEST(GradStore, ASwitchedOffLeafIsAConstantAndOnAgainIsNew) {
  Tensor<float> x = leaf({2});
  GradStore grads;
  contribute(x, 1, grads);
  x.requires_grad(false);
  EXPECT_FALSE(grads.find(x));
  EXPECT_FALSE(toy::scale(x, 1.0F).requires_grad());
  x.requires_grad(true);
  EXPECT_FALSE(grads.find(x));
  contribute(x, 2, grads);
  EXPECT_EQ(grads[x].to_vector(), (Floats{2, 2}));
}

}  // namespace
