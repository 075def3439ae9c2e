// Tensors as Eigen maps, and back.
#include <gtest/gtest.h>

#include <wengert/core/backward.hpp>
#include <wengert/core/eigen.hpp>
#include <wengert/ops/create.hpp>
#include <wengert/ops/view.hpp>
#include <wengert/ops/view_slice.hpp>

#include "support/errors.hpp"

namespace {

using namespace wengert;

TEST(EigenMaps, ReadWithoutACopy) {
  const auto x = tensor<double>({{1, 2, 3}, {4, 5, 6}});
  const auto m = eigen_matrix(x);
  EXPECT_EQ(m.data(), x.data());
  EXPECT_EQ(m.rows(), 2);
  EXPECT_EQ(m.cols(), 3);
  EXPECT_EQ(m(0, 2), 3);
  EXPECT_EQ(m(1, 0), 4);
  const auto row = select(x, 0, 1);
  EXPECT_EQ(eigen_vector(row).sum(), 15);
  EXPECT_EQ(eigen_vector(row).data(), x.data() + 3);
  static_assert(!std::is_assignable_v<decltype(m(0, 0)), double>, "a map of a constant is read only");
  EXPECT_EQ(x.version(), 0u);
  const auto none = empty({0, 3});
  EXPECT_EQ(eigen_matrix(none).rows(), 0);
}

TEST(EigenMaps, WriteAndRaiseTheVersion) {
  auto x = zeros<double>({2, 2});
  mutable_eigen_matrix(x) = Eigen::Matrix2d::Identity() * 3;
  EXPECT_EQ(x.to_vector(), (std::vector<double>{3, 0, 0, 3}));
  EXPECT_EQ(x.version(), 1u);
  auto v = zeros({3});
  mutable_eigen_vector(v)(1) = 2;
  EXPECT_EQ(v.to_vector(), (std::vector<float>{0, 2, 0}));
  EXPECT_EQ(v.version(), 1u);
  x.requires_grad(true);
  auto y = reshape(x, {4});
  EXPECT_THROW(mutable_eigen_vector(y), TapeError);
}

TEST(EigenMaps, RefuseOtherRanksAndGaps) {
  auto x = zeros({2, 3});
  auto v = zeros({3});
  EXPECT_ERROR(eigen_matrix(v), ShapeError, "eigen_matrix: wrong rank; x is (3); expected rank 2");
  EXPECT_ERROR(eigen_vector(x), ShapeError, "eigen_vector: wrong rank; x is (2, 3); expected rank 1");
  EXPECT_ERROR(mutable_eigen_matrix(v), ShapeError,
               "mutable_eigen_matrix: wrong rank; x is (3); expected rank 2");
  EXPECT_ERROR(mutable_eigen_vector(x), ShapeError,
               "mutable_eigen_vector: wrong rank; x is (2, 3); expected rank 1");
  const auto t = transpose(x);
  EXPECT_ERROR(eigen_matrix(t), ShapeError,
               "eigen_matrix: the tensor is not contiguous; x is (3, 2), strides are (1, 3); expected "
               "contiguous(x)");
  EXPECT_EQ(x.version(), 0u);
}

TEST(FromEigen, TakesExpressionsInAnyOrder) {
  Eigen::MatrixXd a(2, 3);  // stored by columns
  a << 1, 2, 3, 4, 5, 6;
  const auto x = from_eigen(a);
  EXPECT_EQ(x.shape(), (Shape{2, 3}));
  EXPECT_EQ(x.to_vector(), (std::vector<double>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(from_eigen(a.transpose() * 2).to_vector(), (std::vector<double>{2, 8, 4, 10, 6, 12}));
  EXPECT_EQ(from_eigen(a * a.transpose()).to_vector(), (std::vector<double>{14, 32, 32, 77}));
  EXPECT_EQ(from_eigen(a.row(1)).shape(), (Shape{3}));
  EXPECT_EQ(from_eigen(a.row(1)).to_vector(), (std::vector<double>{4, 5, 6}));
  EXPECT_EQ(from_eigen(a.col(2)).to_vector(), (std::vector<double>{3, 6}));
  EXPECT_EQ(from_eigen(Eigen::Array3f(1, 2, 3)).to_vector(), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(from_eigen(Eigen::MatrixXf(0, 4)).shape(), (Shape{0, 4}));
  EXPECT_FALSE(x.requires_grad());
}

}  // namespace
