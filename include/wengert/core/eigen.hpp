// Eigen interop: tensors seen as Eigen maps without a copy, and tensors from Eigen expressions. Not part of
// wengert.hpp, since Eigen takes seconds to compile: include this file where it is wanted. Floor: core.
#pragma once

#if defined(__GNUC__) && !defined(__clang__)  // g++ 12 wrongly finds AVX-512 intrinsics uninitialised
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <Eigen/Core>
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

#include <wengert/core/tensor.hpp>

namespace wengert::inline WENGERT_ISA {

/// Row-major, as tensors are.
template <Scalar T>
using EigenMatrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <Scalar T>
using EigenVector = Eigen::Matrix<T, Eigen::Dynamic, 1>;

namespace detail {

template <Scalar T>
void check_eigen(std::string_view op, const Tensor<T>& x, int rank) {
  if (x.rank() != rank) fail<ShapeError>(op, "wrong rank; x is ", x.shape(), "; expected rank ", rank);
  if (!x.is_contiguous())
    fail<ShapeError>(op, "the tensor is not contiguous; x is ", x.shape(), ", strides are ", x.strides(),
                     "; expected contiguous(x)");
}

}  // namespace detail

/// A contiguous tensor of rank 2 as a row-major Eigen matrix: no copy, read only, not recorded. x must
/// outlive the map. Throws ShapeError for another rank or a tensor with gaps.
template <Scalar T>
Eigen::Map<const EigenMatrix<T>> eigen_matrix(const Tensor<T>& x) {
  detail::check_eigen("eigen_matrix", x, 2);
  return {x.data(), x.shape()[0], x.shape()[1]};
}
template <Scalar T>
void eigen_matrix(const Tensor<T>&&) = delete;  // the map would outlive the tensor

/// A contiguous tensor of rank 1 as an Eigen column vector; as `eigen_matrix`.
template <Scalar T>
Eigen::Map<const EigenVector<T>> eigen_vector(const Tensor<T>& x) {
  detail::check_eigen("eigen_vector", x, 1);
  return {x.data(), x.shape()[0]};
}
template <Scalar T>
void eigen_vector(const Tensor<T>&&) = delete;

/// As `eigen_matrix`, for writing in place: raises the version as `Tensor::mutable_data` does, so take it
/// anew for each round of writes. Throws ShapeError as above, TapeError on a recorded tensor.
template <Scalar T>
Eigen::Map<EigenMatrix<T>> mutable_eigen_matrix(Tensor<T>& x) {
  detail::check_eigen("mutable_eigen_matrix", x, 2);
  return {x.mutable_data(), x.shape()[0], x.shape()[1]};
}
template <Scalar T>
Eigen::Map<EigenVector<T>> mutable_eigen_vector(Tensor<T>& x) {
  detail::check_eigen("mutable_eigen_vector", x, 1);
  return {x.mutable_data(), x.shape()[0]};
}

/// A tensor with the values of an Eigen expression, evaluated straight into it: rank 1 for Eigen vectors of
/// either orientation, else rank 2, whatever the expression's storage order. A constant.
template <class Expression>
Tensor<typename Expression::Scalar> from_eigen(const Eigen::DenseBase<Expression>& e) {
  using T = typename Expression::Scalar;
  if constexpr (Expression::IsVectorAtCompileTime) {
    Tensor<T> y({e.size()});
    Eigen::Map<Eigen::Array<T, Eigen::Dynamic, 1>> to(y.fresh_data(), e.size());
    if constexpr (Expression::ColsAtCompileTime == 1)
      to = e.derived().array();
    else
      to = e.derived().array().transpose();
    return y;
  } else {
    Tensor<T> y({e.rows(), e.cols()});
    Eigen::Map<Eigen::Array<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>(
        y.fresh_data(), e.rows(), e.cols()) = e.derived().array();
    return y;
  }
}

}  // namespace wengert::inline WENGERT_ISA
