// Padding, resizing, pixel shuffling, patches and layouts of images: values worked out by hand, images of one
// pixel, empty batches, numbers that are not finite, and each fault by its message.
#include <limits>

#include <gtest/gtest.h>

#include <wengert/core/backward.hpp>
#include <wengert/kernels/dual.hpp>
#include <wengert/nn/sequential.hpp>
#include <wengert/nn/upsample.hpp>
#include <wengert/ops/fold.hpp>
#include <wengert/ops/image_layout.hpp>

#include "support/errors.hpp"

namespace {

using namespace wengert;
using Floats = std::vector<float>;
constexpr float inf = std::numeric_limits<float>::infinity();

Tensor<float> counted(const Shape& shape) {
  Tensor<float> x(shape);
  for (Index i = 0; i < x.size(); ++i) x.fresh_data()[i] = static_cast<float>(i);
  return x;
}
Tensor<float> ones(const Shape& shape) {
  Tensor<float> x(shape);
  return x.fill(1);
}
/// The gradient of x for dy = 1 everywhere.
template <class F>
Floats gradient_of_sum(Tensor<float> x, F f) {
  x.requires_grad(true);
  GradStore grads;
  const Tensor<float> y = f(x);
  backward(y, ones(y.shape()), grads);
  return grads[x].to_vector();
}

TEST(Pad, PutsElementsAroundEachRow) {
  const Tensor<float> x({1, 1, 3, 1}, {1, 2, 3});
  EXPECT_EQ(pad(x, {{0, 0}, {2, 1}}, {.value = -1}).to_vector(), (Floats{-1, -1, 1, 2, 3, -1}));
  EXPECT_EQ(pad(x, {{0, 0}, {2, 1}}, {.mode = PadMode::reflect}).to_vector(), (Floats{3, 2, 1, 2, 3, 2}));
  EXPECT_EQ(pad(x, {{0, 0}, {2, 1}}, {.mode = PadMode::replicate}).to_vector(), (Floats{1, 1, 1, 2, 3, 3}));
  EXPECT_EQ(pad(x, 1).shape(), (Shape{1, 3, 5, 1}));
  EXPECT_EQ(pad(Tensor<float>({2}, {5, 6}), {{1, 0}}).to_vector(), (Floats{0, 5, 6}));
  EXPECT_EQ(pad(Tensor<float>(Shape{}, {7}), {}).to_vector(), (Floats{7}));
}
TEST(Pad, CountsHowOftenAnElementWasCopied) {
  const Tensor<float> x({1, 3, 1}, {1, 2, 3});
  const auto sum = [&](PadMode mode) {
    return gradient_of_sum(x, [=](const auto& t) { return pad(t, {{2, 1}}, {.mode = mode}); });
  };
  EXPECT_EQ(sum(PadMode::constant), (Floats{1, 1, 1}));
  EXPECT_EQ(sum(PadMode::reflect), (Floats{1, 3, 2}));
  EXPECT_EQ(sum(PadMode::replicate), (Floats{3, 1, 2}));
}
TEST(Pad, TakesOnePixelEmptyImagesAndOtherTypes) {
  const Tensor<float> pixel({1, 1, 1, 2}, {4, 5});
  EXPECT_EQ(pad(pixel, {{0, 0}, {0, 1}}, {.mode = PadMode::replicate}).to_vector(), (Floats{4, 5, 4, 5}));
  EXPECT_EQ(pad(pixel, 0, {.mode = PadMode::reflect}).to_vector(), (Floats{4, 5}));
  EXPECT_EQ(pad(Tensor<float>({0, 2, 2, 3}), 1).shape(), (Shape{0, 4, 4, 3}));
  EXPECT_EQ(pad(Tensor<float>({1, 0, 1, 1}), 1, {.value = 2}).to_vector(), Floats(6, 2));
  EXPECT_EQ(pad(Tensor<Byte>({1, 1, 1}, {9}), 1, {.value = 3}).to_vector(), (std::vector<Byte>{3, 9, 3}));
  EXPECT_EQ(pad(Tensor<bool>({1, 1, 1}, {true}), 1).to_vector(), (std::vector<bool>{false, true, false}));
}
TEST(Pad, RefusesWhatItCannotDo) {
  const Tensor<float> x({1, 2, 3, 1});
  EXPECT_ERROR(
      pad(x, {{1, -1}, {0, 0}}), ValueError,
      "pad: a width is negative; x is (1, 2, 3, 1), widths are ((1, -1), (0, 0)); expected widths >= "
      "0; use slice to cut");
  EXPECT_ERROR(pad(x, -2), ValueError,
               "pad: a width is negative; x is (1, 2, 3, 1), widths are -2; expected widths >= 0; use slice "
               "to cut");
  EXPECT_ERROR(pad(x, {}), ShapeError,
               "pad: number of widths does not fit; x is (1, 2, 3, 1), widths are (); expected a pair for "
               "each axis, or for each but the first and the last");
  constexpr Index most = std::numeric_limits<Index>::max();
  EXPECT_ERROR(pad(x, {{0, 0}, {most, 0}}), ShapeError,
               "pad: axis 2 overflows; x is (1, 2, 3, 1), widths are ((0, 0), (9223372036854775807, 0)); "
               "expected a tensor that fits memory");
  EXPECT_ERROR(
      pad(x, {{0, 0}, {most / 4, 0}}), ShapeError,
      "pad: number of elements overflows; shape is (1, 2, 2305843009213693954, 1); expected a tensor "
      "that fits memory");
}

TEST(Upsample, FollowsTheFormulas) {
  const Tensor<float> x({1, 2, 1}, {0, 4});
  const auto at = [&](const UpsampleOptions& o) { return upsample(x, o).to_vector(); };
  EXPECT_EQ(at({.scale = 2}), (Floats{0, 0, 4, 4}));
  EXPECT_EQ(at({.size = 3}), (Floats{0, 0, 4}));
  EXPECT_EQ(at({.scale = 2, .mode = UpsampleMode::linear}), (Floats{0, 1, 3, 4}));
  EXPECT_EQ(at({.size = 5, .mode = UpsampleMode::linear, .align_corners = true}), (Floats{0, 1, 2, 3, 4}));
  EXPECT_EQ(at({.size = 1, .mode = UpsampleMode::linear}), (Floats{2}));
  EXPECT_EQ(at({.size = 1, .mode = UpsampleMode::linear, .align_corners = true}), (Floats{0}));
  EXPECT_EQ(at({.scale = 1.6}), (Floats{0, 0, 4}));
}
TEST(Upsample, CountsHowOftenAPixelWasRead) {
  const Tensor<float> x({1, 2, 1}, {0, 4});
  EXPECT_EQ(gradient_of_sum(x, [](const auto& t) { return upsample(t, {.size = 3}); }), (Floats{2, 1}));
  EXPECT_EQ(gradient_of_sum(
                x, [](const auto& t) { return upsample(t, {.scale = 2, .mode = UpsampleMode::linear}); }),
            (Floats{2, 2}));
}
TEST(Upsample, ReadsNoPixelOfWeightZero) {
  // Aligned corners: pixels 0, 2 and 4 of the result are those of x.
  const Tensor<float> x({1, 3, 1, 1}, {1, inf, 2});
  const Tensor<float> y = upsample(x, {.size = {5, 1}, .mode = UpsampleMode::linear, .align_corners = true});
  EXPECT_EQ(y.to_vector(), (Floats{1, inf, inf, inf, 2}));
}
TEST(Upsample, TakesOnePixelAndEmptyImages) {
  const Tensor<float> pixel({1, 1, 1, 3}, {1, 2, 3});
  for (const UpsampleMode mode : {UpsampleMode::nearest, UpsampleMode::linear})
    EXPECT_EQ(upsample(pixel, {.scale = {1, 2}, .mode = mode}).to_vector(), (Floats{1, 2, 3, 1, 2, 3}));
  EXPECT_EQ(
      upsample(pixel, {.size = {2, 1}, .mode = UpsampleMode::linear, .align_corners = true}).to_vector(),
      (Floats{1, 2, 3, 1, 2, 3}));
  EXPECT_EQ(upsample(Tensor<float>({0, 2, 2, 3}), {.scale = 2}).shape(), (Shape{0, 4, 4, 3}));
  EXPECT_EQ(upsample(Tensor<float>({2, 0, 3}), {.scale = 2}).shape(), (Shape{2, 0, 3}));
}
TEST(Upsample, RefusesWhatItCannotDo) {
  const Tensor<float> x({1, 2, 3, 1});
  EXPECT_ERROR(upsample(x, {}), ValueError,
               "upsample: neither size nor scale is given; x is (1, 2, 3, 1); expected one of them");
  EXPECT_ERROR(upsample(x, {.size = 4, .scale = 2}), ValueError,
               "upsample: both size and scale are given; x is (1, 2, 3, 1); expected one of them");
  EXPECT_ERROR(upsample(x, {.scale = 2, .align_corners = true}), ValueError,
               "upsample: align_corners has no meaning for the nearest pixel; x is (1, 2, 3, 1); expected "
               "mode linear");
  EXPECT_ERROR(upsample(x, {.scale = {1, 2, 3}}), ValueError,
               "upsample: scale has 3 numbers; x is (1, 2, 3, 1); expected one, or 2");
  EXPECT_ERROR(upsample(x, {.scale = {1, -2}}), ValueError,
               "upsample: scale -2 of spatial axis 1 is out of range; x is (1, 2, 3, 1); expected a finite "
               "factor > 0");
  EXPECT_ERROR(upsample(x, {.scale = static_cast<double>(inf)}), ValueError,
               "upsample: scale inf of spatial axis 0 is out of range; x is (1, 2, 3, 1); expected a finite "
               "factor > 0");
  EXPECT_ERROR(upsample(x, {.scale = 0.4}), ShapeError,
               "upsample: spatial axis 0 of the result has no pixels; x is (1, 2, 3, 1); expected a size >= "
               "1");
  EXPECT_ERROR(upsample(x, {.size = {4, 0}}), ValueError,
               "upsample: size is too small; got (4, 0); expected at least 1");
  EXPECT_ERROR(upsample(x, {.size = {4, 5, 6}}), ValueError,
               "upsample: size has 3 numbers; got (4, 5, 6); expected one, or 2");
}

TEST(PixelShuffle, CountsChannelsAsPyTorchDoes) {
  // Channels 0..3 of c = 0 are its pixels (0, 0), (0, 1), (1, 0), (1, 1); 4..7 those of c = 1.
  const Tensor<float> y = pixel_shuffle(counted({1, 1, 1, 8}), 2);
  EXPECT_EQ(y.shape(), (Shape{1, 2, 2, 2}));
  EXPECT_EQ(y.to_vector(), (Floats{0, 4, 1, 5, 2, 6, 3, 7}));
  EXPECT_EQ(pixel_unshuffle(y, 2).to_vector(), (Floats{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(pixel_shuffle(counted({1, 2, 1, 3}), 1).to_vector(), (Floats{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(pixel_shuffle(Tensor<float>({0, 2, 2, 9}), 3).shape(), (Shape{0, 6, 6, 1}));
  EXPECT_EQ(pixel_unshuffle(Tensor<Byte>({1, 2, 1, 1}, {1, 2}), 1).to_vector(), (std::vector<Byte>{1, 2}));
}
TEST(PixelShuffle, RefusesBadFactors) {
  EXPECT_ERROR(pixel_shuffle(Tensor<float>({1, 1, 1, 4}), 0), ValueError,
               "pixel_shuffle: the factor is out of range; factor is 0; expected 1..32768");
  EXPECT_ERROR(pixel_unshuffle(Tensor<float>({1, 1, 4}), 1), ShapeError,
               "pixel_unshuffle: the rank does not fit; x is (1, 1, 4); expected images (N, H, W, C)");
}

TEST(Unfold, PutsTapsBeforeChannels) {
  const Tensor<float> x = counted({1, 2, 3, 2});
  const Tensor<float> y = unfold(x, {.kernel = {2, 2}});
  EXPECT_EQ(y.shape(), (Shape{1, 2, 8}));
  EXPECT_EQ(y.to_vector(), (Floats{0, 1, 2, 3, 6, 7, 8, 9, 2, 3, 4, 5, 8, 9, 10, 11}));
  EXPECT_EQ(unfold(Tensor<Byte>({1, 1, 1}, {7}), {.kernel = 3, .padding = 1}).to_vector(),
            (std::vector<Byte>{0, 7, 0}));
  EXPECT_EQ(unfold(Tensor<float>({0, 2, 2, 3}), {.kernel = 2}).shape(), (Shape{0, 1, 12}));
  // Windows that lie in the padding alone, and an image without pixels.
  EXPECT_EQ(unfold(Tensor<float>({1, 1, 1}, {7}), {.padding = 2}).to_vector(), (Floats{0, 0, 7, 0, 0}));
  EXPECT_EQ(unfold(Tensor<float>({1, 0, 1}), {.kernel = 2, .padding = 1}).to_vector(), (Floats{0, 0}));
}
TEST(Fold, AddsOverlapsAndDropsPadding) {
  const Tensor<float> patches({1, 2, 2}, {1, 2, 4, 8});
  EXPECT_EQ(fold(patches, {3}, {.kernel = 2}).to_vector(), (Floats{1, 6, 8}));
  EXPECT_EQ(fold(patches, {1}, {.kernel = 2, .padding = 1}).to_vector(), (Floats{6}));
  // Pixels that no window reads: 2 of 0..2 at stride 2.
  EXPECT_EQ(fold(Tensor<float>({1, 1, 2}, {1, 2}), {3}, {.kernel = 2, .stride = 2}).to_vector(),
            (Floats{1, 2, 0}));
  EXPECT_EQ(fold(Tensor<float>({0, 1, 12}), {2, 2}, {.kernel = 2}).shape(), (Shape{0, 2, 2, 3}));
}
TEST(Unfold, RefusesBadNumbers) {
  const Tensor<float> x({1, 4, 5, 1});
  EXPECT_ERROR(unfold(x, {.kernel = {3, 3, 3}}), ValueError,
               "unfold: kernel has 3 numbers; got (3, 3, 3); expected one, or 2");
  EXPECT_ERROR(unfold(x, {.kernel = 3, .stride = 0}), ValueError,
               "unfold: stride is too small; got 0; expected at least 1");
  EXPECT_ERROR(unfold(x, {.kernel = 3, .padding = {0, -1}}), ValueError,
               "unfold: padding is too small; got (0, -1); expected at least 0");
  EXPECT_ERROR(unfold(x, {.kernel = 3, .dilation = 0}), ValueError,
               "unfold: dilation is too small; got 0; expected at least 1");
  EXPECT_ERROR(unfold(x, {.kernel = 3, .dilation = 2}), ShapeError,
               "unfold: the window does not fit spatial axis 0; the image is (1, 4, 5, 1), kernel is 3, "
               "padding is 0, dilation is 2; expected size + 2 * padding >= 5");
  EXPECT_ERROR(unfold(x, {.kernel = 3, .padding = Index{1} << 40}), ValueError,
               "unfold: padding is too large; got 1099511627776; expected at most 1073741824");
  EXPECT_ERROR(fold(x, {4, 5, 1, 1}, {}), ShapeError,
               "fold: the number of axes does not fit; size is (4, 5, 1, 1); expected {W}, {H, W} or "
               "{D, H, W}");
  EXPECT_ERROR(fold(Tensor<float>({1, 1, 1}), {-1}, {}), ShapeError,
               "fold: negative dimension; shape is (1, -1, 1); expected dimensions >= 0");
}

TEST(ImageLayout, SharesTheImagesAndCopiesTheWeights) {
  const Tensor<float> x = counted({1, 2, 2, 3});
  EXPECT_TRUE(nhwc_to_nchw(x).shares_buffer(x));
  EXPECT_EQ(nhwc_to_nchw(x).to_vector(), (Floats{0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11}));
  EXPECT_EQ(nchw_to_nhwc(nhwc_to_nchw(x)).strides(), x.strides());
  const Tensor<float> w = counted({3, 2, 1, 2});  // (out, in, kh, kw)
  const Tensor<float> ours = conv_weight_from_torch(w);
  EXPECT_EQ(ours.shape(), (Shape{1, 2, 2, 3}));
  EXPECT_TRUE(ours.is_contiguous());
  EXPECT_FALSE(ours.shares_buffer(w));
  EXPECT_EQ(ours.to_vector(), (Floats{0, 4, 8, 2, 6, 10, 1, 5, 9, 3, 7, 11}));
  EXPECT_EQ(conv_weight_to_torch(ours).to_vector(), w.to_vector());
  EXPECT_EQ(conv_weight_from_torch(counted({4, 3, 5})).shape(), (Shape{5, 3, 4}));
  EXPECT_EQ(conv_weight_from_torch(counted({2, 3, 4, 5, 6})).shape(), (Shape{4, 5, 6, 3, 2}));
  EXPECT_EQ(conv_weight_to_torch(counted({4, 5, 6, 3, 2})).shape(), (Shape{2, 3, 4, 5, 6}));
}
TEST(ImageLayout, RefusesOtherRanks) {
  EXPECT_ERROR(nchw_to_nhwc(Tensor<float>({1, 2})), ShapeError,
               "nchw_to_nhwc: the rank does not fit; x is (1, 2); expected (N, C, ...) with one to three "
               "spatial axes");
  EXPECT_ERROR(conv_weight_to_torch(Tensor<float>({1, 2})), ShapeError,
               "conv_weight_to_torch: the rank does not fit; w is (1, 2); expected [..., in / groups, out] "
               "with one to three spatial axes");
}

TEST(ImageOperators, ServeDualNumbers) {
  using D = kernels::Dual<float, 1>;
  Tensor<D> x({1, 2, 1, 1});
  x.fresh_data()[0] = D::variable(3);
  x.fresh_data()[1] = D(5);
  const Tensor<D> y = upsample(pad(x, 1), {.size = {8, 3}, .mode = UpsampleMode::linear});
  EXPECT_EQ(y.at(0, 3, 1, 0).value, 3.5f);  // three quarters of 3, one quarter of 5
  EXPECT_EQ(y.at(0, 3, 1, 0).d[0], 0.75f);
  const Tensor<D> z =
      fold(unfold(x, {.kernel = {2, 1}, .padding = {1, 0}}), {2, 1}, {.kernel = {2, 1}, .padding = {1, 0}});
  EXPECT_EQ(z.at(0, 0, 0, 0).d[0], 2);
  EXPECT_EQ(pixel_shuffle(nchw_to_nhwc(nhwc_to_nchw(x)), 1).at(0, 0, 0, 0).d[0], 1);
}

TEST(ImageModules, DoWhatTheFunctionsDo) {
  nn::Sequential net{nn::Pad({{0, 0}, {1, 0}}, {.mode = PadMode::replicate}), nn::Upsample({.scale = {1, 2}}),
                     nn::PixelShuffle(1)};
  EXPECT_EQ(net(Tensor<float>({1, 1, 2, 1}, {1, 2})).to_vector(), (Floats{1, 1, 1, 1, 2, 2}));
}

}  // namespace
