// The innermost loops of the products at the points of Winograd's convolution: operands lie evenly, so that a
// tall tile needs few address registers. Floor: kernels.
#pragma once

#include <wengert/kernels/conv_tile.hpp>

namespace wengert::inline WENGERT_ISA::kernels::detail {

/// Rows of a tile of `vectors`: 16 of one vector where registers suffice.
template <SimdScalar T>
constexpr int even_tile_rows(Index vectors) noexcept {
  return std::min(simd_registers / 2, Tile<T>::rows * Tile<T>::vectors / static_cast<int>(vectors));
}

/// R rows x V vectors of c (row stride ldc) = or += the sum over p < count of a(r, p) times row p of b. Rows
/// of b are b_step apart; a(r, p) is a[r * step + p], or a[p * step + r] when Across.
template <class T, int R, int V, bool Across>
void even_tile(Index count, const T* a, Index step, const T* b, Index b_step, T* c, Index ldc, bool add) {
  constexpr Index steps_ahead = 4;
  constexpr int each = 3;  // rows that one address register and its multiples of the step reach
  Batch<T> acc[R][V];
  const T* row[(R + each - 1) / each];
  const auto result = [=](int r) WENGERT_INLINE_LAMBDA { return c + r * ldc; };
  begin_registers<T>(acc, result);
#pragma GCC unroll 6
  for (int i = 0; i < (R + each - 1) / each; ++i) row[i] = a + i * each * step;
#pragma GCC unroll 2
  for (Index p = 0; p < count; ++p) {
    if constexpr (Across) __builtin_prefetch(a + (steps_ahead * step + R - 1));
    Batch<T> bv[V];
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) bv[v] = Batch<T>::load_unaligned(b + v * Tile<T>::width);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const Batch<T> av(Across ? a[r] : row[r / each][r % each * step]);
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) acc[r][v] = xsimd::fma(av, bv[v], acc[r][v]);
    }
    if constexpr (Across) {
      a += step;
    } else {
#pragma GCC unroll 6
      for (int i = 0; i < (R + each - 1) / each; ++i) {
        ++row[i];
        __asm__(""
                : "+r"(row[i]));  // else each row gets an address of its own, more than there are registers
      }
    }
    b += b_step;
  }
  finish_registers<T>(acc, result, Epilogue<T>{add, nullptr, Activation::none});
}

template <class T>
using EvenTile = void (*)(Index, const T*, Index, const T*, Index, T*, Index, bool);

/// The tile function for `rows` x `vectors`, rows <= even_tile_rows(vectors).
template <class T, bool Across>
EvenTile<T> even_tile_function(Index rows, Index vectors) noexcept {
  static constexpr auto table = tile_table<EvenTile<T>, even_tile_rows<T>, Tile<T>::vectors>(
      [](auto r, auto v) { return even_tile<T, r(), v(), Across>; });
  return table[static_cast<std::size_t>((vectors - 1) * even_tile_rows<T>(1) + rows - 1)];
}

}  // namespace wengert::inline WENGERT_ISA::kernels::detail
