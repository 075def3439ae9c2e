// Brings operands of a matrix product into the order in which the tile loop reads them. Floor: kernels.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>

#include <wengert/kernels/gemm_tile.hpp>
#include <wengert/kernels/transpose.hpp>

namespace wengert::inline WENGERT_ISA::kernels {

/// A matrix in memory: element (i, j) at data[i * row + j * col]. Strides may be zero or negative.
template <class T>
struct MatrixView {
  const T* data;
  Index row, col;

  constexpr MatrixView transposed() const noexcept { return {data, col, row}; }
};

namespace detail {

/// `total` units cut into the fewest panels of at most `limit`, sizes as equal as can be: no thin last panel.
struct Panels {
  Index total, count, base, extra;

  constexpr Panels(Index total_, Index limit)
      : total(total_), count((total_ + limit - 1) / limit), base(total_ / count), extra(total_ % count) {}
  constexpr Index begin(Index i) const noexcept { return i * base + std::min(i, extra); }
  constexpr Index size(Index i) const noexcept { return base + (i < extra ? 1 : 0); }
};

/// dst[p * columns + j] = b(p, j) for p < k, j < valid, and 0 for valid <= j < columns, a multiple of the
/// width.
template <SimdScalar T>
void pack_columns(Index k, Index valid, Index columns, MatrixView<T> b, T* dst) noexcept {
  constexpr Index width = Tile<T>::width, lane = lane_size<T>;
  const Index whole = valid / width * width;
  if (b.col == 1) {
    for (Index p = 0; p < k; ++p) {
      const T* src = b.data + p * b.row;
      T* out = dst + p * columns;
      for (Index j = 0; j < whole; j += width) Batch<T>::load_unaligned(src + j).store_unaligned(out + j);
      if (whole < valid) load_first(src + whole, valid - whole).store_unaligned(out + whole);
    }
    return;
  }
  const Index steps = b.row == 1 ? k / lane * lane : 0;
  const Index blocked = steps > 0 ? whole : 0;  // columns that the register transpose covers for p < steps
  for (Index j = 0; j < blocked; j += width)
    for (Index p = 0; p < steps; p += lane) {
      const T* src = b.data + j * b.col + p;
      transpose_block(src, b.col, dst + p * columns + j, columns);
    }
  for (Index p = 0; p < k; ++p) {
    T* out = dst + p * columns;
    for (Index j = p < steps ? blocked : 0; j < valid; ++j) out[j] = b.data[p * b.row + j * b.col];
    for (Index j = valid; j < columns; ++j) out[j] = T(0);
  }
}

/// Elements between the steps of a packed row panel: whole registers are copied.
template <SimdScalar T>
inline constexpr Index row_step = Tile<T>::rows <= 4 ? 4 : 8;

/// Row panels begin .. end - 1 of a for p_begin <= p < p_end <= k: element (r, p) of a panel at p *
/// Tile<T>::rows + r, panels
/// k * row_step<T> apart.
template <SimdScalar T>
void pack_rows(Index p_begin, Index p_end, Index k, const Panels& panels, Index begin, Index end,
               MatrixView<T> a, T* dst) noexcept {
  constexpr Index rows = row_step<T>;
  if (a.row == 1) {
    // Several panels at a time, so that one step of k touches few pages; not so many that their copies, a
    // power of two apart, crowd each other out of L1. A copy may take elements of the next panel along, which
    // nobody reads, but none beyond the last.
    constexpr Index at_once = 8;
    for (Index block = begin; block < end; block += at_once) {
      Index first[at_once], count = 0;
      Index whole = 0;  // panels that may copy all `rows` elements
      for (; count < std::min(end - block, at_once); ++count) {
        first[count] = panels.begin(block + count);
        whole += first[count] + rows <= panels.total ? 1 : 0;
      }
      for (Index p = p_begin; p < p_end; ++p) {
        const T* src = a.data + p * a.col;
        T* out = dst + ((block - begin) * k + p) * rows;
        for (Index i = 0; i < whole; ++i, out += k * rows)
          __builtin_memcpy(out, src + first[i], rows * sizeof(T));
        for (Index i = whole; i < count; ++i, out += k * rows)
          for (Index r = 0; r < panels.size(block + i); ++r) out[r] = src[first[i] + r];
      }
    }
    return;
  }
  for (Index i = begin; i < end; ++i) {
    const T* src = a.data + panels.begin(i) * a.row;
    T* out = dst + (i - begin) * k * rows;
    for (Index p = p_begin; p < p_end; ++p)
      for (Index r = 0; r < panels.size(i); ++r) out[p * rows + r] = src[r * a.row + p * a.col];
  }
}

}  // namespace detail

}  // namespace wengert::inline WENGERT_ISA::kernels
