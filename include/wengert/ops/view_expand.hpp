// expand: a view whose axes of size 1 are stretched without a copy. Floor: ops.
#pragma once

#include <wengert/kernels/reduce.hpp>
#include <wengert/ops/view_rule.hpp>

namespace wengert::inline WENGERT_ISA {

namespace detail {

/// dx += sum of dy over the stretched axes, given as bits.
template <OpName Name, Scalar T>
struct ExpandRule {
  static constexpr std::string_view name = Name.view();
  unsigned stretched;
  void backward(Vjp& v) const {
    if (!v.wants(0)) return;
    const Shape shape = v.shape();
    const auto view = kernels::ReduceView::of(shape, stretched);
    const T* dy = v.dy<T>();
    if (view.reduce == 1) {
      const GradRef<T> dx = v.into_over_dy<T>(0);
      if (dx.data != dy) kernels::accumulate(dy, v.size(), dx.data, dx.add);
      return;
    }
    const Scratch<T> reordered(view.in_place ? 0 : v.size());
    if (!view.in_place) {
      const Shape kept_first = kernels::reduced_last(shape, stretched);
      kernels::copy(kept_first, dy, kernels::reduced_last(contiguous_strides(shape), stretched),
                    reordered.data(), contiguous_strides(kept_first));
      dy = reordered.data();
    }
    const GradRef<T> dx = v.into<T>(0);
    if (dx.add) {
      const Scratch<T> sums(view.outputs());
      kernels::fold<kernels::FoldSum>(view, dy, sums.data());
      kernels::accumulate(sums.data(), view.outputs(), dx.data, true);
    } else {
      kernels::fold<kernels::FoldSum>(view, dy, dx.data);
    }
  }
};

template <OpName Name, Scalar T>
Tensor<T> expand_to(const Tensor<T>& x, const Shape& wanted) {
  Shape shape = wanted;
  const int shift = shape.rank() - x.rank();
  bool fits = shift >= 0;
  for (int i = 0; fits && i < x.rank(); ++i) {
    if (shape[i + shift] == -1) shape[i + shift] = x.shape()[i];
    fits = x.shape()[i] == 1 || x.shape()[i] == shape[i + shift];
  }
  if (!fits)
    fail<ShapeError>(Name.view(), "x does not stretch to the shape; x is ", x.shape(), ", shape is ", wanted,
                     "; expected equal dimensions, or 1 in x, aligned at the back");
  checked_size(Name.view(), shape, sizeof(T));
  const Recorder rec(Name.view(), x);
  Tensor<T> y(x.buffer(), shape, broadcast_strides(x.shape(), x.strides(), shape), x.offset());
  record_if(rec, y, [&] {
    unsigned stretched = 0;
    for (int i = 0; i < shape.rank(); ++i)
      if (i < shift || x.shape()[i - shift] != shape[i]) stretched |= 1u << i;
    return ExpandRule<Name, T>{stretched};
  });
  return y;
}

}  // namespace detail

/// x read as if it had `shape`: axes of size 1 are stretched, and axes that x lacks are put in front, as
/// NumPy broadcasts. -1 keeps the size of an axis. A view, in which many elements lie in one place: writing
/// to it in place throws.
///   dx += sum of dy over the stretched axes             saves nothing
/// Sums are blocked, and the same at any number of threads. Throws ShapeError when x does not stretch.
template <Scalar T>
Tensor<T> expand(const Tensor<T>& x, const Shape& shape) {
  return detail::expand_to<"expand">(x, shape);
}

/// `expand` under NumPy's name.
template <Scalar T>
Tensor<T> broadcast_to(const Tensor<T>& x, const Shape& shape) {
  return detail::expand_to<"broadcast_to">(x, shape);
}

}  // namespace wengert::inline WENGERT_ISA
