// Tensor as a value: shapes, views, reading, writing in place, and every message of its faults.
#include <gtest/gtest.h>

#include <wengert/core/tensor.hpp>

#include "support/errors.hpp"

using namespace wengert;
using Floats = std::vector<float>;

namespace {

Tensor<float> counting(const Shape& shape) {
  Tensor<float> x(shape);
  float* p = x.mutable_data();
  for (Index i = 0; i < x.size(); ++i) p[i] = static_cast<float>(i);
  return x;
}

TEST(Tensor, HoldsShapesOfEveryRank) {
  EXPECT_EQ(Tensor<float>().shape(), (Shape{0}));
  EXPECT_TRUE(Tensor<float>().empty());
  const Tensor<float> scalar(Shape(), {3.0F});
  EXPECT_EQ(scalar.rank(), 0);
  EXPECT_EQ(scalar.size(), 1);
  EXPECT_EQ(scalar.item(), 3.0F);
  EXPECT_EQ(scalar.at(), 3.0F);
  const Tensor<float> empty({2, 0, 3});
  EXPECT_EQ(empty.size(), 0);
  EXPECT_EQ(empty.data(), nullptr);
  EXPECT_TRUE(empty.is_contiguous());
  EXPECT_EQ(empty.to_vector(), Floats());
  const Tensor<float> eight(Shape::filled(8, 1), {7.0F});
  EXPECT_EQ(eight.item(), 7.0F);
  EXPECT_EQ(Tensor<float>({2}, {1, 2}).dtype(), "float32");
  EXPECT_EQ((Tensor<std::uint8_t>::dtype()), "uint8");
}

TEST(Tensor, RefusesShapesAndValuesThatDoNotFit) {
  EXPECT_EQ(message_of<ShapeError>([] {
              Tensor<float>({2, -1});
            }),
            "tensor: negative dimension; shape is (2, -1); expected dimensions >= 0");
  EXPECT_EQ(
      message_of<ShapeError>([] {
        Tensor<float>({Index{1} << 40, Index{1} << 40});
      }),
      "tensor: number of elements overflows; shape is (1099511627776, 1099511627776); expected a tensor "
      "that fits memory");
  EXPECT_EQ(
      message_of<ShapeError>([] {
        Tensor<float>({Index{1} << 40, 0, Index{1} << 40});
      }),
      "tensor: number of elements overflows; shape is (1099511627776, 0, 1099511627776); expected a tensor "
      "that fits memory");
  EXPECT_EQ(
      message_of<ShapeError>([] { Tensor<double>({Index{1} << 61}); }),
      "tensor: number of elements overflows; shape is (2305843009213693952); expected a tensor that fits "
      "memory");
  EXPECT_EQ(message_of<ShapeError>([] {
              Tensor<float>({2, 2}, {1, 2, 3});
            }),
            "tensor: number of values differs; shape is (2, 2), values are 3; expected 4");
  EXPECT_EQ(message_of<ShapeError>([] { Tensor<float>(Shape::filled(9, 1)); }),
            "shape: rank 9 is too high; expected at most 8");
  EXPECT_EQ(Tensor<float>({0, Index{1} << 59}).size(), 0) << "nothing to allocate";
}

TEST(Tensor, TooLargeForThisMachineIsBadAlloc) {
  EXPECT_THROW(Tensor<float>({Index{1} << 52}), std::bad_alloc);
  EXPECT_THROW(Tensor<float>({Index{1} << 58}), std::bad_alloc);
}

TEST(Tensor, HasNoIndexOnAnEmptyAxis) {
  EXPECT_EQ(message_of<IndexError>([] {
              Tensor<float>({2, 0}).at(0, 0);
            }),
            "at: index 0 is out of range; shape is (2, 0), axis 1; expected no index");
}

TEST(Tensor, ReadsByIndexFromBothEnds) {
  const Tensor<float> x = counting({2, 3});
  EXPECT_EQ(x.at(1, 2), 5);
  EXPECT_EQ(x.at(-1, -3), 3);
  EXPECT_EQ(x.dim(-1), 3);
  EXPECT_EQ(message_of<ShapeError>([&] { x.dim(2); }),
            "dim: axis 2 is out of range; rank is 2; expected -2..1");
  EXPECT_EQ(message_of<ShapeError>([&] { x.at(1); }),
            "at: number of indices differs; got 1, shape is (2, 3); expected 2");
  EXPECT_EQ(message_of<IndexError>([&] { x.at(0, 3); }),
            "at: index 3 is out of range; shape is (2, 3), axis 1; expected -3..2");
  EXPECT_EQ(message_of<IndexError>([&] { x.at(-3, 0); }),
            "at: index -3 is out of range; shape is (2, 3), axis 0; expected -2..1");
  EXPECT_EQ(message_of<ShapeError>([&] { x.item(); }),
            "item: the tensor must hold one element; shape is (2, 3); expected one");
  EXPECT_EQ(message_of<ShapeError>([&] { Tensor<float>({0}).item(); }),
            "item: the tensor must hold one element; shape is (0); expected one");
}

TEST(Tensor, ViewsShareTheBuffer) {
  const Tensor<float> x = counting({3, 4});
  const Tensor<float> t(x.buffer(), {4, 3}, {1, 4}, 0), row(x.buffer(), {4}, {1}, 4),
      wide(x.buffer(), {2, 4}, {0, 1}, 0);
  EXPECT_FALSE(t.is_contiguous());
  EXPECT_EQ(t.to_vector(), (Floats{0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11}));
  EXPECT_TRUE(row.is_contiguous());
  EXPECT_EQ(row.to_vector(), (Floats{4, 5, 6, 7}));
  EXPECT_EQ(wide.to_vector(), (Floats{0, 1, 2, 3, 0, 1, 2, 3}));
  EXPECT_TRUE(t.shares_buffer(x));
  EXPECT_FALSE(t.packed().shares_buffer(x));
  EXPECT_TRUE(row.packed().shares_buffer(x)) << "already packed";
  EXPECT_FALSE(row.packed_copy().shares_buffer(x));
  EXPECT_EQ(
      message_of<ShapeError>([&] { t.span(); }),
      "span: the tensor is not contiguous; shape is (4, 3), strides are (1, 4); expected contiguous(x)");
  EXPECT_EQ(row.span()[2], 6);
}

TEST(Tensor, WritesRaiseTheVersionThatViewsShare) {
  Tensor<float> x = counting({2, 2});
  const std::uint32_t before = x.version();
  Tensor<float> column(x.buffer(), {2}, {2}, 1);
  column.fill(9);
  EXPECT_EQ(x.to_vector(), (Floats{0, 9, 2, 9}));
  EXPECT_EQ(x.version(), before + 1);
  column.copy_from(Tensor<float>({2}, {5, 6}));
  EXPECT_EQ(x.to_vector(), (Floats{0, 5, 2, 6}));
  EXPECT_EQ(x.version(), before + 2);
  const Tensor<float> rows(x.buffer(), {2}, {1}, 0);
  column.copy_from(rows);
  EXPECT_EQ(x.to_vector(), (Floats{0, 0, 2, 5})) << "the source is read before its memory is written";
  EXPECT_EQ(message_of<ShapeError>([&] { x.copy_from(counting({4})); }),
            "copy_from: shapes differ; this is (2, 2), x is (4); expected equal shapes");
}

TEST(Tensor, CopiesShareAndDetachKeepsValues) {
  Tensor<float> x = counting({3});
  x.requires_grad(true);
  const Tensor<float> copy = x, constant = x.detach();
  EXPECT_TRUE(copy.requires_grad());
  EXPECT_FALSE(constant.requires_grad());
  EXPECT_TRUE(constant.shares_buffer(x));
  x.mutable_data()[0] = 7;
  EXPECT_EQ(constant.to_vector(), (Floats{7, 1, 2})) << "detach shares";
  EXPECT_TRUE(x.requires_grad()) << "writing to a leaf keeps it a leaf";
}

TEST(Tensor, OfBoolsAndIntegers) {
  const Tensor<bool> mask({3}, {true, false, true});
  EXPECT_EQ(mask.to_vector(), (std::vector<bool>{true, false, true}));
  const Tensor<Index> i({2}, std::vector<Index>{4, -5});
  EXPECT_EQ(i.at(1), -5);
}

}  // namespace
