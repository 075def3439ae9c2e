// Layers: values by hand, initial weights, modes, options, refused arguments.

#include <cmath>

#include <gtest/gtest.h>

#include <wengert/core/backward.hpp>
#include <wengert/nn/nn.hpp>
#include <wengert/ops/arithmetic.hpp>
#include <wengert/ops/create_random.hpp>
#include <wengert/ops/reduce.hpp>

#include "support/errors.hpp"

using namespace wengert;

namespace {

struct Moments {
  double mean = 0, std = 0, lo = HUGE_VAL, hi = -HUGE_VAL;
  template <class T>
  explicit Moments(const Tensor<T>& x) {
    const double n = static_cast<double>(x.size());
    for (const T v : x.to_vector()) {
      mean += static_cast<double>(v) / n;
      std += static_cast<double>(v) * static_cast<double>(v) / n;
      lo = std::min(lo, static_cast<double>(v));
      hi = std::max(hi, static_cast<double>(v));
    }
    std = std::sqrt(std - mean * mean);
  }
};

/// Uniform in +-bound: fills the interval, and has its deviation.
void expect_uniform(const Moments& m, double bound) {
  EXPECT_NEAR(m.mean, 0, bound * 0.02);
  EXPECT_NEAR(m.std, bound / std::sqrt(3), bound * 0.01);
  EXPECT_GE(m.lo, -bound);
  EXPECT_LE(m.hi, bound);
  EXPECT_LT(m.lo, -0.99 * bound);
  EXPECT_GT(m.hi, 0.99 * bound);
}

TEST(Init, FormulasOfPyTorch) {
  Generator gen(1);
  Tensor<float> w({200, 300});  // 300 in, 200 out
  expect_uniform(Moments(nn::init::kaiming_uniform(w, gen)), std::sqrt(6.0 / 300));
  expect_uniform(Moments(nn::init::kaiming_uniform(w, gen, {.slope = 2, .mode = nn::init::Fan::out})),
                 std::sqrt(6.0 / 5 / 200));
  expect_uniform(Moments(nn::init::xavier_uniform(w, gen)), std::sqrt(6.0 / 500));
  expect_uniform(Moments(nn::init::xavier_uniform(w, gen, 2)), 2 * std::sqrt(6.0 / 500));
  expect_uniform(Moments(nn::init::uniform(w, gen, -3, 3)), 3);
  EXPECT_NEAR(Moments(nn::init::kaiming_normal(w, gen)).std, std::sqrt(2.0 / 300), 1e-3);
  EXPECT_NEAR(Moments(nn::init::xavier_normal(w, gen)).std, std::sqrt(2.0 / 500), 1e-3);
  EXPECT_NEAR(Moments(nn::init::normal(w, gen, 5, 2)).mean, 5, 0.05);
  Tensor<double> d({2, 3});
  EXPECT_LT(Moments(nn::init::xavier_uniform(d, gen)).hi, std::sqrt(6.0 / 5));
}

TEST(Init, FansOfMatricesAndWindows) {
  EXPECT_EQ(nn::init::fans({5, 7}).in, 7);
  EXPECT_EQ(nn::init::fans({5, 7}).out, 5);
  EXPECT_EQ(nn::init::fans({3, 3, 8, 16}).in, 72);
  EXPECT_EQ(nn::init::fans({3, 3, 8, 16}).out, 144);
  Generator gen(1);
  Tensor<float> v({3}), none({0, 0});
  EXPECT_EQ(message_of<ShapeError>([&] { nn::init::xavier_uniform(v, gen); }),
            "fans: rank is too low; weight is (3); expected a matrix (out, in), or (..., in, out)");
  EXPECT_EQ(message_of<ValueError>([&] { nn::init::uniform(v, gen, 1, 1); }),
            "init::uniform: bad interval; lo is 1, hi is 1; expected finite lo < hi");
  EXPECT_EQ(message_of<ValueError>([&] { nn::init::normal(v, gen, 0, -1); }),
            "init::normal: bad parameters; mean is 0, std is -1; expected finite numbers and std >= 0");
  nn::init::kaiming_uniform(none, gen);
  nn::init::xavier_normal(none, gen);
}

TEST(Linear, BeginsUniformWithinOneOverTheRootOfIn) {
  Generator gen(1);
  const nn::Linear<float> layer(400, 300, gen);
  expect_uniform(Moments(layer.weight), 0.05);
  EXPECT_LE(Moments(*layer.bias).hi, 0.05);
  EXPECT_GT(Moments(*layer.bias).std, 0.025);
  EXPECT_EQ(layer.weight.shape(), Shape({300, 400}));
  EXPECT_EQ(layer.bias->shape(), Shape({300}));
  Generator same(1);
  EXPECT_EQ(nn::Linear<float>(400, 300, same).weight.to_vector(), layer.weight.to_vector());
  EXPECT_NE(nn::Linear<float>(400, 300, gen).weight.to_vector(), layer.weight.to_vector());
}

TEST(Linear, ValuesWithAndWithoutBias) {
  Generator gen(1);
  nn::Linear<double> layer(2, 3, gen), plain(2, 3, gen, {.bias = false});
  layer.weight.copy_from(Tensor<double>({3, 2}, {1, 2, 3, 4, 5, 6}));
  layer.bias->copy_from(Tensor<double>({3}, {0.5, -20, 1}));
  const Tensor<double> x({1, 2}, {1, -1});
  EXPECT_EQ(layer(x).to_vector(), (std::vector<double>{-0.5, -21, 0}));
  EXPECT_EQ(layer.with_relu(x).to_vector(), (std::vector<double>{0, 0, 0}));
  EXPECT_FALSE(plain.bias);
  EXPECT_EQ(plain.parameter_count(), 6);
  plain.weight.copy_from(layer.weight.detach());
  EXPECT_EQ(plain(x).to_vector(), (std::vector<double>{-1, -1, -1}));
  EXPECT_EQ(plain.with_relu(-x).to_vector(), (std::vector<double>{1, 1, 1}));
  EXPECT_EQ(nn::Linear<float>(0, 2, gen)(ones<float>({1, 0})).to_vector(), (std::vector<float>{0, 0}));
  EXPECT_EQ(message_of<ShapeError>([&] { nn::Linear<float>(-1, 2, gen); }),
            "linear: negative dimension; shape is (2, -1); expected dimensions >= 0");
}

TEST(Layers, NameThemselvesWhenASizeIsNegative) {
  Generator gen(1);
  const std::string fault = ": negative dimension; shape is ";
  EXPECT_EQ(message_of<ShapeError>([&] { nn::Embedding<float>(-3, 2, gen); }),
            "embedding" + fault + "(-3, 2); expected dimensions >= 0");
  EXPECT_EQ(message_of<ShapeError>([] { nn::BatchNorm2d<float>(-1); }),
            "batch_norm_2d" + fault + "(-1); expected dimensions >= 0");
  EXPECT_EQ(message_of<ShapeError>([] { nn::GroupNorm<float>(2, -2); }),
            "group_norm" + fault + "(-2); expected dimensions >= 0");
  EXPECT_EQ(message_of<ShapeError>([] { nn::InstanceNorm2d<float>(-1); }),
            "instance_norm_2d" + fault + "(-1); expected dimensions >= 0");
  EXPECT_EQ(message_of<ShapeError>([] {
              nn::LayerNorm<float>({2, -1});
            }),
            "layer_norm" + fault + "(2, -1); expected dimensions >= 0");
}

TEST(Embedding, RowsOfANormalTable) {
  Generator gen(1);
  const nn::Embedding<float> table(1000, 50, gen);
  EXPECT_NEAR(Moments(table.weight).mean, 0, 0.02);
  EXPECT_NEAR(Moments(table.weight).std, 1, 0.02);
  const Tensor<Index> i({2, 2}, {3, 0, 999, 3});
  const Tensor<float> y = table(i);
  EXPECT_EQ(y.shape(), Shape({2, 2, 50}));
  EXPECT_EQ(y.at(1, 0, 7), table.weight.at(999, 7));
  EXPECT_EQ(
      message_of<IndexError>([&] { table(Tensor<Index>({1}, {1000})); }),
      "embedding: index 1000 at position 0 is out of range; weight is (1000, 50), axis 0; expected 0..999");
}

TEST(BatchNorm1d, TrainsByTheBatchAndEvaluatesByTheRunningStatistics) {
  nn::BatchNorm1d<double> norm(2, {.eps = 0, .momentum = 0.5});
  const Tensor<double> x({3, 2}, {0, 0, 3, 10, 6, 20});  // means 3 and 10, unbiased variances 9 and 100
  const Tensor<double> y = norm(x);
  EXPECT_NEAR(y.at(2, 0), 3 / std::sqrt(6.0), 1e-12);
  EXPECT_NEAR(y.at(0, 1), -10 / std::sqrt(200.0 / 3), 1e-12);
  EXPECT_DOUBLE_EQ(norm.running_mean.at(0), 1.5);
  EXPECT_DOUBLE_EQ(norm.running_var.at(1), 50.5);
  norm.eval();
  EXPECT_NEAR(norm(x).at(2, 1), (20 - 5) / std::sqrt(50.5), 1e-12);
  EXPECT_DOUBLE_EQ(norm.running_mean.at(0), 1.5);
  EXPECT_EQ(norm(ones<double>({4, 5, 2})).shape(), Shape({4, 5, 2}));
}

TEST(BatchNorm1d, OptionsAndFaults) {
  nn::BatchNorm1d<float> norm(2), plain(2, {.affine = false});
  EXPECT_EQ(norm.parameters().size(), 2u);
  EXPECT_EQ(norm.state().size(), 4u);
  EXPECT_EQ(plain.parameters().size(), 0u);
  EXPECT_EQ(plain.state().size(), 2u);
  EXPECT_EQ(plain(ones<float>({3, 2})).to_vector(), std::vector<float>(6, 0));
  EXPECT_EQ(message_of<ShapeError>([&] { norm(ones<float>({2})); }),
            "batch_norm_1d: wrong rank; x is (2); expected (N, C) or (N, L, C)");
  EXPECT_EQ(message_of<ShapeError>([&] {
              norm(ones<float>({4, 3}));
            }),
            "batch_norm: weight does not fit; x is (4, 3), weight is (2); expected (3)");
  EXPECT_EQ(
      message_of<ValueError>([&] { nn::BatchNorm1d<float>(2, {.momentum = 2}); }),
      "batch_norm_1d: bad options; eps is 1e-05, momentum is 2; expected eps >= 0 and 0 <= momentum <= 1");
}

TEST(LayerNorm, ValuesOptionsAndFaults) {
  const nn::LayerNorm<double> norm({2}), plain({2}, {.affine = false});
  const Tensor<double> x({1, 2}, {1, 3});
  EXPECT_NEAR(norm(x).at(0, 0), -1 / std::sqrt(1 + 1e-5), 1e-12);
  EXPECT_EQ(norm.parameters().size(), 2u);
  EXPECT_EQ(plain.parameters().size(), 0u);
  EXPECT_EQ(plain(x).to_vector(), norm(x).to_vector());
  EXPECT_EQ(
      message_of<ShapeError>([&] {
        norm(ones<double>({2, 3}));
      }),
      "layer_norm: normalized shape differs from the last axes of x; x is (2, 3), normalized shape is (2); "
      "expected x.shape() to end in it");
  EXPECT_EQ(message_of<ValueError>([] { nn::LayerNorm<float>({2}, {.eps = -1}); }),
            "layer_norm: bad eps; got -1; expected eps >= 0");
}

TEST(Dropout, DropsInTrainingOnly) {
  Generator gen(1);
  nn::Dropout drop(0.25, gen);
  const auto x = ones<float>({100, 100});
  const Tensor<float> y = drop(x);
  Index kept = 0;
  for (const float v : y.to_vector()) {
    EXPECT_TRUE(v == 0 || v == 1 / 0.75f);
    kept += v != 0;
  }
  EXPECT_NEAR(static_cast<double>(kept), 7500, 150);
  nn::Dropout copy = drop;
  EXPECT_EQ(copy(x).to_vector(), drop(x).to_vector());  // the same stream, each its own
  EXPECT_NE(drop(x).to_vector(), y.to_vector());
  nn::Dropout other(0.25, gen);
  EXPECT_NE(other.generator().seed(), drop.generator().seed());
  drop.eval();
  EXPECT_TRUE(drop(x).shares_buffer(x));
  EXPECT_EQ(message_of<ValueError>([&] { nn::Dropout(-1, gen); }),
            "dropout: p is out of range; p is -1; expected 0 <= p <= 1");
}

TEST(Activations, AreTheOperators) {
  const Tensor<double> x({4}, {-2, -0.5, 0, 1.5});
  const auto same = [&](const Tensor<double>& y, auto f) {
    for (Index i = 0; i < 4; ++i) EXPECT_NEAR(y.at(i), f(x.at(i)), 1e-14);
  };
  const auto logistic = [](double v) { return 1 / (1 + std::exp(-v)); };
  same(nn::ReLU()(x), [](double v) { return v > 0 ? v : 0; });
  same(nn::Tanh()(x), [](double v) { return std::tanh(v); });
  same(nn::Sigmoid()(x), logistic);
  same(nn::SiLU()(x), [&](double v) { return v * logistic(v); });
  same(nn::Softplus()(x), [](double v) { return std::log1p(std::exp(v)); });
  same(nn::GELU()(x), [](double v) { return v / 2 * std::erfc(-v / std::sqrt(2.0)); });
  same(nn::GELU(Gelu::tanh)(x), [](double v) {
    return v / 2 * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (v + 0.044715 * v * v * v)));
  });
  EXPECT_EQ(nn::Flatten()(ones<float>({2, 3, 4})).shape(), Shape({2, 12}));
  EXPECT_EQ(nn::Flatten(0, 1)(ones<float>({2, 3, 4})).shape(), Shape({6, 4}));
}

TEST(Sequential, RunsInOrderAndNamesByPosition) {
  Generator gen(1);
  nn::Sequential model{nn::Linear<double>(3, 4, gen), nn::ReLU(), nn::Dropout(0.5, gen),
                       nn::BatchNorm1d<double>(4), nn::Linear<double>(4, 2, gen)};
  static_assert(std::same_as<decltype(model)::value_type, double>);
  static_assert(model.size() == 5);
  model.eval();
  const auto x = normal<double>({5, 3}, gen);
  const Tensor<double> y = model(x);
  const Tensor<double> by_hand = model.get<4>()(model.get<3>()(relu(model.get<0>()(x))));
  EXPECT_EQ(y.to_vector(), by_hand.to_vector());
  EXPECT_EQ(model.named_parameters()[2].name, "3.weight");
  EXPECT_EQ(model.named_parameters().size(), 6u);
  auto copy = model;
  EXPECT_FALSE(copy.get<0>().weight.shares_buffer(model.get<0>().weight));
}

TEST(Sequential, GradientsThroughTheFusedRelu) {
  Generator gen(1);
  nn::Sequential model{nn::Linear<double>(3, 4, gen), nn::ReLU(), nn::Linear<double>(4, 1, gen)};
  const auto x = normal<double>({6, 3}, gen);
  GradStore fused, apart;
  backward(sum(model(x)), fused);
  backward(sum(model.get<2>()(relu(model.get<0>()(x)))), apart);
  for (const auto& p : model.parameters()) EXPECT_EQ(fused[p].to_vector(), apart[p].to_vector());
}

TEST(Sequential, BeginsWithIndices) {
  Generator gen(1);
  nn::Sequential model{nn::Embedding<float>(10, 4, gen), nn::Flatten(), nn::Linear<float>(8, 2, gen)};
  EXPECT_EQ(model(Tensor<Index>({3, 2}, {0, 1, 2, 3, 4, 5})).shape(), Shape({3, 2}));
  nn::Sequential nested{std::move(model), nn::Tanh()};
  EXPECT_EQ(nested.named_parameters()[0].name, "0.0.weight");
}

}  // namespace
