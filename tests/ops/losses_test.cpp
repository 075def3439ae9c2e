// Losses beyond their rows: errors, target types, ignored rows, weights, threads.
#include <cmath>
#include <cstring>
#include <limits>

#include <gtest/gtest.h>

#include <wengert/core/backward.hpp>
#include <wengert/ops/losses.hpp>
#include <wengert/ops/softmax.hpp>

#include "support/errors.hpp"

namespace wg = wengert;
using wg::Index;
using wg::Reduction;
using wg::Shape;
using wg::Tensor;

namespace {

Tensor<float> waves(const Shape& shape) {
  Tensor<float> x(shape);
  for (Index i = 0; i < x.size(); ++i) x.fresh_data()[i] = 3 * std::sin(0.7f * static_cast<float>(i));
  return x;
}

TEST(CrossEntropyErrors, NameThePositionAndTheRange) {
  const Tensor<float> x = waves({3, 4});
  const Tensor<Index> low({3}, {0, -1, 2});
  const Tensor<std::uint8_t> high({3}, {0, 1, 4});
  EXPECT_EQ(message_of<wg::IndexError>([&] { cross_entropy(x, low); }),
            "cross_entropy: target -1 at position 1 is out of range; x is (3, 4), targets are (3); expected "
            "0..3, or ignore_index -100");
  EXPECT_EQ(message_of<wg::IndexError>([&] { cross_entropy(x, high, {.ignore_index = 255}); }),
            "cross_entropy: target 4 at position 2 is out of range; x is (3, 4), targets are (3); expected "
            "0..3, or ignore_index 255");
  EXPECT_EQ(
      message_of<wg::IndexError>([&] { nll_loss(x, low); }),
      "nll_loss: target -1 at position 1 is out of range; x is (3, 4), targets are (3); expected 0..3, or "
      "ignore_index -100");
}

TEST(CrossEntropyErrors, OptionsOutsideTheirDomain) {
  const Tensor<float> x = waves({3, 4});
  const Tensor<Index> t({3}, {0, 1, 2});
  EXPECT_EQ(message_of<wg::ValueError>([&] { cross_entropy(x, t, {.label_smoothing = 1.5}); }),
            "cross_entropy: label_smoothing is 1.5; expected 0..1");
  EXPECT_EQ(message_of<wg::ShapeError>([&] { cross_entropy(x, t, {.weight = waves({3})}); }),
            "cross_entropy: weight must hold one number a class; x is (3, 4), weight is (3); expected (4)");
  Tensor<float> w = waves({4});
  w.requires_grad(true);
  EXPECT_EQ(
      message_of<wg::ValueError>([&] { nll_loss(x, t, {.weight = w}); }),
      "nll_loss: weight asks for a gradient, which this operator does not give; weight is (4); expected a "
      "constant; pass its detach()");
  EXPECT_EQ(
      message_of<wg::ValueError>([&] { bce_with_logits(x, x, {.pos_weight = w}); }),
      "bce_with_logits: pos_weight asks for a gradient, which this operator does not give; pos_weight is "
      "(4); expected a constant; pass its detach()");
  EXPECT_EQ(message_of<wg::ShapeError>([&] {
              cross_entropy(x, waves({3, 5}));
            }),
            "cross_entropy: shapes differ; x is (3, 4), targets are (3, 5); expected equal shapes for "
            "probabilities, or integers of (3)");
}

TEST(CrossEntropyErrors, LeaveTheTapeAsItWas) {
  Tensor<float> x = waves({1, 2});
  x.requires_grad(true);
  const Tensor<float> y = softmax(x, 1);
  EXPECT_THROW(cross_entropy(y, Tensor<Index>({1}, {2})), wg::IndexError);
  wg::GradStore grads;
  backward(cross_entropy(y, Tensor<Index>({1}, {1})), grads);
  EXPECT_NE(grads[x].at(0, 0), 0);
}

TEST(CrossEntropy, TargetsOfAnyIntegerType) {
  const Tensor<float> x = waves({3, 4});
  const float expected = cross_entropy(x, Tensor<Index>({3}, {0, 3, 1})).item();
  EXPECT_EQ(cross_entropy(x, Tensor<std::int32_t>({3}, {0, 3, 1})).item(), expected);
  EXPECT_EQ(cross_entropy(x, Tensor<std::uint8_t>({3}, {0, 3, 1})).item(), expected);
  EXPECT_EQ(cross_entropy(x, Tensor<std::int8_t>({3}, {0, 3, 1})).item(), expected);
}

TEST(CrossEntropy, OneRowWithoutABatchAxis) {
  const Tensor<double> x({3}, {0, 0, 0});
  EXPECT_DOUBLE_EQ(cross_entropy(x, Tensor<Index>(Shape(), {1})).item(), std::log(3.0));
}

TEST(CrossEntropy, MeanOverNothingIsZero) {
  Tensor<float> x = waves({2, 3});
  x.fresh_data()[0] = NAN;  // in a row that counts for nothing
  x.requires_grad(true);
  wg::GradStore grads;
  const Tensor<float> y = cross_entropy(x, Tensor<Index>({2}, {-100, -100}), {.label_smoothing = 0.2});
  EXPECT_EQ(y.item(), 0);
  backward(y, grads);
  EXPECT_EQ(grads[x].to_vector(), std::vector<float>(6, 0.0f));
  EXPECT_EQ(cross_entropy(Tensor<float>({0, 3}), Tensor<Index>(Shape{0})).item(), 0);
  EXPECT_EQ(cross_entropy(Tensor<float>({2, 0}), Tensor<Index>({2}, {-100, -100})).item(), 0);
}

TEST(CrossEntropy, ARowOfMinusInfinityTouchesNoOther) {
  const float inf = std::numeric_limits<float>::infinity();
  Tensor<float> x({2, 2}, {-inf, -inf, 0, 0});
  x.requires_grad(true);
  wg::GradStore grads;
  const Tensor<float> y = cross_entropy(x, Tensor<Index>({2}, {0, 1}));
  EXPECT_EQ(y.item(), inf);
  backward(y, grads);
  EXPECT_EQ(grads[x].to_vector(), (std::vector<float>{0, 0, 0.25f, -0.25f}));
}

TEST(CrossEntropy, ProbabilitiesOfOneClassAgreeWithTheClass) {
  Tensor<double> x({2, 3}, {1, -2, 0.5, 3, 3, -1}), z = x.packed_copy();
  x.requires_grad(true);
  z.requires_grad(true);
  const Tensor<double> w({3}, {1, 2, 4}), onehot({2, 3}, {0, 0, 1, 1, 0, 0});
  wg::GradStore grads;
  const auto a = cross_entropy(x, Tensor<Index>({2}, {2, 0}),
                               {.weight = w, .label_smoothing = 0.1, .reduction = Reduction::none});
  const auto b =
      cross_entropy(z, onehot, {.weight = w, .label_smoothing = 0.1, .reduction = Reduction::none});
  for (Index r = 0; r < 2; ++r) EXPECT_NEAR(a.at(r), b.at(r), 1e-13);
  const Tensor<double> dy({2}, {1, 3});
  backward(a, dy, grads, {.retain = true});
  backward(b, dy, grads);
  for (Index k = 0; k < 6; ++k) EXPECT_NEAR(grads[x].data()[k], grads[z].data()[k], 1e-13);
}

TEST(CrossEntropy, ImpossibleClassesOfSoftTargetsCostNothing) {
  const double inf = std::numeric_limits<double>::infinity();
  Tensor<double> x({1, 3}, {0, 0, -inf});
  x.requires_grad(true);
  const Tensor<double> t({1, 3}, {0.5, 0.5, 0});
  wg::GradStore grads;
  const Tensor<double> y = cross_entropy(x, t);
  EXPECT_DOUBLE_EQ(y.item(), std::log(2.0));
  backward(y, grads);
  EXPECT_EQ(grads[x].to_vector(), std::vector<double>(3, 0.0));
}

TEST(NllLoss, OfLogSoftmaxIsCrossEntropy) {
  Tensor<float> x = waves({5, 7}), z = waves({5, 7});
  x.requires_grad(true);
  z.requires_grad(true);
  const Tensor<Index> t({5}, {0, -100, 6, 3, 3});
  wg::GradStore grads;
  const Tensor<float> a = cross_entropy(x, t), b = nll_loss(log_softmax(z, 1), t);
  EXPECT_NEAR(a.item(), b.item(), 1e-6f);
  backward(a, grads, {.retain = true});
  backward(b, grads);
  for (Index k = 0; k < x.size(); ++k) EXPECT_NEAR(grads[x].data()[k], grads[z].data()[k], 1e-6f);
}

TEST(MseLoss, BothOperandsMayBeOneTensor) {
  Tensor<float> x = waves({1000});
  x.requires_grad(true);
  wg::GradStore grads;
  backward(mse_loss(x, x), grads);
  for (Index k = 0; k < 1000; ++k) ASSERT_EQ(grads[x].data()[k], 0);
}

TEST(MseLoss, OfNothingIsNaN) {
  EXPECT_TRUE(std::isnan(mse_loss(Tensor<float>({0}), Tensor<float>({0})).item()));
  EXPECT_EQ(mse_loss(Tensor<float>({0}), Tensor<float>({0}), {.reduction = Reduction::sum}).item(), 0);
}

TEST(MseLoss, AMillionFloatsKeepTheirDigits) {
  const Tensor<float> x = waves({1 << 20}), t({1 << 20}, std::vector<float>(1 << 20, 0.1f));
  double expected = 0;
  for (Index k = 0; k < x.size(); ++k) expected += std::pow(static_cast<double>(x.data()[k]) - 0.1, 2);
  EXPECT_NEAR(mse_loss(x, t, {.reduction = Reduction::sum}).item() / expected, 1, 1e-6);
}

template <class F>
void expect_same_bits(F loss) {
  const int before = wg::num_threads();
  float y = 0;
  std::vector<float> dx;
  for (const int threads : {1, 2, 3}) {
    wg::set_num_threads(threads);
    Tensor<float> x = waves({700, 90});
    x.requires_grad(true);
    wg::GradStore grads;
    const Tensor<float> out = loss(x);
    backward(out, grads);
    const std::vector<float> slopes = grads[x].to_vector();
    if (threads == 1) {
      y = out.item();
      dx = slopes;
    }
    EXPECT_EQ(out.item(), y) << threads;
    EXPECT_EQ(std::memcmp(dx.data(), slopes.data(), 4 * dx.size()), 0) << threads;
  }
  wg::set_num_threads(before);
}

TEST(Losses, SameBitsAtAnyNumberOfThreads) {
  Tensor<Index> classes({700});
  for (Index r = 0; r < 700; ++r) classes.fresh_data()[r] = r * 7 % 90;
  Tensor<float> t({700, 90});
  for (Index k = 0; k < t.size(); ++k) t.fresh_data()[k] = static_cast<float>(k % 2);
  expect_same_bits([&](const auto& x) { return cross_entropy(x, classes, {.label_smoothing = 0.1}); });
  expect_same_bits([&](const auto& x) { return cross_entropy(x, t); });
  expect_same_bits([&](const auto& x) { return bce_with_logits(x, t); });
  expect_same_bits([&](const auto& x) { return mse_loss(x, t); });
}

}  // namespace
