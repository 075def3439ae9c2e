// Normalisation and augmentation of images: values by hand, every cut that may come, how often each comes,
// threads, the heap, and faults.
#include <cmath>
#include <map>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include <wengert/data/augment.hpp>

#include "support/errors.hpp"
#include "support/heap_counter.hpp"

namespace {

using namespace wengert;
using data::augment;
using data::channel_statistics;
using data::Normalization;
using Floats = std::vector<float>;

/// Pixel (h, w) of every image holds 1 + h * width + w in channel 0, and 100 more in channel 1.
Tensor<Byte> numbered(Index n, Index height, Index width) {
  Tensor<Byte> x({n, height, width, 2});
  for (Index i = 0; i < x.size(); ++i)
    x.fresh_data()[i] = static_cast<Byte>(1 + i / 2 % (height * width) + (i % 2 == 0 ? 0 : 100));
  return x;
}

TEST(ChannelStatistics, AreThoseOfEachChannel) {
  const Tensor<Byte> x({2, 1, 2, 2}, {0, 255, 51, 255, 102, 0, 51, 0});
  const Normalization n = channel_statistics(x);
  ASSERT_EQ(n.mean.size(), 2u);
  EXPECT_NEAR(n.mean[0], 0.2, 1e-15);
  EXPECT_NEAR(n.std[0], std::sqrt(0.02), 1e-15);  // 0, .2, .4, .2
  EXPECT_NEAR(n.mean[1], 0.5, 1e-15);
  EXPECT_NEAR(n.std[1], 0.5, 1e-15);
  const Normalization f = channel_statistics(Tensor<float>({1, 1, 2, 1}, {3, 5}));
  EXPECT_EQ(f.mean, std::vector<double>{4});
  EXPECT_EQ(f.std, std::vector<double>{1});
  EXPECT_ERROR(channel_statistics(Tensor<float>({0, 2, 2, 1})), ValueError,
               "channel_statistics: there is no pixel; images are (0, 2, 2, 1); expected at least one");
}

TEST(Normalize, ScalesBytesAndTakesNumbersAsTheyAre) {
  const Tensor<Byte> bytes({1, 1, 1, 2}, {255, 51});
  const Floats scaled = data::normalize<float>(bytes).to_vector();
  EXPECT_FLOAT_EQ(scaled[0], 1);
  EXPECT_FLOAT_EQ(scaled[1], 0.2f);
  const Normalization n{{0.5, 0.1}, {0.25, 0.5}};
  const Floats normal = data::normalize<float>(bytes, n).to_vector();
  EXPECT_FLOAT_EQ(normal[0], 2);
  EXPECT_NEAR(normal[1], 0.2f, 1e-6f);
  const std::vector<double> d =
      data::normalize<double>(Tensor<float>({1, 1, 1, 2}, {1, 0.6f}), n).to_vector();
  EXPECT_DOUBLE_EQ(d[0], 2);
  EXPECT_NEAR(d[1], 1, 1e-6);
  EXPECT_EQ(data::normalize<float>(Tensor<Byte>({0, 2, 2, 2}), n).shape(), (Shape{0, 2, 2, 2}));
}
TEST(Normalize, MakesMeanZeroAndDeviationOne) {
  const Tensor<Byte> x = numbered(3, 4, 5);
  const Normalization n = channel_statistics(data::normalize<double>(x, channel_statistics(x)));
  for (std::size_t c = 0; c < 2; ++c) {
    EXPECT_NEAR(n.mean[c], 0, 1e-12);
    EXPECT_NEAR(n.std[c], 1, 1e-12);
  }
}

/// What cut (down, right, flipped) of padded image `x` of one row gives, computed from the definition.
Floats expected_cut(const Tensor<Byte>& x, Index padding, Index down, Index right, bool flipped) {
  const Index height = x.dim(1), width = x.dim(2);
  Floats y;
  for (Index h = 0; h < height; ++h)
    for (Index w = 0; w < width; ++w)
      for (Index c = 0; c < 2; ++c) {
        const Index row = h + down - padding, column = (flipped ? width - 1 - w : w) + right - padding;
        const bool inside = row >= 0 && row < height && column >= 0 && column < width;
        y.push_back(inside ? static_cast<float>(x.at(0, row, column, c)) : 0.0f);
      }
  return y;
}

TEST(Augment, GivesEachCutAboutAsOftenAndNothingElse) {
  constexpr Index n = 18'000, height = 3, width = 4, padding = 1;
  const Tensor<Byte> x = numbered(n, height, width);
  std::map<Floats, int> count;
  for (Index down = 0; down <= 2 * padding; ++down)
    for (Index right = 0; right <= 2 * padding; ++right)
      for (const bool flipped : {false, true}) count[expected_cut(x, padding, down, right, flipped)] = 0;
  ASSERT_EQ(count.size(), 18u);
  Generator generator(5);
  // A mean of 0 and a deviation of 1/255 keep the bytes.
  const Tensor<float> y =
      augment<float>(x, {.padding = padding, .flip = true}, {{0, 0}, {1 / 255.0, 1 / 255.0}}, generator);
  const Floats all = y.to_vector();
  constexpr std::ptrdiff_t size = height * width * 2;
  for (std::ptrdiff_t i = 0; i < n; ++i) {
    Floats image(all.begin() + i * size, all.begin() + (i + 1) * size);
    for (float& v : image) v = std::round(v);
    ASSERT_EQ(count.count(image), 1u) << "image " << i;
    ++count[image];
  }
  for (const auto& [image, times] : count) EXPECT_NEAR(times, 1000, 160);  // five deviations
}
TEST(Augment, NormalizesBlackOutside) {
  Generator generator(1);
  std::set<float> seen;
  for (int i = 0; i < 20; ++i)
    seen.insert(
        augment<float>(Tensor<float>({1, 1, 1, 1}, {3}), {.padding = 2}, {{1}, {2}}, generator).item());
  EXPECT_EQ(seen, (std::set<float>{-0.5f, 1.0f}));  // (0 - 1) / 2, (3 - 1) / 2
}
TEST(Augment, IsNormalizeWithoutOptions) {
  Generator generator(1);
  const Tensor<Byte> x = numbered(2, 3, 3);
  const Normalization n{{0.1, 0.2}, {0.3, 0.4}};
  EXPECT_EQ(augment<float>(x, {}, n, generator).to_vector(), data::normalize<float>(x, n).to_vector());
}
TEST(Augment, DependsOnTheGeneratorAlone) {
  const Tensor<Byte> x = numbered(64, 8, 8);
  const auto run = [&](int threads) {
    set_num_threads(threads);
    Generator generator(9);
    augment<float>(x, {.padding = 2, .flip = true}, {}, generator);
    const Floats second = augment<float>(x, {.padding = 2, .flip = true}, {}, generator).to_vector();
    EXPECT_EQ(generator.counter(), 2u * 4 * 64);
    return second;
  };
  const Floats one = run(1);
  EXPECT_EQ(run(2), one);
  EXPECT_EQ(run(3), one);
  set_num_threads(2);
  Generator first(9);
  EXPECT_NE(augment<float>(x, {.padding = 2, .flip = true}, {}, first).to_vector(), one);
}
TEST(Augment, AsksTheHeapForNothingInASteadyState) {
  const Tensor<Byte> x = numbered(32, 16, 16);
  const Normalization n = channel_statistics(x);
  Generator generator(2);
  const auto step = [&] { augment<float>(x, {.padding = 4, .flip = true}, n, generator); };
  for (int i = 0; i < 3; ++i) step();
  EXPECT_EQ(heap::requests_of(step), 0u);
}

TEST(Augment, RefusesWhatItCannotDo) {
  Generator g(1);
  const Tensor<float> x({2, 3, 4, 1});
  EXPECT_ERROR(augment<float>(x, {.padding = -1}, {}, g), ValueError,
               "augment: padding is -1; expected 0..1073741824");
  EXPECT_ERROR(augment<float>(Tensor<float>({2, 3, 4}), {}, {}, g), ShapeError,
               "augment: the rank does not fit; images are (2, 3, 4); expected (N, H, W, C)");
  EXPECT_ERROR(
      data::normalize<float>(x, {{1, 2}, {1}}), ShapeError,
      "normalize: numbers of channels differ; images are (2, 3, 4, 1), normalization has 2 means and "
      "1 deviations; expected 1 of both");
  EXPECT_ERROR(
      data::normalize<float>(x, {{1}, {0}}), ValueError,
      "normalize: channel 0 cannot be normalized; mean is 1, deviation is 0; expected finite numbers "
      "and a deviation > 0");
  Tensor<float> leaf({2, 3, 4, 1});
  leaf.requires_grad(true);
  EXPECT_ERROR(augment<float>(leaf, {}, {}, g), TapeError,
               "augment: images ask for a gradient, which is not recorded; images are (2, 3, 4, 1); expected "
               "constants; pass their detach()");
  EXPECT_EQ(g.counter(), 0u);
}

}  // namespace
