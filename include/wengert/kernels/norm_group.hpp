// Group and instance normalisation with channels last: the columns of each sample are summed as those of
// batch normalisation are, and the sums of a group's columns put together. Floor: kernels.
#pragma once

#include <wengert/kernels/norm_batch_vjp.hpp>
#include <wengert/kernels/norm_layer.hpp>

namespace wengert::inline WENGERT_ISA::kernels {

/// Sizes of a group normalisation: x is (samples, rows, columns), and `groups` divides columns.
struct GroupNormSizes {
  Index samples, rows, columns, groups;

  Index group() const noexcept { return columns / groups; }
  bool empty() const noexcept { return samples == 0 || rows == 0 || columns == 0; }
};

namespace detail {

/// Calls `f(sample, scratch)` for every sample, on threads of their own where there are enough samples, and
/// otherwise in turn, each on all threads. Either way computes the same.
template <class T, class F>
void for_samples(const GroupNormSizes& z, Index scratch_size, F f) {
  if (z.samples >= 2 * num_threads()) {
    const Index grain = std::max<Index>(1, row_elements_per_task / std::max<Index>(1, z.rows * z.columns));
    parallel_for_scratch<T>(z.samples, grain, scratch_size, [=](Index begin, Index end, T* scratch) {
      for (Index n = begin; n < end; ++n) f(n, scratch);
    });
  } else {
    const Scratch<T> scratch(scratch_size);
    for (Index n = 0; n < z.samples; ++n) f(n, scratch.data());
  }
}

/// Statistics of one group from the moments of its columns, of `rows` values each.
template <class T>
RowStats<T> group_stats(Index rows, Index columns, const T* shift, const T* offset, const T* squares, T eps) {
  const T pivot = shift[0], share = T(1) / T(columns);
  T sum(0);
  for (Index c = 0; c < columns; ++c) sum += (shift[c] - pivot) + offset[c];
  const T delta = sum * share;
  T within(0), between(0);
  for (Index c = 0; c < columns; ++c) {
    const T d = ((shift[c] - pivot) + offset[c]) - delta;
    within += squares[c];
    between += d * d;
  }
  const T variance = (within + between * T(rows)) / T(rows * columns);
  using std::sqrt;
  const T mean = pivot + delta, inverse_std = T(1) / static_cast<T>(sqrt(static_cast<T>(variance + eps)));
  return {mean, inverse_std, static_cast<T>(((mean - pivot) - delta) * inverse_std)};
}

/// The statistics of every column of a sample, from those of its groups.
template <class T>
void expand_stats(const GroupNormSizes& z, const RowStats<T>* groups, ColumnStats<T> stats) {
  for (Index g = 0, c = 0; g < z.groups; ++g)
    for (const Index end = c + z.group(); c < end; ++c) {
      stats.mean[c] = groups[g].mean;
      stats.inverse_std[c] = groups[g].inverse_std;
      stats.rest[c] = groups[g].rest;
    }
}

}  // namespace detail

/// y = normalised x * weight + bias, by the mean and variance of each group of columns of each sample; weight
/// and bias, of one value a column, may be null. Keeps (samples, groups) statistics.
template <class T>
void group_norm(const GroupNormSizes& z, RowMatrix<T> x, const T* weight, const T* bias, T eps,
                RowStats<T>* stats, T* y) {
  if (z.empty()) return;
  const Index n = z.columns, moments_size = detail::moments_scratch(z.rows, n);
  detail::for_samples<T>(z, moments_size + 5 * n, [=](Index sample, T* scratch) {
    const RowMatrix<T> from{x.data + sample * z.rows * x.stride, x.stride};
    T *const moments = scratch, *const block = scratch + moments_size;
    RowStats<T>* const groups = stats + sample * z.groups;
    detail::column_moments_of(z.rows, n, from, moments);
    for (Index g = 0; g < z.groups; ++g) {
      const T* const m = moments + g * z.group();
      groups[g] = detail::group_stats(z.rows, z.group(), m, m + n, m + 2 * n, eps);
    }
    const ColumnStats<T> columns(block, n);
    const NormLine<T> line{block + 3 * n, block + 4 * n};
    detail::expand_stats(z, groups, columns);
    norm_line(n, columns, weight, bias, line);
    normalise<NormEnd::none>(z.rows, n, from, columns.mean, line, RowMatrix<T>{}, y + sample * z.rows * n);
  });
}

/// Backward of `group_norm`, one visit to each sample:
///   dx = inverse_std * (dy * weight - mean(dy * weight) - normalised x * mean(dy * weight * normalised x))
///   dweight = sum of dy * normalised x over samples and rows, dbias = sum of dy over samples and rows
/// each stored, or added when its `add`; a null `data` is not wanted. dx may be dy itself. Samples are summed
/// apart and then pairwise.
template <class T>
void group_norm_vjp(const GroupNormSizes& z, RowMatrix<T> x, const RowStats<T>* stats, const T* weight,
                    const T* dy, SumTarget<T> dx, SumTarget<T> dweight, SumTarget<T> dbias) {
  const Index n = z.columns, sums_size = column_sums_scratch<2>(z.rows, n);
  if (n == 0) return;
  const Scratch<T> partial(2 * std::max<Index>(1, z.samples) * n);
  T* const sums = partial.data();
  if (z.empty()) std::fill_n(sums, 2 * std::max<Index>(1, z.samples) * n, T(0));
  if (!z.empty())
    detail::for_samples<T>(z, sums_size + 6 * n, [=](Index sample, T* scratch) {
      const RowMatrix<T> from{x.data + sample * z.rows * x.stride, x.stride};
      const T* const dy_n = dy + sample * z.rows * n;
      T *const dy_x = sums + 2 * sample * n, *const dy_sum = dy_x + n, *const block = scratch + sums_size;
      const ColumnStats<T> columns(block, n);
      const NormSlopes<T> slopes(block + 3 * n, n);
      const RowStats<T>* const groups = stats + sample * z.groups;
      detail::expand_stats(z, groups, columns);
      batch_norm_sums<NormEnd::none>(z.rows, n, from, columns, {}, dy_n, {}, dy_x, dy_sum, scratch);
      if (dx.data == nullptr) return;
      const T share = T(1) / T(z.rows * z.group());
      for (Index g = 0, c = 0; g < z.groups; ++g) {
        const Index begin = c, end = c + z.group();
        T product(0), sum(0);
        for (; c < end; ++c) {
          const T w = weight != nullptr ? weight[c] : T(1);
          product += w * dy_x[c];
          sum += w * dy_sum[c];
        }
        const T s = groups[g].inverse_std, m = product * share;
        for (Index i = begin; i < end; ++i) {
          slopes.of_dy[i] = weight != nullptr ? s * weight[i] : s;
          slopes.of_x[i] = T(0) - s * s * m;
          slopes.constant[i] = T(0) - s * (groups[g].rest * m + sum * share);
        }
      }
      normalise_vjp<NormEnd::none>(z.rows, n, from, columns.mean, slopes, {}, dy_n,
                                   {dx.data + sample * z.rows * n, dx.add});
    });
  if (dweight.data != nullptr || dbias.data != nullptr)
    detail::finish_sums<2, T>(sums, std::max<Index>(1, z.samples), n, {dweight, dbias});
}

}  // namespace wengert::inline WENGERT_ISA::kernels
