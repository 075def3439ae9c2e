// Convolutions as modules: shapes, initial weights, counts, the summary, a network that learns, refused
// arguments.

#include <cmath>

#include <gtest/gtest.h>

#include <wengert/core/backward.hpp>
#include <wengert/nn/activation.hpp>
#include <wengert/nn/conv.hpp>
#include <wengert/nn/sequential.hpp>
#include <wengert/ops/arithmetic.hpp>
#include <wengert/ops/create_random.hpp>
#include <wengert/ops/losses.hpp>
#include <wengert/ops/reduce.hpp>
#include <wengert/optim/adam.hpp>

#include "support/errors.hpp"

using namespace wengert;

namespace {

template <class T>
void expect_same(const Tensor<T>& got, const Tensor<T>& expected) {
  EXPECT_EQ(got.shape(), expected.shape());
  EXPECT_EQ(got.to_vector(), expected.to_vector());
}

TEST(ConvModules, AreTheOperators) {
  Generator gen(1);
  const auto line = normal<float>({2, 9, 4}, gen), image = normal<float>({2, 8, 9, 4}, gen),
             volume = normal<float>({1, 5, 6, 7, 4}, gen);
  const nn::Conv1d<float> one(4, 6, 3, gen, {.stride = 2, .padding = 1, .groups = 2});
  expect_same(one(line), conv1d(line, one.weight, *one.bias, {.stride = 2, .padding = 1, .groups = 2}));
  expect_same(one.with_relu(line),
              conv1d_relu(line, one.weight, *one.bias, {.stride = 2, .padding = 1, .groups = 2}));
  const nn::Conv2d<float> two(4, 6, {3, 5}, gen, {.padding = "same", .dilation = {2, 1}});
  expect_same(two(image), conv2d(image, two.weight, *two.bias, {.padding = "same", .dilation = {2, 1}}));
  const nn::Conv3d<float> three(4, 6, {1, 2, 3}, gen, {.bias = false});
  expect_same(three(volume), conv3d(volume, three.weight));
  const nn::ConvTranspose1d<float> up1(4, 6, 4, gen, {.stride = 2, .padding = 1});
  expect_same(up1(line), conv_transpose1d(line, up1.weight, *up1.bias, {.stride = 2, .padding = 1}));
  const nn::ConvTranspose2d<float> up2(4, 6, 3, gen, {.stride = 2, .output_padding = {1, 0}, .groups = 2});
  expect_same(up2(image), conv_transpose2d(image, up2.weight, *up2.bias,
                                           {.stride = 2, .output_padding = {1, 0}, .groups = 2}));
  const nn::ConvTranspose3d<float> up3(4, 6, 2, gen, {.dilation = 2, .bias = false});
  expect_same(up3(volume), conv_transpose3d(volume, up3.weight, {.dilation = 2}));
}

TEST(ConvModules, ShapesAndCounts) {
  Generator gen(1);
  const nn::Conv2d<float> stem(3, 64, 7, gen, {.stride = 2, .padding = 3, .bias = false});
  EXPECT_EQ(stem.weight.shape(), Shape({7, 7, 3, 64}));
  EXPECT_FALSE(stem.bias);
  EXPECT_EQ(stem.parameter_count(), 7 * 7 * 3 * 64);
  EXPECT_EQ(stem.parameters().size(), 1u);
  EXPECT_EQ(stem(Tensor<float>({2, 32, 31, 3})).shape(), Shape({2, 16, 16, 64}));
  const nn::Conv2d<float> grouped(12, 18, {3, 1}, gen, {.groups = 3});
  EXPECT_EQ(grouped.weight.shape(), Shape({3, 1, 4, 18}));
  EXPECT_EQ(grouped.parameter_count(), 3 * 4 * 18 + 18);
  EXPECT_EQ(grouped.named_parameters()[0].name, "weight");
  EXPECT_EQ(grouped.named_parameters()[1].name, "bias");
  EXPECT_EQ(nn::Conv1d<double>(2, 5, 4, gen).weight.shape(), Shape({4, 2, 5}));
  EXPECT_EQ(nn::Conv3d<double>(2, 5, {1, 2, 3}, gen).weight.shape(), Shape({1, 2, 3, 2, 5}));
  const nn::ConvTranspose2d<float> up(12, 18, 2, gen, {.stride = 2, .groups = 3});
  EXPECT_EQ(up.weight.shape(), Shape({2, 2, 6, 12}));
  EXPECT_EQ(up.bias->shape(), Shape({18}));
  EXPECT_EQ(up.parameter_count(), 4 * 6 * 12 + 18);
  EXPECT_EQ(up(Tensor<float>({2, 5, 4, 12})).shape(), Shape({2, 10, 8, 18}));
  EXPECT_EQ(nn::ConvTranspose1d<float>(3, 4, 5, gen).weight.shape(), Shape({5, 4, 3}));
  EXPECT_EQ(nn::ConvTranspose3d<float>(3, 4, 2, gen).weight.shape(), Shape({2, 2, 2, 4, 3}));
}

/// Uniform in +-1 / sqrt(fan): fills the interval.
void expect_fills(const Tensor<float>& x, double fan) {
  double lo = HUGE_VAL, hi = -HUGE_VAL, squares = 0;
  for (const double v : x.to_vector()) {
    lo = std::min(lo, v);
    hi = std::max(hi, v);
    squares += v * v / static_cast<double>(x.size());
  }
  const double bound = 1 / std::sqrt(fan);
  EXPECT_GE(lo, -bound);
  EXPECT_LE(hi, bound);
  EXPECT_LT(lo, -0.95 * bound);
  EXPECT_GT(hi, 0.95 * bound);
  EXPECT_NEAR(std::sqrt(squares), bound / std::sqrt(3), 0.1 * bound);
}

TEST(ConvModules, BeginUniformWithinOneOverTheRootOfTheFan) {
  Generator gen(1);
  const nn::Conv2d<float> plain(16, 300, 3, gen), grouped(16, 320, 3, gen, {.groups = 4});
  expect_fills(plain.weight, 9 * 16);
  expect_fills(*plain.bias, 9 * 16);
  expect_fills(grouped.weight, 9 * 4);
  expect_fills(*grouped.bias, 9 * 4);
  const nn::Conv1d<float> one(16, 300, 5, gen);
  expect_fills(one.weight, 5 * 16);
  const nn::Conv3d<float> three(4, 300, 2, gen);
  expect_fills(*three.bias, 8 * 4);
  // PyTorch counts the outputs of a transposed one.
  const nn::ConvTranspose2d<float> up(40, 300, 3, gen, {.groups = 2});
  expect_fills(up.weight, 9 * 150);
  expect_fills(*up.bias, 9 * 150);
}

TEST(ConvModules, SameSeedSameWeights) {
  Generator a(7), b(7), c(8);
  const nn::Conv2d<float> x(3, 4, 3, a), y(3, 4, 3, b), z(3, 4, 3, c);
  expect_same<float>(x.weight, y.weight);
  expect_same<float>(*x.bias, *y.bias);
  EXPECT_NE(x.weight.to_vector(), z.weight.to_vector());
  EXPECT_NE(x.weight.to_vector(), (nn::Conv2d<float>(3, 4, 3, a).weight.to_vector()));
}

struct Net : nn::Module<Net> {
  Generator gen{3};
  nn::Conv2d<float> stem{1, 8, 3, gen, {.stride = 2, .padding = 1}};
  nn::Conv2d<float> depthwise{8, 8, 3, gen, {.padding = "same", .groups = 8, .bias = false}};
  nn::ConvTranspose2d<float> up{8, 1, 2, gen, {.stride = 2}};
  void members(auto& list) { list("stem", stem, "depthwise", depthwise, "up", up); }
  Tensor<float> operator()(const Tensor<float>& x) const { return up(depthwise(stem.with_relu(x))); }
};

TEST(ConvModules, ASummaryShowsTheirOutputs) {
  Net net;
  EXPECT_EQ(net.summary(Tensor<float>({5, 8, 6, 1})),
            "layer      type             output        parameters\n"
            "stem       Conv2d           (5, 4, 3, 8)          80\n"
            "depthwise  Conv2d           (5, 4, 3, 8)          72\n"
            "up         ConvTranspose2d  (5, 8, 6, 1)          33\n"
            "total      Net              (5, 8, 6, 1)         185\n");
}

TEST(ConvModules, ACopySharesNothing) {
  Net net;
  Net copy = net;
  EXPECT_FALSE(copy.stem.weight.shares_buffer(net.stem.weight));
  const auto x = Tensor<float>({1, 4, 4, 1}, std::vector<float>(16, 1));
  expect_same(copy(x), net(x));
  net.stem.weight.fill(0);
  EXPECT_NE(copy(x).to_vector(), net(x).to_vector());
}

// The differences of neighbours to the right and below, which a 3 x 3 layer can express exactly.
TEST(ConvModules, LearnAFilter) {
  Generator gen(5);
  const auto x = normal<float>({8, 7, 6, 1}, gen);
  Tensor<float> filter(Shape{3, 3, 1, 2});
  filter.fill(0);
  filter.mutable_data()[2 * 4] = -1;
  filter.mutable_data()[2 * 5] = 1;
  filter.mutable_data()[2 * 4 + 1] = -1;
  filter.mutable_data()[2 * 7 + 1] = 1;
  const Tensor<float> target = conv2d(x, filter, Tensor<float>(Shape{2}, {0.5f, -0.25f}), {.padding = 1});
  nn::Conv2d<float> layer(1, 2, 3, gen, {.padding = 1});
  optim::Adam<float> opt(layer.parameters(), {.lr = 0.05});
  GradStore grads;
  float loss = 0;
  for (int i = 0; i < 300; ++i) {
    const Tensor<float> error = mse_loss(layer(x), target);
    loss = error.item();
    backward(error, grads);
    opt.step(grads);
    grads.zero();
  }
  EXPECT_LT(loss, 1e-6f);
  for (Index i = 0; i < 18; ++i) EXPECT_NEAR(layer.weight.data()[i], filter.data()[i], 2e-3) << i;
  EXPECT_NEAR(layer.bias->at(0), 0.5, 2e-3);
  EXPECT_NEAR(layer.bias->at(1), -0.25, 2e-3);
}

TEST(ConvModules, AnAutoencoderLearns) {
  Net net;
  Generator gen(6);
  const auto x = normal<float>({6, 8, 8, 1}, gen);
  optim::Adam<float> opt(net.parameters(), {.lr = 0.01});
  GradStore grads;
  const auto step = [&] {
    const Tensor<float> loss = mse_loss(net(x), x);
    backward(loss, grads);
    opt.step(grads);
    grads.zero();
    return loss.item();
  };
  const float first = step();
  float last = first;
  for (int i = 0; i < 200; ++i) last = step();
  EXPECT_LT(last, 0.6f * first);
}

TEST(ConvModules, FuseWithReluInASequence) {
  Generator gen(1);
  nn::Sequential model{nn::Conv2d<double>(2, 3, 3, gen), nn::ReLU(), nn::Conv2d<double>(3, 1, 2, gen)};
  const auto x = normal<double>({2, 6, 5, 2}, gen);
  const auto by_hand = [&] { return model.get<2>()(relu(model.get<0>()(x))); };
  expect_same(model(x), by_hand());
  GradStore fused, apart;
  backward(sum(model(x)), fused);
  backward(sum(by_hand()), apart);
  for (const auto& p : model.parameters()) {
    const auto a = fused[p].to_vector(), b = apart[p].to_vector();
    for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-12);
  }
}

TEST(ConvModules, RefuseWhatMakesNoSense) {
  Generator gen(1);
  EXPECT_ERROR(nn::Conv2d<float>(0, 4, 3, gen), ValueError,
               "conv2d: bad input channels; got 0 in 1 groups; expected a positive multiple of the groups");
  EXPECT_ERROR(nn::Conv2d<float>(4, -4, 3, gen), ValueError,
               "conv2d: bad output channels; got -4 in 1 groups; expected a positive multiple of the groups");
  EXPECT_ERROR(nn::Conv2d<float>(4, 6, 3, gen, {.groups = 3}), ValueError,
               "conv2d: bad input channels; got 4 in 3 groups; expected a positive multiple of the groups");
  EXPECT_ERROR(nn::Conv1d<float>(6, 4, 3, gen, {.groups = 3}), ValueError,
               "conv1d: bad output channels; got 4 in 3 groups; expected a positive multiple of the groups");
  EXPECT_ERROR(nn::Conv3d<float>(6, 4, 3, gen, {.groups = 0}), ValueError,
               "conv3d: bad input channels; got 6 in 0 groups; expected a positive multiple of the groups");
  EXPECT_ERROR(nn::Conv2d<float>(4, 6, 0, gen), ValueError,
               "conv2d: kernel is too small; got 0; expected at least 1");
  EXPECT_ERROR(nn::Conv2d<float>(4, 6, {3, 3, 3}, gen), ValueError,
               "conv2d: kernel has 3 numbers; got (3, 3, 3); expected one, or 2");
  EXPECT_ERROR(
      nn::ConvTranspose2d<float>(4, 6, 3, gen, {.groups = 4}), ValueError,
      "conv_transpose2d: bad output channels; got 6 in 4 groups; expected a positive multiple of the groups");
  EXPECT_ERROR(
      nn::ConvTranspose1d<float>(5, 6, 3, gen, {.groups = 3}), ValueError,
      "conv_transpose1d: bad input channels; got 5 in 3 groups; expected a positive multiple of the groups");
  EXPECT_ERROR(nn::ConvTranspose3d<float>(4, 4, {2, 0, 2}, gen), ValueError,
               "conv_transpose3d: kernel is too small; got (2, 0, 2); expected at least 1");
  const nn::Conv2d<float> layer(3, 4, 3, gen);
  EXPECT_ERROR(
      layer(Tensor<float>({2, 5, 5, 4})), ShapeError,
      "conv2d: channels differ; x is (2, 5, 5, 4), w is (3, 3, 3, 4), groups is 1; expected w.dim(2) "
      "== 4");
}

}  // namespace
