// concat and stack: lists, empty operands, faults.
#include <gtest/gtest.h>

#include <wengert/core/backward.hpp>
#include <wengert/ops/create.hpp>
#include <wengert/ops/join.hpp>
#include <wengert/ops/view.hpp>

#include "support/errors.hpp"

namespace {

using namespace wengert;
using Floats = std::vector<float>;

TEST(Concat, TakesListsVectorsAndSpans) {
  const auto a = tensor<float>({{1, 2}}), b = tensor<float>({{3, 4}, {5, 6}});
  const Floats all{1, 2, 3, 4, 5, 6};
  EXPECT_EQ(concat({a, b}).to_vector(), all);
  const std::vector<Tensor<float>> v{a, b};
  EXPECT_EQ(concat(v).to_vector(), all);
  EXPECT_EQ(concat(std::span<const Tensor<float>>(v), 0).to_vector(), all);
  EXPECT_EQ(concat({arange(2), arange(3)}).to_vector(), (std::vector<int>{0, 1, 0, 1, 2}));
  EXPECT_EQ(concat({a}).to_vector(), a.to_vector());
  EXPECT_EQ(concat({transpose(a), transpose(b)}, 1).to_vector(), (Floats{1, 3, 5, 2, 4, 6}));
}

TEST(Concat, PassesOverEmptyOperands) {
  auto a = tensor<float>({{1, 2}}), none = empty({0, 2});
  a.requires_grad(true);
  none.requires_grad(true);
  GradStore grads;
  const auto y = concat({none, a, none});
  EXPECT_EQ(y.shape(), (Shape{1, 2}));
  backward(y, tensor<float>({{3, 4}}), grads);
  EXPECT_EQ(grads[a].to_vector(), (Floats{3, 4}));
  EXPECT_EQ(grads[none].size(), 0);
  EXPECT_EQ(concat({empty({2, 0}), empty({2, 0})}, 1).shape(), (Shape{2, 0}));
}

TEST(Concat, AddsUpATensorThatIsGivenTwice) {
  auto x = tensor<float>({1, 2});
  x.requires_grad(true);
  GradStore grads;
  backward(concat({x, ones({1}), x}), tensor<float>({1, 2, 3, 4, 5}), grads);
  EXPECT_EQ(grads[x].to_vector(), (Floats{1 + 4, 2 + 5}));
}

TEST(Concat, NamesItsFaults) {
  const auto a = ones({2, 3}), b = ones({2, 4});
  EXPECT_ERROR(concat(std::vector<Tensor<float>>{}), ValueError,
               "concat: the list is empty; expected at least one tensor");
  EXPECT_ERROR(concat({a, a, b}), ShapeError,
               "concat: shapes differ beside axis 0; tensor 0 is (2, 3), tensor 2 is (2, 4); expected equal "
               "dimensions there");
  EXPECT_ERROR(concat({a, b}, 2), ShapeError, "concat: axis 2 is out of range; rank is 2; expected -2..1");
  EXPECT_ERROR(concat({scalar(1.f)}), ShapeError,
               "concat: axis 0 is out of range; rank is 0; expected no axis");
}

TEST(Stack, MakesAnAxis) {
  const auto a = tensor<float>({1, 2}), b = tensor<float>({3, 4});
  EXPECT_EQ(stack({a, b}).to_vector(), (Floats{1, 2, 3, 4}));
  EXPECT_EQ(stack({a, b}, -1).to_vector(), (Floats{1, 3, 2, 4}));
  EXPECT_EQ(stack({scalar(1.f), scalar(2.f)}).shape(), (Shape{2}));
  EXPECT_EQ(stack({empty({0}), empty({0})}, 1).shape(), (Shape{0, 2}));
}

TEST(Stack, NamesItsFaults) {
  const auto a = ones({2, 3});
  EXPECT_ERROR(stack(std::vector<Tensor<float>>{}), ValueError,
               "stack: the list is empty; expected at least one tensor");
  EXPECT_ERROR(stack({a, ones({3})}), ShapeError,
               "stack: shapes differ; tensor 0 is (2, 3), tensor 1 is (3); expected equal shapes");
  EXPECT_ERROR(stack({a, a}, 3), ShapeError, "stack: axis 3 is out of range; rank is 3; expected -3..2");
  EXPECT_ERROR(
      stack({ones({1, 1, 1, 1, 1, 1, 1, 1})}), ShapeError,
      "stack: the rank is already the highest; tensor 0 is (1, 1, 1, 1, 1, 1, 1, 1); expected at most 7 "
      "axes");
  EXPECT_TRUE(Tape::current().empty());
}

}  // namespace
