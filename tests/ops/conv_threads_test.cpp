// Convolutions at work: bits at any number of threads, the heap, what is saved, the exact mode, empty
// batches, and the faults of options.
#include <cmath>
#include <string>

#include <gtest/gtest.h>

#include <wengert/core/backward.hpp>
#include <wengert/ops/conv.hpp>
#include <wengert/ops/conv_transpose.hpp>

#include "support/errors.hpp"
#include "support/heap_counter.hpp"

namespace {

using namespace wengert;

template <class T = float>
Tensor<T> noisy(const Shape& shape, std::uint32_t s) {
  Tensor<T> x(shape);
  for (Index i = 0; i < x.size(); ++i) {
    s = s * 1664525u + 1013904223u;
    x.fresh_data()[i] = static_cast<T>(s >> 8) / T(1 << 23) - T(1);
  }
  return x;
}

struct RestoreThreads {
  int before = num_threads();
  ~RestoreThreads() { set_num_threads(before); }
};

/// A layer with all its operands as leaves.
struct Layer {
  const char* name;
  Shape image, weight;
  ConvOptions options;
  bool relu = false;
};
const Layer layers[] = {
    {"direct", {3, 56, 55, 33}, {5, 3, 33, 40}, {.padding = {2, 1}}, true},
    {"strided", {2, 112, 112, 3}, {7, 7, 3, 64}, {.stride = 2, .padding = 3}},
    {"winograd", {3, 55, 57, 64}, {3, 3, 64, 65}, {.padding = 1}, true},
    {"pointwise", {3, 57, 56, 64}, {1, 1, 64, 70}, {}},
    {"depthwise", {3, 57, 56, 70}, {3, 3, 1, 70}, {.padding = 1, .groups = 70}},
    {"grouped", {3, 57, 56, 60}, {3, 3, 5, 84}, {.stride = {1, 2}, .padding = 1, .groups = 12}},
    {"groups", {2, 28, 29, 64}, {3, 3, 32, 64}, {.padding = "same", .dilation = 2, .groups = 2}},
    {"one image, deep", {1, 7, 7, 256}, {3, 3, 256, 256}, {.padding = 1}},
};

struct Results {
  std::vector<float> y, dx, dw, db;
  bool operator==(const Results&) const = default;
};
Tensor<float> call(const Layer& l, const Tensor<float>& x, const Tensor<float>& w, const Tensor<float>& b) {
  return l.relu ? conv2d_relu(x, w, b, l.options) : conv2d(x, w, b, l.options);
}
Results run(const Layer& l) {
  Tensor<float> x = noisy(l.image, 1), w = noisy(l.weight, 2), b = noisy({l.weight.back()}, 3);
  for (Tensor<float>* t : {&x, &w, &b}) t->requires_grad(true);
  GradStore grads;
  const Tensor<float> y = call(l, x, w, b);
  backward(y, noisy(y.shape(), 4), grads);
  return {y.to_vector(), grads[x].to_vector(), grads[w].to_vector(), grads[b].to_vector()};
}

TEST(Conv, LargeLayersGiveTheSameBitsAtAnyNumberOfThreads) {
  const RestoreThreads restore;
  for (const Layer& l : layers) {
    set_num_threads(1);
    const Results expected = run(l);
    for (const int threads : {2, 3, 4}) {
      set_num_threads(threads);
      EXPECT_TRUE(run(l) == expected) << l.name << " at " << threads << " threads";
    }
  }
}

TEST(Conv, LargeLayersAskTheHeapForNothingInASteadyState) {
  const RestoreThreads restore;
  for (const int threads : {1, 3}) {
    set_num_threads(threads);
    for (const Layer& l : layers) {
      Tensor<float> x = noisy(l.image, 1), w = noisy(l.weight, 2), b = noisy({l.weight.back()}, 3), dy;
      {
        const NoGrad no_grad;
        dy = noisy(call(l, x, w, b).shape(), 4);
      }
      for (Tensor<float>* t : {&x, &w, &b}) t->requires_grad(true);
      GradStore grads;
      const auto step = [&] {
        backward(call(l, x, w, b), dy, grads);
        grads.zero();
      };
      for (int i = 0; i < 2; ++i) step();
      EXPECT_EQ(heap::requests_of([&] {
                  for (int i = 0; i < 3; ++i) step();
                }),
                0U)
          << l.name << " at " << threads << " threads";
    }
  }
}

// Who asks for no gradient changes nothing for the others, and what only it needs is not saved.
TEST(Conv, GivesEachOperandItsGradientAlone) {
  const auto gradients = [](const Layer& l, int wanted) {
    Tensor<float> x = noisy(l.image, 1), w = noisy(l.weight, 2), b = noisy({l.weight.back()}, 3);
    x.requires_grad((wanted & 1) != 0);
    w.requires_grad((wanted & 2) != 0);
    b.requires_grad((wanted & 4) != 0);
    GradStore grads;
    const Tensor<float> y = call(l, x, w, b);
    backward(y, noisy(y.shape(), 4), grads);
    Results r;
    if (const auto g = grads.find(x)) r.dx = g->to_vector();
    if (const auto g = grads.find(w)) r.dw = g->to_vector();
    if (const auto g = grads.find(b)) r.db = g->to_vector();
    return r;
  };
  for (const bool relu : {false, true}) {
    const Layer l{"", {2, 5, 6, 3}, {3, 3, 3, 4}, {.padding = 1}, relu};
    const Results all = gradients(l, 7);
    for (int wanted = 1; wanted < 7; ++wanted) {
      const Results r = gradients(l, wanted);
      EXPECT_EQ(r.dx, (wanted & 1) != 0 ? all.dx : std::vector<float>()) << wanted;
      EXPECT_EQ(r.dw, (wanted & 2) != 0 ? all.dw : std::vector<float>()) << wanted;
      EXPECT_EQ(r.db, (wanted & 4) != 0 ? all.db : std::vector<float>()) << wanted;
    }
  }
}

TEST(Conv, KeepsTheImageOnlyForTheWeightsAndTheWeightsOnlyForTheImage) {
  const std::size_t image = 4 * 2 * 32 * 32 * 16, weight = 4 * 5 * 5 * 16 * 16;
  const auto held = [&](bool image_asks, bool weight_asks) {
    const auto before = pool_stats().bytes_in_use;
    Tensor<float> b = noisy({16}, 3), y;
    b.requires_grad(true);
    {
      Tensor<float> x = noisy({2, 32, 32, 16}, 1), w = noisy({5, 5, 16, 16}, 2);
      x.requires_grad(image_asks);
      w.requires_grad(weight_asks);
      y = conv2d(x, w, b, {.padding = 2});
    }
    return pool_stats().bytes_in_use - before;
  };
  const std::size_t little = 16384;
  held(true, true);  // the tape asks for its first chunk
  const std::size_t none = held(false, false), for_weight = held(false, true), for_image = held(true, false);
  EXPECT_LE(none, image + little);  // y alone
  EXPECT_GE(for_weight, none + image);
  EXPECT_LE(for_weight, none + image + little);
  EXPECT_GE(for_image, none + weight);
  EXPECT_LE(for_image, none + weight + little);
}

/// Largest error of y and dx of a layer in float, relative to the largest value.
double error_of_winograd() {
  Tensor<float> x = noisy({2, 28, 28, 64}, 1), w = noisy({3, 3, 64, 64}, 2);
  Tensor<double> xd = noisy<double>({2, 28, 28, 64}, 1), wd = noisy<double>({3, 3, 64, 64}, 2);
  const NoGrad no_grad;
  const Tensor<float> y = conv2d(x, w, {.padding = 1});
  const Tensor<double> yd = conv2d(xd, wd, {.padding = 1});
  double error = 0, largest = 0;
  for (Index i = 0; i < y.size(); ++i) {
    error = std::max(error, std::abs(static_cast<double>(y.data()[i]) - yd.data()[i]));
    largest = std::max(largest, std::abs(yd.data()[i]));
  }
  return error / largest;
}
struct RestoreExact {
  bool before = exact_convolutions();
  ~RestoreExact() { set_exact_convolutions(before); }
};

TEST(Conv, KeepsTheErrorsThatTheDocumentationStates) {
  const RestoreExact restore;
  set_exact_convolutions(true);
  const double exact = error_of_winograd();
  EXPECT_LT(exact, 1e-6);
  set_exact_convolutions(false);
  const double fast = error_of_winograd();
  EXPECT_LT(fast, 1e-5);
  EXPECT_NE(exact, fast);
}

TEST(Conv, GoesBackAsItWentForth) {
  const RestoreExact restore;
  const Layer l{"", {2, 28, 28, 64}, {3, 3, 64, 64}, {.padding = 1}};
  const auto gradients = [&](bool forth, bool back) {
    Tensor<float> x = noisy(l.image, 1), w = noisy(l.weight, 2);
    x.requires_grad(true);
    w.requires_grad(true);
    set_exact_convolutions(forth);
    GradStore grads;
    const Tensor<float> y = conv2d(x, w, l.options);
    set_exact_convolutions(back);
    backward(y, noisy(y.shape(), 4), grads);
    return Results{{}, grads[x].to_vector(), grads[w].to_vector(), {}};
  };
  EXPECT_TRUE(gradients(true, false) == gradients(true, true));
  EXPECT_TRUE(gradients(false, true) == gradients(false, false));
  EXPECT_FALSE(gradients(true, true) == gradients(false, false));
}

TEST(Conv, OfNoImagesGivesZerosToItsWeights) {
  for (Layer l : layers) {
    l.image[0] = 0;
    const Results r = run(l);
    EXPECT_TRUE(r.y.empty() && r.dx.empty()) << l.name;
    EXPECT_EQ(r.dw, std::vector<float>(static_cast<std::size_t>(l.weight.size()))) << l.name;
    EXPECT_EQ(r.db, std::vector<float>(static_cast<std::size_t>(l.weight.back()))) << l.name;
  }
  Tensor<double> x(Shape{0, 4, 5, 6}), w = noisy<double>({3, 3, 2, 6}, 1), b = noisy<double>({4}, 2);
  for (Tensor<double>* t : {&x, &w, &b}) t->requires_grad(true);
  GradStore grads;
  const Tensor<double> y = conv_transpose2d(x, w, b, {.stride = 2, .groups = 2});
  EXPECT_EQ(y.shape(), Shape({0, 9, 11, 4}));
  backward(y, Tensor<double>(y.shape()), grads);
  EXPECT_EQ(grads[x].shape(), x.shape());
  EXPECT_EQ(grads[w].to_vector(), std::vector<double>(108));
  EXPECT_EQ(grads[b].to_vector(), std::vector<double>(4));
}

TEST(Conv, OfNoPixelsSeesPaddingAlone) {
  for (Layer l : layers) {
    if (l.options.padding.same() || l.weight[0] == 1) continue;
    l.image[1] = 0;
    l.options.padding = 4;
    const Results r = run(l);
    const Tensor<float> b = noisy({l.weight.back()}, 3);
    ASSERT_FALSE(r.y.empty()) << l.name;
    for (std::size_t i = 0; i < r.y.size(); ++i) {
      const float v = b.data()[static_cast<Index>(i) % b.size()];
      ASSERT_EQ(r.y[i], l.relu ? std::max(v, 0.0f) : v) << l.name << " at " << i;
    }
    EXPECT_TRUE(r.dx.empty()) << l.name;
    EXPECT_EQ(r.dw, std::vector<float>(static_cast<std::size_t>(l.weight.size()))) << l.name;
  }
}

TEST(Conv, RefusesOptionsThatMakeNoSense) {
  const Tensor<float> x(Shape{1, 8, 9, 4}), w(Shape{3, 3, 4, 6}), line(Shape{1, 8, 4}), taps(Shape{3, 4, 6});
  EXPECT_ERROR(conv2d(x, w, {.stride = 0}), ValueError,
               "conv2d: stride is too small; got 0; expected at least 1");
  EXPECT_ERROR(conv2d(x, w, {.stride = {1, -2}}), ValueError,
               "conv2d: stride is too small; got (1, -2); expected at least 1");
  EXPECT_ERROR(conv2d(x, w, {.stride = {1, 1, 1}}), ValueError,
               "conv2d: stride has 3 numbers; got (1, 1, 1); expected one, or 2");
  EXPECT_ERROR(conv1d(line, taps, {.stride = {1, 1}}), ValueError,
               "conv1d: stride has 2 numbers; got (1, 1); expected one, or 1");
  EXPECT_ERROR(conv2d(x, w, {.dilation = 0}), ValueError,
               "conv2d: dilation is too small; got 0; expected at least 1");
  EXPECT_ERROR(conv2d(x, w, {.dilation = Index{1} << 40}), ValueError,
               "conv2d: dilation is too large; got 1099511627776; expected at most 1073741824");
  EXPECT_ERROR(conv2d(x, w, {.padding = -1}), ValueError,
               "conv2d: padding is too small; got -1; expected at least 0");
  EXPECT_ERROR(conv2d(x, w, {.padding = {1, 1, 1}}), ValueError,
               "conv2d: padding has 3 numbers; got (1, 1, 1); expected one, or 2");
  EXPECT_ERROR(conv2d(x, w, {.padding = "full"}), ValueError,
               "padding: unknown mode; got \"full\"; expected \"same\", \"valid\" or numbers");
  EXPECT_ERROR(conv2d(x, w, {.padding = "valid", .dilation = {1, 5}}), ShapeError,
               "conv2d: the kernel is larger than the padded input; x is (1, 8, 9, 4), w is (3, 3, 4, 6), "
               "padding is 0, dilation is (1, 5); expected at most 9 pixels from the first tap to the last "
               "along axis 2");
  for (const Index groups : {0, -2, 3})
    EXPECT_ERROR(
        conv2d(x, w, {.groups = groups}), ShapeError,
        "conv2d: groups do not divide the channels; x is (1, 8, 9, 4), w is (3, 3, 4, 6), groups is " +
            std::to_string(groups) + "; expected a divisor of 4 and of 6");
  const Tensor<float> sixth(Shape{3, 3, 2, 7});
  EXPECT_ERROR(
      conv2d(x, sixth, {.groups = 2}), ShapeError,
      "conv2d: groups do not divide the channels; x is (1, 8, 9, 4), w is (3, 3, 2, 7), groups is 2; "
      "expected a divisor of 4 and of 7");
  EXPECT_ERROR(
      conv2d(x, w, {.padding = Index{1} << 30}), ShapeError,
      "conv2d: number of elements overflows; shape is (1, 2147483654, 2147483655, 6); expected a tensor "
      "that fits memory");
  const Tensor<float> none;
  EXPECT_ERROR(conv2d(x, w, none), ShapeError,
               "conv2d: bias does not fit; x is (1, 8, 9, 4), w is (3, 3, 4, 6), b is (0); expected (6)");
}

TEST(ConvTranspose, RefusesOptionsThatMakeNoSense) {
  const Tensor<float> x(Shape{1, 8, 9, 4}), w(Shape{3, 3, 6, 4});
  EXPECT_ERROR(conv_transpose2d(x, w, {.stride = 0}), ValueError,
               "conv_transpose2d: stride is too small; got 0; expected at least 1");
  EXPECT_ERROR(conv_transpose2d(x, w, {.dilation = -1}), ValueError,
               "conv_transpose2d: dilation is too small; got -1; expected at least 1");
  EXPECT_ERROR(conv_transpose2d(x, w, {.padding = -1}), ValueError,
               "conv_transpose2d: padding is too small; got -1; expected at least 0");
  EXPECT_ERROR(conv_transpose2d(x, w, {.output_padding = -1}), ValueError,
               "conv_transpose2d: output_padding is too small; got -1; expected at least 0");
  EXPECT_ERROR(conv_transpose2d(x, w, {.output_padding = {0, 0, 0}}), ValueError,
               "conv_transpose2d: output_padding has 3 numbers; got (0, 0, 0); expected one, or 2");
  EXPECT_ERROR(
      conv_transpose2d(x, w, {.stride = {3, 2}, .output_padding = 2}), ValueError,
      "conv_transpose2d: output_padding is too large; output_padding is 2, stride is (3, 2), dilation "
      "is 1; expected less than the larger of the two");
  EXPECT_EQ(conv_transpose2d(x, w, {.stride = 2, .output_padding = 2, .dilation = 3}).shape(),
            Shape({1, 23, 25, 6}));
  EXPECT_ERROR(conv_transpose2d(x, w, {.groups = 3}), ShapeError,
               "conv_transpose2d: groups do not divide the channels; x is (1, 8, 9, 4), w is (3, 3, 6, 4), "
               "groups is 3; expected a divisor of 4");
  EXPECT_ERROR(conv_transpose2d(x, w, {.groups = 0}), ShapeError,
               "conv_transpose2d: groups do not divide the channels; x is (1, 8, 9, 4), w is (3, 3, 6, 4), "
               "groups is 0; expected a divisor of 4");
  EXPECT_ERROR(
      conv_transpose2d(x, w, {.padding = {5, 6}}), ShapeError,
      "conv_transpose2d: the output would be empty; x is (1, 8, 9, 4), w is (3, 3, 6, 4), padding is "
      "(5, 6); expected at least one pixel along axis 1");
}

TEST(Padding, SaysWhatItIs) {
  EXPECT_EQ(Padding("same").str(), "same");
  EXPECT_TRUE(Padding("same").same());
  EXPECT_EQ(Padding("valid").str(), "0");
  EXPECT_EQ(Padding({1, 2}).str(), "(1, 2)");
  EXPECT_EQ(Padding(3).numbers(), PerAxis(3));
}

}  // namespace
