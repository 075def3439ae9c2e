// The innermost loops of convolutions: tiles of sums kept in registers, as in the matrix product, but with
// rows that lie where the image has them. Floor: kernels.
#pragma once

#include <wengert/kernels/gemm_pack.hpp>

namespace wengert::inline WENGERT_ISA::kernels::detail {

/// Tiles of fewer vectors have more rows: enough sums to hide the latency of each.
template <SimdScalar T>
constexpr int tile_rows(Index vectors) noexcept {
  return std::min(12, Tile<T>::rows * Tile<T>::vectors / static_cast<int>(vectors));
}
template <SimdScalar T>
inline constexpr int most_tile_rows = tile_rows<T>(1);

/// Neighbouring inputs, and the neighbouring rows of the weights that they are multiplied with.
struct Run {
  Index offset, length, row;
};

/// R output pixels x V vectors of channels: out[out_at[r]] = epilogue(sum over runs of in and rows of b).
/// `runs` holds `count` runs: pixel r reads in[in_at[r] + offset + p], p < length, for rows `row` + p of b,
/// which are `b_step` apart. Each element is one chain in that order, whatever R and
/// V.
template <class T, int R, int V>
void correlate_tile(const Run* runs, Index count, const T* in, const Index* in_at, const T* weights,
                    Index b_step, T* out, const Index* out_at, const Epilogue<T>& epilogue) {
  // A tile of one vector loads as much as it computes, and more rows than there are registers for their
  // addresses: one look-up of those serves several steps.
  constexpr int at_once = simd_registers == 32 ? 4 : 2;
  Batch<T> acc[R][V];
  const auto result = [=](int r) WENGERT_INLINE_LAMBDA { return out + out_at[r]; };
  begin_registers<T>(acc, result);
  for (const Run* const end = runs + count; runs != end; ++runs) {
    const T* b = weights + runs->row * b_step;
    const T* row[R];
#pragma GCC unroll 12
    for (int r = 0; r < R; ++r) row[r] = in + (in_at[r] + runs->offset);
    const auto steps = [&]<int S>(std::integral_constant<int, S>, Index p) WENGERT_INLINE_LAMBDA {
      Batch<T> bv[S][V];
#pragma GCC unroll 4
      for (int s = 0; s < S; ++s, b += b_step)
#pragma GCC unroll 4
        for (int v = 0; v < V; ++v) bv[s][v] = Batch<T>::load_unaligned(b + v * Tile<T>::width);
#pragma GCC unroll 12
      for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
        for (int s = 0; s < S; ++s) {
          const Batch<T> av(row[r][p + s]);
#pragma GCC unroll 4
          for (int v = 0; v < V; ++v) acc[r][v] = xsimd::fma(av, bv[s][v], acc[r][v]);
        }
    };
    Index p = 0;
    if constexpr (V == 1 && at_once > 1)
      for (; p + at_once <= runs->length; p += at_once) steps(std::integral_constant<int, at_once>(), p);
    for (; p < runs->length; ++p) steps(std::integral_constant<int, 1>(), p);
  }
  finish_registers<T>(acc, result, epilogue);
}

/// R rows of weights x V vectors of output channels: c (row stride ldc) = or += the sum over pixels of x
/// times dy. `lines` holds the offsets in x of `count` lines of `length` pixels, which are x_step apart;
/// pixel after pixel, the rows of dy are dy_step apart. Row r reads x at x_at[r] from there. Each element is
/// one chain.
template <class T, int R, int V>
void correlate_weights_tile(const Index* lines, Index count, Index length, const T* x, Index x_step,
                            const Index* x_at, const T* dy, Index dy_step, T* c, Index ldc, bool add) {
  Batch<T> acc[R][V];
  const auto result = [=](int r) WENGERT_INLINE_LAMBDA { return c + r * ldc; };
  begin_registers<T>(acc, result);
  const T* base[R];
#pragma GCC unroll 12
  for (int r = 0; r < R; ++r) base[r] = x + x_at[r];
  const T* b = dy;
  for (const Index* const end = lines + count; lines != end; ++lines) {
    Index at = *lines;
    for (Index p = 0; p < length; ++p) {
      Batch<T> bv[V];
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) bv[v] = Batch<T>::load_unaligned(b + v * Tile<T>::width);
#pragma GCC unroll 12
      for (int r = 0; r < R; ++r) {
        const Batch<T> av(base[r][at]);
#pragma GCC unroll 4
        for (int v = 0; v < V; ++v) acc[r][v] = xsimd::fma(av, bv[v], acc[r][v]);
      }
      at += x_step;
      b += dy_step;
    }
  }
  finish_registers<T>(acc, result, Epilogue<T>{add, nullptr, Activation::none});
}

template <class T>
using CorrelateTile = void (*)(const Run*, Index, const T*, const Index*, const T*, Index, T*, const Index*,
                               const Epilogue<T>&);
template <class T>
using CorrelateWeightsTile = void (*)(const Index*, Index, Index, const T*, Index, const Index*, const T*,
                                      Index, T*, Index, bool);

/// The functions that `tile` has for r x v, 1 <= r <= rows(v), 1 <= v <= vectors: that for r x v is entry
/// (v - 1) * rows(1) + r - 1.
template <class Function, auto rows, int vectors, class F>
constexpr auto tile_table(F tile) noexcept {
  constexpr int most = rows(1);
  const auto entry = [&]<int R, int V>(std::integral_constant<int, R> r, std::integral_constant<int, V> v) {
    if constexpr (R <= rows(V))
      return Function(tile(r, v));
    else
      return Function(nullptr);
  };
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    return std::array<Function, sizeof...(I)>{entry(std::integral_constant<int, int(I) % most + 1>(),
                                                    std::integral_constant<int, int(I) / most + 1>())...};
  }
  (std::make_index_sequence<std::size_t(most * vectors)>());
}

/// The tile functions for `rows` x `vectors`, rows <= tile_rows(vectors).
template <class T>
CorrelateTile<T> correlate_tile_function(Index rows, Index vectors) noexcept {
  static constexpr auto table = tile_table<CorrelateTile<T>, tile_rows<T>, Tile<T>::vectors>(
      [](auto r, auto v) { return correlate_tile<T, r(), v()>; });
  return table[static_cast<std::size_t>((vectors - 1) * most_tile_rows<T> + rows - 1)];
}
template <class T>
CorrelateWeightsTile<T> correlate_weights_tile_function(Index rows, Index vectors) noexcept {
  static constexpr auto table = tile_table<CorrelateWeightsTile<T>, tile_rows<T>, Tile<T>::vectors>(
      [](auto r, auto v) { return correlate_weights_tile<T, r(), v()>; });
  return table[static_cast<std::size_t>((vectors - 1) * most_tile_rows<T> + rows - 1)];
}

/// Copies `valid` values; whole vectors first.
template <SimdScalar T>
WENGERT_INLINE void copy_valid(const T* from, T* to, Index valid) noexcept {
  constexpr Index width = Tile<T>::width;
  const Index whole = valid / width * width;
  for (Index j = 0; j < whole; j += width) Batch<T>::load_unaligned(from + j).store_unaligned(to + j);
  if (whole < valid) {
    WENGERT_KEEP_BRANCH();
    store_first(load_first(from + whole, valid - whole), to + whole, valid - whole);
  }
}

}  // namespace wengert::inline WENGERT_ISA::kernels::detail
