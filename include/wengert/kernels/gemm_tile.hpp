// The innermost loop of the matrix product: a tile of c kept in registers. Every other part of the product
// only brings operands into the form that this loop reads. Floor: kernels.
#pragma once

#include <array>
#include <utility>

#include <xsimd/xsimd.hpp>

#include <wengert/base/scalar.hpp>

namespace wengert::inline WENGERT_ISA::kernels {

/// What is applied to each element of a product before it is stored.
enum class Activation { none, relu };

namespace detail {

/// Tile sizes that fill the registers and spill none: `rows` x `vectors` accumulators, `vectors` of b and one
/// of a.
template <SimdScalar T>
struct Tile {
  static constexpr int width = static_cast<int>(xsimd::batch<T>::size);
#if defined(__AVX512F__) || defined(__aarch64__)
  static constexpr int rows = 8, vectors = 3;  // 32 registers
#elif defined(__FMA__)
  static constexpr int rows = 6, vectors = 2;  // 16 registers
#else
  static constexpr int rows = 5, vectors = 2;  // 16 registers, one of them for the product before it is added
#endif
  static constexpr int columns = vectors * width;
};

/// What happens to a finished tile: `c` is added when `add`, then `bias` when given, then the activation.
template <class T>
struct Epilogue {
  bool add = false;
  const T* bias = nullptr;
  Activation activation = Activation::none;
};

/// c (R x V vectors, row stride ldc) = epilogue(a b) over `k` steps. b: step p at b + p * b_step, V vectors.
/// a: row r of step p at a[r * a_stride + p] when `KContiguous`, else at a[r + p * a_stride].
/// Each element of c is one chain of fused multiply-adds in order of p, whatever R and V: bits do not depend
/// on tiling.
template <class T, int R, int V, bool KContiguous>
void multiply_tile(Index k, const T* a, Index a_stride, const T* b, Index b_step, T* c, Index ldc,
                   const Epilogue<T>& epilogue) {
  using Batch = xsimd::batch<T>;
  constexpr int width = Tile<T>::width;
  Batch acc[R][V];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 3
    for (int v = 0; v < V; ++v) acc[r][v] = Batch(T(0));

  for (Index p = 0; p < k; ++p) {
    Batch bv[V];
#pragma GCC unroll 3
    for (int v = 0; v < V; ++v) bv[v] = Batch::load_unaligned(b + v * width);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const Batch av(KContiguous ? a[r * a_stride] : a[r]);
#pragma GCC unroll 3
      for (int v = 0; v < V; ++v) acc[r][v] = xsimd::fma(av, bv[v], acc[r][v]);
    }
    a += KContiguous ? 1 : a_stride;
    b += b_step;
  }

#pragma GCC unroll 8
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 3
    for (int v = 0; v < V; ++v) {
      T* out = c + r * ldc + v * width;
      Batch y = acc[r][v];
      if (epilogue.add) y = Batch::load_unaligned(out) + y;
      if (epilogue.bias != nullptr) y = y + Batch::load_unaligned(epilogue.bias + v * width);
      if (epilogue.activation == Activation::relu) y = xsimd::select(y < Batch(T(0)), Batch(T(0)), y);
      y.store_unaligned(out);
    }
}

template <class T>
using TileFunction = void (*)(Index, const T*, Index, const T*, Index, T*, Index, const Epilogue<T>&);

/// The tile function for `rows` x `vectors`.
template <class T, bool KContiguous>
TileFunction<T> tile_function(Index rows, Index vectors) noexcept {
  constexpr int columns = Tile<T>::vectors;
  static constexpr auto table = []<std::size_t... I>(std::index_sequence<I...>) {
    return std::array<TileFunction<T>, sizeof...(I)>{
        multiply_tile<T, int(I) / columns + 1, int(I) % columns + 1, KContiguous>...};
  }
  (std::make_index_sequence<std::size_t(Tile<T>::rows * columns)>());
  return table[static_cast<std::size_t>((rows - 1) * columns + vectors - 1)];
}

}  // namespace detail

}  // namespace wengert::inline WENGERT_ISA::kernels
