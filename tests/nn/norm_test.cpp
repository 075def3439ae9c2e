// The normalisations of images as modules: values by hand, fused calls, defaults, refused arguments.

#include <cmath>

#include <gtest/gtest.h>

#include <wengert/core/backward.hpp>
#include <wengert/nn/norm.hpp>
#include <wengert/ops/activation.hpp>
#include <wengert/ops/arithmetic.hpp>
#include <wengert/ops/create_random.hpp>

#include "support/errors.hpp"

using namespace wengert;

namespace {

/// Two channels of four pixels: 0, 2, 4, 6 (mean 3, squares 20) and 1, 1, 5, 5 (mean 3, squares 16).
Tensor<double> pixels() { return Tensor<double>({1, 2, 2, 2}, {0, 1, 2, 1, 4, 5, 6, 5}); }

TEST(BatchNorm2d, TrainsByTheBatchAndEvaluatesByTheRunningStatistics) {
  nn::BatchNorm2d<double> norm(2, {.eps = 0, .momentum = 0.5});
  const Tensor<double> y = norm(pixels());
  EXPECT_NEAR(y.at(0, 0, 0, 0), -3 / std::sqrt(5.0), 1e-12);
  EXPECT_NEAR(y.at(0, 1, 1, 1), 1, 1e-12);
  EXPECT_EQ(norm.running_mean.to_vector(), (std::vector<double>{1.5, 1.5}));
  EXPECT_NEAR(norm.running_var.at(0), (1 + 20.0 / 3) / 2, 1e-12);
  EXPECT_NEAR(norm.running_var.at(1), (1 + 16.0 / 3) / 2, 1e-12);
  norm.eval();
  EXPECT_NEAR(norm(pixels()).at(0, 1, 0, 0), 2.5 / std::sqrt((1 + 20.0 / 3) / 2), 1e-12);
  EXPECT_EQ(norm.running_mean.at(0), 1.5);
}

TEST(BatchNorm2d, FusedCallsMoveTheStatisticsToo) {
  nn::BatchNorm2d<double> norm(2, {.eps = 0, .momentum = 0.5}), other(2, {.eps = 0, .momentum = 0.5});
  const Tensor<double> y = norm.relu(pixels());
  EXPECT_EQ(y.at(0, 0, 0, 0), 0);
  EXPECT_NEAR(y.at(0, 1, 1, 0), 3 / std::sqrt(5.0), 1e-12);
  EXPECT_EQ(norm.running_mean.to_vector(), (std::vector<double>{1.5, 1.5}));
  const Tensor<double> z = other.add_relu(pixels(), pixels());
  EXPECT_NEAR(z.at(0, 0, 1, 0), 2 - 1 / std::sqrt(5.0), 1e-12);
  EXPECT_EQ(z.at(0, 0, 0, 1), 0);
  EXPECT_NEAR(z.at(0, 1, 1, 1), 6, 1e-12);
  EXPECT_EQ(other.running_mean.to_vector(), (std::vector<double>{1.5, 1.5}));
  norm.eval();
  other.eval();
  EXPECT_NEAR(norm.relu(pixels()).at(0, 1, 0, 0), 2.5 / std::sqrt((1 + 20.0 / 3) / 2), 1e-12);
  EXPECT_NEAR(other.add_relu(pixels(), pixels()).at(0, 1, 0, 0), 4 + 2.5 / std::sqrt((1 + 20.0 / 3) / 2),
              1e-12);
}

TEST(BatchNorm2d, FusedGradientsAreThoseOfTheParts) {
  Generator gen(3);
  const auto x = normal<double>({3, 4, 5, 7}, gen), residual = normal<double>({3, 4, 5, 7}, gen);
  const auto dy = normal<double>({3, 4, 5, 7}, gen);
  Tensor<double> a = x.detach(), r = residual.detach();
  a.requires_grad(true);
  r.requires_grad(true);
  nn::BatchNorm2d<double> norm(7);
  norm.weight->copy_from(normal<double>({7}, gen));
  norm.bias->copy_from(normal<double>({7}, gen));
  GradStore fused, parts;
  const auto compare = [&](const Tensor<double>& leaf) {
    const auto f = fused[leaf].to_vector(), p = parts[leaf].to_vector();
    for (std::size_t i = 0; i < f.size(); ++i) EXPECT_NEAR(f[i], p[i], 1e-12) << i;
  };
  backward(norm.relu(a), dy, fused);
  backward(relu(norm(a)), dy, parts);
  compare(a);
  compare(*norm.weight);
  compare(*norm.bias);
  backward(norm.add_relu(a, r), dy, fused);
  backward(relu(norm(a) + r), dy, parts);
  compare(a);
  compare(r);
  compare(*norm.weight);
  compare(*norm.bias);
}

TEST(BatchNorm2d, OptionsAndFaults) {
  nn::BatchNorm2d<float> norm(2), plain(2, {.affine = false});
  EXPECT_EQ(norm.parameters().size(), 2u);
  EXPECT_EQ(norm.state().size(), 4u);
  EXPECT_EQ(plain.parameters().size(), 0u);
  EXPECT_EQ(plain.relu(ones<float>({1, 3, 1, 2})).to_vector(), std::vector<float>(6, 0));
  EXPECT_ERROR(norm(ones<float>({3, 2})), ShapeError,
               "batch_norm_2d: wrong rank; x is (3, 2); expected (N, H, W, C)");
  EXPECT_ERROR(norm.relu(ones<float>({3, 2})), ShapeError,
               "batch_norm_2d: wrong rank; x is (3, 2); expected (N, H, W, C)");
  EXPECT_ERROR(norm(ones<float>({1, 2, 2, 3})), ShapeError,
               "batch_norm: weight does not fit; x is (1, 2, 2, 3), weight is (2); expected (3)");
  EXPECT_ERROR(norm.add_relu(ones<float>({1, 2, 2, 2}), ones<float>({2})), ShapeError,
               "batch_norm_add_relu: residual does not fit; x is (1, 2, 2, 2), residual is (2); expected (1, "
               "2, 2, 2)");
  EXPECT_ERROR(
      norm(ones<float>({1, 1, 1, 2})), ValueError,
      "batch_norm: a single value per channel has no variance; x is (1, 1, 1, 2); expected more than "
      "one value per channel when training");
  EXPECT_ERROR(
      nn::BatchNorm2d<float>(2, {.eps = -1}), ValueError,
      "batch_norm_2d: bad options; eps is -1, momentum is 0.1; expected eps >= 0 and 0 <= momentum <= "
      "1");
}

TEST(BatchNorm3d, TakesVolumes) {
  nn::BatchNorm3d<double> norm(2, {.eps = 0});
  EXPECT_NEAR(norm(Tensor<double>({1, 1, 2, 2, 2}, pixels().to_vector())).at(0, 0, 1, 1, 0),
              3 / std::sqrt(5.0), 1e-12);
  EXPECT_ERROR(norm(pixels()), ShapeError,
               "batch_norm_3d: wrong rank; x is (1, 2, 2, 2); expected (N, D, H, W, C)");
}

TEST(GroupNorm, ValuesOptionsAndFaults) {
  // One group holds all eight values: mean 3, squares 36, variance 4.5.
  nn::GroupNorm<double> one(1, 2, {.eps = 0}), two(2, 2, {.eps = 0, .affine = false});
  one.weight->copy_from(Tensor<double>({2}, {2, 1}));
  one.bias->copy_from(Tensor<double>({2}, {0, 10}));
  EXPECT_NEAR(one(pixels()).at(0, 0, 0, 0), -6 / std::sqrt(4.5), 1e-12);
  EXPECT_NEAR(one(pixels()).at(0, 0, 0, 1), 10 - 2 / std::sqrt(4.5), 1e-12);
  EXPECT_NEAR(two(pixels()).at(0, 0, 0, 1), -1, 1e-12);
  EXPECT_EQ(one.parameters().size(), 2u);
  EXPECT_EQ(two.parameters().size(), 0u);
  EXPECT_ERROR(two(ones<double>({2, 4})), ShapeError,
               "group_norm: wrong number of channels; x is (2, 4); expected 2 in the last axis");
  EXPECT_ERROR(two(ones<double>({2})), ShapeError,
               "group_norm: rank is too low; x is (2); expected (batch, ..., channels)");
  EXPECT_ERROR(nn::GroupNorm<float>(0, 2), ValueError, "group_norm: groups is 0; expected groups >= 1");
  EXPECT_ERROR(
      nn::GroupNorm<float>(3, 4), ShapeError,
      "group_norm: groups do not divide the channels; channels is 4, groups is 3; expected a multiple "
      "of groups");
  EXPECT_ERROR(nn::GroupNorm<float>(2, 4, {.eps = -1}), ValueError,
               "group_norm: bad eps; got -1; expected eps >= 0");
}

TEST(InstanceNorm2d, ValuesOptionsAndFaults) {
  const nn::InstanceNorm2d<double> plain(2, {.eps = 0});
  nn::InstanceNorm2d<double> affine(2, {.eps = 0, .affine = true});
  affine.weight->copy_from(Tensor<double>({2}, {2, 3}));
  EXPECT_NEAR(plain(pixels()).at(0, 1, 1, 0), 3 / std::sqrt(5.0), 1e-12);
  EXPECT_NEAR(affine(pixels()).at(0, 1, 1, 1), 3, 1e-12);
  EXPECT_EQ(plain.parameters().size(), 0u);
  EXPECT_EQ(affine.parameters().size(), 2u);
  EXPECT_ERROR(plain(ones<double>({2, 2})), ShapeError,
               "instance_norm_2d: wrong rank; x is (2, 2); expected (N, H, W, C)");
  EXPECT_ERROR(plain(ones<double>({1, 2, 2, 3})), ShapeError,
               "instance_norm_2d: wrong number of channels; x is (1, 2, 2, 3); expected 2 in the last axis");
  EXPECT_ERROR(plain(ones<double>({3, 1, 1, 2})), ValueError,
               "instance_norm: a single value per channel has no variance; x is (3, 1, 1, 2); expected more "
               "than one value per channel of a sample");
  EXPECT_ERROR(nn::InstanceNorm2d<float>(2, {.eps = -1}), ValueError,
               "instance_norm_2d: bad eps; got -1; expected eps >= 0");
}

}  // namespace
