// The innermost loop of the matrix product: a tile of c kept in registers. Every other part of the product
// only brings operands into the form that this loop reads. Floor: kernels.
#pragma once

#include <algorithm>
#include <array>
#include <utility>

#include <wengert/kernels/simd.hpp>

namespace wengert::inline WENGERT_ISA::kernels {

/// What is applied to each element of a product before it is stored.
enum class Activation { none, relu };

namespace detail {

/// Tile sizes that fill the registers and spill none: `rows` x `vectors` accumulators, `vectors` of b and one
/// of a.
template <SimdScalar T>
struct Tile {
  static constexpr int width = static_cast<int>(Batch<T>::size);
  // Without fused multiply-add one register holds the product before it is added.
  static constexpr int rows = simd_registers == 32 ? 6 : simd_has_fma ? 6 : 5;
  static constexpr int vectors = simd_registers == 32 ? 4 : 2;
  static constexpr int columns = vectors * width;
};

/// What happens to a finished tile: `c` is added when `add`, then `bias` when given, then the activation.
template <class T>
struct Epilogue {
  bool add = false;
  const T* bias = nullptr;
  Activation activation = Activation::none;
  bool far = false;  // c is fetched ahead
};

/// The first `count` < width elements at src, then zeros.
template <SimdScalar T>
WENGERT_INLINE Batch<T> load_first(const T* src, Index count) noexcept {
#if defined(__AVX512F__)
  if constexpr (std::same_as<T, float>)
    return _mm512_maskz_loadu_ps(static_cast<__mmask16>((1U << count) - 1U), src);
  else
    return _mm512_maskz_loadu_pd(static_cast<__mmask8>((1U << count) - 1U), src);
#else
  alignas(64) T all[Tile<T>::width] = {};
  for (Index i = 0; i < count; ++i) all[i] = src[i];
  return Batch<T>::load_aligned(all);
#endif
}

/// Stores the first `count` < width elements of v.
template <SimdScalar T>
WENGERT_INLINE void store_first(Batch<T> v, T* dst, Index count) noexcept {
#if defined(__AVX512F__)
  if constexpr (std::same_as<T, float>)
    _mm512_mask_storeu_ps(dst, static_cast<__mmask16>((1U << count) - 1U), v);
  else
    _mm512_mask_storeu_pd(dst, static_cast<__mmask8>((1U << count) - 1U), v);
#else
  alignas(64) T all[Tile<T>::width];
  v.store_aligned(all);
  for (Index i = 0; i < count; ++i) dst[i] = all[i];
#endif
}

/// Sums of nothing, whose results, V vectors at row(r), are fetched: a tile touches them at its end only, all
/// at once.
template <class T, int R, int V, class Row>
WENGERT_INLINE void begin_registers(Batch<T> (&acc)[R][V], Row row) noexcept {
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      __builtin_prefetch(row(r) + v * Tile<T>::width, 1);
      acc[r][v] = Batch<T>(T(0));
    }
}

/// Row r of c, V vectors at row(r), = epilogue(acc[r]). A branch a step for the whole tile: one an element
/// would be most of a tile's code.
template <class T, int R, int V, class Row>
WENGERT_INLINE void finish_registers(Batch<T> (&acc)[R][V], Row row, const Epilogue<T>& epilogue) noexcept {
  constexpr int width = Tile<T>::width;
  if (epilogue.add) {
    WENGERT_KEEP_BRANCH();
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) acc[r][v] = Batch<T>::load_unaligned(row(r) + v * width) + acc[r][v];
  }
  if (epilogue.bias != nullptr) {
    WENGERT_KEEP_BRANCH();
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      const Batch<T> bias = Batch<T>::load_unaligned(epilogue.bias + v * width);
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) acc[r][v] = acc[r][v] + bias;
    }
  }
  if (epilogue.activation == Activation::relu) {
    WENGERT_KEEP_BRANCH();
    const Batch<T> zero(T(0));
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) acc[r][v] = xsimd::max(zero, acc[r][v]);  // the second where one is NaN
  }
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) acc[r][v].store_unaligned(row(r) + v * width);
}

/// c (R x V vectors, row stride ldc) = epilogue(a b) over `k` steps. b: step p at b + p * b_step, V vectors.
/// a: row r of step p at a[r * a_row + p * a_step].
/// Each element of c is one chain of fused multiply-adds in order of p, whatever R and V: bits do not depend
/// on tiling.
template <class T, int R, int V>
void multiply_tile(Index k, const T* a, Index a_row, Index a_step, const T* b, Index b_step, T* c, Index ldc,
                   const Epilogue<T>& epilogue) {
  constexpr int width = Tile<T>::width;
  constexpr Index line = 64 / Index{sizeof(T)}, steps_ahead = 8;
  const bool contiguous = a_step == 1;
  const Index fetched = epilogue.far ? V * width : 0;
  Batch<T> acc[R][V];
  const T* row[R];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    row[r] = a + r * a_row;
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) acc[r][v] = Batch<T>(T(0));
  }

  Index at = 0;  // p * a_step
  for (Index p = 0; p < k; p += line) {
    // What the hardware does not foresee: steps far apart; short rows of the panel below, which comes next;
    // and a far c, a vector of each row at a time, since more requests at once than the processor holds would
    // stop it.
    if (contiguous) {
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) __builtin_prefetch(row[r] + R * a_row + at);
    }
    if (p < fetched) {
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) __builtin_prefetch(c + r * ldc + p, 1);
    }
#pragma GCC unroll 2
    for (Index left = std::min(k - p, line); left > 0; --left) {
      if (!contiguous) __builtin_prefetch(row[R - 1] + at + steps_ahead * a_step);
      Batch<T> bv[V];
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) bv[v] = Batch<T>::load_unaligned(b + v * width);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        const Batch<T> av(row[r][at]);
#pragma GCC unroll 4
        for (int v = 0; v < V; ++v) acc[r][v] = xsimd::fma(av, bv[v], acc[r][v]);
      }
      at += a_step;
      b += b_step;
    }
  }

  finish_registers<T>(
      acc, [=](int r) WENGERT_INLINE_LAMBDA { return c + r * ldc; }, epilogue);
}

template <class T>
using TileFunction = void (*)(Index, const T*, Index, Index, const T*, Index, T*, Index, const Epilogue<T>&);

/// The tile function for `rows` >= 2 x `vectors`. Single rows are products with a vector, and rows that are
/// shared out evenly leave none.
template <class T>
TileFunction<T> tile_function(Index rows, Index vectors) noexcept {
  constexpr int columns = Tile<T>::vectors;
  static constexpr auto table = []<std::size_t... I>(std::index_sequence<I...>) {
    return std::array<TileFunction<T>, sizeof...(I)>{
        multiply_tile<T, int(I) / columns + 2, int(I) % columns + 1>...};
  }
  (std::make_index_sequence<std::size_t((Tile<T>::rows - 1) * columns)>());
  return table[static_cast<std::size_t>((rows - 2) * columns + vectors - 1)];
}

}  // namespace detail

}  // namespace wengert::inline WENGERT_ISA::kernels
