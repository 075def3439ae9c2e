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

/// Mean, inverse standard deviation (of the biased variance plus eps) and rest of every column of x, and its
/// biased variance. rows > 0. Each block of rows takes two passes while it is in the cache; blocks combine in
/// order by Chan's formula, so a large mean costs no accuracy.
template <class T>
void batch_stats(Index rows, Index columns, RowMatrix<T> x, T eps, ColumnStats<T> stats, T* variance) {
  using V = Vec<T>;
  if (columns == 0) return;
  const detail::Grid grid(rows, columns);
  const Scratch<T> scratch(3 * grid.blocks * columns);
  T* const moments = scratch.data();
  grid.for_each([=](const detail::Grid::Piece& p) {
    T* const m = moments + 3 * p.block * columns;
    detail::column_moments(p, x, m, m + columns, m + 2 * columns);
  });
  T *const shift = moments, *const offset = moments + columns, *const squares = moments + 2 * columns;
  for (Index b = 1; b < grid.blocks; ++b) {
    const T* const m = moments + 3 * b * columns;
    const Index before = b * grid.block;
    detail::combine_moments(columns, before, std::min(rows - before, grid.block), shift, offset, squares, m,
                            m + columns, m + 2 * columns);
  }
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

/// y = normalised x * weight + bias; weight and bias may be null.
template <class T>
void batch_norm(Index rows, Index columns, RowMatrix<T> x, ColumnStats<T> stats, const T* weight,
                const T* bias, T* y) {
  using V = Vec<T>;
  const Scratch<T> scratch(2 * columns);
  T *const slope = scratch.data(), *const shift = scratch.data() + columns;
  detail::over_vectors<T>(0, columns, [=](auto io, Index c) {
    const V w = weight != nullptr ? io.load(weight + c) : V(T(1));
    const V b = bias != nullptr ? io.load(bias + c) : V(T(0));
    io.store(slope + c, io.load(stats.inverse_std + c) * w);
    io.store(shift + c, fma(io.load(stats.rest + c), w, b));
  });
  for_rows_with<T, 3>(rows, columns, {stats.mean, slope, shift},
                      [=](auto io, Index r, Index c, const std::array<V, 3>& p) WENGERT_INLINE_LAMBDA {
                        const V d = io.load(x.data + r * x.stride + c) - p[0];
                        io.store(y + r * columns + c, fma(d, p[1], p[2]));
                      });
}

/// Sums down the columns: of dy * normalised x, and of dy.
template <class T>
void batch_norm_sums(Index rows, Index columns, RowMatrix<T> x, ColumnStats<T> stats, const T* dy, T* dy_x,
                     T* dy_sum) {
  using V = Vec<T>;
  const T* const mean = stats.mean;
  column_sums<2, T>(rows, columns,
                    [=](auto io, Index r, Index c) WENGERT_INLINE_LAMBDA {
                      const V g = io.load(dy + r * columns + c);
                      const V d = io.load(x.data + r * x.stride + c) - io.load(mean + c);
                      return std::array<V, 2>{g * d, g};
                    },
                    {SumTarget<T>{dy_x, false}, SumTarget<T>{dy_sum, false}});
  detail::over_vectors<T>(0, columns, [=](auto io, Index c) {
    io.store(dy_x + c, fma(io.load(dy_x + c), io.load(stats.inverse_std + c),
                           io.load(dy_sum + c) * io.load(stats.rest + c)));
  });
}

/// dx = inverse_std * weight * (dy - mean(dy) - normalised x * mean(dy * normalised x)), or dx + that. `dy_x`
/// and `dy_sum` are the sums of `batch_norm_sums`; dx may be dy itself.
template <class T>
void batch_norm_vjp(Index rows, Index columns, RowMatrix<T> x, ColumnStats<T> stats, const T* weight,
                    const T* dy, const T* dy_x, const T* dy_sum, T* dx, bool add) {
  using V = Vec<T>;
  const Scratch<T> scratch(3 * columns);
  T *const of_dy = scratch.data(), *const of_x = of_dy + columns, *const constant = of_x + columns;
  const V share(T(1) / T(rows));
  detail::over_vectors<T>(0, columns, [=](auto io, Index c) {
    const V s = io.load(stats.inverse_std + c), rest = io.load(stats.rest + c);
    const V a = weight != nullptr ? s * io.load(weight + c) : s;
    const V m = io.load(dy_x + c) * share;
    io.store(of_dy + c, a);
    io.store(of_x + c, -(a * s * m));
    io.store(constant + c, -(a * fma(rest, m, io.load(dy_sum + c) * share)));
  });
  for_rows_with<T, 4>(rows, columns, {stats.mean, of_dy, of_x, constant},
                      [=](auto io, Index r, Index c, const std::array<V, 4>& p) WENGERT_INLINE_LAMBDA {
                        const V d = io.load(x.data + r * x.stride + c) - p[0];
                        const V g = fma(p[1], io.load(dy + r * columns + c), fma(d, p[2], p[3]));
                        T* const to = dx + r * columns + c;
                        io.store(to, add ? io.load(to) + g : g);
                      });
}

/// dx = dy * inverse_std * weight, or dx + that: the statistics are constants. dx may be dy itself.
template <class T>
void batch_norm_eval_vjp(Index rows, Index columns, ColumnStats<T> stats, const T* weight, const T* dy, T* dx,
                         bool add) {
  using V = Vec<T>;
  const Scratch<T> scratch(columns);
  T* const slope = scratch.data();
  detail::over_vectors<T>(0, columns, [=](auto io, Index c) {
    const V s = io.load(stats.inverse_std + c);
    io.store(slope + c, weight != nullptr ? s * io.load(weight + c) : s);
  });
  for_rows_with<T, 1>(rows, columns, {slope},
                      [=](auto io, Index r, Index c, const std::array<V, 1>& p) WENGERT_INLINE_LAMBDA {
                        T* const to = dx + r * columns + c;
                        const V g = io.load(dy + r * columns + c) * p[0];
                        io.store(to, add ? io.load(to) + g : g);
                      });
}

}  // namespace wengert::inline WENGERT_ISA::kernels
