// Normalisations where a row cannot look: running statistics, large means, evaluation, zero sizes, errors of
// options, threads, dual numbers.
#include <cmath>

#include <gtest/gtest.h>

#include <wengert/core/backward.hpp>
#include <wengert/kernels/dual.hpp>
#include <wengert/ops/create.hpp>
#include <wengert/ops/norm.hpp>

namespace {

using namespace wengert;

/// Values of about standard normal size, by a small linear congruence.
template <class T>
Tensor<T> noisy(const Shape& shape, double mean, double scale) {
  Tensor<T> x(shape);
  std::uint32_t s = 17;
  for (Index i = 0; i < x.size(); ++i) {
    double sum = 0;
    for (int k = 0; k < 12; ++k) sum += (s = s * 1664525u + 1013904223u) * 0x1p-32;
    x.fresh_data()[i] = static_cast<T>(mean + scale * (sum - 6));
  }
  return x;
}

template <class E, class F>
std::string message_of(F f) {
  try {
    f();
  } catch (const E& e) {
    return e.what();
  }
  return "no such error";
}

TEST(BatchNorm, MovesTheRunningStatisticsByTheUnbiasedVariance) {
  // Channel 0: 1, 3: mean 2, unbiased variance 2. Channel 1: 0, 4: mean 2, unbiased variance 8.
  const Tensor<double> x(Shape{2, 2}, {1, 0, 3, 4}), one = full<double>({2}, 1), zero = full<double>({2}, 0);
  Tensor<double> mean(Shape{2}, {1, -1}), var(Shape{2}, {1, 2});
  const auto version = mean.version();
  batch_norm(x, one, zero, mean, var, {.momentum = 0.25});
  EXPECT_EQ(mean.to_vector(), (std::vector<double>{1.25, -0.25}));
  EXPECT_EQ(var.to_vector(), (std::vector<double>{1.25, 3.5}));
  EXPECT_GT(mean.version(), version);
}

TEST(BatchNorm, WritesStridedRunningStatistics) {
  const Tensor<double> x(Shape{2, 2}, {1, 0, 3, 4}), one = full<double>({2}, 1);
  const Tensor<double> room(Shape{4}, {0, 9, 0, 9});
  Tensor<double> mean(room.buffer(), {2}, {2}, 0), var = full<double>({2}, 0);
  batch_norm(x, one, one, mean, var, {.momentum = 0.5});
  EXPECT_EQ(room.to_vector(), (std::vector<double>{1, 9, 1, 9}));
}

TEST(BatchNorm, EvaluationReadsTheRunningStatisticsAndLeavesThem) {
  Tensor<double> x(Shape{1, 2}, {3, 5}), w(Shape{2}, {2, 3}), b(Shape{2}, {1, -1});
  Tensor<double> mean(Shape{2}, {1, 2}), var(Shape{2}, {4, 9});
  for (Tensor<double>* t : {&x, &w, &b}) t->requires_grad(true);
  GradStore grads;
  const Tensor<double> y = batch_norm(x, w, b, mean, var, {.training = false, .eps = 0});
  EXPECT_EQ(y.to_vector(), (std::vector<double>{3, 2}));
  mean.fill(7);  // what backward needs was copied
  var.fill(7);
  backward(y, Tensor<double>(Shape{1, 2}, {1, 10}), grads);
  EXPECT_EQ(grads[x].to_vector(), (std::vector<double>{1, 10}));
  EXPECT_EQ(grads[w].to_vector(), (std::vector<double>{1, 10}));
  EXPECT_EQ(grads[b].to_vector(), (std::vector<double>{1, 10}));
}

/// Largest error of float values and input gradients against double on the same, exactly representable,
/// inputs.
template <class F>
std::pair<double, double> float_errors(const Shape& shape, double mean, F f) {
  const Tensor<float> xf = noisy<float>(shape, mean, 1), dyf = noisy<float>(shape, 0.5, 1);
  Tensor<double> x(shape), dy(shape);
  for (Index i = 0; i < x.size(); ++i) {
    x.fresh_data()[i] = double{xf.data()[i]};
    dy.fresh_data()[i] = double{dyf.data()[i]};
  }
  Tensor<float> in_float = xf;
  in_float.requires_grad(true);
  x.requires_grad(true);
  GradStore gf, gd;
  const auto yf = f(in_float);
  backward(yf, dyf, gf);
  const auto y = f(x);
  backward(y, dy, gd);
  double value = 0, slope = 0;
  const Tensor<float> dxf = gf[in_float];
  const Tensor<double> dx = gd[x];
  for (Index i = 0; i < x.size(); ++i) {
    value = std::max(value, std::abs(double{yf.data()[i]} - y.data()[i]));
    slope = std::max(slope, std::abs(double{dxf.data()[i]} - dx.data()[i]));
  }
  return {value, slope};
}

TEST(BatchNorm, IsAccurateWhenTheMeanIsTenThousandDeviations) {
  for (const Shape& shape : {Shape{64, 3}, Shape{5000, 7}, Shape{40, 600}}) {
    const auto [value, slope] = float_errors(
        shape, 1e4, [](const auto& x) { return batch_norm(x, nullptr, nullptr, nullptr, nullptr); });
    EXPECT_LT(value, 5e-6) << shape.str();
    EXPECT_LT(slope, 5e-6) << shape.str();
  }
}

TEST(LayerNorm, IsAccurateWhenTheMeanIsTenThousandDeviations) {
  for (const Shape& shape : {Shape{5, 64}, Shape{3, 5001}, Shape{100, 37}}) {
    const auto [value, slope] =
        float_errors(shape, 1e4, [](const auto& x) { return layer_norm(x, Shape{x.shape().back()}); });
    EXPECT_LT(value, 5e-6) << shape.str();
    EXPECT_LT(slope, 5e-6) << shape.str();
  }
}

TEST(BatchNorm, TakesAnEmptyBatchAndNoChannels) {
  Tensor<double> w = full<double>({3}, 1), b = full<double>({3}, 0), mean = full<double>({3}, 4),
                 var = full<double>({3}, 5);
  w.requires_grad(true);
  b.requires_grad(true);
  GradStore grads;
  const Tensor<double> y = batch_norm(Tensor<double>(Shape{0, 3}), w, b, mean, var);
  EXPECT_EQ(y.shape(), (Shape{0, 3}));
  EXPECT_EQ(mean.to_vector(), std::vector<double>(3, 4.0));
  EXPECT_EQ(var.to_vector(), std::vector<double>(3, 5.0));
  backward(y, Tensor<double>(Shape{0, 3}), grads);
  EXPECT_EQ(grads[w].to_vector(), std::vector<double>(3, 0.0));
  EXPECT_EQ(grads[b].to_vector(), std::vector<double>(3, 0.0));
  EXPECT_EQ(batch_norm(Tensor<double>(Shape{4, 0}), nullptr, nullptr, nullptr, nullptr).shape(),
            (Shape{4, 0}));
}

TEST(LayerNorm, TakesNoRows) {
  Tensor<double> w = full<double>({3}, 1);
  w.requires_grad(true);
  GradStore grads;
  const Tensor<double> y = layer_norm(Tensor<double>(Shape{0, 3}), {3}, w, w);
  backward(y, Tensor<double>(Shape{0, 3}), grads);
  EXPECT_EQ(grads[w].to_vector(), std::vector<double>(3, 0.0));
}

TEST(LayerNorm, RefusesAWeightOfAnotherShape) {
  const Tensor<double> x = full<double>({2, 3}, 1), w = full<double>({1, 3}, 1);
  EXPECT_EQ(message_of<ShapeError>([&] { layer_norm(x, {3}, w, w); }),
            "layer_norm: weight does not fit; x is (2, 3), weight is (1, 3); expected (3)");
}

TEST(BatchNorm, RefusesStatisticsThatDoNotFitOrAreMissing) {
  const Tensor<double> x = full<double>({2, 3}, 1);
  Tensor<double> three = full<double>({3}, 1), two = full<double>({2}, 1);
  EXPECT_EQ(message_of<ShapeError>([&] { batch_norm(x, nullptr, nullptr, &two, &three); }),
            "batch_norm: running_mean does not fit; x is (2, 3), running_mean is (2); expected (3)");
  EXPECT_EQ(message_of<ShapeError>([&] { batch_norm(x, nullptr, nullptr, &three, &two); }),
            "batch_norm: running_var does not fit; x is (2, 3), running_var is (2); expected (3)");
  EXPECT_EQ(
      message_of<ValueError>([&] { batch_norm(x, nullptr, nullptr, nullptr, nullptr, {.training = false}); }),
      "batch_norm: evaluation needs running statistics; x is (2, 3); expected running_mean and running_var");
  EXPECT_EQ(message_of<ValueError>([&] { batch_norm(x, nullptr, nullptr, &three, nullptr); }),
            "batch_norm: one running statistic without the other; x is (2, 3); expected running_mean and "
            "running_var, or neither");
  Tensor<double> leaf = full<double>({3}, 1);
  leaf.requires_grad(true);
  EXPECT_EQ(message_of<TapeError>([&] { batch_norm(x, three, three, leaf, three); }),
            "batch_norm: a running statistic asks for a gradient, which batch_norm would sever; x is (2, 3); "
            "expected constants; call requires_grad(false) on them");
  EXPECT_EQ(three.version(), full<double>({3}, 1).version());  // nothing was written
}

TEST(BatchNorm, RefusesToMoveStatisticsThatLieInOnePlace) {
  const Tensor<double> x({2, 3}, {1, 2, 3, 4, 5, 6});
  Tensor<double> one({1}, {0}), three = ones<double>({3});
  Tensor<double> expanded(one.buffer(), {3}, {0}, 0);
  EXPECT_EQ(
      message_of<ShapeError>([&] { batch_norm(x, nullptr, nullptr, &expanded, &three); }),
      "batch_norm: several elements of a running statistic lie in one place; x is (2, 3), strides are (0); "
      "expected a tensor that was not expanded; pass a clone");
  EXPECT_EQ(one.item(), 0);
  EXPECT_EQ(three.at(0), 1);
  EXPECT_EQ(batch_norm(x, nullptr, nullptr, &expanded, &three, {.training = false, .eps = 0}).to_vector(),
            x.to_vector());
}

TEST(Norm, GivesTheSameBitsAtAnyNumberOfThreads) {
  Tensor<float> x = noisy<float>({3000, 70}, 3, 2), w = noisy<float>({70}, 1, 1),
                b = noisy<float>({70}, 0, 1);
  for (Tensor<float>* t : {&x, &w, &b}) t->requires_grad(true);
  const auto run = [&](int threads) {
    set_num_threads(threads);
    std::vector<std::vector<float>> out;
    for (const bool layer : {false, true}) {
      GradStore grads;
      const Tensor<float> y = layer ? layer_norm(x, {70}, w, b) : batch_norm(x, &w, &b, nullptr, nullptr);
      backward(y, noisy<float>(y.shape(), 0, 1), grads);
      for (const auto& v : {y.detach(), grads[x], grads[w], grads[b]}) out.push_back(v.to_vector());
    }
    return out;
  };
  const int before = num_threads();
  const auto one = run(1);
  EXPECT_EQ(run(2), one);
  EXPECT_EQ(run(3), one);
  set_num_threads(before);
}

TEST(Norm, CarriesDualNumbers) {
  // The derivative towards x[0], by central differences in double.
  using D = kernels::Dual<double>;
  const std::vector<double> v{0.3, -1.2, 0.7, 2.0, 0.1, -0.4};
  const auto along = [&](auto f) {
    const Tensor<double> up(Shape{3, 2}, {v[0] + 1e-6, v[1], v[2], v[3], v[4], v[5]});
    const Tensor<double> down(Shape{3, 2}, {v[0] - 1e-6, v[1], v[2], v[3], v[4], v[5]});
    const Tensor<D> x(Shape{3, 2}, {D(v[0], 1), D(v[1]), D(v[2]), D(v[3]), D(v[4]), D(v[5])});
    const Tensor<double> yu = f(up), yd = f(down);
    const Tensor<D> y = f(x);
    for (Index i = 0; i < 6; ++i)
      EXPECT_NEAR(y.data()[i].d[0], (yu.data()[i] - yd.data()[i]) / 2e-6, 1e-8) << i;
  };
  along([](const auto& x) { return batch_norm(x, nullptr, nullptr, nullptr, nullptr, {.eps = 0.1}); });
  along([](const auto& x) { return layer_norm(x, {2}, {.eps = 0.1}); });
}

}  // namespace
