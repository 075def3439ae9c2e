// The fully connected layer as one record: product, bias and, on request, relu. Floor: ops.
#pragma once

#include <wengert/kernels/gemm.hpp>
#include <wengert/ops/linear_rows.hpp>

namespace wengert::inline WENGERT_ISA {

namespace detail {

template <Field T>
FoldedRows<T> linear_rows(const Tensor<T>& x) {
  return FoldedRows<T>(x, x.rank() - 1, FoldedRows<T>::Columns::any_stride);
}

template <Field T>
struct LinearRule {
  static constexpr std::string_view name = "linear";
  Saved<T> x, w;  // without values where the other asks for no gradient
  Saved<T> y;     // of linear_relu
  auto saved() const { return std::tie(x, w, y); }

  void backward(Vjp& v) const {
    const Index out = w.shape()[0], in = w.shape()[1];
    const Index m = x.shape().product(0, x.shape().rank() - 1);
    const T* dz = v.dy<T>();  // of the product
    const T* const kept = y.data();
    const Scratch<T> masked(kept != nullptr ? m * out : 0);
    if (kept != nullptr || v.wants(2)) {  // db += column sums of dz
      const GradRef<T> db = v.wants(2) ? v.into<T>(2) : GradRef<T>{nullptr, false};
      dz = sum_and_mask(m, out, dz, kept, masked.data(), {db.data, db.add});
    }
    if (v.wants(1)) {  // dw += dz^T x
      const FoldedRows<T> xr = linear_rows(x.value());
      const GradRef<T> dw = v.into<T>(1);
      kernels::gemm<T>(out, in, m, {dz, 1, out}, {xr.data(), xr.row_stride(), xr.column_stride()}, dw.data,
                       in, dw.add);
    }
    if (v.wants(0)) {  // dx += dz w
      const Strides& s = w.value().strides();
      const GradRef<T> dx = v.into<T>(0);
      kernels::gemm<T>(m, in, out, {dz, out, 1}, {w.data(), s[0], s[1]}, dx.data, in, dx.add);
    }
  }
};

template <Field T>
struct LinearReluRule : LinearRule<T> {
  static constexpr std::string_view name = "linear_relu";
};

inline void check_linear(std::string_view op, const Shape& x, const Shape& w, const Shape* b) {
  if (x.rank() == 0)
    fail<ShapeError>(op, "x has no axes; x is ", x, ", w is ", w, "; expected rank 1 or more");
  if (w.rank() != 2)
    fail<ShapeError>(op, "w must be a matrix; x is ", x, ", w is ", w, "; expected (out, ", x.back(), ")");
  if (x.back() != w[1])
    fail<ShapeError>(op, "inner dimensions differ; x is ", x, ", w is ", w, "; expected x.dim(", x.rank() - 1,
                     ") == w.dim(1) == ", w[1]);
  if (b != nullptr && *b != Shape{w[0]})
    fail<ShapeError>(op, "bias does not fit; x is ", x, ", w is ", w, ", b is ", *b, "; expected (", w[0],
                     ")");
}

template <Field T>
Tensor<T> linear(const Tensor<T>& x, const Tensor<T>& w, const Tensor<T>* b, bool relu) {
  const std::string_view op = relu ? LinearReluRule<T>::name : LinearRule<T>::name;
  check_linear(op, x.shape(), w.shape(), b != nullptr ? &b->shape() : nullptr);
  Shape shape = x.shape();
  shape[x.rank() - 1] = w.shape()[0];
  checked_size(op, shape, sizeof(T));
  const Tensor<T> absent;
  const Tensor<T>& given = b != nullptr ? *b : absent;
  const Recorder rec(op, x, w, given);
  const FoldedRows<T> xr = linear_rows(x);
  const Tensor<T> bias = given.packed();
  Tensor<T> y(shape);
  const Index out = w.shape()[0];
  kernels::gemm<T>(xr.rows(), out, xr.width(), {xr.data(), xr.row_stride(), xr.column_stride()},
                   {w.data(), w.strides()[1], w.strides()[0]}, y.fresh_data(), out, false, bias.data(),
                   relu ? kernels::Activation::relu : kernels::Activation::none);
  const auto rule = [&]() noexcept {
    return LinearRule<T>{save_if(w.requires_grad(), x), save_if(x.requires_grad(), w),
                         relu ? save(y) : Saved<T>()};
  };
  if (relu)
    rec.record(y, [&]() noexcept { return LinearReluRule<T>{rule()}; });
  else
    rec.record(y, rule);
  return y;
}

}  // namespace detail

/// Fully connected layer, with PyTorch's layout of weights; leading axes are folded, so the gradient of w is
/// one product. One record.
///   x: (..., in), w: (out, in), b: (out); y: (..., out), y = x w^T + b
///   dx += dy w      dw += dy^T x      db += sum of dy over all leading axes
/// Saves x if w, and w if x, asks for a gradient. Sums are as those of `matmul`; db is summed in blocks.
/// Throws ShapeError when x has rank 0, w is no matrix, the inner dimensions differ, or b does not fit.
template <Field T>
Tensor<T> linear(const Tensor<T>& x, const Tensor<T>& w, const Tensor<T>& b) {
  return detail::linear(x, w, &b, false);
}
/// As above, without bias.
template <Field T>
Tensor<T> linear(const Tensor<T>& x, const Tensor<T>& w) {
  return detail::linear<T>(x, w, nullptr, false);
}

/// y = relu(x w^T + b) as one record: `linear` with dy where y > 0 (or is NaN) and 0 elsewhere, as relu'(0) =
/// 0. Saves y in place of the sum before relu. Shapes and errors are those of `linear`.
template <Field T>
requires detail::Ordered<T> Tensor<T> linear_relu(const Tensor<T>& x, const Tensor<T>& w,
                                                  const Tensor<T>& b) {
  return detail::linear(x, w, &b, true);
}
/// As above, without bias.
template <Field T>
requires detail::Ordered<T> Tensor<T> linear_relu(const Tensor<T>& x, const Tensor<T>& w) {
  return detail::linear<T>(x, w, nullptr, true);
}

}  // namespace wengert::inline WENGERT_ISA
