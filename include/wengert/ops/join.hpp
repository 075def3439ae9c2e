// Operators that put tensors together: concat along an axis, stack along a fresh one. Floor: ops.
#pragma once

#include <initializer_list>
#include <span>
#include <vector>

#include <wengert/ops/view_rule.hpp>

namespace wengert::inline WENGERT_ISA {

namespace detail {

/// dx_i += dy[the part that came from x_i].
template <OpName Name, Scalar T>
struct JoinRule {
  static constexpr std::string_view name = Name.view();
  Buffer sizes;  // of each input along the axis
  int axis;
  void backward(Vjp& v) const {
    const AxisSplit s(v.shape(), axis);
    Index begin = 0;
    for (int i = 0; i < v.inputs(); ++i) {
      const Index size = sizes.as<Index>()[i];
      if (v.wants(i)) {
        const Shape part{s.outer, size * s.inner};
        const Strides from{s.axis * s.inner, 1};
        const GradRef<T> dx = v.into<T>(i);
        if (part.size() != 0) {
          const T* dy = v.dy<T>() + begin * s.inner;
          if (dx.add)
            kernels::copy_add(part, dy, from, dx.data, contiguous_strides(part));
          else
            kernels::copy(part, dy, from, dx.data, contiguous_strides(part));
        }
      }
      begin += size;
    }
  }
};

/// Copies xs one after the other along `axis` of a result of `shape`; when `stacks`, xs lack that axis.
template <OpName Name, Scalar T>
Tensor<T> join(std::span<const Tensor<T>> xs, const Shape& shape, int axis, bool stacks) {
  checked_size(Name.view(), shape, sizeof(T));
  const ListRecorder<T> rec(Name.view(), xs);
  Tensor<T> y(shape);
  Strides strides = y.strides();
  if (stacks) strides.erase(axis);
  Index begin = 0;
  for (const Tensor<T>& x : xs) {
    if (!x.empty())
      kernels::copy(x.shape(), x.data(), x.strides(), y.fresh_data() + begin * y.strides()[axis], strides);
    begin += stacks ? 1 : x.shape()[axis];
  }
  if constexpr (Field<T>) {
    if (rec) {
      Buffer sizes(xs.size() * sizeof(Index));
      for (std::size_t i = 0; i < xs.size(); ++i)
        sizes.template as<Index>()[i] = stacks ? 1 : xs[i].shape()[axis];
      rec.record(y, JoinRule<Name, T>{std::move(sizes), axis});
    }
  }
  return y;
}

}  // namespace detail

/// The tensors one after the other along an axis they have; all other dimensions must agree.
///   dx_i += dy[part of x_i]             saves their sizes
/// Throws ValueError for an empty list, ShapeError when ranks or other dimensions differ, for rank 0 and for
/// an axis out of range.
template <Scalar T>
Tensor<T> concat(std::span<const Tensor<T>> xs, Index axis = 0) {
  if (xs.empty()) fail<ValueError>("concat", "the list is empty; expected at least one tensor");
  Shape shape = xs[0].shape();
  const int a = normalize_axis("concat", axis, shape.rank());
  for (std::size_t i = 1; i < xs.size(); ++i) {
    const Shape& other = xs[i].shape();
    bool agree = other.rank() == shape.rank();
    for (int k = 0; agree && k < shape.rank(); ++k) agree = k == a || other[k] == shape[k];
    if (!agree)
      fail<ShapeError>("concat", "shapes differ beside axis ", axis, "; tensor 0 is ", xs[0].shape(),
                       ", tensor ", i, " is ", other, "; expected equal dimensions there");
    if (__builtin_add_overflow(shape[a], other[a], &shape[a]))
      fail<ShapeError>("concat", "the axis overflows; tensor 0 is ", xs[0].shape(), ", tensor ", i, " is ",
                       other, "; expected a tensor that fits memory");
  }
  return detail::join<"concat", T>(xs, shape, a, false);
}
template <Scalar T>
Tensor<T> concat(std::initializer_list<Tensor<T>> xs, Index axis = 0) {
  return concat(std::span<const Tensor<T>>(xs.begin(), xs.size()), axis);
}
template <Scalar T>
Tensor<T> concat(const std::vector<Tensor<T>>& xs, Index axis = 0) {
  return concat(std::span<const Tensor<T>>(xs), axis);
}

/// The tensors, all of one shape, side by side along a fresh axis: `stack(xs, 0)` has shape (n, shape of x).
/// Negative axes count from the back of the result.
///   dx_i += select(dy, axis, i)             saves their number
/// Throws ValueError for an empty list, ShapeError when shapes differ, the axis is out of range, or the rank
/// is already the highest.
template <Scalar T>
Tensor<T> stack(std::span<const Tensor<T>> xs, Index axis = 0) {
  if (xs.empty()) fail<ValueError>("stack", "the list is empty; expected at least one tensor");
  Shape shape = xs[0].shape();
  const int a = normalize_axis("stack", axis, shape.rank() + 1);
  for (std::size_t i = 1; i < xs.size(); ++i)
    if (xs[i].shape() != shape)
      fail<ShapeError>("stack", "shapes differ; tensor 0 is ", shape, ", tensor ", i, " is ", xs[i].shape(),
                       "; expected equal shapes");
  if (shape.rank() == max_rank)
    fail<ShapeError>("stack", "the rank is already the highest; tensor 0 is ", shape, "; expected at most ",
                     max_rank - 1, " axes");
  shape.insert(a, static_cast<Index>(xs.size()));
  return detail::join<"stack", T>(xs, shape, a, true);
}
template <Scalar T>
Tensor<T> stack(std::initializer_list<Tensor<T>> xs, Index axis = 0) {
  return stack(std::span<const Tensor<T>>(xs.begin(), xs.size()), axis);
}
template <Scalar T>
Tensor<T> stack(const std::vector<Tensor<T>>& xs, Index axis = 0) {
  return stack(std::span<const Tensor<T>>(xs), axis);
}

}  // namespace wengert::inline WENGERT_ISA
