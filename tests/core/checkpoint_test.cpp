// checkpoint: the gradients of the plain recording from a tape that keeps one record, the same random numbers
// when a part runs again, and what it refuses.
#include <gtest/gtest.h>

#include <wengert/wengert.hpp>

#include "support/errors.hpp"

using namespace wengert;

namespace {

class Checkpoint : public ::testing::Test {
 protected:
  void TearDown() override { Tape::current().clear(); }

  static Tensor<float> leaf(std::initializer_list<float> values) {
    Tensor<float> x({static_cast<Index>(values.size())}, values);
    x.requires_grad(true);
    return x;
  }

  Tensor<float> x_ = leaf({1, 2, -3}), w_ = leaf({2, -1, 4});
  GradStore grads_;
};

TEST_F(Checkpoint, GradientIsThatOfTheFunctionAndOneRecordIsKept) {
  const auto fourth = [](const auto& x) { return square(square(x)); };
  const Tensor<float> y = checkpoint(fourth, x_);
  EXPECT_EQ(Tape::current().size(), 1U);
  EXPECT_EQ(y.to_vector(), (std::vector<float>{1, 16, 81}));
  backward(sum(y), grads_);
  EXPECT_EQ(grads_[x_].to_vector(), (std::vector<float>{4, 32, -108}));  // 4 x^3
}

TEST_F(Checkpoint, ReachesSeveralArgumentsAndIndicesAreNone) {
  const Tensor<std::int64_t> rows({2}, std::vector<std::int64_t>{2, 0});
  const auto f = [](const auto& x, const auto& w, const auto& i) { return index_select(x * w, 0, i); };
  backward(sum(checkpoint(f, x_, w_, rows)), grads_);
  EXPECT_EQ(grads_[x_].to_vector(), (std::vector<float>{2, 0, 4}));   // w in the chosen rows
  EXPECT_EQ(grads_[w_].to_vector(), (std::vector<float>{1, 0, -3}));  // x in the chosen rows
}

TEST_F(Checkpoint, ReachesArgumentsThatWereRecordedAndLeavesThatAreCaptured) {
  const Tensor<float> twice = x_ * 2.0F;
  const auto f = [this](const auto& x) { return square(x) * w_; };
  backward(sum(checkpoint(f, twice)), grads_);
  EXPECT_EQ(grads_[x_].to_vector(), (std::vector<float>{16, -16, -96}));  // 8 x w
  EXPECT_EQ(grads_[w_].to_vector(), (std::vector<float>{4, 16, 36}));     // (2 x)^2
}

TEST_F(Checkpoint, WorksInsideItself) {
  const auto inner = [](const auto& x) { return square(x); };
  const auto outer = [inner](const auto& x) { return checkpoint(inner, square(x)); };
  backward(sum(checkpoint(outer, x_)), grads_);
  EXPECT_EQ(grads_[x_].to_vector(), (std::vector<float>{4, 32, -108}));
}

TEST_F(Checkpoint, DrawsTheSameNumbersAgainAndLeavesTheGeneratorWhereItWas) {
  Generator gen(7), twin(7);
  Tensor<float> x({64});
  x.fill(1).requires_grad(true);
  const Tensor<float> y = checkpoint([&gen](const auto& v) { return dropout(v, 0.5, gen); }, x);
  const std::vector<float> kept = y.to_vector();  // 0 or 2
  backward(sum(y), grads_);
  EXPECT_EQ(grads_[x].to_vector(), kept);
  dropout(x.detach(), 0.5, twin);
  EXPECT_EQ(normal({8}, gen).to_vector(), normal({8}, twin).to_vector());
}

TEST_F(Checkpoint, RecordsNothingUnderNoGradAndWithoutLeaves) {
  const auto f = [](const auto& x) { return square(x); };
  EXPECT_FALSE(no_grad([&] { return checkpoint(f, x_); }).requires_grad());
  EXPECT_FALSE(checkpoint(f, x_.detach()).requires_grad());
  EXPECT_EQ(Tape::current().size(), 0U);
}

TEST_F(Checkpoint, RefusesARecordedTensorThatIsNoArgument) {
  const Tensor<float> outside = x_ * 2.0F;
  EXPECT_EQ(
      message_of<TapeError>([&] { checkpoint([&](const auto& v) { return v * outside; }, w_); }),
      "checkpoint: operand 2 of mul was recorded outside; expected it among the arguments of checkpoint, "
      "or its detach()");
}

TEST_F(Checkpoint, RefusesAFunctionThatReturnsAnotherShapeTheSecondTime) {
  int runs = 0;
  const Tensor<float> y =
      checkpoint([&runs](const auto& v) { return runs++ == 0 ? square(v) : sum(v, 0, true); }, x_);
  EXPECT_EQ(message_of<ShapeError>([&] { backward(sum(y), grads_); }),
            "checkpoint: f returned another shape when it was run again; first (3), then (1); expected a "
            "function of its arguments alone");
}

TEST_F(Checkpoint, RefusesAnArgumentThatWasWrittenSince) {
  Tensor<float> c({3}, {1.0F, 1.0F, 1.0F});
  const Tensor<float> loss = sum(checkpoint([](const auto& a, const auto& b) { return a * b; }, x_, c));
  c.fill(5);
  EXPECT_EQ(
      message_of<TapeError>([&] { backward(loss, grads_); }),
      "backward: a tensor that checkpoint saved was written in place since; shape is (3), version is 1; "
      "expected version 0; write to a clone, or after backward");
}

}  // namespace
