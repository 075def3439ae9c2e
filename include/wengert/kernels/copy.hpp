// Strided copies, the kernels behind views: gather into contiguous memory, scatter back, plain and
// accumulating. Floor: kernels.
#pragma once

#include <algorithm>
#include <cstddef>

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

/// How the blocks of a copy lie in both operands: columns, and strides in elements.
struct CopyStrides {
  Index columns, x_row, x_column, y_row, y_column;
};

// Tiled, so that a transpose touches each cache line of both sides once while it is near.
inline constexpr Index copy_tile_size = 16;

/// A whole tile of a transpose: y[p * step + j] = or += x[j * row + p].
template <bool Add, SimdScalar T>
void transpose_tile(const T* x, Index row, T* y, Index step) noexcept {
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
void copy_tile(const T* x, T* y, Index rows, Index columns, const CopyStrides& s) noexcept {
  if constexpr (SimdScalar<T>) {
    const bool whole = rows == copy_tile_size && columns == copy_tile_size;
    if (whole && s.x_row == 1 && s.y_column == 1) return transpose_tile<Add>(x, s.x_column, y, s.y_row);
    if (whole && s.x_column == 1 && s.y_row == 1) return transpose_tile<Add>(x, s.x_row, y, s.y_column);
  }
  for (Index i = 0; i < rows; ++i)
    for (Index j = 0; j < columns; ++j) {
      T& to = y[i * s.y_row + j * s.y_column];
      const T from = x[i * s.x_row + j * s.x_column];
      to = Add ? T(to + from) : from;
    }
}

/// Copies, or adds when `Add`, `rows` rows: in square tiles where that transposes them, so that each cache
/// line of both sides is touched once while it is near.
template <bool Add, class T>
void copy_rows(const void* from, void* to, Index rows, const CopyStrides& strides) noexcept {
  const T* x = static_cast<const T*>(from);
  T* y = static_cast<T*>(to);
  const CopyStrides s = strides;
  if (s.x_column == 1 && s.y_column == 1) {
    for (Index i = 0; i < rows; ++i, x += s.x_row, y += s.y_row)
      for (Index j = 0; j < s.columns; ++j) y[j] = Add ? T(y[j] + x[j]) : x[j];
    return;
  }
  const Index step = rows == 1 ? s.columns : copy_tile_size;
  for (Index j = 0; j < s.columns; j += step)
    copy_tile<Add>(x + j * s.x_column, y + j * s.y_column, rows, std::min(step, s.columns - j), s);
}

using CopyRows = void (*)(const void* x, void* y, Index rows, const CopyStrides& strides) noexcept;

/// The walk over blocks, which needs of the elements only their size. Compiled once.
[[gnu::noinline]] inline void copy_blocks(const Shape& shape, const void* x, const Strides& x_strides,
                                          void* y, const Strides& y_strides, Index bytes_each,
                                          CopyRows copy_rows) {
  const NdLoop<2> loop(shape, {x_strides, y_strides});
  if (shape.size() == 0) return;
  const auto copy_at = [=](Index x_at, Index y_at, Index rows, const CopyStrides& s) {
    copy_rows(static_cast<const std::byte*>(x) + x_at * bytes_each,
              static_cast<std::byte*>(y) + y_at * bytes_each, rows, s);
  };
  const Index xs = loop.inner_stride[0], ys = loop.inner_stride[1], n = loop.inner;
  if (loop.rows == 1) {
    parallel_for(n, copy_grain, [=](Index begin, Index end) {
      copy_at(begin * xs, begin * ys, 1, {end - begin, 0, xs, 0, ys});
    });
    return;
  }
  // The innermost outer axis and the inner axis form matrices; each is copied in bands of rows: of as many as
  // a tile has when that transposes it.
  const bool transposes = (xs != 1 || ys != 1) && n >= 4;
  const auto last = static_cast<std::size_t>(loop.outer_rank - 1);
  const Index m = loop.dims[last], xr = loop.strides[0][last], yr = loop.strides[1][last];
  const Index band = std::min(m, transposes ? copy_tile_size : std::max<Index>(1, copy_grain / n));
  const Index bands = (m + band - 1) / band;
  NdLoop<2> matrices = loop;
  matrices.outer_rank -= 1;
  parallel_for(loop.rows / m * bands, std::max<Index>(1, copy_grain / (band * n)),
               [=, &matrices](Index begin, Index end) {
                 const CopyStrides strides{n, xr, xs, yr, ys};
                 const Index first = begin / bands;
                 Index i = begin - first * bands, left = end - begin;  // bands: the next, and how many
                 matrices.for_rows(first, (end - 1) / bands + 1, [&](const std::array<Index, 2>& at) {
                   for (; i < bands && left > 0; ++i, --left) {
                     const Index row = i * band;
                     copy_at(at[0] + row * xr, at[1] + row * yr, std::min(band, m - row), strides);
                   }
                   i = 0;
                 });
               });
}

template <bool Add, class T>
void copy(const Shape& shape, const T* x, const Strides& x_strides, T* y, const Strides& y_strides) {
  copy_blocks(shape, x, x_strides, y, y_strides, Index{sizeof(T)}, &copy_rows<Add, T>);
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
