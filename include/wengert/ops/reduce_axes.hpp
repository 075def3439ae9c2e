// What every reduction shares: the set of axes, the shape of the result, and the arrangement that the kernels
// work on. Floor: ops.
#pragma once

#include <concepts>

#include <wengert/core/record.hpp>
#include <wengert/kernels/reduce.hpp>

namespace wengert::inline WENGERT_ISA {

/// The axes of a reduction: one integer, or a list such as {0, -1}. Negative axes count from the back. An
/// empty list means all of them, as in PyTorch.
class Axes {
 public:
  template <std::integral I>
  requires(!std::same_as<I, bool>) constexpr Axes(I axis) : axes_{static_cast<Index>(axis)} {}
  constexpr Axes(std::initializer_list<Index> axes) : axes_(axes) {}
  constexpr explicit Axes(const Shape& axes) : axes_(axes) {}
  static constexpr Axes all() { return Axes(Shape()); }

  /// One bit for each axis. Throws ShapeError when an axis is out of range or given twice.
  constexpr unsigned bits(std::string_view op, int rank) const {
    if (axes_.empty()) return (1u << rank) - 1u;
    unsigned out = 0;
    for (const Index axis : axes_) {
      const unsigned bit = 1u << normalize_axis(op, axis, rank);
      if ((out & bit) != 0)
        fail<ShapeError>(op, "axis ", axis, " is given twice; axes are ", axes_, ", rank is ", rank,
                         "; expected different axes");
      out |= bit;
    }
    return out;
  }

 private:
  Shape axes_;
};

namespace detail {

/// A reduction of one shape, checked: the axes as bits, and what the kernels see.
struct ReducePlan {
  Shape shape;  // of x
  unsigned axes;
  kernels::ReduceView view;

  ReducePlan(std::string_view op, const Shape& x, const Axes& wanted)
      : shape(x), axes(wanted.bits(op, x.rank())), view(kernels::ReduceView::of(x, axes)) {
    if (view.reduce == 0) checked_size(op, result(true), sizeof(Index));  // may be larger than x
  }

  Shape result(bool keepdim) const {
    Shape y;
    for (int axis = 0; axis < shape.rank(); ++axis) {
      const bool reduced = (axes >> axis & 1u) != 0;
      if (!reduced || keepdim) y.push_back(reduced ? 1 : shape[axis]);
    }
    return y;
  }
  /// Throws ShapeError when there is nothing to choose a largest or smallest element from.
  void check_not_empty(std::string_view op) const {
    if (view.reduce != 0) return;
    for (int axis = 0; axis < shape.rank(); ++axis)
      if ((axes >> axis & 1u) != 0 && shape[axis] == 0)
        fail<ShapeError>(op, "axis ", axis, " has no elements; x is ", shape, "; expected at least one");
  }

  /// x as `view` describes it: itself where possible.
  template <Scalar T>
  Tensor<T> arranged(const Tensor<T>& x) const {
    if (view.in_place) return x.packed();
    return Tensor<T>(x.buffer(), kernels::reduced_last(shape, axes), kernels::reduced_last(x.strides(), axes),
                     x.offset())
        .packed();
  }
  /// Calls `write(dx, add)` for a gradient arranged as `view` describes, and brings it to input 0.
  template <Scalar T, class Write>
  void accumulate(Vjp& v, Write write) const {
    const GradRef<T> dx = v.into<T>(0);
    if (view.in_place) return write(dx.data, dx.add);
    const Shape dims = kernels::reduced_last(shape, axes);
    const Strides from = contiguous_strides(dims);
    const Strides to = kernels::reduced_last(contiguous_strides(shape), axes);
    const Scratch<T> gradient(shape.size());
    write(gradient.data(), false);
    if (dx.add)
      kernels::copy_add(dims, gradient.data(), from, dx.data, to);
    else
      kernels::copy(dims, gradient.data(), from, dx.data, to);
  }
};

}  // namespace detail

}  // namespace wengert::inline WENGERT_ISA
