// Creation, random tensors, copies and casts.
#include <array>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include <wengert/core/backward.hpp>
#include <wengert/ops/cast.hpp>
#include <wengert/ops/create_random.hpp>
#include <wengert/ops/view.hpp>
#include <wengert/ops/view_expand.hpp>

#include "support/errors.hpp"

namespace {

using namespace wengert;

template <class T>
void expect_tensor(const Tensor<T>& x, const Shape& shape, const std::vector<T>& values) {
  EXPECT_EQ(x.shape(), shape) << x.shape().str();
  EXPECT_EQ(x.to_vector(), values);
  EXPECT_FALSE(x.requires_grad());
}

TEST(Create, ConstantsOfAShape) {
  expect_tensor(zeros({2, 2}), {2, 2}, {0, 0, 0, 0});
  expect_tensor(ones<std::int32_t>({3}), {3}, {1, 1, 1});
  expect_tensor(full({1, 2}, 2.5), {1, 2}, {2.5, 2.5});
  expect_tensor(scalar(3.0f), {}, {3.0f});
  EXPECT_EQ(empty({2, 3}).shape(), (Shape{2, 3}));
  EXPECT_EQ(empty({2, 0}).size(), 0);
  const auto x = transpose(full<double>({2, 3}, 7));
  expect_tensor(zeros_like(x), {3, 2}, {0, 0, 0, 0, 0, 0});
  expect_tensor(ones_like(x), {3, 2}, {1, 1, 1, 1, 1, 1});
  expect_tensor(full_like(x, 4), {3, 2}, {4, 4, 4, 4, 4, 4});
  EXPECT_TRUE(empty_like(x).is_contiguous());
}

TEST(Create, RefusesBadShapes) {
  EXPECT_ERROR(zeros({2, -1}), ShapeError,
               "zeros: negative dimension; shape is (2, -1); expected dimensions >= 0");
  EXPECT_ERROR(ones({-3}), ShapeError, "ones: negative dimension; shape is (-3); expected dimensions >= 0");
  EXPECT_ERROR(
      empty({Index{1} << 40, Index{1} << 40}), ShapeError,
      "empty: number of elements overflows; shape is (1099511627776, 1099511627776); expected a tensor "
      "that fits memory");
  EXPECT_ERROR(full({-1}, 1.0f), ShapeError,
               "full: negative dimension; shape is (-1); expected dimensions >= 0");
  EXPECT_ERROR(eye(2, -2), ShapeError, "eye: negative dimension; shape is (2, -2); expected dimensions >= 0");
}

TEST(Create, Sequences) {
  expect_tensor(arange(4), {4}, {0, 1, 2, 3});
  expect_tensor(arange(2, 9, 3), {3}, {2, 5, 8});
  expect_tensor(arange(5, 0, -2), {3}, {5, 3, 1});
  expect_tensor(arange(3, 3), {0}, {});
  expect_tensor(arange<float>(0, 1, 0.25f), {4}, {0, 0.25f, 0.5f, 0.75f});
  expect_tensor(arange(1.0, 0.0, -0.5), {2}, {1, 0.5});
  constexpr Index low = std::numeric_limits<Index>::min(), high = std::numeric_limits<Index>::max();
  expect_tensor(arange<Index>(low, high, high), {3}, {low, -1, high - 1});
  expect_tensor(arange<std::uint8_t>(250, 255, 2), {3}, {250, 252, 254});
  // begin + i * step, not a running sum
  EXPECT_EQ(arange<float>(0, 100'000, 0.1f).to_vector()[999'999], static_cast<float>(999'999 * double{0.1f}));
  expect_tensor(linspace(0, 1, 5), {5}, {0, 0.25f, 0.5f, 0.75f, 1});
  expect_tensor(linspace<double>(3, -3, 2), {2}, {3, -3});
  expect_tensor(linspace(2, 9, 1), {1}, {2});
  expect_tensor(linspace(2, 9, 0), {0}, {});
  EXPECT_ERROR(
      arange(0, 5, 0), ValueError,
      "arange: the step does not lead from begin to end; begin is 0, end is 5, step is 0; expected a "
      "finite step towards end");
  EXPECT_ERROR(
      arange(0.5, 0.0), ValueError,
      "arange: the step does not lead from begin to end; begin is 0.5, end is 0, step is 1; expected a "
      "finite step towards end");
  EXPECT_THROW(arange(0.0, std::nan("")), ValueError);
  EXPECT_THROW(arange(0.0, HUGE_VAL), ValueError);
  EXPECT_THROW(arange(0.0, 1.0, std::nan("")), ValueError);
  EXPECT_THROW(arange(0.0, 1e30), ShapeError);
  EXPECT_ERROR(linspace(0, 1, -1), ValueError, "linspace: n is -1; expected n >= 0");
}

TEST(Create, Identity) {
  expect_tensor(eye(2), {2, 2}, {1, 0, 0, 1});
  expect_tensor(eye<std::int32_t>(2, 3), {2, 3}, {1, 0, 0, 0, 1, 0});
  expect_tensor(eye(3, 1), {3, 1}, {1, 0, 0});
  EXPECT_EQ(eye(0).shape(), (Shape{0, 0}));
}

TEST(Create, NestedLists) {
  expect_tensor(tensor<float>({{1, 2}, {3, 4}}), {2, 2}, {1, 2, 3, 4});
  expect_tensor(tensor<float>({{1}, {2}}), {2, 1}, {1, 2});
  expect_tensor(tensor<double>({{{0.1, 2}}}), {1, 1, 2}, {0.1, 2});
  expect_tensor(tensor<std::int32_t>({7}), {1}, {7});
  expect_tensor(tensor<float>(5), {}, {5});
  expect_tensor(tensor<bool>({true, false}), {2}, {true, false});
  EXPECT_EQ(tensor<float>({{}, {}}).shape(), (Shape{2, 0}));
  EXPECT_ERROR(
      tensor<float>({{1, 2}, {3}}), ShapeError,
      "tensor: nested lists are ragged; an entry at depth 1 is a list of 1, the first ones make (2, 2); "
      "expected equal lengths");
  EXPECT_ERROR(
      tensor<float>({{1}, 3}), ShapeError,
      "tensor: nested lists are ragged; an entry at depth 1 is a number, the first ones make (2, 1); "
      "expected equal lengths");
  EXPECT_THROW(tensor<float>({1, {3}}), ShapeError);
  EXPECT_THROW(tensor<float>({{}, {1}}), ShapeError);
}

TEST(Create, FromContainersAndBack) {
  const std::vector<float> v{1, 2, 3};
  expect_tensor(tensor(v), {3}, v);
  expect_tensor(tensor(std::span<const float>(v).subspan(1)), {2}, {2, 3});
  expect_tensor(tensor(std::array<std::int64_t, 2>{4, 5}), {2}, {4, 5});
  const auto x = tensor(v);
  EXPECT_EQ(x.span().size(), 3u);
  EXPECT_EQ(x.span()[2], 3);
}

TEST(Random, DependsOnSeedCounterAndPositionOnly) {
  Generator a(7), b(7);
  const auto x = uniform({1000}, a, -2, 3);
  EXPECT_EQ(x.to_vector(), uniform({10, 100}, b, -2, 3).to_vector());
  b.set_counter(0);
  const auto head = uniform({10}, b, -2, 3).to_vector(), all = x.to_vector();
  EXPECT_TRUE(std::equal(head.begin(), head.end(), all.begin()));
  for (const float v : all) EXPECT_TRUE(v >= -2 && v < 3) << v;
  EXPECT_NE(uniform({1000}, a, -2, 3).to_vector(), all);  // the counter moves on
}

TEST(Random, NormalHasItsMoments) {
  Generator g(3);
  const auto x = normal<double>({200'000}, g, 1.5, 2);
  double mean = 0, square = 0;
  for (const double v : x.to_vector()) mean += v / 200'000;
  for (const double v : x.to_vector()) square += (v - mean) * (v - mean) / 200'000;
  EXPECT_NEAR(mean, 1.5, 0.02);
  EXPECT_NEAR(square, 4, 0.05);
}

TEST(Random, WholeNumbersCoverTheirRangeEvenly) {
  Generator g(5);
  std::array<int, 6> seen{};
  for (const Index v : randint({60'000}, g, -3, 3).to_vector()) ++seen.at(static_cast<std::size_t>(v + 3));
  for (const int n : seen) EXPECT_NEAR(n, 10'000, 500);
  const auto wide = randint({1000}, g, std::numeric_limits<Index>::min(), std::numeric_limits<Index>::max());
  int negative = 0;
  for (const Index v : wide.to_vector()) negative += v < 0;
  EXPECT_NEAR(negative, 500, 80);
  EXPECT_EQ(randint<Byte>({4}, g, 9, 10).to_vector(), (std::vector<Byte>{9, 9, 9, 9}));
}

TEST(Random, PermutationNamesEachNumberOnce) {
  Generator g(5), h(5);
  auto p = permutation(100, g).to_vector();
  EXPECT_EQ(p, permutation(100, h).to_vector());
  EXPECT_FALSE(std::is_sorted(p.begin(), p.end()));
  std::sort(p.begin(), p.end());
  EXPECT_EQ(p, arange<Index>(100).to_vector());
  EXPECT_EQ(permutation(0, g).size(), 0);
}

TEST(Random, RefusesBadParameters) {
  Generator g(1);
  EXPECT_ERROR(uniform({2}, g, 1, 1), ValueError,
               "uniform: bad interval; lo is 1, hi is 1; expected finite lo < hi");
  EXPECT_ERROR(normal({2}, g, 0, -1), ValueError,
               "normal: bad parameters; mean is 0, std is -1; expected finite numbers and std >= 0");
  EXPECT_ERROR(randint({2}, g, 4, 4), ValueError,
               "randint: no number fits; lo is 4, hi is 4; expected lo < hi");
  EXPECT_ERROR(permutation(-1, g), ValueError, "permutation: n is -1; expected n >= 0");
  EXPECT_ERROR(uniform({-2}, g), ShapeError,
               "uniform: negative dimension; shape is (-2); expected dimensions >= 0");
  EXPECT_EQ(g.counter(), 0u);
}

TEST(Copies, CloneHasItsOwnMemoryAndContiguousOnlyWhereNeeded) {
  const auto x = tensor<float>({{1, 2}, {3, 4}});
  EXPECT_FALSE(clone(x).shares_buffer(x));
  EXPECT_TRUE(contiguous(x).shares_buffer(x));
  const auto t = contiguous(transpose(x));
  EXPECT_FALSE(t.shares_buffer(x));
  expect_tensor(t, {2, 2}, {1, 3, 2, 4});
  expect_tensor(clone(expand(scalar(2.f), {2, 2})), {2, 2}, {2, 2, 2, 2});
}

TEST(Cast, ConvertsAndHoldsToTheRange) {
  const double inf = HUGE_VAL, nan = std::nan("");
  expect_tensor(cast<std::int32_t>(tensor<double>({1.9, -1.9, 3e9, -3e9, inf, -inf, nan})), {7},
                {1, -1, 2147483647, -2147483647 - 1, 2147483647, -2147483647 - 1, 0});
  expect_tensor(cast<std::int64_t>(tensor<float>({9.3e18f, -9.3e18f, 5})), {3},
                {std::numeric_limits<Index>::max(), std::numeric_limits<Index>::min(), 5});
  expect_tensor(cast<Byte>(tensor<float>({-1, 255.5f, 256, 0.5f})), {4}, {0, 255, 255, 0});
  expect_tensor(cast<bool>(tensor<float>({0, 0.5f, -0.0f})), {3}, {false, true, false});
  expect_tensor(cast<float>(tensor<std::int32_t>({1, -2})), {2}, {1, -2});
  expect_tensor(cast<float>(transpose(tensor<double>({{1, 2}, {3, 4}}))), {2, 2}, {1, 3, 2, 4});
  expect_tensor(cast<double>(scalar(1.5f)), {}, {1.5});
  expect_tensor(cast<double>(empty<float>({0, 2})), {0, 2}, {});
}

TEST(Cast, CarriesGradientsBetweenFloatAndDouble) {
  auto x = tensor<float>({1, 2});
  x.requires_grad(true);
  GradStore grads;
  backward(cast<double>(x), tensor<double>({0.5, 1e-3}), grads);
  EXPECT_EQ(grads[x].to_vector(), (std::vector<float>{0.5f, 1e-3f}));
}

TEST(Cast, RefusesToSeverAGradient) {
  auto x = tensor<float>({{1, 2}});
  x.requires_grad(true);
  EXPECT_ERROR(
      cast<std::int32_t>(x), TapeError,
      "cast: x asks for a gradient, which a cast from float32 to int32 severs; x is (1, 2); expected a "
      "constant; pass its detach()");
  EXPECT_TRUE(Tape::current().empty());
  expect_tensor(cast<std::int32_t>(x.detach()), {1, 2}, {1, 2});
  const NoGrad no_grad;
  expect_tensor(cast<std::int32_t>(x), {1, 2}, {1, 2});
}

}  // namespace
