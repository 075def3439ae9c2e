// The matrix product of tensors of any rank, by torch.matmul's rules. Floor: ops.
#pragma once

#include <wengert/ops/linear_rows.hpp>
#include <wengert/ops/matmul_batch.hpp>

namespace wengert::inline WENGERT_ISA {

namespace detail {

/// How two shapes multiply: (m, k) by (k, n) for every index of `batch`. A vector is a matrix of one row on
/// the left and of one column on the right; the result drops that axis.
struct MatmulSizes {
  Index m = 1, n = 1, k = 1;
  Shape batch;
};

inline Shape batch_part(const Shape& shape) {
  return Shape(shape.span().first(static_cast<std::size_t>(std::max(0, shape.rank() - 2))));
}

inline MatmulSizes matmul_sizes(const Shape& a, const Shape& b) {
  if (a.rank() == 0 || b.rank() == 0)
    fail<ShapeError>("matmul", "an operand has no axes; a is ", a, ", b is ", b,
                     "; expected rank 1 or more; use a * b to scale");
  const int a_axis = a.rank() - 1, b_axis = std::max(0, b.rank() - 2);
  if (a[a_axis] != b[b_axis])
    fail<ShapeError>("matmul", "inner dimensions differ; a is ", a, ", b is ", b, "; expected b.dim(", b_axis,
                     ") == a.dim(", a_axis, ") == ", a[a_axis]);
  MatmulSizes s;
  s.k = a[a_axis];
  if (a.rank() > 1) s.m = a[a.rank() - 2];
  if (b.rank() > 1) s.n = b.back();
  if (a.rank() <= 2 && b.rank() <= 2) return s;
  const Shape of_a = batch_part(a), of_b = batch_part(b);
  s.batch = Shape::filled(std::max(of_a.rank(), of_b.rank()), 1);
  for (int i = 1; i <= s.batch.rank(); ++i) {
    const Index x = i <= of_a.rank() ? of_a[of_a.rank() - i] : 1;
    const Index y = i <= of_b.rank() ? of_b[of_b.rank() - i] : 1;
    if (x != y && x != 1 && y != 1)
      fail<ShapeError>("matmul", "batch dimensions do not broadcast; a is ", a, ", b is ", b,
                       "; expected equal dimensions or 1 before the last two, aligned at the back");
    s.batch[s.batch.rank() - i] = x == 1 ? y : x;
  }
  return s;
}

/// Strides of an operand of matmul along the axes of `batch`; 0 where it is repeated.
inline Strides batch_strides(const Shape& shape, const Strides& strides, const Shape& batch) {
  return broadcast_strides(batch_part(shape), batch_part(strides), batch);
}

template <class T>
MatrixBatch<T> left_operand(const Tensor<T>& a, const Shape& batch) {
  const Strides& s = a.strides();
  return {{a.data(), a.rank() > 1 ? s[a.rank() - 2] : 0, s.back()}, batch_strides(a.shape(), s, batch)};
}

template <class T>
MatrixBatch<T> right_operand(const Tensor<T>& b, const Shape& batch) {
  const Strides& s = b.strides();
  const bool vector = b.rank() == 1;
  return {{b.data(), vector ? s[0] : s[b.rank() - 2], vector ? 0 : s.back()},
          batch_strides(b.shape(), s, batch)};
}

template <Field T>
struct MatmulRule {
  static constexpr std::string_view name = "matmul";
  Saved<T> a, b;
  auto saved() const { return std::tie(a, b); }

  void backward(Vjp& v) const {
    const MatmulSizes s = matmul_sizes(a.shape(), b.shape());
    Strides dy_strides = contiguous_strides(s.batch);
    for (Index& step : dy_strides) step *= s.m * s.n;
    const MatrixBatch<T> dy{{v.dy<T>(), s.n, 1}, dy_strides};
    if (v.wants(0)) {  // da += dy b^T
      const GradRef<T> da = v.into<T>(0);
      multiply_batches(s.batch, s.m, s.k, s.n, dy, right_operand(b.value(), s.batch).transposed(), da.data,
                       batch_strides(a.shape(), contiguous_strides(a.shape()), s.batch), da.add);
    }
    if (v.wants(1)) {  // db += a^T dy
      const GradRef<T> db = v.into<T>(1);
      multiply_batches(s.batch, s.k, s.n, s.m, left_operand(a.value(), s.batch).transposed(), dy, db.data,
                       batch_strides(b.shape(), contiguous_strides(b.shape()), s.batch), db.add);
    }
  }
};

}  // namespace detail

/// Matrix product by torch.matmul's rules, on operands of any strides, none of them copied.
///   (n) (n) -> (); (m, k) (k, n) -> (m, n); (k) (k, n) -> (n); (m, k) (k) -> (m);
///   (..., m, k) (..., k, n) -> (..., m, n), where the leading axes broadcast
///   y   = a b
///   da += dy b^T      db += a^T dy      summed over the axes along which the operand was repeated
/// Saves each operand that the other's gradient needs. Backward costs exactly two products of forward's size.
/// Sums over k run in blocks, in an order that does not depend on the number of threads.
/// Throws ShapeError when an operand has rank 0, when the inner dimensions differ, or when the leading ones
/// do not broadcast.
template <Field T>
Tensor<T> matmul(const Tensor<T>& a, const Tensor<T>& b) {
  const detail::MatmulSizes s = detail::matmul_sizes(a.shape(), b.shape());
  Shape shape = s.batch;
  if (a.rank() > 1) shape.push_back(s.m);
  if (b.rank() > 1) shape.push_back(s.n);
  checked_size("matmul", shape, sizeof(T));
  const Recorder rec("matmul", a, b);
  Tensor<T> y(shape);
  Strides y_strides = contiguous_strides(s.batch);
  for (Index& step : y_strides) step *= s.m * s.n;
  detail::multiply_batches(s.batch, s.m, s.n, s.k, detail::left_operand(a, s.batch),
                           detail::right_operand(b, s.batch), y.fresh_data(), y_strides, false);
  if (rec)
    rec.record(y, detail::MatmulRule<T>{detail::save_if(b.requires_grad(), a),
                                        detail::save_if(a.requires_grad(), b)});
  return y;
}

}  // namespace wengert::inline WENGERT_ISA
