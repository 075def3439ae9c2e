// How kernels see a reduction: any set of axes of any shape becomes (outer, reduce, inner). Floor: kernels.
#pragma once

#include <utility>

#include <wengert/base/shape.hpp>

namespace wengert::inline WENGERT_ISA::kernels {

/// A reduction after merging neighbouring axes: x is (outer, reduce, inner), y is (outer, inner), both
/// without gaps. Where kept and reduced axes alternate more often than that, `in_place` is false: the kernels
/// get a copy of x whose reduced axes come last, which is (outer, reduce, 1).
struct ReduceView {
  Index outer = 1, reduce = 1, inner = 1;
  bool in_place = true;

  /// The reduction of `shape` over the axes whose bits are set in `axes`.
  static ReduceView of(const Shape& shape, unsigned axes) noexcept {
    ReduceView v;
    enum { outside, reducing, inside } stage = outside;
    for (int axis = 0; axis < shape.rank(); ++axis) {
      if (shape[axis] == 1) continue;
      if ((axes >> axis & 1u) != 0) {
        if (stage == inside) v.in_place = false;
        if (stage == outside) stage = reducing;
        v.reduce *= shape[axis];
      } else if (stage == outside) {
        v.outer *= shape[axis];
      } else {
        stage = inside;
        v.inner *= shape[axis];
      }
    }
    if (stage == outside) std::swap(v.outer, v.inner);  // nothing to reduce: one long row
    if (!v.in_place) v.outer *= std::exchange(v.inner, 1);
    return v;
  }

  Index outputs() const noexcept { return outer * inner; }
};

/// The entries of `dims` (a shape, or strides) in the order kept axes, reduced axes.
inline Shape reduced_last(const Shape& dims, unsigned axes) {
  Shape out;
  for (unsigned wanted : {0u, 1u})
    for (int axis = 0; axis < dims.rank(); ++axis)
      if ((axes >> axis & 1u) == wanted) out.push_back(dims[axis]);
  return out;
}

}  // namespace wengert::inline WENGERT_ISA::kernels
