// Fused batch normalisations, group and instance normalisation where a row cannot look: running statistics,
// large means, NaN, what is saved, gradients that go over dy, zero sizes, threads, dual numbers.
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include <wengert/core/backward.hpp>
#include <wengert/kernels/dual.hpp>
#include <wengert/ops/activation.hpp>
#include <wengert/ops/arithmetic.hpp>
#include <wengert/ops/create.hpp>
#include <wengert/ops/norm.hpp>

#include "support/errors.hpp"

namespace {

using namespace wengert;

/// Values of about standard normal size, by a small linear congruence.
template <class T>
Tensor<T> noisy(const Shape& shape, double mean, double scale, std::uint32_t seed = 17) {
  Tensor<T> x(shape);
  for (Index i = 0; i < x.size(); ++i) {
    double sum = 0;
    for (int k = 0; k < 12; ++k) sum += (seed = seed * 1664525u + 1013904223u) * 0x1p-32;
    x.fresh_data()[i] = static_cast<T>(static_cast<float>(mean + scale * (sum - 6)));
  }
  return x;
}

template <class T>
Tensor<T> leaf(Tensor<T> x) {
  x.requires_grad(true);
  return x;
}

TEST(FusedBatchNorm, MovesTheRunningStatistics) {
  // Channel 0: 1, 3: mean 2, unbiased variance 2. Channel 1: 0, 4: mean 2, unbiased variance 8.
  const Tensor<double> x(Shape{2, 2}, {1, 0, 3, 4}), one = full<double>({2}, 1);
  for (const bool with_residual : {false, true}) {
    Tensor<double> mean(Shape{2}, {1, -1}), var(Shape{2}, {1, 2});
    if (with_residual)
      batch_norm_add_relu(x, x, one, one, mean, var, {.momentum = 0.25});
    else
      batch_norm_relu(x, one, one, mean, var, {.momentum = 0.25});
    EXPECT_EQ(mean.to_vector(), (std::vector<double>{1.25, -0.25}));
    EXPECT_EQ(var.to_vector(), (std::vector<double>{1.25, 3.5}));
  }
}

TEST(FusedBatchNorm, KeepsNaNAndItsGradient) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  Tensor<double> mean = full<double>({1}, 0), var = full<double>({1}, 1);
  const BatchNormOptions eval{.training = false, .eps = 0};
  const Tensor<double> dy(Shape{3, 1}, {5, 6, 7});
  Tensor<double> x = leaf(Tensor<double>(Shape{3, 1}, {nan, -1, 2})), r = leaf(full<double>({3, 1}, 0));
  GradStore alone, added;
  const Tensor<double> y = batch_norm_relu(x, nullptr, nullptr, &mean, &var, eval);
  EXPECT_TRUE(std::isnan(y.at(0, 0)));
  EXPECT_EQ(y.at(1, 0), 0);
  backward(y, dy, alone);
  EXPECT_EQ(alone[x].to_vector(), (std::vector<double>{5, 0, 7}));
  backward(batch_norm_add_relu(x, r, nullptr, nullptr, &mean, &var, eval), dy, added);
  EXPECT_EQ(added[x].to_vector(), (std::vector<double>{5, 0, 7}));
  EXPECT_EQ(added[r].to_vector(), (std::vector<double>{5, 0, 7}));
}

TEST(FusedBatchNorm, SavesWhatItReadsAgain) {
  Tensor<double> x = leaf(noisy<double>({4, 2}, 0, 1)), r = leaf(noisy<double>({4, 2}, 0, 1, 3));
  const Tensor<double> dy = full<double>({4, 2}, 1);
  GradStore grads;
  Tensor<double> y = batch_norm_relu(x, nullptr, nullptr, nullptr, nullptr);
  y.detach().fill(7);  // y is not needed: the sign comes from x
  backward(y, dy, grads);
  Tensor<double> z = batch_norm_add_relu(x, r, nullptr, nullptr, nullptr, nullptr);
  z.detach().fill(7);
  EXPECT_ERROR(
      backward(z, dy, grads), TapeError,
      "backward: a tensor that batch_norm_add_relu saved was written in place since; shape is (4, 2), "
      "version is 1; expected version 0; write to a clone, or after backward");
}

/// Gradients of x, r and w through a block whose input is not a leaf, so that gradients go over dy.
template <class Block>
std::vector<std::vector<double>> through(Block block) {
  Tensor<double> x = leaf(noisy<double>({3, 5, 7}, 0, 1)), r = leaf(noisy<double>({3, 5, 7}, 0, 1, 5)),
                 w = leaf(noisy<double>({7}, 1, 0.5, 7)), b = leaf(noisy<double>({7}, 0, 0.5, 9));
  const Tensor<double> dy = noisy<double>({3, 5, 7}, 0, 1, 11);
  GradStore grads;
  backward(square(block(square(x), square(r), w, b)), dy, grads);
  std::vector<std::vector<double>> out;
  for (const auto& t : {x, r, w, b}) out.push_back(grads[t].to_vector());
  return out;
}
void expect_near(const std::vector<std::vector<double>>& a, const std::vector<std::vector<double>>& b) {
  for (std::size_t k = 0; k < a.size(); ++k)
    for (std::size_t i = 0; i < a[k].size(); ++i) EXPECT_NEAR(a[k][i], b[k][i], 1e-11) << k << ' ' << i;
}

TEST(FusedBatchNorm, GradientsOverDyAreThoseOfTheParts) {
  const auto norm = [](const auto& x, const auto& w, const auto& b) {
    return batch_norm(x, &w, &b, nullptr, nullptr);
  };
  const auto fused = [](const auto& x, const auto& r, const auto& w, const auto& b) {
    return batch_norm_add_relu(x, r, &w, &b, nullptr, nullptr);
  };
  // Each is the only consumer of its input.
  expect_near(through(fused), through([&](const auto& x, const auto& r, const auto& w, const auto& b) {
                return relu(norm(x, w, b) + r);
              }));
  // The residual, or x, has a gradient already when the record's turn comes.
  for (const bool of_residual : {false, true}) {
    expect_near(through([&](const auto& x, const auto& r, const auto& w, const auto& b) {
                  return fused(x, r, w, b) * (of_residual ? r : x);
                }),
                through([&](const auto& x, const auto& r, const auto& w, const auto& b) {
                  return relu(norm(x, w, b) + r) * (of_residual ? r : x);
                }));
  }
  // x and the residual are one.
  expect_near(
      through([&](const auto& x, const auto&, const auto& w, const auto& b) { return fused(x, x, w, b); }),
      through(
          [&](const auto& x, const auto&, const auto& w, const auto& b) { return relu(norm(x, w, b) + x); }));
  expect_near(through([&](const auto& x, const auto&, const auto& w, const auto& b) {
                return fused(x, x, w, b) * x;
              }),
              through([&](const auto& x, const auto&, const auto& w, const auto& b) {
                return relu(norm(x, w, b) + x) * x;
              }));
}

/// Largest error of float values and input gradients against double on the same inputs.
template <class F>
std::pair<double, double> float_errors(const Shape& shape, double mean, F f) {
  const Tensor<float> xf = leaf(noisy<float>(shape, mean, 1));
  const Tensor<double> x = leaf(noisy<double>(shape, mean, 1));
  GradStore gf, gd;
  const auto yf = f(xf);
  backward(yf, noisy<float>(shape, 0.5, 1), gf);
  const auto y = f(x);
  backward(y, noisy<double>(shape, 0.5, 1), gd);
  double value = 0, slope = 0;
  const Tensor<float> dxf = gf[xf];
  const Tensor<double> dx = gd[x];
  for (Index i = 0; i < x.size(); ++i) {
    value = std::max(value, std::abs(double{yf.data()[i]} - y.data()[i]));
    slope = std::max(slope, std::abs(double{dxf.data()[i]} - dx.data()[i]));
  }
  return {value, slope};
}

TEST(GroupNorm, IsAccurateWhenTheMeanIsTenThousandDeviations) {
  for (const Shape& shape : {Shape{2, 64, 9}, Shape{3, 40, 25, 6}, Shape{1, 5000, 3}, Shape{4, 600}}) {
    const auto [value, slope] = float_errors(shape, 1e4, [](const auto& x) { return group_norm(x, 3); });
    EXPECT_LT(value, 5e-6) << shape.str();
    EXPECT_LT(slope, 5e-6) << shape.str();
    if (shape.rank() < 3) continue;
    const auto [v, s] = float_errors(shape, 1e4, [](const auto& x) { return instance_norm(x); });
    EXPECT_LT(v, 5e-6) << shape.str();
    EXPECT_LT(s, 5e-6) << shape.str();
  }
}

TEST(FusedBatchNorm, IsAccurateWhenTheMeanIsTenThousandDeviations) {
  // A shift of 10 keeps relu away from its kink.
  const auto f = []<class T>(const Tensor<T>& x) {
    const Tensor<T> ten = full<T>({x.shape().back()}, 10);
    return batch_norm_relu(x, nullptr, &ten, nullptr, nullptr);
  };
  const auto [value, slope] = float_errors(Shape{10, 20, 20, 7}, 1e4, f);
  EXPECT_LT(value, 5e-6);
  EXPECT_LT(slope, 5e-6);
}

TEST(GroupNorm, TakesNoSamplesNoRowsAndNoChannels) {
  for (const Shape& shape : {Shape{0, 2, 4}, Shape{3, 0, 4}, Shape{3, 2, 0}}) {
    Tensor<double> x = leaf(Tensor<double>(shape)), w = leaf(full<double>({shape.back()}, 1)),
                   b = leaf(full<double>({shape.back()}, 1));
    const auto count = static_cast<std::size_t>(shape.back());
    for (const bool instance : {false, true}) {
      GradStore grads;
      const Tensor<double> y = instance ? instance_norm(x, w, b) : group_norm(x, 2, w, b);
      EXPECT_EQ(y.shape(), shape);
      backward(y, Tensor<double>(shape), grads);
      EXPECT_EQ(grads[x].shape(), shape);
      EXPECT_EQ(grads[w].to_vector(), std::vector<double>(count, 0.0));
      EXPECT_EQ(grads[b].to_vector(), std::vector<double>(count, 0.0));
    }
  }
}

TEST(GroupNorm, RefusesGroupsBelowOne) {
  const Tensor<double> x = full<double>({2, 4}, 1);
  EXPECT_ERROR(group_norm(x, 0), ValueError, "group_norm: groups is 0; expected groups >= 1");
  EXPECT_ERROR(group_norm(x, -2), ValueError, "group_norm: groups is -2; expected groups >= 1");
}

TEST(FusedBatchNorm, RefusesALeafAmongTheRunningStatistics) {
  const Tensor<double> x = full<double>({2, 3}, 1);
  Tensor<double> three = full<double>({3}, 1), tracked = leaf(full<double>({3}, 1));
  EXPECT_ERROR(
      batch_norm_relu(x, three, three, tracked, three), TapeError,
      "batch_norm_relu: a running statistic asks for a gradient, which batch_norm_relu would sever; x "
      "is (2, 3); expected constants; call requires_grad(false) on them");
}

TEST(FusedNorm, WritesLargeOutputsLikeSmallOnes) {
  // 17 MB, beyond what is written through the cache; in evaluation rows do not depend on each other.
  const Index rows = 4200, columns = 1024, some = 10;
  Tensor<float> x = leaf(noisy<float>({rows, columns}, 0, 1)),
                r = leaf(noisy<float>({rows, columns}, 0, 1, 3));
  Tensor<float> mean = noisy<float>({columns}, 0, 1), var = full<float>({columns}, 2);
  const Tensor<float> dy = noisy<float>({rows, columns}, 0, 1, 5);
  const auto part = [&](const Tensor<float>& t) {
    const auto from = t.data() + (rows - some) * columns;
    return Tensor<float>(Shape{some, columns}, std::vector<float>(from, from + some * columns));
  };
  const BatchNormOptions eval{.training = false};
  const auto run = [&](const Tensor<float>& a, const Tensor<float>& b, const Tensor<float>& seed) {
    std::vector<Tensor<float>> out;
    for (const bool with_residual : {false, true}) {
      GradStore grads;
      const Tensor<float> y = with_residual ? batch_norm_add_relu(a, b, nullptr, nullptr, &mean, &var, eval)
                                            : batch_norm_relu(a, nullptr, nullptr, &mean, &var, eval);
      backward(y, seed, grads);
      out.push_back(y.detach());
      for (const auto& t : {a, b})
        if (grads.find(t)) out.push_back(grads[t]);
    }
    return out;
  };
  const auto whole = run(x, r, dy), few = run(leaf(part(x)), leaf(part(r)), part(dy));
  ASSERT_EQ(whole.size(), few.size());
  for (std::size_t k = 0; k < few.size(); ++k) EXPECT_EQ(part(whole[k]).to_vector(), few[k].to_vector()) << k;
  // In training all rows come in pairs of +-1, so that y is +-1 / sqrt(1 + eps) and dx is 0 for a constant
  // dy.
  for (Index i = 0; i < x.size(); ++i) x.mutable_data()[i] = (i / columns) % 2 == 0 ? 1.0f : -1.0f;
  GradStore grads;
  const Tensor<float> y = batch_norm(x, nullptr, nullptr, nullptr, nullptr);
  for (const float v : y.span()) ASSERT_NEAR(std::abs(v), 1 / std::sqrt(1 + 1e-5), 1e-6);
  backward(y, full<float>({rows, columns}, 1), grads);
  const Tensor<float> dx = grads[x];
  for (const float v : dx.span()) ASSERT_NEAR(v, 0, 1e-6);
}

TEST(FusedNorm, GivesTheSameBitsAtAnyNumberOfThreads) {
  const auto run = [](int threads, Index samples, Index side, Index channels) {
    set_num_threads(threads);
    const Shape shape{samples, side, side, channels};
    Tensor<float> x = leaf(noisy<float>(shape, 3, 2)), r = leaf(noisy<float>(shape, 0, 2, 3)),
                  w = leaf(noisy<float>({channels}, 1, 1)), b = leaf(noisy<float>({channels}, 0, 1));
    std::vector<std::vector<float>> out;
    for (int kind = 0; kind < 4; ++kind) {
      GradStore grads;
      const Tensor<float> y = kind == 0   ? batch_norm_relu(x, &w, &b, nullptr, nullptr)
                              : kind == 1 ? batch_norm_add_relu(x, r, &w, &b, nullptr, nullptr)
                              : kind == 2 ? group_norm(x, 2, w, b)
                                          : instance_norm(x, w, b);
      backward(y, noisy<float>(shape, 0, 1), grads);
      for (const auto& v : {y.detach(), grads[x], grads[w], grads[b]}) out.push_back(v.to_vector());
    }
    return out;
  };
  const int before = num_threads();
  for (const auto& [samples, side, channels] :
       {std::array<Index, 3>{1, 60, 22}, std::array<Index, 3>{5, 40, 30}, std::array<Index, 3>{40, 3, 6}}) {
    const auto one = run(1, samples, side, channels);
    EXPECT_EQ(run(2, samples, side, channels), one);
    EXPECT_EQ(run(3, samples, side, channels), one);
  }
  set_num_threads(before);
}

TEST(FusedNorm, CarriesDualNumbers) {
  // The derivative towards x[0], by central differences in double.
  using D = kernels::Dual<double>;
  const std::vector<double> v{0.3, -1.2, 0.7, 2.0, 0.1, -0.4};
  const auto along = [&](auto f) {
    std::vector<double> up = v, down = v;
    up[0] += 1e-6;
    down[0] -= 1e-6;
    const Tensor<D> x(Shape{1, 3, 2}, {D(v[0], 1), D(v[1]), D(v[2]), D(v[3]), D(v[4]), D(v[5])});
    const Tensor<double> yu = f(Tensor<double>({1, 3, 2}, up)), yd = f(Tensor<double>({1, 3, 2}, down));
    const Tensor<D> y = f(x);
    for (Index i = 0; i < 6; ++i)
      EXPECT_NEAR(y.data()[i].d[0], (yu.data()[i] - yd.data()[i]) / 2e-6, 1e-8) << i;
  };
  along([](const auto& x) { return batch_norm_relu(x, nullptr, nullptr, nullptr, nullptr, {.eps = 0.1}); });
  along([](const auto& x) {
    return batch_norm_add_relu(x, x, nullptr, nullptr, nullptr, nullptr, {.eps = 0.1});
  });
  along([](const auto& x) { return group_norm(x, 1, {.eps = 0.1}); });
  along([](const auto& x) { return instance_norm(x, {.eps = 0.1}); });
}

}  // namespace
