// Elements by index along one axis: index_select, gather, scatter, scatter_add, one_hot. Floor: ops.
#pragma once

#include <wengert/ops/embedding.hpp>

namespace wengert::inline WENGERT_ISA {

namespace detail {

/// dx[... index ...] += dy.
template <Scalar T, IndexScalar I>
struct GatherRule {
  static constexpr std::string_view name = "gather";
  Saved<I> index;
  Shape x_shape;
  int axis;
  auto saved() const { return std::tie(index); }

  void backward(Vjp& v) const {
    if (!v.wants(0)) return;
    const GradRef<T> dx = v.into<T>(0);
    if (!dx.add) kernels::fill(dx.data, x_shape.size(), T(0));
    kernels::scatter_add(v.dy<T>(), index.data(), index.shape(), axis, dx.data, contiguous_strides(x_shape));
  }
};

/// Checks what gather and the scatters share: ranks, dimensions beside the axis, and the indices themselves,
/// which it returns contiguous.
template <Scalar T, IndexScalar I>
Tensor<I> check_gather(std::string_view op, const Tensor<T>& x, int a, Index axis, const Tensor<I>& index) {
  bool fits = index.rank() == x.rank();
  for (int i = 0; fits && i < x.rank(); ++i) fits = i == a || index.shape()[i] <= x.shape()[i];
  if (!fits)
    fail<ShapeError>(op, "index does not fit x; x is ", x.shape(), ", index is ", index.shape(), ", axis ",
                     axis, "; expected the rank of x, and no larger dimension beside the axis");
  Tensor<I> packed = index.packed();
  check_indices(op, packed, "x", x.shape(), axis, x.shape()[a]);
  return packed;
}

template <Scalar T, IndexScalar I>
void check_source(std::string_view op, const Tensor<I>& index, const Tensor<T>& source) {
  if (source.shape() != index.shape())
    fail<ShapeError>(op, "shapes of index and source differ; index is ", index.shape(), ", source is ",
                     source.shape(), "; expected equal shapes");
}

/// dx += dy, dsource += dy[... index ...]; where `Replaces`, dx gains nothing at the index.
template <OpName Name, bool Replaces, Scalar T, IndexScalar I>
struct ScatterRule {
  static constexpr std::string_view name = Name.view();
  Saved<I> index;
  int axis;
  auto saved() const { return std::tie(index); }

  void backward(Vjp& v) const {
    const Strides strides = contiguous_strides(v.shape());
    const Shape& shape = index.shape();
    const T* dy = v.dy<T>();
    if (v.wants(1)) {
      const GradRef<T> ds = v.into<T>(1);
      if (ds.add) {
        const Scratch<T> taken(shape.size());
        kernels::gather(dy, strides, index.data(), shape, axis, taken.data());
        kernels::accumulate(taken.data(), shape.size(), ds.data, true);
      } else {
        kernels::gather(dy, strides, index.data(), shape, axis, ds.data);
      }
    }
    if (!v.wants(0)) return;
    const GradRef<T> dx = v.into_over_dy<T>(0);
    if constexpr (Replaces) {
      // What dx held at the index is put back: subtracting would turn infinities into NaN.
      const Scratch<T> before(dx.add ? shape.size() : 0);
      if (dx.add) kernels::gather(dx.data, strides, index.data(), shape, axis, before.data());
      if (dx.data != dy) kernels::accumulate(dy, v.size(), dx.data, dx.add);
      if (dx.add)
        kernels::scatter(before.data(), index.data(), shape, axis, dx.data, strides);
      else
        kernels::scatter_value(T(0), index.data(), shape, axis, dx.data, strides);
    } else if (dx.data != dy) {
      kernels::accumulate(dy, v.size(), dx.data, dx.add);
    }
  }
};

}  // namespace detail

/// x at the given indices along one axis: index is a vector of any integer type, y has the shape of x with
/// that axis replaced by its length, y[o, i, ...] = x[o, index[i], ...].
///   dx[o, index[i], ...] += dy[o, i, ...]             saves the index
/// Sums over repeated indices are taken in their order, the same at any number of threads. Throws ShapeError
/// when the axis is out of range or index is no vector, IndexError unless 0 <= index < x.dim(axis).
template <Scalar T, IndexScalar I>
Tensor<T> index_select(const Tensor<T>& x, Index axis, const Tensor<I>& index) {
  const int a = normalize_axis("index_select", axis, x.rank());
  if (index.rank() != 1)
    fail<ShapeError>("index_select", "index must be a vector; index is ", index.shape(), "; expected rank 1");
  const Tensor<I> packed = index.packed();
  detail::check_indices("index_select", packed, "x", x.shape(), axis, x.shape()[a]);
  Shape shape = x.shape();
  shape[a] = index.size();
  return detail::take<"index_select">(x, a, packed, shape);
}

/// One element a position, as torch.gather: y has the shape of index, and for axis 1 of three
/// y[i, j, k] = x[i, index[i, j, k], k].
///   dx[i, index[i, j, k], k] += dy[i, j, k]             saves the index
/// Sums over repeated targets are taken in the order of j, the same at any number of threads. Throws
/// ShapeError when the ranks differ or index is larger than x beside the axis, IndexError unless
/// 0 <= index < x.dim(axis).
template <Scalar T, IndexScalar I>
Tensor<T> gather(const Tensor<T>& x, Index axis, const Tensor<I>& index) {
  const int a = normalize_axis("gather", axis, x.rank());
  checked_size("gather", index.shape(), sizeof(T));
  const Tensor<I> packed = detail::check_gather("gather", x, a, axis, index);
  const Recorder rec("gather", x);
  Tensor<T> y(index.shape());
  kernels::gather(x.data(), x.strides(), packed.data(), index.shape(), a, y.fresh_data());
  detail::record_if(rec, y, [&] { return detail::GatherRule<T, I>{save(packed), x.shape(), a}; });
  return y;
}

/// x with the elements of source added at the index, as torch.scatter_add; for axis 1 of three
/// y = x, then y[i, index[i, j, k], k] += source[i, j, k] in the order of j.
///   dx += dy             dsource[i, j, k] += dy[i, index[i, j, k], k]             saves the index
/// Throws ShapeError when index does not fit x (see `gather`) or source has another shape than index,
/// IndexError unless 0 <= index < x.dim(axis).
template <Scalar T, IndexScalar I>
Tensor<T> scatter_add(const Tensor<T>& x, Index axis, const Tensor<I>& index, const Tensor<T>& source) {
  const int a = normalize_axis("scatter_add", axis, x.rank());
  detail::check_source("scatter_add", index, source);
  const Tensor<I> packed = detail::check_gather("scatter_add", x, a, axis, index);
  const Recorder rec("scatter_add", x, source);
  Tensor<T> y = x.packed_copy();
  kernels::scatter_add(source.packed().data(), packed.data(), index.shape(), a, y.fresh_data(), y.strides());
  detail::record_if(rec, y, [&] { return detail::ScatterRule<"scatter_add", false, T, I>{save(packed), a}; });
  return y;
}

/// x with the elements at the index replaced by those of source, as torch.scatter; for axis 1 of three
/// y = x, then y[i, index[i, j, k], k] = source[i, j, k].
///   dx += dy, except at the index             dsource[i, j, k] += dy[i, index[i, j, k], k]
/// Saves the index. Throws as `scatter_add`, and ValueError when two positions name one element: which of
/// them would win, and get the gradient, is nobody's guess.
template <Scalar T, IndexScalar I>
Tensor<T> scatter(const Tensor<T>& x, Index axis, const Tensor<I>& index, const Tensor<T>& source) {
  const int a = normalize_axis("scatter", axis, x.rank());
  detail::check_source("scatter", index, source);
  const Tensor<I> packed = detail::check_gather("scatter", x, a, axis, index);
  const Strides strides = contiguous_strides(x.shape());
  {
    const Scratch<Byte> seen(x.size());
    const Index twice =
        kernels::find_duplicate(packed.data(), index.shape(), a, strides, x.size(), seen.data());
    if (twice >= 0)
      fail<ValueError>("scatter", "index ", packed.data()[twice], " at position ", twice,
                       " names an element a second time; x is ", x.shape(), ", axis ", axis,
                       "; expected distinct elements; scatter_add adds repeated ones up");
  }
  const Recorder rec("scatter", x, source);
  Tensor<T> y = x.packed_copy();
  kernels::scatter(source.packed().data(), packed.data(), index.shape(), a, y.fresh_data(), strides);
  detail::record_if(rec, y, [&] { return detail::ScatterRule<"scatter", true, T, I>{save(packed), a}; });
  return y;
}

/// y[i, c] = 1 where indices[i] == c and 0 elsewhere: y has the shape of the indices, of any integer type,
/// followed by `classes`. A constant. Throws ValueError unless classes >= 1, ShapeError when the rank is
/// already the highest, IndexError unless 0 <= index < classes.
template <Scalar T = float, IndexScalar I>
Tensor<T> one_hot(const Tensor<I>& indices, Index classes) {
  if (classes < 1)
    fail<ValueError>("one_hot", "classes is ", classes, "; indices are ", indices.shape(),
                     "; expected classes >= 1");
  if (indices.rank() == max_rank)
    fail<ShapeError>("one_hot", "the rank is already the highest; indices are ", indices.shape(),
                     "; expected at most ", max_rank - 1, " axes");
  const Tensor<I> index = indices.packed();
  if (const Index at = kernels::find_out_of_range(index.data(), index.size(), classes); at >= 0)
    fail<IndexError>("one_hot", "index ", index.data()[at], " at position ", at,
                     " is out of range; indices are ", indices.shape(), ", classes is ", classes,
                     "; expected 0..", classes - 1);
  Shape shape = indices.shape();
  shape.push_back(classes);
  checked_size("one_hot", shape, sizeof(T));
  Tensor<T> y(shape);
  kernels::one_hot(index.data(), index.size(), classes, y.fresh_data());
  return y;
}

}  // namespace wengert::inline WENGERT_ISA
