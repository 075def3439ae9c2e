// Sums down the columns of a matrix, and the row loops that the normalisations share. Floor: kernels.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>

#include <wengert/kernels/parallel.hpp>
#include <wengert/kernels/stream.hpp>
#include <wengert/kernels/vec.hpp>
#include <wengert/memory/buffer.hpp>

namespace wengert::inline WENGERT_ISA::kernels {

/// A matrix whose rows are contiguous and `stride` elements apart.
template <class T>
struct RowMatrix {
  const T* data;
  Index stride;
};

/// Where a sum goes: stored, or added when `add`; nowhere when `data` is null.
template <class T>
struct SumTarget {
  T* data = nullptr;
  bool add = false;
};

namespace detail {

/// Loads and stores of a whole Vec, or of its first `n` lanes; `keep` makes the other lanes 0.
template <class T>
struct WholeVec {
  WENGERT_INLINE Vec<T> keep(Vec<T> v) const noexcept { return v; }
  WENGERT_INLINE Vec<T> load(const T* p) const noexcept { return Vec<T>::load(p); }
  WENGERT_INLINE void store(T* p, Vec<T> v) const noexcept { v.store(p); }
  WENGERT_INLINE void stream(T* p, Vec<T> v) const noexcept { detail::stream(p, v); }
};
template <class T>
struct PartVec {
  Index n;
  WENGERT_INLINE Vec<T> keep(Vec<T> v) const noexcept {
    alignas(64) T lanes[Vec<T>::lanes];
    v.store_aligned(lanes);
    return Vec<T>::load_partial(lanes, n);
  }
  WENGERT_INLINE Vec<T> load(const T* p) const noexcept { return Vec<T>::load_partial(p, n); }
  WENGERT_INLINE void store(T* p, Vec<T> v) const noexcept { v.store_partial(p, n); }
  WENGERT_INLINE void stream(T* p, Vec<T> v) const noexcept { store(p, v); }
};

/// Calls `f(io, i)` for the vectors that cover elements [begin, end); `io` is a WholeVec or, last, a PartVec.
template <class T, class F>
WENGERT_INLINE void over_vectors(Index begin, Index end, F f) {
  Index i = begin;
  for (; i + Vec<T>::lanes <= end; i += Vec<T>::lanes) f(WholeVec<T>{}, i);
  if constexpr (Vec<T>::lanes > 1)
    if (i < end) f(PartVec<T>{end - i}, i);
}

/// A matrix cut into blocks of rows and bands of columns, by its size alone.
struct Grid {
  static constexpr Index block_elements = 1 << 14, most_block_elements = 1 << 16, wanted_pieces = 64;
  static constexpr Index band_columns = 512, most_rows = 1024;
  Index rows, columns, band, block, bands, blocks;

  Grid(Index rows_, Index columns_)
      : rows(rows_),
        columns(columns_),
        band(std::clamp<Index>(columns_, 1, band_columns)),
        block(std::min(
            most_rows,
            std::clamp(rows_ * columns_ / wanted_pieces, block_elements, most_block_elements) / band)),
        bands((columns_ + band - 1) / band),
        blocks((rows_ + block - 1) / block) {}

  struct Piece {
    Index block, row_begin, row_end, column_begin, column_end;
  };
  /// Calls `f(piece)` for every block of every band, on all threads.
  template <class F>
  void for_each(F f) const {
    visit(f, false);
  }
  /// As above from the last piece to the first: what wrote the matrix ended there, and left it in the cache.
  /// Sums go backwards therefore, and the pass over the rows that follows forwards.
  template <class F>
  void for_each_backwards(F f) const {
    visit(f, true);
  }

 private:
  template <class F>
  void visit(F f, bool backwards) const {
    const Grid g = *this;
    const Index pieces = g.bands * g.blocks;
    parallel_for(pieces, 1, [=](Index begin, Index end) {
      for (Index i = begin; i < end; ++i) {
        const Index t = backwards ? pieces - 1 - i : i;
        const Index b = t / g.bands, c = t % g.bands;
        f(Piece{b, b * g.block, std::min(g.rows, (b + 1) * g.block), c * g.band,
                std::min(g.columns, (c + 1) * g.band)});
      }
    });
  }
};

/// sums[k][c] = the sum over the rows of one piece of term(io, r, c)[k]: four rows at a time, whose terms are
/// added in pairs.
template <int K, class T, class Term>
WENGERT_INLINE void sum_piece(const Grid::Piece& p, Term term, const std::array<T*, K>& sums) {
  using Terms = std::array<Vec<T>, K>;
  const auto put = [&](auto io, Index c, const Terms& t, bool first) WENGERT_INLINE_LAMBDA {
    for (std::size_t k = 0; k < K; ++k) io.store(sums[k] + c, first ? t[k] : io.load(sums[k] + c) + t[k]);
  };
  Index r = p.row_begin;
  for (; r + 4 <= p.row_end; r += 4)
    over_vectors<T>(p.column_begin, p.column_end, [&](auto io, Index c) WENGERT_INLINE_LAMBDA {
      const Terms t0 = term(io, r, c), t1 = term(io, r + 1, c);
      const Terms t2 = term(io, r + 2, c), t3 = term(io, r + 3, c);
      Terms t;
      for (std::size_t k = 0; k < K; ++k) t[k] = (t0[k] + t1[k]) + (t2[k] + t3[k]);
      put(io, c, t, r == p.row_begin);
    });
  for (; r < p.row_end; ++r)
    over_vectors<T>(p.column_begin, p.column_end, [&](auto io, Index c) WENGERT_INLINE_LAMBDA {
      put(io, c, term(io, r, c), r == p.row_begin);
    });
}

/// Adds the rows of partial sums (`blocks` rows, K * n columns) pairwise into the first, and that to `out`.
template <int K, class T>
void finish_sums(T* partial, Index blocks, Index n, const std::array<SumTarget<T>, K>& out) {
  for (Index step = 1; step < blocks; step *= 2)
    for (Index b = 0; b + step < blocks; b += 2 * step) {
      T *const to = partial + b * K * n, *const from = partial + (b + step) * K * n;
      over_vectors<T>(0, K * n,
                      [&](auto io, Index i) { io.store(to + i, io.load(to + i) + io.load(from + i)); });
    }
  for (std::size_t k = 0; k < K; ++k) {
    const SumTarget<T> o = out[k];
    const T* const from = partial + static_cast<Index>(k) * n;
    if (o.data != nullptr)
      over_vectors<T>(0, n, [&](auto io, Index i) {
        io.store(o.data + i, o.add ? io.load(o.data + i) + io.load(from + i) : io.load(from + i));
      });
  }
}

}  // namespace detail

/// Room that `column_sums` needs for K sums of a matrix of this size.
template <int K>
Index column_sums_scratch(Index rows, Index columns) {
  return std::max<Index>(1, detail::Grid(rows, columns).blocks) * K * columns;
}

/// out[k][c] = sum over r of term(io, r, c)[k], or out[k][c] + that, for every column c. `term` returns an
/// array of K Vecs for the columns from c on, which it reads by `io.load(pointer)`. Blocks of rows are summed
/// apart and then pairwise: the same bits at any number of threads.
template <int K, class T, class Term>
void column_sums(Index rows, Index columns, Term term, const std::array<SumTarget<T>, K>& out, T* scratch) {
  if (columns == 0) return;
  const detail::Grid grid(rows, columns);
  const Index blocks = std::max<Index>(1, grid.blocks);
  if (rows == 0) std::fill_n(scratch, K * columns, T(0));
  grid.for_each_backwards([=](const detail::Grid::Piece& p) {
    std::array<T*, K> to;
    for (std::size_t k = 0; k < K; ++k) to[k] = scratch + (p.block * K + static_cast<Index>(k)) * columns;
    detail::sum_piece<K, T>(p, term, to);
  });
  detail::finish_sums<K, T>(scratch, blocks, columns, out);
}
/// As above, with scratch of its own.
template <int K, class T, class Term>
void column_sums(Index rows, Index columns, Term term, const std::array<SumTarget<T>, K>& out) {
  const Scratch<T> scratch(column_sums_scratch<K>(rows, columns));
  column_sums<K, T>(rows, columns, term, out, scratch.data());
}

/// Calls `f(io, r, c, p)` for all rows r and vectors of columns c, where `p` holds the vectors at c of the
/// rows `parameters`, read once for four rows.
template <class T, std::size_t P, class F>
void for_rows_with(Index rows, Index columns, const std::array<const T*, P>& parameters, F f) {
  if (columns == 0) return;
  detail::Grid(rows, columns).for_each([=](const detail::Grid::Piece& piece) {
    const auto load = [&](auto io, Index c) WENGERT_INLINE_LAMBDA {
      std::array<Vec<T>, P> p;
      for (std::size_t k = 0; k < P; ++k) p[k] = io.load(parameters[k] + c);
      return p;
    };
    Index r = piece.row_begin;
    for (; r + 4 <= piece.row_end; r += 4)
      detail::over_vectors<T>(piece.column_begin, piece.column_end,
                              [&](auto io, Index c) WENGERT_INLINE_LAMBDA {
                                const std::array<Vec<T>, P> p = load(io, c);
                                f(io, r, c, p);
                                f(io, r + 1, c, p);
                                f(io, r + 2, c, p);
                                f(io, r + 3, c, p);
                              });
    for (; r < piece.row_end; ++r)
      detail::over_vectors<T>(piece.column_begin, piece.column_end,
                              [&](auto io, Index c) WENGERT_INLINE_LAMBDA { f(io, r, c, load(io, c)); });
    detail::stream_fence();
  });
}

}  // namespace wengert::inline WENGERT_ISA::kernels
