// Rows by index: take_rows and embedding. Their gradient touches only the rows that were taken. Floor: ops.
#pragma once

#include <wengert/kernels/scatter.hpp>
#include <wengert/ops/view_rule.hpp>

namespace wengert::inline WENGERT_ISA {

/// Element types that serve as indices: every integer type.
template <class I>
concept IndexScalar = std::integral<I> && !std::same_as<I, bool>;

namespace detail {

/// Throws IndexError unless 0 <= index < limit everywhere. `index` is contiguous.
template <class I>
void check_indices(std::string_view op, const Tensor<I>& index, const char* name, const Shape& shape,
                   Index axis, Index limit) {
  const Index at = kernels::find_out_of_range(index.data(), index.size(), limit);
  if (at >= 0)
    fail<IndexError>(op, "index ", index.data()[at], " at position ", at, " is out of range; ", name, " is ",
                     shape, ", axis ", axis, "; expected ",
                     limit == 0 ? std::string("no index") : text("0..", limit - 1));
}

/// dx[:, index[i], :] += dy[:, i, :] for x of (outer, rows, inner).
template <OpName Name, Scalar T, IndexScalar I>
struct TakeRule {
  static constexpr std::string_view name = Name.view();
  Saved<I> index;
  Index outer, rows, inner;
  auto saved() const { return std::tie(index); }

  void backward(Vjp& v) const {
    if (!v.wants(0)) return;
    const Index n = index.value().size();
    T* const dx = outer == 1 ? touched_rows(v, n) : all(v);
    kernels::scatter_add_rows(v.dy<T>(), index.data(), outer, n, inner, rows, dx);
  }

 private:
  T* all(Vjp& v) const {
    const GradRef<T> dx = v.into<T>(0);
    if (!dx.add) kernels::fill(dx.data, outer * rows * inner, T(0));
    return dx.data;
  }
  T* touched_rows(Vjp& v, Index n) const {
    const auto count = static_cast<std::size_t>(n);
    if constexpr (std::same_as<I, Index>) {
      return v.into_rows<T>(0, std::span<const Index>(index.data(), count), inner);
    } else {
      const Scratch<Index> wide(n);
      std::copy_n(index.data(), n, wide.data());
      return v.into_rows<T>(0, std::span<const Index>(wide.data(), count), inner);
    }
  }
};

/// Whether axes [first, last) of x lie so that one stride walks them all; `stride` is set when there are any.
template <Scalar T>
bool one_stride(const Tensor<T>& x, int first, int last, Index& stride) {
  Index expected = 0;
  bool begun = false;
  for (int i = last; i-- > first;) {
    if (x.shape()[i] == 1) continue;
    if (!begun) stride = x.strides()[i];
    if (begun && x.strides()[i] != expected) return false;
    begun = true;
    expected = x.strides()[i] * x.shape()[i];
  }
  return true;
}

/// y[o, i, :] = x[o, index[i], :] along axis `a`, in the given shape.
template <OpName Name, Scalar T, IndexScalar I>
Tensor<T> take(const Tensor<T>& x, int a, const Tensor<I>& index, const Shape& shape) {
  checked_size(Name.view(), shape, sizeof(T));
  const Recorder rec(Name.view(), x);
  const AxisSplit s(x.shape(), a);
  // A strided x is read in place when its rows are whole, so that few rows of a large one stay cheap.
  Index outer_stride = 0, unit = 1;
  const bool direct = one_stride(x, 0, a, outer_stride) && one_stride(x, a + 1, x.rank(), unit) && unit == 1;
  const Tensor<T> from = direct ? x.detach() : x.packed_copy();
  if (!direct) outer_stride = s.axis * s.inner;
  Tensor<T> y(shape);
  kernels::gather_rows(from.data(), outer_stride, from.strides()[a], index.data(), s.outer, index.size(),
                       s.inner, y.fresh_data());
  record_if(rec, y, [&] { return TakeRule<Name, T, I>{save(index), s.outer, s.axis, s.inner}; });
  return y;
}

template <OpName Name, Scalar T, IndexScalar I>
Tensor<T> take_first_axis(const char* operand, const Tensor<T>& x, const Tensor<I>& indices) {
  Shape shape = indices.shape();
  if (shape.rank() + x.rank() - 1 > max_rank)
    fail<ShapeError>(Name.view(), "the rank of the result is too high; ", operand, " is ", x.shape(),
                     ", indices are ", indices.shape(), "; expected at most ", max_rank, " axes");
  for (int i = 1; i < x.rank(); ++i) shape.push_back(x.shape()[i]);
  const Tensor<I> index = indices.packed();
  check_indices(Name.view(), index, operand, x.shape(), 0, x.shape()[0]);
  return take<Name>(x, 0, index, shape);
}

}  // namespace detail

/// Rows of x, of shape (n, ...), by indices of any integer type and shape: y has the shape of the indices
/// followed by that of a row, y[i, ...] = x[indices[i], ...].
///   dx[indices[i], ...] += dy[i, ...]             saves the indices; touches no other row
/// Sums over repeated indices are taken in their order, the same at any number of threads. Throws ShapeError
/// for rank 0 and when the result's rank is too high, IndexError unless 0 <= index < n.
template <Scalar T, IndexScalar I>
Tensor<T> take_rows(const Tensor<T>& x, const Tensor<I>& indices) {
  if (x.rank() == 0)
    fail<ShapeError>("take_rows", "x has no rows; x is ", x.shape(), "; expected rank 1 or higher");
  return detail::take_first_axis<"take_rows">("x", x, indices);
}

/// Looks tokens up in a table: weight is (vocabulary, width), indices of any integer type and shape, y has
/// their shape followed by width, y[i, :] = weight[indices[i], :].
///   dweight[indices[i], :] += dy[i, :]             saves the indices; touches no other row
/// Sums over repeated indices are taken in their order, the same at any number of threads. Throws ShapeError
/// unless weight is a matrix, IndexError unless 0 <= index < vocabulary.
template <Scalar T, IndexScalar I>
Tensor<T> embedding(const Tensor<T>& weight, const Tensor<I>& indices) {
  if (weight.rank() != 2)
    fail<ShapeError>("embedding", "weight must be a matrix; weight is ", weight.shape(),
                     "; expected (vocabulary, width)");
  return detail::take_first_axis<"embedding">("weight", weight, indices);
}

}  // namespace wengert::inline WENGERT_ISA
