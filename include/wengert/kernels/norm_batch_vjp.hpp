// Backward of batch normalisation, and of relu or a residual sum and relu after it: one pass that sums, one
// that writes dx. Floor: kernels.
#pragma once

#include <wengert/kernels/norm_batch.hpp>

namespace wengert::inline WENGERT_ISA::kernels {

/// Where relu lets dy through. `relu` computes the sign of y from x again, to the bit as forward did;
/// `add_relu` reads y, which holds the residual.
template <class T>
struct NormMask {
  const T *slope = nullptr, *shift = nullptr;  // of the NormLine; for NormEnd::relu
  const T* y = nullptr;                        // for NormEnd::add_relu
};

namespace detail {

/// dy where y > 0 or NaN, else 0; d = x - mean, and y[at] is the element.
template <NormEnd End, class T, class Io>
WENGERT_INLINE Vec<T> masked(Io io, Vec<T> dy, Vec<T> d, Vec<T> slope, Vec<T> shift, const T* y, Index at) {
  using V = Vec<T>;
  if constexpr (End == NormEnd::relu) return where(fma(d, slope, shift) <= V(T(0)), V(T(0)), dy);
  if constexpr (End == NormEnd::add_relu) return where(io.load(y + at) <= V(T(0)), V(T(0)), dy);
  return dy;
}

}  // namespace detail

/// Sums down the columns: of g * normalised x, and of g, where g is dy behind the mask. Also writes or adds g
/// to `dresidual`, unless null; that may be dy itself. `scratch` is room for column_sums_scratch<2>.
template <NormEnd End, class T>
void batch_norm_sums(Index rows, Index columns, RowMatrix<T> x, ColumnStats<T> stats, NormMask<T> mask,
                     const T* dy, SumTarget<T> dresidual, T* dy_x, T* dy_sum, T* scratch) {
  using V = Vec<T>;
  const T* const mean = stats.mean;
  column_sums<2, T>(
      rows, columns,
      [=](auto io, Index r, Index c) WENGERT_INLINE_LAMBDA {
        const Index at = r * columns + c;
        const V d = io.load(x.data + r * x.stride + c) - io.load(mean + c);
        V slope(T(0)), shift(T(0));
        if constexpr (End == NormEnd::relu) slope = io.load(mask.slope + c), shift = io.load(mask.shift + c);
        const V g = detail::masked<End>(io, io.load(dy + at), d, slope, shift, mask.y, at);
        if constexpr (End == NormEnd::add_relu)
          if (dresidual.data != nullptr) {
            T* const to = dresidual.data + at;
            io.store(to, dresidual.add ? io.load(to) + g : g);
          }
        return std::array<V, 2>{g * d, g};
      },
      {SumTarget<T>{dy_x, false}, SumTarget<T>{dy_sum, false}}, scratch);
  detail::over_vectors<T>(0, columns, [=](auto io, Index c) {
    io.store(dy_x + c, fma(io.load(dy_x + c), io.load(stats.inverse_std + c),
                           io.load(dy_sum + c) * io.load(stats.rest + c)));
  });
}

/// dresidual = dy where y > 0 or NaN and 0 elsewhere, or dresidual + that; it may be dy itself.
template <class T>
void relu_vjp(Index n, const T* y, const T* dy, SumTarget<T> dresidual) {
  using V = Vec<T>;
  parallel_for(n, detail::Grid::block_elements, [=](Index begin, Index end) {
    detail::over_vectors<T>(begin, end, [=](auto io, Index i) WENGERT_INLINE_LAMBDA {
      const V g = where(io.load(y + i) <= V(T(0)), V(T(0)), io.load(dy + i));
      T* const to = dresidual.data + i;
      io.store(to, dresidual.add ? io.load(to) + g : g);
    });
  });
}

/// dx = g * of_dy + (x - mean) * of_x + constant for rows of coefficients, or dx + that; dx may be dy itself.
template <class T>
struct NormSlopes {
  T *of_dy, *of_x, *constant;
  NormSlopes(T* block, Index columns) : of_dy(block), of_x(block + columns), constant(block + 2 * columns) {}
};
template <NormEnd End, class T>
void normalise_vjp(Index rows, Index columns, RowMatrix<T> x, const T* mean, NormSlopes<T> s,
                   NormMask<T> mask, const T* dy, SumTarget<T> dx) {
  using V = Vec<T>;
  const bool past_cache = !dx.add && dx.data != dy && detail::streams(rows, columns, dx.data);
  const auto write = [=](auto io, Index r, Index c, V mean_c, V of_dy, V of_x, V constant, V slope, V shift)
                         WENGERT_INLINE_LAMBDA {
                           const Index at = r * columns + c;
                           const V d = io.load(x.data + r * x.stride + c) - mean_c;
                           const V g = detail::masked<End>(io, io.load(dy + at), d, slope, shift, mask.y, at);
                           const V v = fma(of_dy, g, fma(d, of_x, constant));
                           T* const to = dx.data + at;
                           if (past_cache)
                             io.stream(to, v);
                           else
                             io.store(to, dx.add ? io.load(to) + v : v);
                         };
  if constexpr (End == NormEnd::relu)
    for_rows_with<T, 6>(rows, columns, {mean, s.of_dy, s.of_x, s.constant, mask.slope, mask.shift},
                        [=](auto io, Index r, Index c, const std::array<V, 6>& p)
                            WENGERT_INLINE_LAMBDA { write(io, r, c, p[0], p[1], p[2], p[3], p[4], p[5]); });
  else
    for_rows_with<T, 4>(rows, columns, {mean, s.of_dy, s.of_x, s.constant},
                        [=](auto io, Index r, Index c, const std::array<V, 4>& p) WENGERT_INLINE_LAMBDA {
                          write(io, r, c, p[0], p[1], p[2], p[3], V(T(0)), V(T(0)));
                        });
}

/// dx = inverse_std * weight * (g - mean(g) - normalised x * mean(g * normalised x)), or dx + that. `dy_x`
/// and `dy_sum` are the sums of `batch_norm_sums`; dx may be dy itself.
template <NormEnd End, class T>
void batch_norm_vjp(Index rows, Index columns, RowMatrix<T> x, ColumnStats<T> stats, const T* weight,
                    NormMask<T> mask, const T* dy, const T* dy_x, const T* dy_sum, SumTarget<T> dx) {
  using V = Vec<T>;
  const Scratch<T> scratch(3 * columns);
  const NormSlopes<T> slopes(scratch.data(), columns);
  const V share(T(1) / T(rows));
  detail::over_vectors<T>(0, columns, [=](auto io, Index c) {
    const V s = io.load(stats.inverse_std + c), rest = io.load(stats.rest + c);
    const V a = weight != nullptr ? s * io.load(weight + c) : s;
    const V m = io.load(dy_x + c) * share;
    io.store(slopes.of_dy + c, a);
    io.store(slopes.of_x + c, -(a * s * m));
    io.store(slopes.constant + c, -(a * fma(rest, m, io.load(dy_sum + c) * share)));
  });
  normalise_vjp<End>(rows, columns, x, stats.mean, slopes, mask, dy, dx);
}

/// dx = g * inverse_std * weight, or dx + that: the statistics are constants. dx may be dy itself.
template <NormEnd End, class T>
void batch_norm_eval_vjp(Index rows, Index columns, RowMatrix<T> x, ColumnStats<T> stats, const T* weight,
                         NormMask<T> mask, const T* dy, SumTarget<T> dx) {
  using V = Vec<T>;
  const Scratch<T> scratch(columns);
  T* const of_dy = scratch.data();
  detail::over_vectors<T>(0, columns, [=](auto io, Index c) {
    const V s = io.load(stats.inverse_std + c);
    io.store(of_dy + c, weight != nullptr ? s * io.load(weight + c) : s);
  });
  const auto write = [=](auto io, Index at, V g) WENGERT_INLINE_LAMBDA {
    T* const to = dx.data + at;
    io.store(to, dx.add ? io.load(to) + g : g);
  };
  if constexpr (End == NormEnd::relu)
    for_rows_with<T, 4>(
        rows, columns, {of_dy, stats.mean, mask.slope, mask.shift},
        [=](auto io, Index r, Index c, const std::array<V, 4>& p) WENGERT_INLINE_LAMBDA {
          const Index at = r * columns + c;
          const V d = io.load(x.data + r * x.stride + c) - p[1];
          write(io, at, p[0] * detail::masked<End, T>(io, io.load(dy + at), d, p[2], p[3], nullptr, at));
        });
  else
    for_rows_with<T, 1>(
        rows, columns, {of_dy},
        [=](auto io, Index r, Index c, const std::array<V, 1>& p) WENGERT_INLINE_LAMBDA {
          const Index at = r * columns + c;
          const V zero(T(0));
          write(io, at, p[0] * detail::masked<End>(io, io.load(dy + at), zero, zero, zero, mask.y, at));
        });
}

}  // namespace wengert::inline WENGERT_ISA::kernels
