// Convolutions where rows cannot look: NaN and infinity, adjointness, linearity, agreement with linear,
// views, dual numbers, gradients of some operands alone.
#include <cmath>
#include <string>

#include <gtest/gtest.h>

#include <wengert/core/backward.hpp>
#include <wengert/kernels/dual.hpp>
#include <wengert/ops/conv.hpp>
#include <wengert/ops/conv_transpose.hpp>
#include <wengert/ops/linear.hpp>
#include <wengert/ops/view.hpp>
#include <wengert/ops/view_expand.hpp>

#include "kernels/conv_reference.hpp"

namespace {

using namespace wengert;
using conv_reference::Sizes;
using Values = std::vector<double>;

template <class T = double>
Tensor<T> noisy(const Shape& shape, std::uint64_t seed) {
  Tensor<T> x(shape);
  const Values v = conv_reference::numbers(x.size(), seed);
  for (Index i = 0; i < x.size(); ++i)
    x.fresh_data()[i] = T(static_cast<double>(static_cast<float>(v[static_cast<std::size_t>(i)])));
  return x;
}

/// A layer of each algorithm, all small enough for the direct path where Winograd might come in.
struct Layer {
  const char* name;
  Sizes sizes;
  kernels::ConvAlgorithm algorithm;
};
const Layer layers[] = {
    {"direct", {2, 5, 19, 1, {}, {6, 3, 1, 1, 1}, {7, 3, 1, 1, 1}}, kernels::ConvAlgorithm::direct},
    {"strided", {1, 17, 9, 1, {}, {9, 3, 2, 1, 1}, {8, 2, 3}}, kernels::ConvAlgorithm::direct},
    {"dilated", {1, 3, 4, 1, {}, {9, 3, 1, 2, 2, 2}, {9, 2, 1, 0, 0, 3}}, kernels::ConvAlgorithm::direct},
    {"product", {2, 18, 33, 1, {}, {3}, {4}}, kernels::ConvAlgorithm::product},
    {"depthwise", {2, 21, 21, 21, {}, {6, 3, 1, 1, 1}, {7, 3, 2, 1, 1}}, kernels::ConvAlgorithm::depthwise},
    {"grouped", {1, 20, 30, 10, {}, {6, 3, 1, 1, 1}, {7, 3, 1, 1, 1}}, kernels::ConvAlgorithm::grouped},
    {"groups", {1, 18, 20, 2, {}, {6, 3, 1, 1, 1}, {7, 3, 1, 1, 1}}, kernels::ConvAlgorithm::direct},
};

ConvOptions options_of(const Sizes& s) {
  EXPECT_TRUE(s.h.before == s.h.after && s.w.before == s.w.after);
  return {.stride = {s.h.stride, s.w.stride},
          .padding = {s.h.before, s.w.before},
          .dilation = {s.h.dilation, s.w.dilation},
          .groups = s.groups};
}
/// Those of the adjoint, which gives back also the pixels at the end that no window reached.
ConvTransposeOptions transposed_options_of(const Sizes& s) {
  const auto left = [](const conv_reference::Axis& a) {
    return (a.in + a.before + a.after - (a.kernel - 1) * a.dilation - 1) % a.stride;
  };
  const ConvOptions o = options_of(s);
  return {.stride = o.stride,
          .padding = o.padding.numbers(),
          .output_padding = {left(s.h), left(s.w)},
          .dilation = o.dilation,
          .groups = s.groups};
}
Shape image_of(const Sizes& s) { return {s.batch, s.h.in, s.w.in, s.channels}; }
Shape weight_of(const Sizes& s) { return {s.h.kernel, s.w.kernel, s.channels / s.groups, s.out_channels}; }

/// What loops over every product make of x, w and dy.
struct Plain {
  Values y, dx, dw;
  template <class T>
  Plain(const Sizes& s, const Tensor<T>& x, const Tensor<T>& w, const Tensor<T>& dy)
      : y(static_cast<std::size_t>(dy.size())),
        dx(static_cast<std::size_t>(x.size())),
        dw(static_cast<std::size_t>(w.size())) {
    const T *px = x.data(), *pw = w.data(), *pd = dy.data();
    conv_reference::for_products(conv_reference::shape_of(s), [&](Index i, Index j, Index o) {
      y[static_cast<std::size_t>(o)] += double(px[i]) * double(pw[j]);
      dx[static_cast<std::size_t>(i)] += double(pd[o]) * double(pw[j]);
      dw[static_cast<std::size_t>(j)] += double(px[i]) * double(pd[o]);
    });
  }
};

template <class T>
void expect_like(const Tensor<T>& got, const Values& expected, double bound, const std::string& what) {
  ASSERT_EQ(got.size(), static_cast<Index>(expected.size())) << what;
  for (Index i = 0; i < got.size(); ++i) {
    const double g = static_cast<double>(got.data()[i]), e = expected[static_cast<std::size_t>(i)];
    if (std::isnan(e))
      ASSERT_TRUE(std::isnan(g)) << what << " at " << i << ": " << g;
    else if (std::isinf(e))
      ASSERT_EQ(g, e) << what << " at " << i;
    else
      ASSERT_NEAR(g, e, bound) << what << " at " << i;
  }
}

/// One odd value, in x or in dy, spoils exactly what it spoils in loops over the products. In dy it is one
/// whose window lies within the image, and it is not tried in w: there it may meet the zeros of the padding,
/// which the loops leave out.
template <class T>
void expect_spread(const Layer& layer, double odd) {
  const Sizes& s = layer.sizes;
  for (const auto pass : {kernels::ConvPass::forward, kernels::ConvPass::data, kernels::ConvPass::weights})
    ASSERT_EQ(kernels::conv_algorithm<T>(conv_reference::shape_of(s), pass), layer.algorithm);
  for (const Index at : {0, 1, 2, 3}) {
    const std::string what = layer.name + (at < 3 ? ", x " + std::to_string(at) : std::string(", dy"));
    Tensor<T> x = noisy<T>(image_of(s), 1), w = noisy<T>(weight_of(s), 2);
    Tensor<T> dy = noisy<T>(conv2d(x, w, options_of(s)).shape(), 3);
    if (at < 3)
      x.mutable_data()[(x.size() - 1) * at / 2] = T(odd);
    else
      dy.mutable_data()[((dy.dim(1) / 2) * dy.dim(2) + dy.dim(2) / 2) * dy.dim(3) + 1] = T(odd);
    x.requires_grad(true);
    w.requires_grad(true);
    GradStore grads;
    const Tensor<T> y = conv2d(x, w, options_of(s));
    backward(y, dy, grads);
    const Plain plain(s, x, w, dy);
    const double bound = sizeof(T) == 4 ? 1e-4 : 1e-12;
    expect_like(y, plain.y, bound, what + ", y");
    expect_like(grads[x], plain.dx, bound, what + ", dx");
    expect_like(grads[w], plain.dw, bound, what + ", dw");
  }
}

TEST(Conv, NanAndInfinityGoWherePlainLoopsTakeThem) {
  for (const Layer& layer : layers)
    for (const double odd : {double(NAN), HUGE_VAL, -HUGE_VAL}) {
      expect_spread<float>(layer, odd);
      expect_spread<double>(layer, odd);
    }
}

TEST(Conv, ANanWeightSpoilsItsOutputChannelAlone) {
  for (const Layer& layer : layers) {
    Tensor<float> x = noisy<float>(image_of(layer.sizes), 1), w = noisy<float>(weight_of(layer.sizes), 2);
    const Index k = layer.sizes.out_channels, spoilt = k / 2;
    w.mutable_data()[spoilt] = NAN;
    const Tensor<float> y = conv2d(x, w, {.groups = layer.sizes.groups});
    for (Index i = 0; i < y.size(); ++i)
      ASSERT_EQ(std::isnan(y.data()[i]), i % k == spoilt) << layer.name << " at " << i;
  }
}

// Winograd's sums mix the inputs of a tile of at most 6 x 6 pixels; what does not share one stays clean.
TEST(Conv, WinogradKeepsANanWithinItsTile) {
  const Sizes s{2, 32, 32, 1, {}, {28, 3, 1, 1, 1}, {26, 3, 1, 1, 1}};
  ASSERT_EQ(kernels::conv_algorithm<float>(conv_reference::shape_of(s), kernels::ConvPass::forward),
            kernels::ConvAlgorithm::winograd4);
  Tensor<float> x = noisy<float>(image_of(s), 1), w = noisy<float>(weight_of(s), 2);
  x.mutable_data()[((0 * 28 + 13) * 26 + 11) * 32 + 5] = NAN;
  const Tensor<float> y = conv2d(x, w, options_of(s));
  for (Index n = 0; n < 2; ++n)
    for (Index i = 0; i < 28; ++i)
      for (Index j = 0; j < 26; ++j)
        for (Index c = 0; c < 32; ++c) {
          const Index far = std::max(std::abs(i - 13), std::abs(j - 11));
          const bool reads = n == 0 && far <= 1, apart = n == 1 || far >= 6;
          const float v = y.at(n, i, j, c);
          ASSERT_TRUE(!reads || std::isnan(v)) << i << ", " << j << ", " << c;
          ASSERT_TRUE(!apart || std::isfinite(v)) << n << ", " << i << ", " << j << ", " << c;
        }
}

double dot(const Tensor<double>& a, const Tensor<double>& b) {
  EXPECT_EQ(a.shape(), b.shape());
  double sum = 0;
  for (Index i = 0; i < a.size(); ++i) sum += a.data()[i] * b.data()[i];
  return sum;
}

TEST(Conv, TheTransposedOneIsItsAdjoint) {
  for (const Layer& layer : layers) {
    const Sizes& s = layer.sizes;
    const Tensor<double> x = noisy(image_of(s), 1), w = noisy(weight_of(s), 2);
    const Tensor<double> y = conv2d(x, w, options_of(s)), dy = noisy(y.shape(), 3);
    const Tensor<double> back = conv_transpose2d(dy, w, transposed_options_of(s));
    ASSERT_EQ(back.shape(), x.shape()) << layer.name;
    EXPECT_NEAR(dot(y, dy), dot(x, back), 1e-11 * std::sqrt(static_cast<double>(y.size()))) << layer.name;
    EXPECT_GT(std::abs(dot(y, dy)), 1e-3) << layer.name;
  }
}

TEST(Conv, IsLinearInBothOperands) {
  const auto combined = [](const Tensor<double>& a, const Tensor<double>& b) {
    Tensor<double> c(a.shape());
    for (Index i = 0; i < a.size(); ++i) c.fresh_data()[i] = 2 * a.data()[i] - 3 * b.data()[i];
    return c;
  };
  for (const Layer& layer : layers) {
    const ConvOptions o = options_of(layer.sizes);
    const Shape image = image_of(layer.sizes), weight = weight_of(layer.sizes);
    const Tensor<double> x = noisy(image, 1), x2 = noisy(image, 4), w = noisy(weight, 2),
                         w2 = noisy(weight, 5);
    const auto same = [&](const Tensor<double>& got, const Tensor<double>& expected) {
      expect_like(got, expected.to_vector(), 1e-12, layer.name);
    };
    same(conv2d(combined(x, x2), w, o), combined(conv2d(x, w, o), conv2d(x2, w, o)));
    same(conv2d(x, combined(w, w2), o), combined(conv2d(x, w, o), conv2d(x, w2, o)));
  }
}

TEST(Conv, OfOnePixelTapsIsLinear) {
  const Index in = 19, out = 21;
  Tensor<float> x = noisy<float>({3, 4, 5, in}, 1), w = noisy<float>({1, 1, in, out}, 2),
                b = noisy<float>({out}, 3), turned({out, in});
  for (Index i = 0; i < out; ++i)
    for (Index j = 0; j < in; ++j) turned.fresh_data()[i * in + j] = w.data()[j * out + i];
  for (Tensor<float>* t : {&x, &w, &b, &turned}) t->requires_grad(true);
  const Tensor<float> dy = noisy<float>({3, 4, 5, out}, 4);
  GradStore conv, matrix;
  for (const bool relu : {false, true}) {
    const Tensor<float> y = relu ? conv2d_relu(x, w, b) : conv2d(x, w, b);
    backward(y, dy, conv);
    const Tensor<float> z = relu ? linear_relu(x, turned, b) : linear(x, turned, b);
    backward(z, dy, matrix);
    const auto same = [](const Tensor<float>& got, const Tensor<float>& expected) {
      const auto v = expected.to_vector();
      expect_like(got, Values(v.begin(), v.end()), 2e-5, "");
    };
    same(y, z);
    same(conv[x], matrix[x]);
    same(conv[b], matrix[b]);
    same(transpose(reshape(conv[w], {in, out}), 0, 1).packed(), matrix[turned]);
    conv.zero();
    matrix.zero();
  }
}

// A batch of none may have any size and padding: nothing is planned for its pixels.
TEST(Conv, OfNoImagesTakesNoTimeWhateverTheirSize) {
  const Index huge = Index{1} << 27;
  for (const auto& [shape, padding] :
       {std::pair{Shape{0, huge, huge, 4}, Index{1}}, {Shape{0, 5, 5, 4}, huge}}) {
    const Tensor<float> x(shape);
    Tensor<float> w(Shape{3, 3, 4, 6});
    w.requires_grad(true);
    const Tensor<float> y = conv2d(x, w, {.padding = padding});
    EXPECT_EQ(y.size(), 0);
    GradStore grads;
    backward(y, Tensor<float>(y.shape()), grads);
    EXPECT_EQ(grads[w].to_vector(), std::vector<float>(3 * 3 * 4 * 6, 0.0F));
  }
}

TEST(Conv, ReadsChannelsFirstThroughAPermutedView) {
  Tensor<double> first = noisy({2, 5, 6, 7}, 1);  // (N, C, H, W)
  first.requires_grad(true);
  Tensor<double> last = permute(first, {0, 2, 3, 1}).detach().packed_copy();
  last.requires_grad(true);
  const Tensor<double> w = noisy({3, 3, 5, 4}, 2), dy = noisy({2, 6, 7, 4}, 3);
  GradStore a, b;
  const Tensor<double> y = conv2d(permute(first, {0, 2, 3, 1}), w, {.padding = 1});
  backward(y, dy, a);
  const Tensor<double> z = conv2d(last, w, {.padding = 1});
  backward(z, dy, b);
  EXPECT_EQ(y.to_vector(), z.to_vector());
  EXPECT_EQ(permute(a[first], {0, 2, 3, 1}).to_vector(), b[last].to_vector());
}

TEST(Conv, AddsUpTheGradientsOfAnExpandedImage) {
  Tensor<double> one = noisy({1, 4, 5, 3}, 1), w = noisy({3, 3, 3, 4}, 2);
  one.requires_grad(true);
  const Tensor<double> y = conv2d(expand(one, {3, 4, 5, 3}), w);
  const Tensor<double> dy = noisy(y.shape(), 3);
  GradStore grads;
  backward(y, dy, grads);
  const Sizes s{1, 3, 4, 1, {}, {4, 3}, {5, 3}};
  Values expected(60);
  for (Index n = 0; n < 3; ++n) {
    const Tensor<double> part(dy.buffer(), {1, 2, 3, 4}, contiguous_strides({1, 2, 3, 4}), n * 24);
    const Tensor<double> own = part.packed_copy();
    const Values dx = Plain(s, one, w, own).dx;
    for (std::size_t i = 0; i < dx.size(); ++i) expected[i] += dx[i];
  }
  expect_like(grads[one], expected, 1e-12, "dx");
}

using D = kernels::Dual<double>;

Tensor<D> joined(const Tensor<double>& v, const Tensor<double>& d) {
  Tensor<D> x(v.shape());
  for (Index i = 0; i < v.size(); ++i) x.fresh_data()[i] = D(v.data()[i], d.data()[i]);
  return x;
}
/// The parts of a dual tensor are `value` and the sum of the two products that the derivative has.
void expect_dual(const Tensor<D>& got, const Values& value, const Values& a, const Values& b,
                 const std::string& what) {
  ASSERT_EQ(got.size(), static_cast<Index>(value.size())) << what;
  for (std::size_t i = 0; i < value.size(); ++i) {
    ASSERT_NEAR(got.data()[i].value, value[i], 1e-12) << what << " at " << i;
    ASSERT_NEAR(got.data()[i].d[0], a[i] + b[i], 1e-12) << what << ", derivative at " << i;
  }
}

TEST(Conv, CarriesDualNumbersForwardAndBack) {
  for (const Layer& layer : layers) {
    const Sizes& s = layer.sizes;
    const Tensor<double> x = noisy(image_of(s), 1), w = noisy(weight_of(s), 2), tx = noisy(image_of(s), 4),
                         tw = noisy(weight_of(s), 5);
    const Shape out = conv2d(x, w, options_of(s)).shape();
    const Tensor<double> dy = noisy(out, 3), ty = noisy(out, 6);
    Tensor<D> dx = joined(x, tx), dw = joined(w, tw);
    dx.requires_grad(true);
    dw.requires_grad(true);
    GradStore grads;
    const Tensor<D> y = conv2d(dx, dw, options_of(s));
    backward(y, joined(dy, ty), grads);
    const Plain value(s, x, w, dy), by_x(s, tx, w, ty), by_w(s, x, tw, dy), mixed(s, tx, w, dy),
        seed(s, x, w, ty);
    const std::string what = layer.name;
    expect_dual(y, value.y, by_x.y, by_w.y, what + ", y");
    expect_dual(grads[dx], value.dx, seed.dx, by_w.dx, what + ", dx");
    expect_dual(grads[dw], value.dw, seed.dw, mixed.dw, what + ", dw");
    const Tensor<D> back = conv_transpose2d(joined(dy, ty), dw.detach(), transposed_options_of(s));
    expect_dual(back, value.dx, seed.dx, by_w.dx, what + ", transposed");
  }
}

TEST(Conv, DualNumbersPassReluAndBias) {
  const Tensor<D> x(Shape{1, 1, 2, 1}, {D(1, 10), D(-3, 20)}), w(Shape{1, 1, 1}, {D(2, 0.5)});
  const Tensor<D> line(x.buffer(), {1, 2, 1}, {2, 1, 1}, 0), b(Shape{1}, {D(1, 100)});
  const Tensor<D> y = conv1d_relu(line, w, b);
  EXPECT_EQ(y.at(0, 0, 0).value, 3);
  EXPECT_EQ(y.at(0, 0, 0).d[0], 100 + 2 * 10 + 0.5);
  EXPECT_EQ(y.at(0, 1, 0).value, 0);
  EXPECT_EQ(y.at(0, 1, 0).d[0], 0);
  const Tensor<D> t = conv_transpose1d(line, w, b, {.stride = 2, .output_padding = 1});
  EXPECT_EQ(t.at(0, 2, 0).value, -5);
  EXPECT_EQ(t.at(0, 2, 0).d[0], 100 + 2 * 20 - 1.5);
  EXPECT_EQ(t.at(0, 3, 0).d[0], 100);
}

}  // namespace
