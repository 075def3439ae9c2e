// What views share, what they refuse, and where Python's slices end.
#include <gtest/gtest.h>

#include <wengert/core/backward.hpp>
#include <wengert/ops/create.hpp>
#include <wengert/ops/view.hpp>
#include <wengert/ops/view_expand.hpp>
#include <wengert/ops/view_slice.hpp>

#include "support/errors.hpp"

namespace {

using namespace wengert;
using Floats = std::vector<float>;

Tensor<float> counting(const Shape& shape) {
  return reshape(arange<float>(static_cast<float>(shape.size())), shape);
}

TEST(Reshape, IsAViewWhereStridesAllowOne) {
  const auto x = counting({2, 3, 4});
  EXPECT_TRUE(reshape(x, {6, 4}).shares_buffer(x));
  EXPECT_TRUE(reshape(x, {2, 2, 3, 2, 1}).shares_buffer(x));
  const auto t = transpose(x, 0, 1);  // (3, 2, 4)
  EXPECT_FALSE(reshape(t, {6, 4}).shares_buffer(x));
  EXPECT_TRUE(reshape(t, {3, 2, 2, 2}).shares_buffer(x));
  EXPECT_EQ(reshape(t, {3, 2, 2, 2}).to_vector(), t.to_vector());
  EXPECT_EQ(reshape(t, {6, 4}).to_vector(), t.to_vector());
  const auto part = slice(x, 2, 1, 3);  // gaps between rows of 2
  EXPECT_TRUE(reshape(part, {6, 2}).shares_buffer(x));
  EXPECT_FALSE(reshape(part, {12}).shares_buffer(x));
  EXPECT_EQ(reshape(part, {12}).to_vector(), part.to_vector());
  const auto e = expand(counting({3, 1}), {3, 4});
  EXPECT_TRUE(reshape(e, {3, 2, 2}).shares_buffer(e));
  EXPECT_EQ(reshape(e, {3, 2, 2}).to_vector(), e.to_vector());
  EXPECT_FALSE(reshape(e, {12}).shares_buffer(e));
  EXPECT_EQ(reshape(scalar(2.f), {1, 1}).to_vector(), Floats{2});
  EXPECT_EQ(reshape(counting({1, 1}), {}).rank(), 0);
  EXPECT_EQ(reshape(empty({0, 3}), {4, 0, 2}).shape(), (Shape{4, 0, 2}));
  EXPECT_EQ(reshape(empty({0, 3}), {2, -1}).shape(), (Shape{2, 0}));
  EXPECT_EQ(reshape(arange(6), {-1, 2}).shape(), (Shape{3, 2}));  // integers too
}

TEST(Reshape, RefusesOtherSizes) {
  const auto x = counting({2, 3});
  EXPECT_ERROR(reshape(x, {4, 2}), ShapeError,
               "reshape: number of elements differs; x is (2, 3), shape is (4, 2); expected 6 elements");
  EXPECT_ERROR(
      reshape(x, {-1, -1}), ShapeError,
      "reshape: more than one dimension is -1; x is (2, 3), shape is (-1, -1); expected at most one");
  EXPECT_ERROR(
      reshape(empty({0, 3}), {-1, 0}), ShapeError,
      "reshape: -1 beside a dimension of 0 could be anything; x is (0, 3), shape is (-1, 0); expected "
      "every dimension");
  EXPECT_ERROR(reshape(x, {-2, 3}), ShapeError,
               "reshape: negative dimension; shape is (-2, 3); expected dimensions >= 0");
  EXPECT_THROW(reshape(x, {Index{1} << 40, Index{1} << 40}), ShapeError);
}

TEST(Flatten, OfLargeAxesBesideAnEmptyOne) {
  const Tensor<float> x({Index{1} << 29, Index{1} << 29, 0});
  EXPECT_EQ(flatten(x, 0, 1).shape(), (Shape{Index{1} << 58, 0}));
  EXPECT_EQ(flatten(x).shape(), (Shape{0}));
}

TEST(Flatten, KnowsRankZero) {
  EXPECT_EQ(flatten(scalar(1.f)).shape(), (Shape{1}));
  EXPECT_EQ(flatten(counting({2, 3, 4})).shape(), (Shape{24}));
  EXPECT_EQ(flatten(counting({2, 3, 4}), 1).shape(), (Shape{2, 12}));
  EXPECT_EQ(flatten(counting({2, 3, 4}), 0, 1).shape(), (Shape{6, 4}));
  EXPECT_ERROR(flatten(scalar(1.f), 1), ShapeError,
               "flatten: axis 1 is out of range; rank is 1; expected -1..0");
}

TEST(Squeeze, AndUnsqueezeUndoEachOther) {
  const auto x = counting({3, 4});
  EXPECT_EQ(unsqueeze(x, 0).shape(), (Shape{1, 3, 4}));
  EXPECT_EQ(unsqueeze(x, -1).shape(), (Shape{3, 4, 1}));
  EXPECT_EQ(unsqueeze(scalar(1.f), 0).shape(), (Shape{1}));
  EXPECT_EQ(squeeze(unsqueeze(transpose(x), 1)).to_vector(), transpose(x).to_vector());
  EXPECT_EQ(squeeze(counting({1, 1})).rank(), 0);
  EXPECT_ERROR(
      unsqueeze(ones({1, 1, 1, 1, 1, 1, 1, 1}), 0), ShapeError,
      "unsqueeze: the rank is already the highest; x is (1, 1, 1, 1, 1, 1, 1, 1); expected at most 7 axes");
  EXPECT_ERROR(squeeze(x, 2), ShapeError, "squeeze: axis 2 is out of range; rank is 2; expected -2..1");
}

TEST(Permute, RefusesWhatIsNoPermutation) {
  const auto x = counting({2, 3});
  EXPECT_ERROR(permute(x, {0, -2}), ShapeError,
               "permute: axis -2 is named twice; x is (2, 3), order is (0, -2); expected every axis once");
  EXPECT_ERROR(permute(x, {0, 2}), ShapeError, "permute: axis 2 is out of range; rank is 2; expected -2..1");
  EXPECT_EQ(permute(scalar(1.f), {}).rank(), 0);
  EXPECT_EQ(transpose(x).to_vector(), (Floats{0, 3, 1, 4, 2, 5}));
}

TEST(Slice, EndsWherePythonEnds) {
  const auto x = arange<float>(6);
  const auto of = [&](Index begin, Index end, Index step = 1) {
    return slice(x, 0, begin, end, step).to_vector();
  };
  EXPECT_EQ(of(1, 3), (Floats{1, 2}));
  EXPECT_EQ(of(-2, axis_end), (Floats{4, 5}));
  EXPECT_EQ(of(0, -4), (Floats{0, 1}));
  EXPECT_EQ(of(-100, 2), (Floats{0, 1}));
  EXPECT_EQ(of(4, 100), (Floats{4, 5}));
  EXPECT_EQ(of(4, 2), Floats());
  EXPECT_EQ(of(100, 200), Floats());
  EXPECT_EQ(of(0, -100), Floats());
  EXPECT_EQ(of(0, 6, 2), (Floats{0, 2, 4}));
  EXPECT_EQ(of(1, 6, 2), (Floats{1, 3, 5}));
  EXPECT_EQ(of(1, 5, 3), (Floats{1, 4}));
  EXPECT_EQ(of(2, 6, axis_end), (Floats{2}));
  EXPECT_TRUE(slice(x, 0, 2).shares_buffer(x));
  EXPECT_ERROR(slice(x, 0, 1, 3, 0), ValueError, "slice: step is 0; x is (6), axis 0; expected step >= 1");
  EXPECT_ERROR(slice(scalar(1.f), 0, 1), ShapeError,
               "slice: axis 0 is out of range; rank is 0; expected no axis");
}

// Steps from a null pointer are undefined, which sanitizers tell.
TEST(Slice, OfNothingGivesNothingBack) {
  for (const Index step : {1, 2}) {
    auto x = empty({0, 6, 4});
    x.requires_grad(true);
    GradStore grads;
    backward(slice(x, 1, 2, 5, step), empty({0, step == 1 ? 3 : 2, 4}), grads);
    EXPECT_EQ(grads[x].shape(), Shape({0, 6, 4}));
  }
}

TEST(Select, RefusesIndicesOutOfRange) {
  EXPECT_ERROR(select(counting({3, 4}), 0, 5), IndexError,
               "select: index 5 is out of range; x is (3, 4), axis 0; expected -3..2");
  EXPECT_ERROR(select(empty({0, 4}), 0, 0), IndexError,
               "select: index 0 is out of range; x is (0, 4), axis 0; expected no index");
  EXPECT_EQ(select(counting({3}), 0, -1).item(), 2);
}

TEST(Split, GivesPartsThatCoverTheAxis) {
  const auto x = counting({2, 5});
  const auto by_size = split(x, 2, 1);
  ASSERT_EQ(by_size.size(), 3u);
  EXPECT_EQ(by_size[2].to_vector(), (Floats{4, 9}));
  const auto by_sizes = split(x, {0, 4, 1}, -1);
  ASSERT_EQ(by_sizes.size(), 3u);
  EXPECT_EQ(by_sizes[0].shape(), (Shape{2, 0}));
  EXPECT_EQ(by_sizes[1].to_vector(), (Floats{0, 1, 2, 3, 5, 6, 7, 8}));
  const auto [a, b] = wengert::split<2>(x);
  EXPECT_EQ(b.to_vector(), (Floats{5, 6, 7, 8, 9}));
  EXPECT_TRUE(a.shares_buffer(x));
  EXPECT_EQ(split(empty({0, 2}), 3).size(), 1u);
  // As torch.chunk(5, 4): parts of ceil(5 / 4) = 2, so three of them.
  ASSERT_EQ(chunk(x, 4, 1).size(), 3u);
  EXPECT_EQ(chunk(x, 4, 1)[2].shape(), (Shape{2, 1}));
  EXPECT_EQ(chunk(x, 100, 1).size(), 5u);
}

TEST(Split, RefusesWhatDoesNotAddUp) {
  const auto x = counting({2, 5});
  EXPECT_ERROR(split(x, 0, 1), ValueError, "split: size is 0; x is (2, 5), axis 1; expected size >= 1");
  EXPECT_ERROR(split(x, {2, 2}, 1), ShapeError,
               "split: sizes do not add up; x is (2, 5), axis 1, sizes add up to 4; expected 5");
  EXPECT_ERROR(
      split(x, {3, 3}, 1), ShapeError,
      "split: sizes do not fit; x is (2, 5), axis 1, size 3 begins at 3; expected sizes >= 0 that add up "
      "to 5");
  EXPECT_ERROR(
      split(x, {6, -1}, 1), ShapeError,
      "split: sizes do not fit; x is (2, 5), axis 1, size 6 begins at 0; expected sizes >= 0 that add up "
      "to 5");
  EXPECT_ERROR(chunk(x, 0), ValueError, "chunk: n is 0; x is (2, 5), axis 0; expected n >= 1");
}

TEST(Views, GradientsOfPartsAddUpInOneStore) {
  auto x = counting({2, 6});
  x.requires_grad(true);
  GradStore grads;
  const auto parts = wengert::split<3>(x, 1);
  for (const BackwardOptions keep{.retain = true}; const auto& part : parts)
    backward(part, full<float>({2, 2}, part.at(0, 0) + 1), grads, keep);
  EXPECT_EQ(grads[x].to_vector(), (Floats{1, 1, 3, 3, 5, 5, 1, 1, 3, 3, 5, 5}));
  Tape::current().clear();
}

TEST(Views, EmptyPartsGiveZeroGradients) {
  auto x = counting({2, 3});
  x.requires_grad(true);
  GradStore grads;
  backward(slice(x, 0, 5), empty({0, 3}), grads);
  ASSERT_TRUE(grads.find(x));
  EXPECT_EQ(grads[x].to_vector(), Floats(6, 0.f));
  grads.zero();
  auto one = ones({1, 3});
  one.requires_grad(true);
  backward(expand(one, {0, 3}), empty({0, 3}), grads);
  EXPECT_EQ(grads[one].to_vector(), Floats(3, 0.f));
}

TEST(Views, AWriteThroughOneIsSeenByAll) {
  auto x = counting({2, 3});
  auto row = select(x, 0, 1);
  const auto before = x.version();
  row.fill(9);
  EXPECT_EQ(x.to_vector(), (Floats{0, 1, 2, 9, 9, 9}));
  EXPECT_EQ(x.version(), before + 1);
}

TEST(Views, ARecordedOneRefusesWrites) {
  auto x = counting({2, 3});
  x.requires_grad(true);
  auto row = select(x, 0, 1);
  EXPECT_THROW(row.fill(9), TapeError);
  const NoGrad no_grad;
  auto constant = select(x, 0, 1);  // the way to write to a part of a parameter
  constant.fill(9);
  EXPECT_EQ(x.to_vector(), (Floats{0, 1, 2, 9, 9, 9}));
}

TEST(Expand, SharesMemoryAndRefusesWrites) {
  auto x = counting({2, 1});
  auto y = expand(x, {3, -1, 2});
  EXPECT_EQ(y.shape(), (Shape{3, 2, 2}));
  EXPECT_TRUE(y.shares_buffer(x));
  EXPECT_ERROR(
      y.copy_from(ones({3, 2, 2})), ShapeError,
      "copy_from: several elements lie in one place; shape is (3, 2, 2), strides are (0, 1, 0); expected a "
      "tensor that was not expanded; write to a clone");
  EXPECT_ERROR(
      y.fill(1), ShapeError,
      "fill: several elements lie in one place; shape is (3, 2, 2), strides are (0, 1, 0); expected a "
      "tensor that was not expanded; write to a clone");
  EXPECT_EQ(x.to_vector(), (Floats{0, 1}));
  auto same = expand(x, {2, 1});
  same.fill(4);
  EXPECT_EQ(x.to_vector(), (Floats{4, 4}));
  EXPECT_EQ(expand(ones({1}), {0}).size(), 0);
  EXPECT_ERROR(expand(x, {-1, 2, 2}), ShapeError,
               "expand: negative dimension; shape is (-1, 2, 2); expected dimensions >= 0");
  EXPECT_THROW(expand(x, {2}), ShapeError);
}

}  // namespace
