// Cache blocking and threads of the SIMD matrix product. Floor: kernels.
#pragma once

#include <algorithm>

#include <wengert/kernels/gemm_pack.hpp>
#include <wengert/kernels/parallel.hpp>
#include <wengert/memory/buffer.hpp>

namespace wengert::inline WENGERT_ISA::kernels::detail {

/// `total` units cut into the fewest panels of at most `limit`, sizes as equal as can be: no thin last panel.
struct Panels {
  Index total, count, base, extra;

  constexpr Panels(Index total_, Index limit)
      : total(total_), count((total_ + limit - 1) / limit), base(total_ / count), extra(total_ % count) {}
  constexpr Index begin(Index i) const noexcept { return i * base + std::min(i, extra); }
  constexpr Index size(Index i) const noexcept { return base + (i < extra ? 1 : 0); }
};

template <SimdScalar T>
struct Blocking {
  static constexpr Index steps = 1024 / static_cast<Index>(sizeof(T));  // of k: a panel of b stays near L1
  static constexpr Index row_panels = 24;                               // of a: a block stays in L2
  static constexpr Index column_panels = 24;       // of b: packed at once, shared by all threads
  static constexpr Index task_products = 1 << 18;  // about 3 us: less is not handed over
  static constexpr Index tasks = 16;
  static constexpr Index few_row_panels = 12;  // b is read in place: packing it would cost more than it saves
  static constexpr Index few_column_panels = 6;  // a is read in place
};

/// One product as the loops below see it.
template <SimdScalar T>
struct Product {
  Index m, n, k;
  MatrixView<T> a, b;
  T* c;
  Index ldc;
  Epilogue<T> epilogue;
};

/// One tile; columns beyond `valid` are computed but neither read from nor written to c and the bias.
template <SimdScalar T>
void finish_tile(TileFunction<T> tile, Index k, const T* a, Index a_stride, const T* b, Index b_step, T* c,
                 Index ldc, Index rows, Index vectors, Index valid, const Epilogue<T>& epilogue) {
  if (valid == vectors * Tile<T>::width) {
    tile(k, a, a_stride, b, b_step, c, ldc, epilogue);
    return;
  }
  constexpr Index columns = Tile<T>::columns;
  alignas(64) T out[Tile<T>::rows * Tile<T>::columns] = {};
  alignas(64) T bias[Tile<T>::columns] = {};
  Epilogue<T> local = epilogue;
  if (epilogue.add)
    for (Index r = 0; r < rows; ++r) std::copy_n(c + r * ldc, valid, out + r * columns);
  if (epilogue.bias != nullptr) local.bias = std::copy_n(epilogue.bias, valid, bias) - valid;
  tile(k, a, a_stride, b, b_step, out, columns, local);
  for (Index r = 0; r < rows; ++r) std::copy_n(out + r * columns, valid, c + r * ldc);
}

/// The product for m, n, k >= 1. Only rows and columns of c are shared out, never k, and each element of c is
/// the same chain of operations in every tile: the bits depend on k alone.
template <SimdScalar T>
void multiply_blocked(const Product<T>& x) {
  using Block = Blocking<T>;
  constexpr Index width = Tile<T>::width;
  const Panels rows(x.m, Tile<T>::rows);
  const Panels columns((x.n + width - 1) / width, Tile<T>::vectors);  // in vectors
  const Panels steps(x.k, Block::steps);
  const Index ragged =
      x.n % width != 0 ? columns.count - 1 : -1;  // the panel that ends in a part of a vector

  const bool pack_b = x.b.col != 1 || rows.count > Block::few_row_panels;
  const bool pack_a = x.a.col != 1 && (x.a.row != 1 || columns.count > Block::few_column_panels);
  const bool k_contiguous = !pack_a && x.a.col == 1;
  const Index a_stride = k_contiguous ? x.a.row : x.a.col;

  const Index max_steps = steps.size(0);
  const Index chunk = std::min(columns.count, Block::column_panels);
  const Scratch<T> b_packed(pack_b        ? chunk * Tile<T>::columns * max_steps
                            : ragged >= 0 ? Tile<T>::columns * max_steps
                                          : 0);

  for (Index j_begin = 0; j_begin < columns.count; j_begin += chunk) {
    const Index j_end = std::min(columns.count, j_begin + chunk);
    for (Index s = 0; s < steps.count; ++s) {
      const Index p = steps.begin(s), k = steps.size(s);
      const T* b = x.b.data + p * x.b.row;
      const auto packed_at = [&](Index j) {
        return b_packed.data() + (pack_b ? (columns.begin(j) - columns.begin(j_begin)) * width * k : 0);
      };
      const auto pack_panel = [&](Index j) {
        const Index first = columns.begin(j) * width, size = columns.size(j) * width;
        pack_columns<T>(k, std::min(size, x.n - first), size, {b + first * x.b.col, x.b.row, x.b.col},
                        packed_at(j));
      };
      if (pack_b)
        parallel_for(j_end - j_begin, std::max<Index>(1, (1 << 15) / (k * Tile<T>::columns)),
                     [&](Index begin, Index end) {
                       for (Index j = begin; j < end; ++j) pack_panel(j_begin + j);
                     });
      else if (ragged >= j_begin && ragged < j_end)
        pack_panel(ragged);

      Epilogue<T> epilogue;
      epilogue.add = x.epilogue.add || s > 0;
      if (s + 1 == steps.count) {
        epilogue.bias = x.epilogue.bias;
        epilogue.activation = x.epilogue.activation;
      }

      const Index wanted = std::clamp<Index>(
          x.m * (j_end - j_begin) * Tile<T>::columns * k / Block::task_products, 1, Block::tasks);
      const Index least = (rows.count + Block::row_panels - 1) / Block::row_panels;
      const Index column_groups =
          std::clamp<Index>((wanted + least - 1) / least, 1, pack_a ? 2 : j_end - j_begin);
      const Index row_groups = std::clamp<Index>(wanted / column_groups, least, rows.count);
      const Panels group_rows(rows.count, (rows.count + row_groups - 1) / row_groups);
      const Panels group_columns(j_end - j_begin, (j_end - j_begin + column_groups - 1) / column_groups);

      const auto task = [&](Index g_rows, Index g_columns) {
        const Index i_begin = group_rows.begin(g_rows), i_end = i_begin + group_rows.size(g_rows);
        const Index first_row = rows.begin(i_begin);
        const Scratch<T> a_packed(pack_a ? (rows.begin(i_end) - first_row) * k : 0);
        if (pack_a)
          for (Index i = i_begin; i < i_end; ++i)
            pack_rows<T>(k, rows.size(i),
                         {x.a.data + rows.begin(i) * x.a.row + p * x.a.col, x.a.row, x.a.col},
                         a_packed.data() + (rows.begin(i) - first_row) * k);
        const Index j_first = j_begin + group_columns.begin(g_columns);
        for (Index j = j_first; j < j_first + group_columns.size(g_columns); ++j) {
          const Index first = columns.begin(j) * width, vectors = columns.size(j);
          const Index valid = std::min(vectors * width, x.n - first);
          const bool in_place = !pack_b && j != ragged;
          const T* b_panel = in_place ? b + first : packed_at(j);
          const Index b_step = in_place ? x.b.row : vectors * width;
          Epilogue<T> here = epilogue;
          if (here.bias != nullptr) here.bias += first;
          for (Index i = i_begin; i < i_end; ++i) {
            const Index row = rows.begin(i), size = rows.size(i);
            const T* a_panel =
                pack_a ? a_packed.data() + (row - first_row) * k : x.a.data + row * x.a.row + p * x.a.col;
            finish_tile<T>(
                k_contiguous ? tile_function<T, true>(size, vectors) : tile_function<T, false>(size, vectors),
                k, a_panel, pack_a ? size : a_stride, b_panel, b_step, x.c + row * x.ldc + first, x.ldc, size,
                vectors, valid, here);
          }
        }
      };
      const Index tasks = group_rows.count * group_columns.count;
      parallel_for(tasks, 1, [&](Index begin, Index end) {
        for (Index t = begin; t < end; ++t) task(t / group_columns.count, t % group_columns.count);
      });
    }
  }
}

}  // namespace wengert::inline WENGERT_ISA::kernels::detail
