// Views that keep every element: reshape, flatten, squeeze, unsqueeze, transpose, permute. They share x's
// buffer, so a write in place through one is seen, and noticed by the tape, through all. Floor: ops.
#pragma once

#include <wengert/ops/view_rule.hpp>

namespace wengert::inline WENGERT_ISA {

namespace detail {

/// `to` with its one -1 replaced, after checking that it holds as many elements as `from`.
inline Shape resolve_shape(std::string_view op, const Shape& from, const Shape& to) {
  int open = -1;
  Shape out = to;
  for (int i = 0; i < to.rank(); ++i) {
    if (to[i] != -1) continue;
    if (open >= 0)
      fail<ShapeError>(op, "more than one dimension is -1; x is ", from, ", shape is ", to,
                       "; expected at most one");
    open = i;
    out[i] = 1;
  }
  const Index known = checked_size(op, out), n = from.size();
  if (open >= 0) {
    if (known == 0)
      fail<ShapeError>(op, "-1 beside a dimension of 0 could be anything; x is ", from, ", shape is ", to,
                       "; expected every dimension");
    if (n % known != 0)
      fail<ShapeError>(op, "number of elements does not divide; x is ", from, ", shape is ", to,
                       "; expected a divisor of ", n);
    out[open] = n / known;
  } else if (known != n) {
    fail<ShapeError>(op, "number of elements differs; x is ", from, ", shape is ", to, "; expected ", n,
                     " elements");
  }
  return out;
}

/// Strides that read a tensor of `from` and `strides` in the shape `to` of the same size; false when the
/// elements lie so that only a copy can.
inline bool view_strides(const Shape& from, const Strides& strides, const Shape& to, Strides& out) {
  out = contiguous_strides(to);
  if (from.size() == 0) return true;
  // x as runs of equally spaced elements, the innermost first.
  Index length[max_rank], stride[max_rank];
  int runs = 0;
  for (int i = from.rank(); i-- > 0;) {
    if (from[i] == 1) continue;
    if (runs > 0 && strides[i] == stride[runs - 1] * length[runs - 1]) {
      length[runs - 1] *= from[i];
    } else {
      length[runs] = from[i];
      stride[runs++] = strides[i];
    }
  }
  int run = 0;
  Index used = 1;  // elements of the run that axes of `to` account for
  for (int i = to.rank(); i-- > 0;) {
    if (to[i] == 1) continue;
    if (length[run] % (used * to[i]) != 0) return false;
    out[i] = stride[run] * used;
    used *= to[i];
    if (used == length[run]) {
      ++run;
      used = 1;
    }
  }
  return true;
}

template <OpName Name, Scalar T>
Tensor<T> reshape_to(const Tensor<T>& x, const Shape& shape) {
  const Recorder rec(Name.view(), x);
  Strides strides;
  Tensor<T> y;
  if (view_strides(x.shape(), x.strides(), shape, strides))
    y = Tensor<T>(x.buffer(), shape, strides, x.offset());
  else
    y = Tensor<T>(x.packed_copy().buffer(), shape, contiguous_strides(shape), 0);
  record_if(rec, y, [] { return SameOrderRule<Name, T>{}; });
  return y;
}

/// y's axis i is x's axis `order[i]`.
template <OpName Name, Scalar T>
struct PermuteRule {
  static constexpr std::string_view name = Name.view();
  Shape order;
  void backward(Vjp& v) const {
    if (!v.wants(0)) return;
    const Shape shape = v.shape();
    const Strides dense = contiguous_strides(shape);
    Shape x_shape = shape;
    Strides dy_strides = dense;
    for (int i = 0; i < shape.rank(); ++i) {
      x_shape[static_cast<int>(order[i])] = shape[i];
      dy_strides[static_cast<int>(order[i])] = dense[i];
    }
    const GradRef<T> dx = v.into<T>(0);
    if (dx.add)
      kernels::copy_add(x_shape, v.dy<T>(), dy_strides, dx.data, contiguous_strides(x_shape));
    else
      kernels::copy(x_shape, v.dy<T>(), dy_strides, dx.data, contiguous_strides(x_shape));
  }
};

template <OpName Name, Scalar T>
Tensor<T> permute_to(const Tensor<T>& x, const Shape& order) {
  const Recorder rec(Name.view(), x);
  Shape shape = x.shape();
  Strides strides = x.strides();
  for (int i = 0; i < x.rank(); ++i) {
    shape[i] = x.shape()[static_cast<int>(order[i])];
    strides[i] = x.strides()[static_cast<int>(order[i])];
  }
  Tensor<T> y(x.buffer(), shape, strides, x.offset());
  record_if(rec, y, [&] { return PermuteRule<Name, T>{order}; });
  return y;
}

}  // namespace detail

/// The elements of x, in row-major order, in another shape of the same size; one dimension may be -1 and is
/// computed. A view of x wherever its strides allow one, otherwise a copy.
///   dx += dy             saves nothing; the gradient's memory is handed on
/// Throws ShapeError when the sizes differ or -1 cannot be computed.
template <Scalar T>
Tensor<T> reshape(const Tensor<T>& x, const Shape& shape) {
  return detail::reshape_to<"reshape">(x, detail::resolve_shape("reshape", x.shape(), shape));
}

/// x with the axes from `first` to `last` made one; all of them by default. Rank 0 becomes shape (1). A view
/// or a copy, as `reshape`.
///   dx += dy             saves nothing
/// Throws ShapeError when an axis is out of range or `last` lies before `first`.
template <Scalar T>
Tensor<T> flatten(const Tensor<T>& x, Index first = 0, Index last = -1) {
  const int rank = std::max(x.rank(), 1);
  const int begin = normalize_axis("flatten", first, rank), end = normalize_axis("flatten", last, rank);
  if (end < begin)
    fail<ShapeError>("flatten", "the last axis lies before the first; x is ", x.shape(), ", axes are ", first,
                     " to ", last, "; expected first <= last");
  Shape shape;
  for (int i = 0; i < begin; ++i) shape.push_back(x.shape()[i]);
  shape.push_back(x.shape().product(begin, std::min(end + 1, x.rank())));
  for (int i = end + 1; i < x.rank(); ++i) shape.push_back(x.shape()[i]);
  return detail::reshape_to<"flatten">(x, shape);
}

/// x without its axes of size 1; a view.
///   dx += dy             saves nothing
template <Scalar T>
Tensor<T> squeeze(const Tensor<T>& x) {
  const Recorder rec("squeeze", x);
  Shape shape;
  Strides strides;
  for (int i = 0; i < x.rank(); ++i) {
    if (x.shape()[i] == 1) continue;
    shape.push_back(x.shape()[i]);
    strides.push_back(x.strides()[i]);
  }
  Tensor<T> y(x.buffer(), shape, strides, x.offset());
  detail::record_if(rec, y, [] { return detail::SameOrderRule<"squeeze", T>{}; });
  return y;
}

/// x without `axis`, which must have size 1; a view.
///   dx += dy             saves nothing
/// Throws ShapeError when the axis is out of range or of another size, as NumPy and JAX do.
template <Scalar T>
Tensor<T> squeeze(const Tensor<T>& x, Index axis) {
  const int a = normalize_axis("squeeze", axis, x.rank());
  if (x.shape()[a] != 1)
    fail<ShapeError>("squeeze", "axis ", axis, " has size ", x.shape()[a], "; x is ", x.shape(),
                     "; expected an axis of size 1");
  const Recorder rec("squeeze", x);
  Shape shape = x.shape();
  Strides strides = x.strides();
  shape.erase(a);
  strides.erase(a);
  Tensor<T> y(x.buffer(), shape, strides, x.offset());
  detail::record_if(rec, y, [] { return detail::SameOrderRule<"squeeze", T>{}; });
  return y;
}

/// x with an axis of size 1 put before `axis`; -1 puts it last. A view.
///   dx += dy             saves nothing
/// Throws ShapeError unless -rank - 1 <= axis <= rank, or when the rank is already the highest.
template <Scalar T>
Tensor<T> unsqueeze(const Tensor<T>& x, Index axis) {
  const int a = normalize_axis("unsqueeze", axis, x.rank() + 1);
  if (x.rank() == max_rank)
    fail<ShapeError>("unsqueeze", "the rank is already the highest; x is ", x.shape(), "; expected at most ",
                     max_rank - 1, " axes");
  const Recorder rec("unsqueeze", x);
  Shape shape = x.shape();
  Strides strides = x.strides();
  const Index step = a < x.rank() ? x.strides()[a] * x.shape()[a] : 1;
  shape.insert(a, 1);
  strides.insert(a, step);
  Tensor<T> y(x.buffer(), shape, strides, x.offset());
  detail::record_if(rec, y, [] { return detail::SameOrderRule<"unsqueeze", T>{}; });
  return y;
}

/// x with its axes in another order: axis i of y is axis `order[i]` of x; negative axes count from the back.
/// A view.
///   dx += permute(dy, inverse of order)             saves nothing
/// Throws ShapeError unless `order` names every axis once.
template <Scalar T>
Tensor<T> permute(const Tensor<T>& x, const Shape& order) {
  if (order.rank() != x.rank())
    fail<ShapeError>("permute", "number of axes differs; x is ", x.shape(), ", order is ", order,
                     "; expected every axis once");
  Shape axes = order;
  bool seen[max_rank] = {};
  for (Index& axis : axes) {
    const int a = normalize_axis("permute", axis, x.rank());
    if (std::exchange(seen[a], true))
      fail<ShapeError>("permute", "axis ", axis, " is named twice; x is ", x.shape(), ", order is ", order,
                       "; expected every axis once");
    axis = a;
  }
  return detail::permute_to<"permute">(x, axes);
}

/// x with axes a and b exchanged; a view.
///   dx += transpose(dy, a, b)             saves nothing
/// Throws ShapeError when an axis is out of range.
template <Scalar T>
Tensor<T> transpose(const Tensor<T>& x, Index a, Index b) {
  const int first = normalize_axis("transpose", a, x.rank()),
            second = normalize_axis("transpose", b, x.rank());
  Shape order;
  for (int i = 0; i < x.rank(); ++i) order.push_back(i);
  std::swap(order[first], order[second]);
  return detail::permute_to<"transpose">(x, order);
}

/// The matrix transposed: x with its last two axes exchanged, in front of which others are batches. A view.
///   dx += transpose(dy)             saves nothing
/// Throws ShapeError below rank 2.
template <Scalar T>
Tensor<T> transpose(const Tensor<T>& x) {
  if (x.rank() < 2)
    fail<ShapeError>("transpose", "the rank is too low; x is ", x.shape(),
                     "; expected a matrix or a batch of them");
  return transpose(x, -2, -1);
}

}  // namespace wengert::inline WENGERT_ISA
