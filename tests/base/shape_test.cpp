// Shapes, axes, sizes and the broadcasting rule, against NumPy's, with the messages of their faults.
#include <gtest/gtest.h>

#include <wengert/base/shape.hpp>

#include "support/errors.hpp"

using namespace wengert;

namespace {

TEST(Shape, PrintsAsATuple) {
  EXPECT_EQ(Shape().str(), "()");
  EXPECT_EQ((Shape{3}).str(), "(3)");
  EXPECT_EQ((Shape{3, 0, 4}).str(), "(3, 0, 4)");
}

TEST(Shape, IsAShortList) {
  Shape s{2, 3};
  s.push_back(4);
  EXPECT_EQ(s, (Shape{2, 3, 4}));
  s.insert(0, 9);
  s.insert(2, 8);
  EXPECT_EQ(s, (Shape{9, 2, 8, 3, 4}));
  s.erase(0);
  s.erase(3);
  EXPECT_EQ(s, (Shape{2, 8, 3}));
  EXPECT_EQ(s.back(), 3);
  EXPECT_EQ(s.size(), 48);
  EXPECT_EQ(Shape().size(), 1);
  EXPECT_FALSE((Shape{2} == Shape{2, 1}));
  EXPECT_EQ(Shape::filled(3, 5), (Shape{5, 5, 5}));
}

TEST(Shape, HoldsEightAxes) {
  EXPECT_EQ(Shape::filled(8, 1).rank(), 8);
  EXPECT_EQ(message_of<ShapeError>([] { Shape::filled(9, 1); }),
            "shape: rank 9 is too high; expected at most 8");
  EXPECT_EQ(message_of<ShapeError>([] {
              Shape({1, 2, 3, 4, 5, 6, 7, 8, 9});
            }),
            "shape: rank 9 is too high; expected at most 8");
  EXPECT_EQ(message_of<ShapeError>([] { Shape::filled(8, 1).push_back(1); }),
            "shape: rank is too high; expected at most 8");
}

TEST(Shape, StridesOfContiguousMemory) {
  EXPECT_EQ(contiguous_strides(Shape()), Shape());
  EXPECT_EQ(contiguous_strides({2, 3, 4}), (Shape{12, 4, 1}));
}

TEST(Shape, CheckedSizeRefusesWhatCannotBe) {
  EXPECT_EQ(checked_size("op", {2, 3}), 6);
  EXPECT_EQ(checked_size("op", Shape()), 1);
  const Index big = Index{1} << 62;
  EXPECT_EQ(checked_size("op", {big / 2, 0}), 0);
  EXPECT_EQ(message_of<ShapeError>([&] {
              checked_size("op", {big, 0, big});
            }).substr(0, 34),
            "op: number of elements overflows; ")
      << "the others could not be multiplied";
  EXPECT_EQ(message_of<ShapeError>([&] {
              checked_size("op", {0, -2});
            }),
            "op: negative dimension; shape is (0, -2); expected dimensions >= 0");
  EXPECT_EQ(message_of<ShapeError>([&] {
              checked_size("op", {big, 4});
            }),
            "op: number of elements overflows; shape is (4611686018427387904, 4); expected a tensor that "
            "fits memory");
  EXPECT_EQ(message_of<ShapeError>([&] { checked_size("op", {big}, 8); }).substr(0, 34),
            "op: number of elements overflows; ")
      << "counted in bytes";
}

TEST(Axes, CountFromBothEnds) {
  EXPECT_EQ(normalize_axis("sum", 1, 3), 1);
  EXPECT_EQ(normalize_axis("sum", -1, 3), 2);
  EXPECT_EQ(normalize_axis("sum", -3, 3), 0);
  EXPECT_EQ(message_of<ShapeError>([] { normalize_axis("sum", 3, 3); }),
            "sum: axis 3 is out of range; rank is 3; expected -3..2");
  EXPECT_EQ(message_of<ShapeError>([] { normalize_axis("sum", -4, 3); }),
            "sum: axis -4 is out of range; rank is 3; expected -3..2");
  EXPECT_EQ(message_of<ShapeError>([] { normalize_axis("sum", 0, 0); }),
            "sum: axis 0 is out of range; rank is 0; expected no axis");
}

TEST(Broadcasting, FollowsNumPy) {
  struct {
    Shape a, b, y;
  } const table[] = {
      {{}, {}, {}},
      {{}, {3}, {3}},
      {{3}, {1}, {3}},
      {{2, 1}, {3}, {2, 3}},
      {{4, 1, 3}, {2, 1}, {4, 2, 3}},
      {{1}, {5, 4}, {5, 4}},
      {{0}, {1}, {0}},
      {{3, 0}, {1, 1}, {3, 0}},
      {{1, 1, 1}, {7}, {1, 1, 7}},
  };
  for (const auto& [a, b, y] : table) {
    EXPECT_EQ(broadcast_shapes("add", a, b).str(), y.str());
    EXPECT_EQ(broadcast_shapes("add", b, a).str(), y.str());
  }
  EXPECT_EQ(message_of<ShapeError>([] {
              broadcast_shapes("add", {3, 4}, {3});
            }),
            "add: shapes do not broadcast; a is (3, 4), b is (3); expected equal dimensions or 1, aligned at "
            "the back");
  EXPECT_THROW(broadcast_shapes("add", {0}, {2}), ShapeError);
  EXPECT_EQ(message_of<ShapeError>([] {
              broadcast_shapes("add", {2}, {4, 3});
            }).substr(0, 54),
            "add: shapes do not broadcast; a is (2), b is (4, 3); e")
      << "operands in the caller's order";
}

TEST(Broadcasting, StridesAreZeroWhereAnAxisStretches) {
  EXPECT_EQ(broadcast_strides({3, 1}, {1, 1}, {2, 3, 4}), (Shape{0, 1, 0}));
  EXPECT_EQ(broadcast_strides({3, 4}, {4, 1}, {3, 4}), (Shape{4, 1}));
  EXPECT_EQ(broadcast_strides(Shape(), Shape(), {2, 2}), (Shape{0, 0}));
}

}  // namespace
