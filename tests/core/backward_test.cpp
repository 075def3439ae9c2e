// Backward over steps as programs take them: several losses, micro-batches, retained tapes, leaves and shapes
// that change, intermediates on request, nested tapes.
#include <gtest/gtest.h>

#include "support/errors.hpp"
#include "support/toy.hpp"

using namespace wengert;
using Floats = std::vector<float>;

namespace {

Tensor<float> tensor(std::initializer_list<float> values) {
  return Tensor<float>({static_cast<Index>(values.size())}, values);
}
Tensor<float> leaf(std::initializer_list<float> values) { return tensor(values).requires_grad(true); }
Tensor<float> ones(Index n) {
  Tensor<float> x({n});
  x.fill(1);
  return x;
}
Tensor<float> sum(const Tensor<float>& x) { return toy::dot(x, ones(x.size())); }

TEST(Backward, ClearsTheTapeUnlessRetained) {
  const Tensor<float> x = leaf({1, 2});
  GradStore grads;
  const Tensor<float> loss = sum(toy::mul(x, x));
  EXPECT_EQ(Tape::current().size(), 2U);
  backward(loss, grads, {.retain = true});
  EXPECT_EQ(Tape::current().size(), 2U);
  EXPECT_EQ(grads[x].to_vector(), (Floats{2, 4}));
  backward(loss, grads, {.retain = true});
  EXPECT_EQ(grads[x].to_vector(), (Floats{4, 8}));
  grads.zero();
  backward(loss, grads);
  EXPECT_EQ(grads[x].to_vector(), (Floats{2, 4}));
  EXPECT_TRUE(Tape::current().empty());
}

TEST(Backward, LeavesTheSeedAsItWas) {
  const Tensor<float> x = leaf({1, 2}), dy = tensor({3, 5});
  GradStore grads;
  backward(toy::scale(toy::scale(x, 2.0F), 10.0F), dy, grads);
  EXPECT_EQ(grads[x].to_vector(), (Floats{60, 100}));
  EXPECT_EQ(dy.to_vector(), (Floats{3, 5}));
}

TEST(Backward, TakesAGradientOfTheStoreAsItsSeed) {
  const Tensor<float> x = leaf({1, 2});
  GradStore grads;
  backward(sum(toy::mul(x, x)), grads);
  backward(toy::mul(x, x), grads[x], grads);  // 2x + 2x * 2x
  EXPECT_EQ(grads[x].to_vector(), (Floats{6, 20}));
}

TEST(Backward, TwoLossesOverASharedTrunk) {
  const Tensor<float> x = leaf({1, 2});
  GradStore grads;
  const Tensor<float> h = toy::mul(x, x);
  const Tensor<float> first = sum(toy::scale(h, 3.0F)), second = sum(toy::mul(h, h));
  backward(first, grads, {.retain = true});
  EXPECT_EQ(grads[x].to_vector(), (Floats{6, 12})) << "records behind the root play no part";
  backward(second, grads);
  EXPECT_EQ(grads[x].to_vector(), (Floats{6 + 4, 12 + 32}));
}

TEST(Backward, LossesOfSeveralForwardsInTurn) {
  const Tensor<float> x = leaf({1, 2});
  GradStore grads;
  const Tensor<float> a = sum(toy::scale(x, 2.0F)), b = sum(toy::scale(x, 5.0F));
  backward(b, grads, {.retain = true});
  backward(a, grads);
  EXPECT_EQ(grads[x].to_vector(), (Floats{7, 7}));
  EXPECT_EQ(message_of<TapeError>([&] { backward(b, grads); }).substr(0, 52),
            "backward: the tape of this tensor has been consumed;");
}

TEST(Backward, MicroBatchesAddUp) {
  const Tensor<float> w = leaf({2, 3});
  GradStore whole, parts;
  const Tensor<float> c[] = {tensor({1, 5}), tensor({7, 2}), tensor({4, 4})};
  backward(toy::combine(toy::combine(toy::dot(w, c[0]), 1.0F, toy::dot(w, c[1]), 1.0F), 1.0F,
                        toy::dot(w, c[2]), 1.0F),
           whole);
  for (const Tensor<float>& batch : c) backward(toy::dot(w, batch), parts);
  EXPECT_EQ(parts[w].to_vector(), (Floats{12, 11}));
  EXPECT_EQ(whole[w].to_vector(), parts[w].to_vector());
}

TEST(Backward, LeafIsALoss) {
  Tensor<float> x = leaf({3});
  GradStore grads;
  backward(x, grads);
  backward(x, tensor({4}), grads);
  EXPECT_EQ(grads[x].to_vector(), (Floats{5}));
}

TEST(Backward, LeafSeenForTheFirstTimeLater) {
  const Tensor<float> a = leaf({1, 2}), b = leaf({3, 4, 5});
  GradStore grads;
  backward(sum(toy::scale(a, 2.0F)), grads);
  EXPECT_FALSE(grads.find(b));
  EXPECT_EQ(grads.size(), 1U);
  backward(sum(toy::scale(b, 7.0F)), grads);
  EXPECT_EQ(grads.size(), 2U);
  EXPECT_EQ(grads[a].to_vector(), (Floats{2, 2})) << "kept while the store grew";
  EXPECT_EQ(grads[b].to_vector(), (Floats{7, 7, 7}));
}

TEST(Backward, LastShortBatchAndChangedGraphs) {
  const Tensor<float> w = leaf({2});
  GradStore grads;
  for (const Index n : {8, 8, 3, 8, 0, 1}) {
    grads.zero();
    Tensor<float> loss = toy::scale(sum(ones(n)), 1.0F);  // a constant
    for (Index i = 0; i < n; ++i) loss = toy::combine(loss, 1.0F, toy::mul(sum(w), sum(w)), 1.0F);
    if (n == 0) {
      EXPECT_FALSE(loss.requires_grad());
      continue;
    }
    backward(loss, grads);
    EXPECT_EQ(grads[w].to_vector(), (Floats{static_cast<float>(4 * n)}));
  }
}

TEST(Backward, OnlyWhatTheLossReachesIsFound) {
  const Tensor<float> used = leaf({1}), recorded = leaf({2}), untouched = leaf({3});
  GradStore grads;
  const Tensor<float> aside = toy::scale(recorded, 2.0F);
  backward(sum(toy::scale(used, 2.0F)), grads);
  EXPECT_TRUE(grads.find(used));
  EXPECT_FALSE(grads.find(recorded)) << "recorded, but the loss does not depend on it";
  EXPECT_FALSE(grads.find(untouched));
  EXPECT_EQ(grads[recorded].to_vector(), (Floats{0}));
  EXPECT_FALSE(grads.find(recorded)) << "reading zeros does not count as being reached";
}

TEST(Backward, IntermediatesOnRequest) {
  const Tensor<float> x = leaf({1, 2});
  GradStore grads;
  for (int step = 0; step < 3; ++step) {
    Tensor<float> h = toy::mul(x, x);
    h.retain_grad();
    const Tensor<float> loss = sum(toy::scale(toy::combine(h, 1.0F, h, 2.0F), 5.0F));
    backward(loss, grads);
    EXPECT_EQ(grads[h].to_vector(), (Floats{15, 15}));
    EXPECT_EQ(grads[x].to_vector(), (Floats{30, 60}));
    EXPECT_EQ(grads.flat<float>().size(), 16U) << "intermediates stay out of the flat array";
    grads.zero();
  }
  EXPECT_LE(grads.size(), 3U) << "the slots of intermediates that are gone serve the next";
  const Tensor<float> plain = toy::mul(x, x);
  EXPECT_EQ(message_of<ValueError>([&] { grads[plain]; }),
            "grads: the tensor keeps no gradient; shape is (2); expected a leaf (requires_grad(true)) or "
            "retain_grad() before backward");
}

TEST(Backward, RootKeepsItsOwnGradient) {
  const Tensor<float> x = leaf({1, 2});
  GradStore grads;
  Tensor<float> y = toy::scale(x, 2.0F);
  y.retain_grad();
  backward(y, tensor({3, 4}), grads);
  EXPECT_EQ(grads[y].to_vector(), (Floats{3, 4})) << "also where dx takes over the memory of dy";
  EXPECT_EQ(grads[x].to_vector(), (Floats{6, 8}));
}

TEST(Backward, SeedMayBeAStridedView) {
  const Tensor<float> x = leaf({1, 2, 3});
  const Tensor<float> memory = tensor({1, 9, 2, 9, 3, 9});
  GradStore grads;
  backward(toy::scale(x, 2.0F), Tensor<float>(memory.buffer(), {3}, {2}, 0), grads);
  EXPECT_EQ(grads[x].to_vector(), (Floats{2, 4, 6}));
  EXPECT_EQ(memory.to_vector(), (Floats{1, 9, 2, 9, 3, 9})) << "the seed is left alone";
}

TEST(Backward, RankZeroAndEmptyTensors) {
  Tensor<float> s(Shape(), {3.0F});
  s.requires_grad(true);
  GradStore grads;
  backward(toy::mul(s, s), grads);
  EXPECT_EQ(grads[s].item(), 6.0F);
  Tensor<float> empty({0, 3});
  empty.requires_grad(true);
  backward(toy::scale(empty, 2.0F), Tensor<float>({0, 3}), grads);
  ASSERT_TRUE(grads.find(empty));
  EXPECT_EQ(grads[empty].shape(), (Shape{0, 3}));
  backward(toy::combine(toy::mul(s, s), 1.0F, toy::dot(empty, Tensor<float>({0, 3})), 1.0F), grads);
  EXPECT_EQ(grads[s].item(), 12.0F);
}

TEST(NoGradScope, RecordsNothingAndNests) {
  const Tensor<float> x = leaf({1});
  EXPECT_TRUE(grad_enabled());
  {
    const NoGrad off;
    EXPECT_FALSE(grad_enabled());
    EXPECT_FALSE(toy::scale(x, 2.0F).requires_grad());
    {
      const EnableGrad on;
      EXPECT_TRUE(toy::scale(x, 2.0F).requires_grad());
    }
    EXPECT_FALSE(grad_enabled());
  }
  EXPECT_THROW(no_grad([] { throw ValueError("inside"); }), ValueError);
  EXPECT_TRUE(grad_enabled());
  EXPECT_FALSE(toy::scale(x.detach(), 2.0F).requires_grad());
  EXPECT_TRUE(Tape::current().empty());
}

TEST(ValueAndGrad, GivesGradientsWithoutAStore) {
  const Tensor<float> x = tensor({1, 2}), w = leaf({3, 4});
  const auto [y, dx, dw] =
      value_and_grad([](const auto& a, const auto& b) { return sum(toy::mul(toy::mul(a, b), a)); }, x, w);
  EXPECT_EQ(y.item(), 3 + 16);
  EXPECT_EQ(dx.to_vector(), (Floats{6, 16}));
  EXPECT_EQ(dw.to_vector(), (Floats{1, 4}));
  EXPECT_FALSE(y.requires_grad());
  EXPECT_TRUE(Tape::current().empty());
}

TEST(ValueAndGrad, WorksInsideARecordingAndInsideItself) {
  const Tensor<float> x = leaf({2});
  const Tensor<float> outer = toy::scale(x, 3.0F);
  const auto [y, d] = value_and_grad(
      [](const auto& v) {
        const auto [inner, slope] =
            value_and_grad([](const auto& u) { return toy::mul(toy::mul(u, u), u); }, v.detach());
        return toy::mul(v, slope);  // the slope counts as a constant
      },
      x);
  EXPECT_EQ(y.item(), 2 * 12);
  EXPECT_EQ(d.item(), 12);
  GradStore grads;
  backward(outer, grads);
  EXPECT_EQ(grads[x].item(), 3) << "the outer tape went on";
}

TEST(ValueAndGrad, UnwindsOnExceptionsAndUnreachedArguments) {
  const Tensor<float> x = leaf({2}), unused = leaf({1, 1});
  EXPECT_THROW(value_and_grad(
                   [](const auto& v) {
                     const Tensor<float> kept = toy::mul(v, v);
                     throw ValueError("inside");
                     return kept;
                   },
                   x),
               ValueError);
  const auto [y, dx, du] =
      value_and_grad([](const auto& v, const auto&) { return toy::mul(v, v); }, x, unused);
  EXPECT_EQ(dx.item(), 4);
  EXPECT_EQ(du.to_vector(), (Floats{0, 0}));
  const auto [c, dc] = value_and_grad([](const auto&) { return tensor({7}); }, x);
  EXPECT_EQ(c.item(), 7);
  EXPECT_EQ(dc.item(), 0);
}

TEST(NestedTapes, EndWithTheirScope) {
  const Tensor<float> x = leaf({2});
  const Tensor<float> outer = toy::scale(x, 3.0F);
  Tensor<float> inner;
  {
    const NestedTape nested;
    inner = toy::scale(x, 5.0F);
    EXPECT_EQ(nested.tape().size(), 1U);
    EXPECT_EQ(&Tape::current(), &nested.tape());
  }
  EXPECT_EQ(Tape::current().size(), 1U);
  EXPECT_EQ(
      message_of<TapeError>([&] { toy::scale(inner, 1.0F); }),
      "toy_scale: x was recorded by another thread or on a tape that has ended; expected a tensor of this "
      "thread's tape; pass its detach()");
  EXPECT_EQ(inner.item(), 10.0F);
  GradStore grads;
  backward(outer, grads);
  EXPECT_EQ(grads[x].item(), 3.0F);
}

}  // namespace
