// Layer normalisation: each row by its own mean and variance, forward and backward in one visit to the row
// while it is in the cache. Floor: kernels.
#pragma once

#include <wengert/kernels/math_scalar.hpp>
#include <wengert/kernels/norm_columns.hpp>

namespace wengert::inline WENGERT_ISA::kernels {

/// Statistics of one row; normalised x is (x - mean) * inverse_std + rest, where `rest` makes up for the
/// rounding of mean.
template <class T>
struct RowStats {
  T mean, inverse_std, rest;
};

namespace detail {

inline constexpr Index row_elements_per_task = 1 << 14;

/// Sums of term(io, i)[k] over the elements i of a row, in runs of at most 4096.
template <int K, class T, class Term>
WENGERT_INLINE std::array<T, K> sum_row(Index n, Term term) {
  using V = Vec<T>;
  constexpr Index lanes = V::lanes, run = 4096;
  std::array<V, K> total;
  for (V& t : total) t = V(T(0));
  for (Index begin = 0; begin < n; begin += run) {
    const Index end = std::min(n, begin + run);
    std::array<V, K> even, odd;
    for (std::size_t k = 0; k < K; ++k) even[k] = odd[k] = V(T(0));
    Index i = begin;
    for (; i + 4 * lanes <= end; i += 4 * lanes) {
      const auto t0 = term(WholeVec<T>{}, i), t1 = term(WholeVec<T>{}, i + lanes);
      const auto t2 = term(WholeVec<T>{}, i + 2 * lanes), t3 = term(WholeVec<T>{}, i + 3 * lanes);
      for (std::size_t k = 0; k < K; ++k) {
        even[k] += t0[k] + t1[k];
        odd[k] += t2[k] + t3[k];
      }
    }
    over_vectors<T>(i, end, [&](auto io, Index j) WENGERT_INLINE_LAMBDA {
      const auto t = term(io, j);
      for (std::size_t k = 0; k < K; ++k) even[k] += io.keep(t[k]);
    });
    for (std::size_t k = 0; k < K; ++k) total[k] += even[k] + odd[k];
  }
  std::array<T, K> sums;
  for (std::size_t k = 0; k < K; ++k) sums[k] = hsum(total[k]);
  return sums;
}

template <class T>
WENGERT_INLINE RowStats<T> row_stats(const T* x, Index n, T share, T eps) {
  using V = Vec<T>;
  const T mean = sum_row<1, T>(n, [=](auto io, Index i)
                                      WENGERT_INLINE_LAMBDA { return std::array<V, 1>{io.load(x + i)}; })[0] *
                 share;
  const V center(mean);
  const auto [sum, squares] = sum_row<2, T>(n, [=](auto io, Index i) WENGERT_INLINE_LAMBDA {
    const V d = io.load(x + i) - center;
    return std::array<V, 2>{d, d * d};
  });
  const T offset = sum * share;
  const T variance = (squares - sum * offset) * share;
  const T inverse_std = T(1) / static_cast<T>(sqrt(static_cast<T>(variance + eps)));
  return {mean, inverse_std, T(T(0) - offset * inverse_std)};
}

/// A row of n values: `given`, or `value` n times when that is null.
template <class T>
class RowOr {
 public:
  RowOr(const T* given, Index n, T value) : scratch_(given != nullptr ? 0 : n), data_(given) {
    if (given != nullptr) return;
    std::fill_n(scratch_.data(), n, value);
    data_ = scratch_.data();
  }
  const T* data() const noexcept { return data_; }

 private:
  Scratch<T> scratch_;
  const T* data_;
};

}  // namespace detail

/// y = normalised row of x * weight + bias for `rows` rows of n elements; weight and bias may be null. Keeps
/// the statistics of every row. y's rows are contiguous, n apart.
template <class T>
void layer_norm(Index rows, Index n, RowMatrix<T> x, const T* weight, const T* bias, T eps,
                RowStats<T>* stats, T* y) {
  using V = Vec<T>;
  if (n == 0) return;
  const detail::RowOr<T> slopes(weight, n, T(1)), shifts(bias, n, T(0));
  const T *const w = slopes.data(), *const b = shifts.data();
  const T share = T(1) / T(n);
  parallel_for(rows, std::max<Index>(1, detail::row_elements_per_task / n), [=](Index begin, Index end) {
    for (Index r = begin; r < end; ++r) {
      const T* const from = x.data + r * x.stride;
      T* const to = y + r * n;
      const RowStats<T> s = detail::row_stats(from, n, share, eps);
      stats[r] = s;
      const V mean(s.mean), inverse_std(s.inverse_std), rest(s.rest);
      detail::over_vectors<T>(0, n, [=](auto io, Index i) WENGERT_INLINE_LAMBDA {
        const V normalised = fma(io.load(from + i) - mean, inverse_std, rest);
        io.store(to + i, fma(normalised, io.load(w + i), io.load(b + i)));
      });
    }
  });
}

namespace detail {

/// One row of backward: adds dy * normalised x to dw and dy to db when `Sums`, and writes dx unless it is
/// null.
template <bool Sums, class T>
WENGERT_INLINE void layer_norm_row_vjp(Index n, const T* x, RowStats<T> s, const T* w, const T* dy, T share,
                                       T* dw, T* db, T* dx, bool add) {
  using V = Vec<T>;
  const V mean(s.mean), inverse_std(s.inverse_std), rest(s.rest);
  const auto [sum, product] = sum_row<2, T>(n, [=](auto io, Index i) WENGERT_INLINE_LAMBDA {
    const V g = io.load(dy + i), normalised = fma(io.load(x + i) - mean, inverse_std, rest);
    if constexpr (Sums) {
      io.store(dw + i, fma(g, normalised, io.load(dw + i)));
      io.store(db + i, io.load(db + i) + g);
    }
    const V gw = g * io.load(w + i);
    return std::array<V, 2>{gw, gw * normalised};
  });
  if (dx == nullptr) return;
  const T mean_product = product * share;
  const V of_x(T(T(0) - s.inverse_std * s.inverse_std * mean_product));
  const V constant(T(T(0) - s.inverse_std * (sum * share + s.rest * mean_product)));
  over_vectors<T>(0, n, [=](auto io, Index i) WENGERT_INLINE_LAMBDA {
    const V g = io.load(dy + i) * io.load(w + i);
    const V d = fma(inverse_std, g, fma(io.load(x + i) - mean, of_x, constant));
    io.store(dx + i, add ? io.load(dx + i) + d : d);
  });
}

}  // namespace detail

/// Backward of `layer_norm`, one visit to each row:
///   dx = inverse_std * (dy * weight - mean(dy * weight) - normalised x * mean(dy * weight * normalised x))
///   dweight = sum of dy * normalised x over rows, dbias = sum of dy over rows
/// each stored, or added when its `add`; a null `data` is not wanted. dx may be dy itself. Blocks of rows are
/// summed apart and then pairwise.
template <class T>
void layer_norm_vjp(Index rows, Index n, RowMatrix<T> x, const RowStats<T>* stats, const T* weight,
                    const T* dy, SumTarget<T> dx, SumTarget<T> dweight, SumTarget<T> dbias) {
  if (n == 0) return;
  constexpr Index wanted_blocks = 64, most_rows = 1024;
  const bool sums = dweight.data != nullptr || dbias.data != nullptr;
  const detail::RowOr<T> slopes(weight, n, T(1));
  const T* const w = slopes.data();
  const T share = T(1) / T(n);
  const Index block =
      std::clamp<Index>(std::max(detail::row_elements_per_task / n, rows / wanted_blocks), 1, most_rows);
  const Index blocks = std::max<Index>(1, (rows + block - 1) / block);
  const Scratch<T> scratch(sums ? 2 * blocks * n : 0);
  T* const partial = scratch.data();
  if (sums && rows == 0) std::fill_n(partial, 2 * n, T(0));
  parallel_for(rows, block, [=](Index begin, Index end) {
    T* const dw = sums ? partial + begin / block * 2 * n : nullptr;
    if (sums) std::fill_n(dw, 2 * n, T(0));
    for (Index r = begin; r < end; ++r) {
      const T *const xr = x.data + r * x.stride, *const dyr = dy + r * n;
      T* const dxr = dx.data != nullptr ? dx.data + r * n : nullptr;
      if (sums)
        detail::layer_norm_row_vjp<true>(n, xr, stats[r], w, dyr, share, dw, dw + n, dxr, dx.add);
      else
        detail::layer_norm_row_vjp<false, T>(n, xr, stats[r], w, dyr, share, nullptr, nullptr, dxr, dx.add);
    }
  });
  if (sums) detail::finish_sums<2, T>(partial, blocks, n, {dweight, dbias});
}

}  // namespace wengert::inline WENGERT_ISA::kernels
