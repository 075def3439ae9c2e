// Kernels that put elements where others tell: rows and elements by index, and slices. Each target is
// written by one block in a fixed order, so sums have the same bits for any number of threads. Floor:
// kernels.
#pragma once

#include <wengert/kernels/copy.hpp>
#include <wengert/kernels/gather.hpp>
#include <wengert/kernels/vec.hpp>

namespace wengert::inline WENGERT_ISA::kernels {

namespace detail {

/// y += x for n contiguous elements.
template <class T>
WENGERT_INLINE void add_run(const T* x, Index n, T* y) {
  constexpr Index lanes = Vec<T>::lanes;
  Index i = 0;
  for (; i + lanes <= n; i += lanes) (Vec<T>::load(y + i) + Vec<T>::load(x + i)).store(y + i);
  if constexpr (lanes > 1)
    if (i < n)
      (Vec<T>::load_partial(y + i, n - i) + Vec<T>::load_partial(x + i, n - i)).store_partial(y + i, n - i);
}

}  // namespace detail

/// y[o, index[i], :] += x[o, i, :] for x of (outer, n, inner) and y of (outer, rows, inner), both contiguous.
template <class T, std::integral I>
void scatter_add_rows(const T* x, const I* index, Index outer, Index n, Index inner, Index rows, T* y) {
  if (outer == 0 || n == 0 || inner == 0) return;  // y may be null, which no step leads from
  // Blocks share out the columns, whole cache lines each: rows may repeat, columns never meet.
  constexpr Index line = std::max<Index>(1, 64 / static_cast<Index>(sizeof(T)));
  constexpr Index most_parts = 4;
  const Index lines = (inner + line - 1) / line;
  const Index columns = (lines + most_parts - 1) / most_parts * line;
  const Index parts = (inner + columns - 1) / columns;
  const Index grain = std::max<Index>(1, copy_grain / (n * columns));
  parallel_for(outer * parts, grain, [=](Index begin, Index end) {
    for (Index t = begin; t < end; ++t) {
      const Index o = t / parts, first = t % parts * columns, width = std::min(columns, inner - first);
      const T* from = x + o * n * inner + first;
      T* to = y + o * rows * inner + first;
      for (Index i = 0; i < n; ++i) {
        detail::prefetch(to, index, i, n, inner);
        detail::add_run(from + i * inner, width, to + static_cast<Index>(index[i]) * inner);
      }
    }
  });
}

/// y[... index[p] ...] += x[p] for every position p of the index, which has `shape` and replaces the
/// coordinate along `axis`; x and the index are contiguous.
template <class T, std::integral I>
void scatter_add(const T* x, const I* index, const Shape& shape, int axis, T* y, const Strides& y_strides) {
  detail::each_target(shape, axis, y_strides, index,
                      [=](Index target, Index p) { y[target] = static_cast<T>(y[target] + x[p]); });
}

/// y[... index[p] ...] = x[p]; as `scatter_add`, for targets that differ.
template <class T, std::integral I>
void scatter(const T* x, const I* index, const Shape& shape, int axis, T* y, const Strides& y_strides) {
  detail::each_target(shape, axis, y_strides, index, [=](Index target, Index p) { y[target] = x[p]; });
}

/// y[... index[p] ...] = value.
template <class T, std::integral I>
void scatter_value(T value, const I* index, const Shape& shape, int axis, T* y, const Strides& y_strides) {
  detail::each_target(shape, axis, y_strides, index, [=](Index target, Index) { y[target] = value; });
}

/// The first position, in row-major order, that names an element which an earlier one named; or -1. `seen`
/// is room for one byte for each of the `n` elements that `strides` describe.
template <std::integral I>
Index find_duplicate(const I* index, const Shape& shape, int axis, const Strides& strides, Index n,
                     Byte* seen) {
  if (shape.size() == 0) return -1;
  fill(seen, n, Byte{0});
  Strides beside = strides;
  const Index step = shape.rank() > 0 ? strides[axis] : 0;
  if (shape.rank() > 0) beside[axis] = 0;
  const NdLoop<1> loop(shape, {beside});
  Index p = 0, found = -1;
  loop.for_rows(0, loop.rows, [&](const auto& at) {
    for (Index k = 0; k < loop.inner; ++k, ++p) {
      const Index target = at[0] + k * loop.inner_stride[0] + static_cast<Index>(index[p]) * step;
      if (std::exchange(seen[target], Byte{1}) != 0 && found < 0) found = p;
    }
  });
  return found;
}

/// y[i, index[i]] = 1 and 0 elsewhere, for y of (n, classes).
template <class T, std::integral I>
void one_hot(const I* index, Index n, Index classes, T* y) {
  parallel_for(n, std::max<Index>(1, copy_grain / std::max<Index>(1, classes)), [=](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) {
      std::fill_n(y + i * classes, classes, T(0));
      y[i * classes + static_cast<Index>(index[i])] = T(1);
    }
  });
}

/// Elements begin, begin + step, ... along the middle axis of an array of (outer, axis, inner).
struct Slice {
  Index outer, axis, inner;
  Index begin, step, count;
};

/// dx takes dy, of (outer, count, inner), in the slice `s`: adding when `add`, otherwise storing it and 0
/// everywhere else.
template <class T>
void scatter_slice(const T* dy, const Slice& s, T* dx, bool add) {
  const Shape shape{s.outer, s.count, s.inner};
  const Strides strides{s.axis * s.inner, s.step * s.inner, 1};
  if (s.outer * s.axis * s.inner == 0) return;  // dx may be null, which no step leads from
  T* const first = dx + s.begin * s.inner;
  if (add) {
    copy_add(shape, dy, contiguous_strides(shape), first, strides);
    return;
  }
  const Index row = s.axis * s.inner, before = s.begin * s.inner, run = s.count * s.inner;
  if (s.step != 1) {
    fill(dx, s.outer * row, T(0));
    copy(shape, dy, contiguous_strides(shape), first, strides);
  } else if (s.outer == 1) {
    fill(dx, before, T(0));
    accumulate(dy, run, first, false);
    fill(first + run, row - before - run, T(0));
  } else {
    parallel_for(s.outer, std::max<Index>(1, copy_grain / std::max<Index>(1, row)), [=](Index o0, Index o1) {
      for (Index o = o0; o < o1; ++o) {
        T* to = dx + o * row;
        std::fill_n(to, before, T(0));
        std::copy_n(dy + o * run, run, to + before);
        std::fill_n(to + before + run, row - before - run, T(0));
      }
    });
  }
}

}  // namespace wengert::inline WENGERT_ISA::kernels
