// Pools where a row cannot look: faults of options, channel counts, what is saved, ties and NaN across
// windows, PyTorch's rule for the last window, threads, dual numbers.
#include <cmath>
#include <map>
#include <numeric>

#include <gtest/gtest.h>

#include <wengert/core/backward.hpp>
#include <wengert/kernels/dual.hpp>
#include <wengert/ops/pool_adaptive.hpp>

#include "support/errors.hpp"

namespace {

using namespace wengert;

template <class T>
Tensor<T> noisy(const Shape& shape, std::uint32_t s = 17, Index levels = 1 << 20) {
  Tensor<T> x(shape);
  for (Index i = 0; i < x.size(); ++i) {
    s = s * 1664525u + 1013904223u;
    x.fresh_data()[i] = static_cast<T>(static_cast<Index>(s >> 8) % levels) / T(levels) - T(0.5);
  }
  return x;
}

TEST(Pool, RefusesOptionsOutOfRange) {
  const Tensor<float> x(Shape{1, 8, 8, 1}), line(Shape{1, 8, 1});
  EXPECT_ERROR(max_pool2d(x, {}), ValueError, "max_pool2d: kernel is too small; got 0; expected at least 1");
  EXPECT_ERROR(max_pool2d(x, {.kernel = {2, 2, 2}}), ValueError,
               "max_pool2d: kernel has 3 numbers; got (2, 2, 2); expected one, or 2");
  EXPECT_ERROR(max_pool2d(x, {.kernel = 2, .stride = {1, 0}}), ValueError,
               "max_pool2d: stride is too small; got (1, 0); expected at least 1");
  EXPECT_ERROR(max_pool2d(x, {.kernel = 2, .stride = -1}), ValueError,
               "max_pool2d: stride is too small; got -1; expected at least 1");
  EXPECT_ERROR(max_pool2d(x, {.kernel = 2, .padding = -1}), ValueError,
               "max_pool2d: padding is too small; got -1; expected at least 0");
  EXPECT_ERROR(max_pool2d(x, {.kernel = 2, .dilation = 0}), ValueError,
               "max_pool2d: dilation is too small; got 0; expected at least 1");
  EXPECT_ERROR(max_pool2d(x, {.kernel = {4, 3}, .padding = 2}), ValueError,
               "max_pool2d: padding is more than half the kernel; kernel is (4, 3), padding is 2; "
               "expected at most 1");
  EXPECT_ERROR(
      avg_pool1d(line, {.kernel = 3, .padding = 2}), ValueError,
      "avg_pool1d: padding is more than half the kernel; kernel is 3, padding is 2; expected at most 1");
  EXPECT_ERROR(max_pool1d(line, {.kernel = 2, .dilation = 8}), ShapeError,
               "max_pool1d: the window is larger than the padded image; x is (1, 8, 1), kernel is 2, padding "
               "is 0, dilation is 8; expected at most 8 pixels along axis 1, not 9");
  EXPECT_ERROR(max_pool2d(x, {.kernel = 5000}), ValueError,
               "max_pool2d: the window has too many taps; kernel is 5000; expected at most 16777216");
  EXPECT_ERROR(adaptive_max_pool2d(x, {3, 0}), ValueError,
               "adaptive_max_pool2d: output size is too small; got (3, 0); expected at least 1");
  EXPECT_ERROR(adaptive_avg_pool1d(line, {3, 3}), ValueError,
               "adaptive_avg_pool1d: output size has 2 numbers; got (3, 3); expected one, or 1");
}

TEST(Pool, StrideIsTheKernelWhenNotGiven) {
  const Tensor<float> x(Shape{1, 9, 8, 2});
  EXPECT_EQ(max_pool2d(x, {2}).shape(), Shape({1, 4, 4, 2}));
  EXPECT_EQ(max_pool2d(x, {{3, 2}}).shape(), Shape({1, 3, 4, 2}));
  EXPECT_EQ(avg_pool2d(x, {3, 2}).shape(), Shape({1, 4, 3, 2}));
  EXPECT_EQ(max_pool2d(x, {.kernel = 3, .stride = 1}).shape(), Shape({1, 7, 6, 2}));
}

// In ceil_mode a window that begins in the padding after the image is left out: 4 + 2 pixels, kernel 2,
// stride 3: windows at -1, 2; not at 5.
TEST(Pool, TheLastWindowOfCeilModeBeginsWithinTheImage) {
  const Tensor<double> x(Shape{1, 4, 1}, {1, 2, 3, 4});
  const Tensor<double> y = max_pool1d(x, {.kernel = 2, .stride = 3, .padding = 1, .ceil_mode = true});
  EXPECT_EQ(y.to_vector(), (std::vector<double>{1, 4}));
  // 5 pixels, kernel 2, stride 2: the third window has one pixel, and its mean is that pixel.
  const Tensor<double> five(Shape{1, 5, 1}, {1, 2, 3, 4, 5});
  EXPECT_EQ(avg_pool1d(five, {.kernel = 2, .ceil_mode = true}).to_vector(),
            (std::vector<double>{1.5, 3.5, 5}));
  // Padding 1, kernel 3, stride 2, 4 pixels: the third window covers pixel 3, one zero, and nothing.
  const Tensor<double> four(Shape{1, 4, 1}, {6, 12, 18, 24});
  EXPECT_EQ(avg_pool1d(four, {.kernel = 3, .stride = 2, .padding = 1, .ceil_mode = true}).to_vector(),
            (std::vector<double>{6, 18, 12}));
  EXPECT_EQ(avg_pool1d(
                four, {.kernel = 3, .stride = 2, .padding = 1, .ceil_mode = true, .count_include_pad = false})
                .to_vector(),
            (std::vector<double>{9, 18, 24}));
}

// PyTorch's rule, as its formula rounds up: 2 pixels, kernel 4, stride 3 are 1/3 of a window.
TEST(Pool, InCeilModeAWindowMayBeLargerThanTheImage) {
  const Tensor<double> x(Shape{1, 2, 1}, {4, 6});
  EXPECT_EQ(max_pool1d(x, {.kernel = 4, .stride = 3, .ceil_mode = true}).to_vector(),
            (std::vector<double>{6}));
  EXPECT_EQ(avg_pool1d(x, {.kernel = 4, .stride = 3, .ceil_mode = true}).to_vector(),
            (std::vector<double>{5}));
  const Tensor<float> pixel(Shape{2, 1, 1, 3}, {1, -2, 3, 4, 5, -6});
  EXPECT_EQ(max_pool2d(pixel, {.kernel = 3, .stride = 3, .ceil_mode = true}).to_vector(), pixel.to_vector());
  EXPECT_ERROR(max_pool1d(x, {.kernel = 4, .stride = 2, .ceil_mode = true}), ShapeError,
               "max_pool1d: the window is larger than the padded image; x is (1, 2, 1), kernel is 4, padding "
               "is 0, dilation is 1; expected at most 3 pixels along axis 1, not 4");
}

TEST(MaxPool, AWindowOfPaddingAloneGivesMinusInfinityAndNoGradient) {
  Tensor<double> x(Shape{1, 1, 1}, {5});
  x.requires_grad(true);
  GradStore grads;
  const Tensor<double> y = max_pool1d(x, {.kernel = 2, .padding = 1, .dilation = 2});
  EXPECT_EQ(y.to_vector(), (std::vector<double>{-HUGE_VAL}));
  backward(y, Tensor<double>(y.shape(), {3}), grads);
  EXPECT_EQ(grads[x].to_vector(), (std::vector<double>{0}));
}

TEST(MaxPool, PaddingNeverWinsOverNegativeNumbers) {
  Tensor<float> x(Shape{2, 3, 3, 17});
  x.fill(-2);
  const Tensor<float> y = max_pool2d(x, {.kernel = 3, .stride = 1, .padding = 1});
  EXPECT_EQ(y.to_vector(), std::vector<float>(static_cast<std::size_t>(x.size()), -2.0f));
}

/// The gradient of max_pool2d by a walk over windows and taps: the first of the largest takes dy.
template <class T>
std::vector<T> walked(const Tensor<T>& x, const Tensor<T>& dy, Index kernel, Index stride, Index padding) {
  const Index H = x.dim(1), W = x.dim(2), C = x.dim(3);
  std::vector<T> dx(static_cast<std::size_t>(x.size()), T(0));
  for (Index n = 0; n < x.dim(0); ++n)
    for (Index oh = 0; oh < dy.dim(1); ++oh)
      for (Index ow = 0; ow < dy.dim(2); ++ow)
        for (Index c = 0; c < C; ++c) {
          Index best = -1;
          for (Index h = oh * stride - padding; h < oh * stride - padding + kernel; ++h)
            for (Index w = ow * stride - padding; w < ow * stride - padding + kernel; ++w) {
              if (h < 0 || w < 0 || h >= H || w >= W) continue;
              const Index k = ((n * H + h) * W + w) * C + c;
              if (best < 0 || x.data()[k] > x.data()[best]) best = k;
            }
          dx[static_cast<std::size_t>(best)] += dy.at(n, oh, ow, c);
        }
  return dx;
}

template <class T>
void expect_walked(Index channels, Index kernel, Index stride, Index padding, bool recorded) {
  Tensor<T> x = noisy<T>({2, 7, 6, channels}, 5, 4);  // four levels: ties everywhere
  x.requires_grad(true);
  GradStore grads;
  const MaxPoolOptions options{.kernel = kernel, .stride = stride, .padding = padding};
  const Tensor<T> y = max_pool2d(x, options);
  Tensor<T> dy = noisy<T>(y.shape(), 9, 64);  // sums of few of these are exact
  backward(y, dy, grads);
  const std::vector<T> expected = walked(x.detach(), dy, kernel, stride, padding);
  EXPECT_EQ(grads[x].to_vector(), expected) << channels << " channels, kernel " << kernel;
  if (!recorded) return;
  const NoGrad no_grad;
  EXPECT_EQ(max_pool2d(x, options).to_vector(), y.to_vector()) << channels << " channels, kernel " << kernel;
}

TEST(MaxPool, TheFirstOfTiesTakesTheGradientInEveryChannel) {
  for (const Index channels : {1, 3, 7, 8, 9, 16, 17, 31, 33, 64, 65, 130}) {
    expect_walked<float>(channels, 2, 2, 0, true);
    expect_walked<float>(channels, 3, 2, 1, true);
    expect_walked<float>(channels, 3, 1, 1, true);
    expect_walked<double>(channels, 3, 2, 1, true);
    expect_walked<double>(channels, 5, 1, 2, true);
    expect_walked<float>(channels, 3, 4, 0, true);    // holes between windows
    expect_walked<float>(channels, 17, 1, 8, true);   // 289 taps: more than a byte
    expect_walked<double>(channels, 16, 1, 8, true);  // 256 taps: the last that a byte numbers
  }
}

// Gradients of 16 MiB and more are stored past the caches.
TEST(Pool, GradientsLargerThanTheCachesAreTheSame) {
  Tensor<float> x = noisy<float>({1, 726, 514, 16}, 5, 4);
  ASSERT_GE(x.size() * Index{sizeof(float)}, kernels::detail::stream_bytes);
  x.requires_grad(true);
  GradStore grads;
  const Tensor<float> y = max_pool2d(x, {.kernel = 2, .stride = 3});  // holes: some pixels get nothing
  const Tensor<float> dy = noisy<float>(y.shape(), 9, 64);
  backward(y, dy, grads);
  EXPECT_TRUE(grads[x].to_vector() == walked(x.detach(), dy, 2, 3, 0));
  grads.zero();
  backward(avg_pool2d(x, {.kernel = 2, .stride = 3}), dy, grads);
  const Tensor<float> dx = grads[x];
  for (const Index h : {0, 1, 2, 3, 363, 724})
    for (const Index w : {0, 4, 5, 510})
      for (const Index c : {0, 15}) {
        const float expected = h % 3 == 2 || w % 3 == 2 ? 0 : dy.at(0, h / 3, w / 3, c) / 4;
        EXPECT_EQ(dx.at(0, h, w, c), expected) << h << ", " << w << ", " << c;
      }
}

TEST(MaxPool, SavesOneByteAnOutputAndNothingWithoutGradient) {
  Tensor<float> x = noisy<float>({4, 32, 32, 16});
  x.requires_grad(true);
  const auto held = [&] {
    const auto before = pool_stats().bytes_in_use;
    const Tensor<float> y = max_pool2d(x, {2});
    return pool_stats().bytes_in_use - before;
  };
  const std::size_t outputs = 4 * 16 * 16 * 16;
  held();  // the tape asks for its first chunk
  const auto recorded = held();
  std::size_t constant = 0;
  {
    const NoGrad no_grad;
    constant = held();
  }
  EXPECT_LE(constant, 4 * outputs + 4096);
  EXPECT_GE(recorded, constant + outputs);
  EXPECT_LE(recorded, constant + outputs + 8192);
}

TEST(Pool, TakesAnEmptyBatchAndNoChannels) {
  for (const Shape& shape : {Shape{0, 4, 4, 3}, Shape{2, 4, 4, 0}}) {
    Tensor<float> x(shape);
    x.requires_grad(true);
    for (const auto& f : std::map<std::string, Tensor<float> (*)(const Tensor<float>&)>{
             {"max", [](const Tensor<float>& v) { return max_pool2d(v, {2}); }},
             {"avg", [](const Tensor<float>& v) { return avg_pool2d(v, {2}); }},
             {"adaptive max", [](const Tensor<float>& v) { return adaptive_max_pool2d(v, 2); }},
             {"adaptive avg", [](const Tensor<float>& v) { return adaptive_avg_pool2d(v, 2); }}}) {
      GradStore grads;
      const Tensor<float> y = f.second(x);
      EXPECT_EQ(y.shape(), (Shape{shape[0], 2, 2, shape[3]})) << f.first;
      backward(y, Tensor<float>(y.shape()), grads);
      EXPECT_EQ(grads[x].shape(), shape) << f.first;
    }
    EXPECT_EQ(global_avg_pool(x).shape(), (Shape{shape[0], shape[3]}));
    EXPECT_EQ(global_max_pool(x).shape(), (Shape{shape[0], shape[3]}));
  }
}

TEST(AvgPool, TheMeanOfEqualNumbersIsThatNumber) {
  Tensor<float> x(Shape{1, 9, 9, 5});
  x.fill(0.1f);
  for (const float v : avg_pool2d(x, {.kernel = 3, .stride = 1}).to_vector()) EXPECT_FLOAT_EQ(v, 0.1f);
  for (const float v : avg_pool2d(x, {.kernel = 4, .stride = 1}).to_vector()) EXPECT_FLOAT_EQ(v, 0.1f);
}

TEST(AvgPool, LongWindowsStayAccurate) {
  constexpr Index n = 1 << 20;
  Tensor<float> x(Shape{1, n, 1});
  x.fill(0.1f);
  EXPECT_NEAR(avg_pool1d(x, {.kernel = n}).item(), 0.1f, 1e-4f * 0.1f);  // one sum after another: 1e-2
}

TEST(Pool, CarriesDualNumbers) {
  using D = kernels::Dual<double>;
  Tensor<D> x(Shape{1, 2, 2, 1}, {D(1, 10), D(4, 20), D(3, 30), D(2, 40)});
  x.requires_grad(true);
  GradStore grads;
  const Tensor<D> y = max_pool2d(x, {2});
  EXPECT_EQ(y.item().value, 4);
  EXPECT_EQ(y.item().d[0], 20);
  backward(y, Tensor<D>(y.shape(), {D(2, 7)}), grads);
  EXPECT_EQ(grads[x].at(0, 0, 1, 0).value, 2);
  EXPECT_EQ(grads[x].at(0, 0, 1, 0).d[0], 7);
  EXPECT_EQ(grads[x].at(0, 1, 1, 0).value, 0);
  const NoGrad no_grad;
  EXPECT_EQ(max_pool2d(x, {2}).item().d[0], 20);
  EXPECT_EQ(avg_pool2d(x, {2}).item().value, 2.5);
  EXPECT_EQ(avg_pool2d(x, {2}).item().d[0], 25);
  EXPECT_EQ(max_pool2d(x, {.kernel = 17, .padding = 8}).item().d[0], 20);
}

TEST(GlobalPool, EqualsTheAdaptivePoolToOnePixel) {
  const Tensor<double> x = noisy<double>({2, 5, 3, 4, 7});
  const Tensor<double> image =
      Tensor<double>(x.buffer(), {2, 5, 12, 7}, contiguous_strides({2, 5, 12, 7}), 0);
  EXPECT_EQ(global_max_pool(x).to_vector(), adaptive_max_pool2d(image, 1).to_vector());
  const std::vector<double> a = global_avg_pool(x).to_vector(), b = adaptive_avg_pool2d(image, 1).to_vector();
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-15);
}

}  // namespace
