// matmul where a row cannot look: operands of every layout, one tensor on both sides, what is saved, zero
// sizes, overflow, dual numbers.
#include <gtest/gtest.h>

#include <wengert/core/backward.hpp>
#include <wengert/kernels/dual.hpp>
#include <wengert/ops/matmul.hpp>

namespace {

using namespace wengert;

Tensor<double> counted(const Shape& shape, double start = 1) {
  Tensor<double> x(shape);
  for (Index i = 0; i < x.size(); ++i) x.fresh_data()[i] = start + static_cast<double>(i * 7 % 11);
  return x;
}

/// A copy of x that is laid out with its last two axes exchanged, and a gap after each column.
Tensor<double> laid_out_by_columns(const Tensor<double>& x) {
  const Index m = x.dim(-2), n = x.dim(-1);
  const Index batch = m * n == 0 ? 0 : x.size() / (m * n);
  Tensor<double> room(Shape{batch, n, m + 1});
  room.fill(std::numeric_limits<double>::quiet_NaN());
  const Tensor<double> flat = x.packed();
  double* const to = room.fresh_data();
  for (Index t = 0; t < batch; ++t)
    for (Index i = 0; i < m; ++i)
      for (Index j = 0; j < n; ++j) to[(t * n + j) * (m + 1) + i] = flat.data()[(t * m + i) * n + j];
  Strides strides = contiguous_strides(x.shape());
  for (int a = 0; a + 2 < x.rank(); ++a) strides[a] = strides[a] / (m * n) * n * (m + 1);
  strides[x.rank() - 2] = 1;
  strides[x.rank() - 1] = m + 1;
  return Tensor<double>(room.buffer(), x.shape(), strides, 0);
}

TEST(Matmul, ReadsAnyLayoutAndGivesTheSameGradients) {
  for (const auto& [sa, sb] : {std::pair<Shape, Shape>{{3, 4}, {4, 5}},
                               {{2, 3, 4}, {4, 5}},
                               {{3, 4}, {2, 4, 5}},
                               {{2, 1, 3, 4}, {3, 4, 2}},
                               {{2, 1, 2, 3}, {1, 2, 3, 2}}}) {
    Tensor<double> a = counted(sa), b = counted(sb, -4);
    Tensor<double> as = laid_out_by_columns(a), bs = laid_out_by_columns(b);
    for (Tensor<double>* t : {&a, &b, &as, &bs}) t->requires_grad(true);
    GradStore grads;
    const Tensor<double> y = matmul(a, b), dy = counted(y.shape(), 2);
    backward(y, dy, grads);
    const Tensor<double> ys = matmul(as, bs);
    EXPECT_EQ(ys.to_vector(), y.to_vector()) << sa.str() << sb.str();
    backward(ys, dy, grads);
    EXPECT_EQ(grads[as].to_vector(), grads[a].to_vector()) << sa.str() << sb.str();
    EXPECT_EQ(grads[bs].to_vector(), grads[b].to_vector()) << sa.str() << sb.str();
  }
}

TEST(Matmul, AddsBothGradientsOfATensorTimesItself) {
  Tensor<double> x(Shape{2, 2}, {1, 2, 3, 4});
  x.requires_grad(true);
  GradStore grads;
  const Tensor<double> y = matmul(x, x);
  EXPECT_EQ(y.to_vector(), (std::vector<double>{7, 10, 15, 22}));
  Tensor<double> dy(Shape{2, 2});
  dy.fill(1);
  backward(y, dy, grads);
  // dy x^T is (3 7; 3 7), x^T dy is (4 4; 6 6).
  EXPECT_EQ(grads[x].to_vector(), (std::vector<double>{7, 11, 9, 13}));
}

TEST(Matmul, SumsTheGradientOfASharedMatrixOverTheBatch) {
  Tensor<double> a(Shape{2, 1, 2}, {1, 2, 3, 4}), b(Shape{2, 1}, {5, 6});
  b.requires_grad(true);
  GradStore grads;
  const Tensor<double> y = matmul(a, b);
  EXPECT_EQ(y.to_vector(), (std::vector<double>{17, 39}));
  backward(y, Tensor<double>(Shape{2, 1, 1}, {1, 10}), grads);
  EXPECT_EQ(grads[b].to_vector(), (std::vector<double>{31, 42}));
}

TEST(Matmul, SavesAnOperandOnlyForTheOthersGradient) {
  Tensor<double> x = counted({2, 3}), w = counted({3, 2});
  w.requires_grad(true);
  GradStore grads;
  const Tensor<double> y = matmul(x, w);
  w.fill(0);  // x asks for nothing, so w's old values are not needed
  Tensor<double> dy(Shape{2, 2});
  dy.fill(1);
  backward(y, dy, grads);
  EXPECT_EQ(grads[w].at(0, 0), x.at(0, 0) + x.at(1, 0));

  const Tensor<double> z = matmul(x, w);
  x.fill(0);
  EXPECT_THROW(backward(z, dy, grads), TapeError);
}

TEST(Matmul, TakesZeroSizes) {
  Tensor<double> a(Shape{3, 0}), b(Shape{0, 2});
  a.requires_grad(true);
  b.requires_grad(true);
  GradStore grads;
  const Tensor<double> y = matmul(a, b);
  EXPECT_EQ(y.to_vector(), std::vector<double>(6, 0.0));
  backward(y, counted({3, 2}), grads);
  EXPECT_EQ(grads[a].size(), 0);

  Tensor<double> none(Shape{0, 2, 3}), w = counted({3, 4});
  w.requires_grad(true);
  const Tensor<double> z = matmul(none, w);
  EXPECT_EQ(z.shape(), (Shape{0, 2, 4}));
  backward(z, Tensor<double>(z.shape()), grads);
  EXPECT_EQ(grads[w].to_vector(), std::vector<double>(12, 0.0));
}

TEST(Matmul, RefusesAResultThatOverflows) {
  const Tensor<double> one(Shape{1}, {1});
  const Index huge = Index{1} << 31;
  const Tensor<double> a(one.buffer(), {huge, 1}, {0, 1}, 0), b(one.buffer(), {1, huge}, {1, 0}, 0);
  try {
    matmul(a, b);
    FAIL() << "expected ShapeError";
  } catch (const ShapeError& e) {
    EXPECT_STREQ(
        e.what(),
        "matmul: number of elements overflows; shape is (2147483648, 2147483648); expected a tensor that "
        "fits memory");
  }
}

TEST(Matmul, RunsOnDualNumbers) {
  using D = kernels::Dual<double>;
  const Tensor<D> a(Shape{1, 2}, {D(1, 1), D(2, 0)}), b(Shape{2, 1}, {D(3, 0), D(4, 1)});
  const D y = matmul(a, b).item();
  EXPECT_EQ(y.value, 11);
  EXPECT_EQ(y.d[0], 3 + 2);
}

}  // namespace
