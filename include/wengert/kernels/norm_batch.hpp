// Batch normalisation over the last axis: statistics of each column in one read of memory, then one pass that
// normalises; backward in two. Floor: kernels.
#pragma once

#include <wengert/kernels/norm_columns.hpp>

namespace wengert::inline WENGERT_ISA::kernels {

/// Statistics of the columns, three rows of `columns` values in one block. The normalised x is
/// (x - mean) * inverse_std + rest, where `rest` makes up for the rounding of mean.
template <class T>
struct ColumnStats {
  T *mean, *inverse_std, *rest;

  ColumnStats(T* block, Index columns)
      : mean(block), inverse_std(block + columns), rest(block + 2 * columns) {}
};

namespace detail {

/// Of one piece: shift[c] approximates the mean, offset[c] is the mean less shift, squares[c] the sum of
/// squared deviations from the mean.
template <class T>
void column_moments(const Grid::Piece& p, RowMatrix<T> x, T* shift, T* offset, T* squares) {
  using V = Vec<T>;
  const V share(T(1) / T(p.row_end - p.row_begin));
  sum_piece<1, T>(p,
                  [=](auto io, Index r, Index c)
                      WENGERT_INLINE_LAMBDA { return std::array<V, 1>{io.load(x.data + r * x.stride + c)}; },
                  {shift});
  over_vectors<T>(p.column_begin, p.column_end,
                  [=](auto io, Index c) { io.store(shift + c, io.load(shift + c) * share); });
  sum_piece<2, T>(p,
                  [=](auto io, Index r, Index c) WENGERT_INLINE_LAMBDA {
                    const V d = io.load(x.data + r * x.stride + c) - io.load(shift + c);
                    return std::array<V, 2>{d, d * d};
                  },
                  {offset, squares});
  over_vectors<T>(p.column_begin, p.column_end, [=](auto io, Index c) {
    const V sum = io.load(offset + c), mean = sum * share;
    io.store(squares + c, io.load(squares + c) - sum * mean);
    io.store(offset + c, mean);
  });
}

/// Takes the moments of a block of `more` rows into those of the `count` rows before it.
template <class T>
void combine_moments(Index columns, Index count, Index more, T* shift, T* offset, T* squares,
                     const T* shift_b, const T* offset_b, const T* squares_b) {
  using V = Vec<T>;
  const T weight = T(more) / T(count + more);
  const V share(weight), both(weight * T(count));
  over_vectors<T>(0, columns, [=](auto io, Index c) {
    const V mean = io.load(offset + c);
    const V d = (io.load(shift_b + c) - io.load(shift + c)) + (io.load(offset_b + c) - mean);
    io.store(offset + c, mean + d * share);
    io.store(squares + c, (io.load(squares + c) + io.load(squares_b + c)) + d * d * both);
  });
}

}  // namespace detail

namespace detail {

/// Room that `column_moments_of` needs for a matrix of this size.
inline Index moments_scratch(Index rows, Index columns) { return 3 * Grid(rows, columns).blocks * columns; }

/// Moments of every column of x, in the first 3 * columns values of `moments`: shift, offset and squares, as
/// of `column_moments`. rows > 0. Each block of rows takes two passes while it is in the cache; blocks
/// combine in order by Chan's formula, so a large mean costs no accuracy.
template <class T>
void column_moments_of(Index rows, Index columns, RowMatrix<T> x, T* moments) {
  const Grid grid(rows, columns);
  grid.for_each_backwards([=](const Grid::Piece& p) {
    T* const m = moments + 3 * p.block * columns;
    column_moments(p, x, m, m + columns, m + 2 * columns);
  });
  for (Index b = 1; b < grid.blocks; ++b) {
    const T* const m = moments + 3 * b * columns;
    const Index before = b * grid.block;
    combine_moments(columns, before, std::min(rows - before, grid.block), moments, moments + columns,
                    moments + 2 * columns, m, m + columns, m + 2 * columns);
  }
}

}  // namespace detail

/// Mean, inverse standard deviation (of the biased variance plus eps) and rest of every column of x, and its
/// biased variance. rows > 0.
template <class T>
void batch_stats(Index rows, Index columns, RowMatrix<T> x, T eps, ColumnStats<T> stats, T* variance) {
  using V = Vec<T>;
  if (columns == 0) return;
  const Scratch<T> scratch(detail::moments_scratch(rows, columns));
  detail::column_moments_of(rows, columns, x, scratch.data());
  const T *const shift = scratch.data(), *const offset = shift + columns, *const squares = offset + columns;
  const V share(T(1) / T(rows));
  detail::over_vectors<T>(0, columns, [=](auto io, Index c) {
    const V s = io.load(shift + c), o = io.load(offset + c), mean = s + o;
    const V var = io.load(squares + c) * share, inverse_std = V(T(1)) / sqrt(var + V(eps));
    io.store(stats.mean + c, mean);
    io.store(stats.inverse_std + c, inverse_std);
    io.store(stats.rest + c, ((mean - s) - o) * inverse_std);
    io.store(variance + c, var);
  });
}

/// Statistics for evaluation, from running ones.
template <class T>
void stats_from_running(Index columns, const T* mean, const T* variance, T eps, ColumnStats<T> stats) {
  using V = Vec<T>;
  detail::over_vectors<T>(0, columns, [=](auto io, Index c) {
    io.store(stats.mean + c, io.load(mean + c));
    io.store(stats.inverse_std + c, V(T(1)) / sqrt(io.load(variance + c) + V(eps)));
    io.store(stats.rest + c, V(T(0)));
  });
}

/// running += momentum * (scale * value - running), for `running` of any stride.
template <class T>
void update_running(Index columns, const T* value, T scale, T momentum, T* running, Index stride) {
  for (Index c = 0; c < columns; ++c) {
    T& r = running[c * stride];
    r = (T(1) - momentum) * r + momentum * (scale * value[c]);
  }
}

/// What follows the normalisation in the same pass.
enum class NormEnd { none, relu, add_relu };

/// The two rows by which normalised x becomes y: y = (x - mean) * slope + shift.
template <class T>
struct NormLine {
  T *slope, *shift;
};

/// weight and bias may be null.
template <class T>
void norm_line(Index columns, ColumnStats<T> stats, const T* weight, const T* bias, NormLine<T> line) {
  using V = Vec<T>;
  detail::over_vectors<T>(0, columns, [=](auto io, Index c) {
    const V w = weight != nullptr ? io.load(weight + c) : V(T(1));
    const V b = bias != nullptr ? io.load(bias + c) : V(T(0));
    io.store(line.slope + c, io.load(stats.inverse_std + c) * w);
    io.store(line.shift + c, fma(io.load(stats.rest + c), w, b));
  });
}

/// y = (x - mean) * slope + shift; then max(y, 0), or max(y + residual, 0). NaN stays NaN.
template <NormEnd End, class T>
void normalise(Index rows, Index columns, RowMatrix<T> x, const T* mean, NormLine<T> line,
               RowMatrix<T> residual, T* y) {
  using V = Vec<T>;
  const bool past_cache = detail::streams(rows, columns, y);
  for_rows_with<T, 3>(rows, columns, {mean, line.slope, line.shift},
                      [=](auto io, Index r, Index c, const std::array<V, 3>& p) WENGERT_INLINE_LAMBDA {
                        V v = fma(io.load(x.data + r * x.stride + c) - p[0], p[1], p[2]);
                        if constexpr (End == NormEnd::add_relu)
                          v += io.load(residual.data + r * residual.stride + c);
                        if constexpr (End != NormEnd::none) v = max_or_second(V(T(0)), v);
                        T* const to = y + r * columns + c;
                        if (past_cache)
                          io.stream(to, v);
                        else
                          io.store(to, v);
                      });
}

}  // namespace wengert::inline WENGERT_ISA::kernels
