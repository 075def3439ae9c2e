// linear where a row cannot look: agreement with matmul, kinks and NaN of the fused relu, strided leading
// axes, zero batches and features, bits at any number of threads.
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include <wengert/core/backward.hpp>
#include <wengert/ops/linear.hpp>

namespace {

using namespace wengert;

template <class T>
Tensor<T> counted(const Shape& shape, double start, double scale = 1) {
  Tensor<T> x(shape);
  for (Index i = 0; i < x.size(); ++i)
    x.fresh_data()[i] = static_cast<T>(start + scale * static_cast<double>(i * 7 % 11));
  return x;
}

TEST(Linear, FoldsLeadingAxesOfStridedInputsWithoutAnotherResult) {
  // (2, 3, 4) out of rows of 6; and the axes exchanged, which do not fold.
  const Tensor<double> room = counted<double>({2, 3, 6}, 1);
  for (const Strides& strides : {Strides{18, 6, 1}, Strides{1, 6, 2}, Strides{0, 6, 1}}) {
    Tensor<double> x(room.buffer(), {2, 3, 4}, strides, 0), dense = x.packed_copy();
    Tensor<double> w = counted<double>({5, 4}, -3), b = counted<double>({5}, 2);
    GradStore grads;
    for (Tensor<double>* t : {&x, &dense, &w, &b}) t->requires_grad(true);
    const Tensor<double> y = linear(dense, w, b), dy = counted<double>(y.shape(), -2);
    backward(y, dy, grads);
    const auto dw = grads[w].to_vector(), db = grads[b].to_vector(), dx = grads[dense].to_vector();
    grads.zero();
    const Tensor<double> ys = linear(x, w, b);
    EXPECT_EQ(ys.to_vector(), y.to_vector());
    backward(ys, dy, grads);
    EXPECT_EQ(grads[w].to_vector(), dw);
    EXPECT_EQ(grads[b].to_vector(), db);
    EXPECT_EQ(grads[x].to_vector(), dx);
  }
}

TEST(Linear, ReluOfZeroPassesNothingAndOfNanEverything) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  Tensor<double> x(Shape{1, 1}, {1}), w(Shape{4, 1}, {0, -1, 2, nan}), b(Shape{4}, {0, 0, 0, 0});
  b.requires_grad(true);
  GradStore grads;
  const Tensor<double> y = linear_relu(x, w, b);
  EXPECT_EQ(y.at(0, 0), 0);
  EXPECT_EQ(y.at(0, 1), 0);
  EXPECT_EQ(y.at(0, 2), 2);
  EXPECT_TRUE(std::isnan(y.at(0, 3)));
  backward(y, Tensor<double>(Shape{1, 4}, {3, 4, 5, 6}), grads);
  EXPECT_EQ(grads[b].to_vector(), (std::vector<double>{0, 0, 5, 6}));
}

TEST(Linear, TakesEmptyBatchesAndNoFeatures) {
  Tensor<double> w = counted<double>({3, 2}, 1), b = counted<double>({3}, 1);
  w.requires_grad(true);
  b.requires_grad(true);
  GradStore grads;
  const Tensor<double> y = linear_relu(Tensor<double>(Shape{0, 2}), w, b);
  EXPECT_EQ(y.shape(), (Shape{0, 3}));
  backward(y, Tensor<double>(y.shape()), grads);
  EXPECT_EQ(grads[w].to_vector(), std::vector<double>(6, 0.0));
  EXPECT_EQ(grads[b].to_vector(), std::vector<double>(3, 0.0));

  Tensor<double> none(Shape{3, 0});
  none.requires_grad(true);
  const Tensor<double> z = linear(Tensor<double>(Shape{2, 0}), none, b);
  EXPECT_EQ(z.to_vector(), (std::vector<double>{1, 8, 4, 1, 8, 4}));
  grads.zero();
  backward(z, counted<double>({2, 3}, 1), grads);
  EXPECT_EQ(grads[b].to_vector(), (std::vector<double>{1 + 11, 8 + 7, 4 + 3}));
}

TEST(Linear, GivesTheSameBitsAtAnyNumberOfThreads) {
  Tensor<float> x = counted<float>({700, 130}, -0.5, 0.1), w = counted<float>({70, 130}, -0.3, 0.07),
                b = counted<float>({70}, -30, 0.01);
  for (Tensor<float>* t : {&x, &w, &b}) t->requires_grad(true);
  const auto run = [&](int threads) {
    set_num_threads(threads);
    GradStore grads;
    const Tensor<float> y = linear_relu(x, w, b);
    backward(y, counted<float>(y.shape(), -0.7, 0.13), grads);
    std::vector<std::vector<float>> out{y.to_vector(), grads[x].to_vector(), grads[w].to_vector(),
                                        grads[b].to_vector()};
    return out;
  };
  const int before = num_threads();
  const auto one = run(1);
  EXPECT_EQ(run(2), one);
  EXPECT_EQ(run(3), one);
  set_num_threads(before);
}

TEST(Linear, SumsALongBatchIntoTheBiasWithoutLosingSmallTerms) {
  // In float a running sum of 2^24 and more ones stands still; blocks do not.
  const Index n = (Index{1} << 24) + 4096;
  const Tensor<float> one(Shape{1}, {1});
  const Tensor<float> x(one.buffer(), {n, 1}, {0, 1}, 0), w(Shape{1, 1}, {1});
  Tensor<float> b(Shape{1}, {0});
  b.requires_grad(true);
  GradStore grads;
  const Tensor<float> y = linear(x, w, b), dy(one.buffer(), {n, 1}, {0, 1}, 0);
  backward(y, dy, grads);
  EXPECT_EQ(grads[b].item(), static_cast<float>(n));
}

}  // namespace
