// Brings operands of a matrix product into the order in which the tile loop reads them. Floor: kernels.
#pragma once

#include <cstddef>
#include <utility>

#include <wengert/kernels/gemm_tile.hpp>

namespace wengert::inline WENGERT_ISA::kernels {

/// A matrix in memory: element (i, j) at data[i * row + j * col]. Strides may be zero or negative.
template <class T>
struct MatrixView {
  const T* data;
  Index row, col;

  constexpr MatrixView transposed() const noexcept { return {data, col, row}; }
};

namespace detail {

// One vector register seen as 16-byte lanes of `lane_size` elements, in the compilers' own vector type: xsimd
// has no shuffle inside lanes, and gathers are four times slower.
template <class T>
struct Lanes {
  static constexpr int width = Tile<T>::width;
  static constexpr int lane_size = 16 / static_cast<int>(sizeof(T));
  static constexpr int count = width < lane_size ? 1 : width / lane_size;
  typedef T Lane __attribute__((vector_size(16)));
  typedef T Vector __attribute__((vector_size(sizeof(T) * static_cast<std::size_t>(width))));
};

/// In each lane, elements P of the lanes of a and, from lane_size up, of b.
template <class T, int... P>
typename Lanes<T>::Vector shuffle_lanes(typename Lanes<T>::Vector a, typename Lanes<T>::Vector b) noexcept {
  constexpr int size = Lanes<T>::lane_size, width = Lanes<T>::width;
  return [&]<int... I>(std::integer_sequence<int, I...>) {
    constexpr int pattern[] = {P...};
    return __builtin_shufflevector(
        a, b, (pattern[I % size] % size + I / size * size + (pattern[I % size] >= size ? width : 0))...);
  }
  (std::make_integer_sequence<int, width>());
}

/// dst[p * step + j] = src[j * row + p] for `width` rows j and `lane_size` positions p.
template <SimdScalar T>
void transpose_block(const T* src, Index row, T* dst, Index step) noexcept {
  using L = Lanes<T>;
  typename L::Vector q[L::lane_size], out[L::lane_size];
#pragma GCC unroll 4
  for (int i = 0; i < L::lane_size; ++i)
#pragma GCC unroll 4
    for (int lane = 0; lane < L::count; ++lane)
      __builtin_memcpy(reinterpret_cast<char*>(&q[i]) + 16 * lane, src + (lane * L::lane_size + i) * row, 16);
  if constexpr (L::lane_size == 4) {
    const auto low01 = shuffle_lanes<T, 0, 4, 1, 5>(q[0], q[1]),
               high01 = shuffle_lanes<T, 2, 6, 3, 7>(q[0], q[1]);
    const auto low23 = shuffle_lanes<T, 0, 4, 1, 5>(q[2], q[3]),
               high23 = shuffle_lanes<T, 2, 6, 3, 7>(q[2], q[3]);
    out[0] = shuffle_lanes<T, 0, 1, 4, 5>(low01, low23);
    out[1] = shuffle_lanes<T, 2, 3, 6, 7>(low01, low23);
    out[2] = shuffle_lanes<T, 0, 1, 4, 5>(high01, high23);
    out[3] = shuffle_lanes<T, 2, 3, 6, 7>(high01, high23);
  } else {
    out[0] = shuffle_lanes<T, 0, 2>(q[0], q[1]);
    out[1] = shuffle_lanes<T, 1, 3>(q[0], q[1]);
  }
#pragma GCC unroll 4
  for (int p = 0; p < L::lane_size; ++p) __builtin_memcpy(dst + p * step, &out[p], sizeof(out[p]));
}

/// dst[p * columns + j] = b(p, j) for p < k, j < valid, and 0 for valid <= j < columns, a multiple of the
/// width.
template <SimdScalar T>
void pack_columns(Index k, Index valid, Index columns, MatrixView<T> b, T* dst) noexcept {
  using Batch = xsimd::batch<T>;
  constexpr Index width = Tile<T>::width, lane = Lanes<T>::lane_size;
  const Index whole = valid / width * width;
  if (b.col == 1) {
    for (Index p = 0; p < k; ++p) {
      const T* src = b.data + p * b.row;
      T* out = dst + p * columns;
      for (Index j = 0; j < whole; j += width) Batch::load_unaligned(src + j).store_unaligned(out + j);
      for (Index j = whole; j < valid; ++j) out[j] = src[j];
      for (Index j = valid; j < columns; ++j) out[j] = T(0);
    }
    return;
  }
  const Index steps = b.row == 1 ? k / lane * lane : 0;
  const Index blocked = steps > 0 ? whole : 0;  // columns that the register transpose covers for p < steps
  for (Index j = 0; j < blocked; j += width)
    for (Index p = 0; p < steps; p += lane)
      transpose_block(b.data + j * b.col + p, b.col, dst + p * columns + j, columns);
  for (Index p = 0; p < k; ++p) {
    T* out = dst + p * columns;
    for (Index j = p < steps ? blocked : 0; j < valid; ++j) out[j] = b.data[p * b.row + j * b.col];
    for (Index j = valid; j < columns; ++j) out[j] = T(0);
  }
}

/// dst[p * rows + r] = a(r, p) for r < rows, p < k.
template <SimdScalar T>
void pack_rows(Index k, Index rows, MatrixView<T> a, T* dst) noexcept {
  if (a.row == 1 && rows == Tile<T>::rows) {
    for (Index p = 0; p < k; ++p)
      __builtin_memcpy(dst + p * Tile<T>::rows, a.data + p * a.col, Tile<T>::rows * sizeof(T));
    return;
  }
  for (Index p = 0; p < k; ++p)
    for (Index r = 0; r < rows; ++r) dst[p * rows + r] = a.data[r * a.row + p * a.col];
}

}  // namespace detail

}  // namespace wengert::inline WENGERT_ISA::kernels
