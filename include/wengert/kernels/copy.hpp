// Strided copies, the kernels behind views: gather into contiguous memory, scatter back, plain and
// accumulating. Floor: kernels.
#pragma once

#include <cstring>

#include <wengert/kernels/nd_loop.hpp>
#include <wengert/kernels/parallel.hpp>
#include <wengert/kernels/transpose.hpp>

namespace wengert::inline WENGERT_ISA::kernels {

inline constexpr Index copy_grain = 16 * 1024;  // elements; about 3 us of work

/// y[i] = value for n elements.
template <class T>
void fill(T* y, Index n, T value) {
  parallel_for(n, 4 * copy_grain, [=](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) y[i] = value;
  });
}

namespace detail {

// Tiled, so that a transpose touches each cache line of both sides once while it is near.
inline constexpr Index copy_tile_size = 16;

/// A whole tile of a transpose: y[p * step + j] = or += x[j * row + p].
template <bool Add, SimdScalar T>
void transpose_tile(const T* x, Index row, T* y, Index step) {
  constexpr Index size = copy_tile_size;
  if constexpr (Add) {
    alignas(64) T turned[size * size];
    transpose_square<size>(x, row, turned, size);
    for (Index p = 0; p < size; ++p)
      for (Index j = 0; j < size; ++j) y[p * step + j] += turned[p * size + j];
  } else {
    transpose_square<size>(x, row, y, step);
  }
}

template <bool Add, class T>
void copy_tile(const T* x, Index x_row, Index x_col, T* y, Index y_row, Index y_col, Index rows, Index cols) {
  if constexpr (SimdScalar<T>) {
    const bool whole = rows == copy_tile_size && cols == copy_tile_size;
    if (whole && x_row == 1 && y_col == 1) return transpose_tile<Add>(x, x_col, y, y_row);
    if (whole && x_col == 1 && y_row == 1) return transpose_tile<Add>(x, x_row, y, y_col);
  }
  for (Index i = 0; i < rows; ++i)
    for (Index j = 0; j < cols; ++j) {
      T& to = y[i * y_row + j * y_col];
      const T from = x[i * x_row + j * x_col];
      to = Add ? T(to + from) : from;
    }
}

/// `rows` rows of `n` elements at the offsets that it is called with, in square tiles.
template <bool Add, class T>
struct CopyBlock {
  static constexpr Index tile = copy_tile_size;
  const T* x;
  T* y;
  Index x_row, x_col, y_row, y_col, rows, n;

  void operator()(const std::array<Index, 2>& at) const noexcept {
    const T* const from = x + at[0];
    T* const to = y + at[1];
    if (x_col == 1 && y_col == 1 && rows == 1) {
      for (Index i = 0; i < n; ++i) to[i] = Add ? T(to[i] + from[i]) : from[i];
      return;
    }
    const Index step = rows == 1 ? n : tile;
    for (Index j = 0; j < n; j += step)
      copy_tile<Add>(from + j * x_col, x_row, x_col, to + j * y_col, y_row, y_col, rows,
                     std::min(step, n - j));
  }
};

template <bool Add, class T>
void copy(const Shape& shape, const T* x, const Strides& x_strides, T* y, const Strides& y_strides) {
  const NdLoop<2> loop(shape, {x_strides, y_strides});
  if (shape.size() == 0) return;
  const Index xs = loop.inner_stride[0], ys = loop.inner_stride[1], n = loop.inner;
  constexpr Index tile = CopyBlock<Add, T>::tile;
  if (loop.rows == 1) {
    parallel_for(n, copy_grain, [=](Index begin, Index end) {
      CopyBlock<Add, T>{x, y, 0, xs, 0, ys, 1, end - begin}({begin * xs, begin * ys});
    });
    return;
  }
  // The innermost outer axis and the inner axis form matrices; each is copied in bands of square tiles when
  // that transposes it.
  const bool transposes = (xs != 1 || ys != 1) && n >= 4;
  const auto last = static_cast<std::size_t>(loop.outer_rank - 1);
  const Index m = loop.dims[last], xr = loop.strides[0][last], yr = loop.strides[1][last];
  const Index bands = transposes ? (m + tile - 1) / tile : 1, per_band = transposes ? tile * n : n;
  parallel_for(transposes ? loop.rows / m * bands : loop.rows, std::max<Index>(1, copy_grain / per_band),
               [=](Index begin, Index end) {
                 if (!transposes) {
                   loop.for_rows(begin, end, CopyBlock<Add, T>{x, y, 0, xs, 0, ys, 1, n});
                   return;
                 }
                 for (Index b = begin; b < end; ++b) {
                   const Index matrix = b / bands, i = b % bands * tile;
                   loop.for_rows(
                       matrix * m, matrix * m + 1,
                       CopyBlock<Add, T>{x + i * xr, y + i * yr, xr, xs, yr, ys, std::min(tile, m - i), n});
                 }
               });
}

}  // namespace detail

/// y = x, element by element, over one shape and two sets of strides; y's elements must not overlap.
template <class T>
void copy(const Shape& shape, const T* x, const Strides& x_strides, T* y, const Strides& y_strides) {
  detail::copy<false>(shape, x, x_strides, y, y_strides);
}

/// y += x, as `copy`.
template <class T>
void copy_add(const Shape& shape, const T* x, const Strides& x_strides, T* y, const Strides& y_strides) {
  detail::copy<true>(shape, x, x_strides, y, y_strides);
}

/// y[i] = x[i], or += when `add`, for n contiguous elements.
template <class T>
void accumulate(const T* x, Index n, T* y, bool add) {
  parallel_for(n, copy_grain, [=](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) y[i] = add ? T(y[i] + x[i]) : x[i];
  });
}

}  // namespace wengert::inline WENGERT_ISA::kernels
