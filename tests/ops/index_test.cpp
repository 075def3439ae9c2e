// Indices: their types and range, repeated ones, and gradients that touch only what was taken.
#include <cmath>

#include <gtest/gtest.h>

#include <wengert/core/backward.hpp>
#include <wengert/ops/create_random.hpp>
#include <wengert/ops/index.hpp>
#include <wengert/ops/view.hpp>
#include <wengert/ops/view_slice.hpp>

#include "support/errors.hpp"

namespace {

using namespace wengert;
using Floats = std::vector<float>;

Tensor<float> counting(const Shape& shape) {
  return reshape(arange<float>(static_cast<float>(shape.size())), shape);
}

template <class I>
class EveryIndexType : public testing::Test {};
using IndexTypes = testing::Types<std::int8_t, std::uint8_t, std::int16_t, std::uint16_t, std::int32_t,
                                  std::uint32_t, std::int64_t, std::uint64_t>;
TYPED_TEST_SUITE(EveryIndexType, IndexTypes);

TYPED_TEST(EveryIndexType, TakesAndGivesBack) {
  auto w = counting({4, 2});
  w.requires_grad(true);
  const auto i = tensor<TypeParam>({{3, 0}, {3, 1}});
  GradStore grads;
  const auto y = embedding(w, i);
  EXPECT_EQ(y.shape(), (Shape{2, 2, 2}));
  EXPECT_EQ(y.to_vector(), (Floats{6, 7, 0, 1, 6, 7, 2, 3}));
  backward(y, tensor<float>({{{1, 2}, {3, 4}}, {{5, 6}, {7, 8}}}), grads);
  EXPECT_EQ(grads[w].to_vector(), (Floats{3, 4, 7, 8, 0, 0, 6, 8}));
}

TEST(OutOfRange, IsReportedWithIndexPositionAndRange) {
  const auto x = counting({10, 4});
  const auto bad = tensor<Index>({0, 1, 2, 3, 4, 5, 6, 12, 13});
  const std::string rest = ": index 12 at position 7 is out of range; x is (10, 4), axis 0; expected 0..9";
  EXPECT_ERROR(take_rows(x, bad), IndexError, "take_rows" + rest);
  EXPECT_ERROR(index_select(x, 0, bad), IndexError, "index_select" + rest);
  EXPECT_ERROR(embedding(x, bad), IndexError,
               "embedding: index 12 at position 7 is out of range; weight is (10, 4), axis 0; expected 0..9");
  const auto column = reshape(bad, {9, 1});
  EXPECT_ERROR(gather(x, 0, column), IndexError, "gather" + rest);
  EXPECT_ERROR(scatter_add(x, 0, column, ones({9, 1})), IndexError, "scatter_add" + rest);
  EXPECT_ERROR(scatter(x, 0, column, ones({9, 1})), IndexError, "scatter" + rest);
  EXPECT_ERROR(gather(x, -1, tensor<std::int32_t>({{-1}})), IndexError,
               "gather: index -1 at position 0 is out of range; x is (10, 4), axis -1; expected 0..3");
  EXPECT_ERROR(take_rows(empty({0, 4}), tensor<Index>({0})), IndexError,
               "take_rows: index 0 at position 0 is out of range; x is (0, 4), axis 0; expected no index");
  EXPECT_ERROR(
      one_hot(tensor<Index>({{0}, {3}}), 3), IndexError,
      "one_hot: index 3 at position 1 is out of range; indices are (2, 1), classes is 3; expected 0..2");
  EXPECT_ERROR(
      take_rows(x, tensor<std::uint64_t>({~std::uint64_t{0}})), IndexError,
      "take_rows: index 18446744073709551615 at position 0 is out of range; x is (10, 4), axis 0; expected "
      "0..9");
}

TEST(OutOfRange, IsFoundAnywhereInALongIndex) {
  const auto x = counting({3, 2});
  for (const Index at : {0, 1023, 1024, 4999}) {
    auto i = zeros<std::int32_t>({5000});
    i.mutable_data()[at] = 3;
    EXPECT_ERROR(take_rows(x, i), IndexError,
                 "take_rows: index 3 at position " + std::to_string(at) +
                     " is out of range; x is (3, 2), axis 0; expected 0..2");
  }
}

TEST(Indices, MayBeEmptyAndOfRankZero) {
  auto x = counting({3, 2});
  x.requires_grad(true);
  EXPECT_EQ(take_rows(x, scalar(2)).to_vector(), (Floats{4, 5}));
  EXPECT_EQ(take_rows(counting({3}), scalar(2)).item(), 2);
  EXPECT_EQ(embedding(x, empty<Index>({0, 5})).shape(), (Shape{0, 5, 2}));
  EXPECT_EQ(index_select(x, 1, empty<Index>({0})).shape(), (Shape{3, 0}));
}

TEST(Indices, OfNothingGiveZeroGradients) {
  auto x = counting({3, 2});
  x.requires_grad(true);
  GradStore grads;
  backward(take_rows(x, empty<Index>({0})), empty({0, 2}), grads);
  EXPECT_EQ(grads[x].to_vector(), Floats(6, 0.f));
  grads.zero();
  backward(gather(x, 1, empty<Index>({3, 0})), empty({3, 0}), grads);
  EXPECT_EQ(grads[x].to_vector(), Floats(6, 0.f));
}

TEST(Indices, WrittenAfterwardsAreNoticed) {
  auto x = counting({3, 2});
  x.requires_grad(true);
  auto i = tensor<Index>({0, 1});
  const auto y = take_rows(x, i);
  i.fill(2);
  GradStore grads;
  EXPECT_ERROR(
      backward(y, ones({2, 2}), grads), TapeError,
      "backward: a tensor that take_rows saved was written in place since; shape is (2), version is 1; "
      "expected version 0; write to a clone, or after backward");
  Tape::current().clear();
}

TEST(Embedding, GradientTouchesTakenRowsOnlyAndForgetsOldOnes) {
  auto w = zeros({1000, 40});
  w.requires_grad(true);
  GradStore grads;
  const auto step = [&](std::vector<Index> rows) {
    grads.zero();
    const auto i = tensor(rows);
    backward(embedding(w, i), ones({i.size(), 40}), grads);
    std::vector<float> expected(1000 * 40);
    for (const Index r : rows)
      for (Index c = 0; c < 40; ++c) expected[static_cast<std::size_t>(r * 40 + c)] += 1;
    EXPECT_EQ(grads[w].to_vector(), expected);
  };
  step({1, 5, 1});
  step({999, 0});
  step({5});
}

TEST(Embedding, AddsToAGradientThatIsThere) {
  auto w = zeros({3, 2});
  w.requires_grad(true);
  GradStore grads;
  backward(embedding(w, tensor<Index>({1})), ones({1, 2}), grads);
  backward(reshape(w, {6}), ones({6}), grads);
  backward(embedding(w, tensor<Index>({2, 2})), ones({2, 2}), grads);
  EXPECT_EQ(grads[w].to_vector(), (Floats{1, 1, 2, 2, 3, 3}));
}

TEST(Embedding, ReadsAStridedTableInPlaceAndCopiesAnyOther) {
  const auto wide = counting({4, 6});
  const auto i = tensor<Index>({2, 0});
  EXPECT_EQ(embedding(slice(wide, 1, 1, 3), i).to_vector(), (Floats{13, 14, 1, 2}));
  EXPECT_EQ(embedding(transpose(wide), i).to_vector(), (Floats{2, 8, 14, 20, 0, 6, 12, 18}));
  EXPECT_EQ(embedding(slice(wide, 1, 0, 6, 5), i).to_vector(), (Floats{12, 17, 0, 5}));
}

TEST(Gather, SameBitsAtAnyNumberOfThreads) {
  Generator g(1);
  auto x = uniform({300, 70}, g);
  x.requires_grad(true);
  const auto rows = randint({20'000}, g, 0, 300);
  const auto all = randint({300, 900}, g, 0, 70);
  const auto dy_rows = uniform({20'000, 70}, g), dy_all = uniform({300, 900}, g);
  std::vector<Floats> seen;
  for (const int threads : {1, 2, 3}) {
    set_num_threads(threads);
    GradStore grads;
    backward(take_rows(x, rows), dy_rows, grads);
    backward(gather(x, 1, all), dy_all, grads);
    seen.push_back(grads[x].to_vector());
  }
  set_num_threads(1);
  EXPECT_EQ(seen[0], seen[1]);
  EXPECT_EQ(seen[0], seen[2]);
}

TEST(Scatter, RefusesAnElementNamedTwice) {
  const auto x = counting({10, 4});
  EXPECT_ERROR(
      scatter(x, 0, tensor<Index>({{3, 3}, {4, 3}}), ones({2, 2})), ValueError,
      "scatter: index 3 at position 3 names an element a second time; x is (10, 4), axis 0; expected "
      "distinct elements; scatter_add adds repeated ones up");
  EXPECT_EQ(scatter_add(zeros({3}), 0, tensor<Index>({1, 1, 2}), tensor<float>({1, 2, 4})).to_vector(),
            (Floats{0, 3, 4}));
}

TEST(Scatter, LeavesNoTraceOfWhatWasReplaced) {
  auto x = tensor<float>({1, 2, 3}), s = tensor<float>({9});
  x.requires_grad(true);
  s.requires_grad(true);
  GradStore grads;
  const float inf = HUGE_VALF;
  for (int again = 0; again < 2; ++again)  // the second time it adds
    backward(scatter(x, 0, tensor<Index>({1}), s), tensor<float>({1, inf, 3}), grads);
  EXPECT_EQ(grads[x].to_vector(), (Floats{2, 0, 6}));
  EXPECT_EQ(grads[s].to_vector(), Floats{inf});
}

TEST(OneHot, GivesAnyElementType) {
  EXPECT_EQ(one_hot(tensor<Byte>({1, 0}), 2).to_vector(), (Floats{0, 1, 1, 0}));
  EXPECT_EQ(one_hot<Byte>(scalar(2), 3).to_vector(), (std::vector<Byte>{0, 0, 1}));
  EXPECT_EQ(one_hot(empty<Index>({0}), 3).shape(), (Shape{0, 3}));
  EXPECT_ERROR(one_hot(scalar(0), 0), ValueError,
               "one_hot: classes is 0; indices are (); expected classes >= 1");
  EXPECT_ERROR(
      one_hot(zeros<Index>({1, 1, 1, 1, 1, 1, 1, 1}), 2), ShapeError,
      "one_hot: the rank is already the highest; indices are (1, 1, 1, 1, 1, 1, 1, 1); expected at most 7 "
      "axes");
}

}  // namespace
