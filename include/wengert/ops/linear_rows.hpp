// A tensor seen as the rows of a matrix: leading axes folded into one, without a copy where strides allow.
// Floor: ops.
#pragma once

#include <wengert/core/record.hpp>
#include <wengert/kernels/norm_columns.hpp>

namespace wengert::inline WENGERT_ISA::detail {

/// Whether axes [begin, end) lie in one line, so that one stride leads from each index to the next.
inline bool axes_fold(const Shape& shape, const Strides& strides, int begin, int end) noexcept {
  int inner = -1;
  for (int i = end; i-- > begin;) {
    if (shape[i] == 1) continue;
    if (inner >= 0 && strides[i] != strides[inner] * shape[inner]) return false;
    inner = i;
  }
  return true;
}

/// The stride of folded axes [begin, end): that of the last one which is not 1.
inline Index folded_stride(const Shape& shape, const Strides& strides, int begin, int end, Index otherwise) {
  for (int i = end; i-- > begin;)
    if (shape[i] != 1) return strides[i];
  return otherwise;
}

/// Rows over the axes [0, leading) and columns over the others, of x itself or of a packed copy.
template <Scalar T>
class FoldedRows {
 public:
  enum class Columns { any_stride, contiguous };

  FoldedRows(const Tensor<T>& x, int leading, Columns columns)
      : data_(x.data()),
        rows_(x.shape().product(0, leading)),
        width_(x.shape().product(leading, x.rank())),
        row_(width_) {
    const Shape& shape = x.shape();
    if (x.is_contiguous()) return;
    column_ = folded_stride(shape, x.strides(), leading, x.rank(), 1);
    if (axes_fold(shape, x.strides(), 0, leading) && axes_fold(shape, x.strides(), leading, x.rank()) &&
        (columns == Columns::any_stride || column_ == 1)) {
      row_ = folded_stride(shape, x.strides(), 0, leading, width_);
    } else {
      packed_ = x.packed_copy();
      data_ = packed_.data();
      column_ = 1;
    }
  }

  Index rows() const noexcept { return rows_; }
  Index width() const noexcept { return width_; }
  const T* data() const noexcept { return data_; }
  Index row_stride() const noexcept { return row_; }
  Index column_stride() const noexcept { return column_; }
  kernels::RowMatrix<T> matrix() const noexcept { return {data_, row_}; }

 private:
  Tensor<T> packed_;
  const T* data_;
  Index rows_, width_, row_, column_ = 1;
};

/// Saves x when it is needed, and otherwise its shape alone.
template <class T>
Saved<T> save_if(bool needed, const Tensor<T>& x) {
  return needed ? save(x) : save(Tensor<T>(Buffer(), x.shape(), contiguous_strides(x.shape()), 0));
}

/// Element types that relu can be applied to.
template <class T>
concept Ordered = requires(T a) {
  static_cast<bool>(a < a);
};

/// The gradient of a layer's sums before relu and of its bias: db = (or +=) column sums of dy, taken, when
/// `y` is given, only where y > 0 or is NaN. Writes those dy to `masked`, which it returns; without y it
/// returns dy.
template <Field T>
const T* sum_and_mask(Index m, Index n, const T* dy, const T* y, T* masked, kernels::SumTarget<T> db) {
  using V = kernels::Vec<T>;
  kernels::column_sums<1, T>(m, n,
                             [=](auto io, Index r, Index c) WENGERT_INLINE_LAMBDA {
                               const Index at = r * n + c;
                               V g = io.load(dy + at);
                               if constexpr (Ordered<T>)
                                 if (y != nullptr) {
                                   g = where(io.load(y + at) <= V(T(0)), V(T(0)), g);
                                   io.store(masked + at, g);
                                 }
                               return std::array<V, 1>{g};
                             },
                             {db});
  return y != nullptr ? masked : dy;
}

}  // namespace wengert::inline WENGERT_ISA::detail
