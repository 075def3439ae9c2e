// Pools as modules: the operators by name, in a Sequential, and the faults of their options.
#include <gtest/gtest.h>

#include <wengert/nn/pool.hpp>
#include <wengert/nn/sequential.hpp>

#include "support/errors.hpp"

namespace {

using namespace wengert;

template <class T>
Tensor<T> counted(const Shape& shape) {
  Tensor<T> x(shape);
  for (Index i = 0; i < x.size(); ++i) x.fresh_data()[i] = static_cast<T>(i * 37 % 101);
  return x;
}

template <class T>
void expect_same(const Tensor<T>& a, const Tensor<T>& b) {
  EXPECT_EQ(a.shape(), b.shape());
  EXPECT_EQ(a.to_vector(), b.to_vector());
}

TEST(PoolModules, AreTheOperators) {
  const Tensor<float> line = counted<float>({2, 9, 3}), image = counted<float>({2, 6, 7, 3}),
                      volume = counted<float>({1, 4, 5, 6, 2});
  const MaxPoolOptions max{.kernel = 3, .stride = 2, .padding = 1, .ceil_mode = true};
  const AvgPoolOptions avg{.kernel = 3, .stride = 2, .padding = 1, .count_include_pad = false};
  expect_same(nn::MaxPool1d(max)(line), max_pool1d(line, max));
  expect_same(nn::MaxPool2d(max)(image), max_pool2d(image, max));
  expect_same(nn::MaxPool3d(max)(volume), max_pool3d(volume, max));
  expect_same(nn::AvgPool1d(avg)(line), avg_pool1d(line, avg));
  expect_same(nn::AvgPool2d(avg)(image), avg_pool2d(image, avg));
  expect_same(nn::AvgPool3d(avg)(volume), avg_pool3d(volume, avg));
  expect_same(nn::AdaptiveMaxPool1d(4)(line), adaptive_max_pool1d(line, 4));
  expect_same(nn::AdaptiveMaxPool2d({4, 2})(image), adaptive_max_pool2d(image, {4, 2}));
  expect_same(nn::AdaptiveAvgPool1d(4)(line), adaptive_avg_pool1d(line, 4));
  expect_same(nn::AdaptiveAvgPool2d({4, 2})(image), adaptive_avg_pool2d(image, {4, 2}));
  expect_same(nn::GlobalAvgPool()(volume), global_avg_pool(volume));
  expect_same(nn::GlobalMaxPool()(volume), global_max_pool(volume));
}

TEST(PoolModules, ServeEveryTypeAndHoldNoParameters) {
  nn::Sequential model{nn::MaxPool2d({.kernel = 2}), nn::ReLU(), nn::GlobalAvgPool()};
  EXPECT_EQ(model(counted<float>({2, 4, 4, 3})).shape(), Shape({2, 3}));
  EXPECT_EQ(model(counted<double>({2, 4, 4, 3})).shape(), Shape({2, 3}));
  EXPECT_TRUE(model.parameters().empty());
}

TEST(PoolModules, RefuseTheirOptionsWhenMade) {
  EXPECT_ERROR(
      nn::MaxPool2d({.kernel = 3, .padding = 2}), ValueError,
      "max_pool2d: padding is more than half the kernel; kernel is 3, padding is 2; expected at most 1");
  EXPECT_ERROR(nn::AvgPool1d({.kernel = 0}), ValueError,
               "avg_pool1d: kernel is too small; got 0; expected at least 1");
  EXPECT_ERROR(nn::AdaptiveAvgPool2d(0), ValueError,
               "adaptive_avg_pool2d: output size is too small; got 0; expected at least 1");
  EXPECT_ERROR(nn::AdaptiveMaxPool1d({1, 2}), ValueError,
               "adaptive_max_pool1d: output size has 2 numbers; got (1, 2); expected one, or 1");
}

}  // namespace
