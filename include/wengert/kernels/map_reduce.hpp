// The gradient of a broadcast input of an element-wise operation: partial derivatives are computed piece by
// piece and summed over the stretched axes while they are in L1, in blocks that do not depend on the number
// of threads. Floor: kernels.
#pragma once

#include <wengert/kernels/map.hpp>
#include <wengert/memory/buffer.hpp>

namespace wengert::inline WENGERT_ISA::kernels {

namespace detail {

inline constexpr Index piece = 1024;  // elements of a row whose partials are computed at once: 4 KiB of float
inline constexpr Index rows_a_block = 64;  // at least so many rows go into one partial sum

/// The sum of n elements, in vector lanes.
template <class T>
T sum_piece(const T* p, Index n) {
  Vec<T> sum(T(0));
  for_vectors<T>(n, [&](Index i, auto load, auto) WENGERT_INLINE_LAMBDA { sum += load(p + i); });
  return hsum(sum);
}

/// sums[0, n) = the pairwise sum of `count` rows of n, which are overwritten, or += when `add`.
template <class T>
void sum_pairwise(T* rows, Index count, Index n, T* sums, bool add) {
  const auto into = [n](T* y, const T* x) {
    for_vectors<T>(n, [=](Index i, auto load, auto store)
                          WENGERT_INLINE_LAMBDA { store(load(y + i) + load(x + i), y + i); });
  };
  for (Index step = 1; step < count; step *= 2)
    for (Index r = 0; r + step < count; r += 2 * step) into(rows + r * n, rows + (r + step) * n);
  if (add)
    into(sums, rows);
  else
    std::copy_n(rows, n, sums);
}

}  // namespace detail

/// dx = sum of dy * d op / d x over the axes along which input `wanted` was stretched (or += when `add`).
/// `dx` is contiguous in the input's shape; `dx_strides` read it as `in.shape`, with stride 0 along stretched
/// axes.
template <class T, std::size_t K>
void map_vjp_broadcast(const MapRows<T, K>& rows, const void* op, const MapInputs<T, K>& in, const T* y,
                       const T* dy, std::size_t wanted, const Strides& dx_strides, T* dx, bool add) {
  using Offsets = std::array<Index, K + 2>;  // 0: dy and y; 1..K: inputs; K + 1: dx
  std::array<Strides, K + 2> all;
  all[0] = contiguous_strides(in.shape);
  for (std::size_t k = 0; k < K; ++k) all[k + 1] = in.strides[k];
  all[K + 1] = dx_strides;

  // Axes that dx keeps form the outer loop; the innermost axis stays with the summed ones, as a row.
  int innermost = in.shape.rank() - 1;
  while (innermost > 0 && in.shape[innermost] == 1) --innermost;
  Shape kept, summed;
  std::array<Strides, K + 2> kept_strides, summed_strides;
  for (int a = 0; a < in.shape.rank(); ++a) {
    const bool keep = a != innermost && dx_strides[a] != 0;
    (keep ? kept : summed).push_back(in.shape[a]);
    for (std::size_t o = 0; o < K + 2; ++o) (keep ? kept_strides : summed_strides)[o].push_back(all[o][a]);
  }
  const NdLoop<K + 2> loop(summed, summed_strides);
  const auto base_of = [&](Index point) {
    Offsets base{};
    for (int a = kept.rank(); a-- > 0; point /= kept[a])
      for (std::size_t o = 0; o < K + 2; ++o) base[o] += point % kept[a] * kept_strides[o][a];
    return base;
  };
  // Partials of input `wanted` for a piece of a row.
  const auto partials = [&](const Offsets& base, const Offsets& at, Index first, Index n, T* g) {
    const Index o = base[0] + at[0] + first;
    VjpRow<T, K> r{{}, y == nullptr ? nullptr : y + o, dy + o, {}, {}};
    r.dx[wanted] = g;
    for (std::size_t k = 0; k < K; ++k)
      r.x[k] = detail::row_operand(in.data[k] + base[k + 1] + at[k + 1], loop.inner_stride[k + 1], first);
    rows.vjp(op, r, n);
  };

  const bool one_sum = loop.inner_stride[K + 1] == 0;  // else a row of sums
  const Index points = kept.size(), inner = loop.inner, width = one_sum ? 1 : inner;
  const Index pieces = (inner + detail::piece - 1) / detail::piece, length = std::min(inner, detail::piece);
  // A block is a run of (row, piece) pairs for one sum, and a run of rows for one piece of a row of sums.
  const Index per_point = one_sum ? loop.rows * pieces : loop.rows;
  const Index a_block =
      one_sum ? std::max<Index>(1, map_grain / length) : std::max(detail::rows_a_block, map_grain / length);
  const Index blocks = (per_point + a_block - 1) / a_block, columns = one_sum ? 1 : pieces;
  const Scratch<T> partial(points * blocks * width);
  T* const sums = partial.data();
  const Index grain = std::max<Index>(1, map_grain / (std::min(a_block, per_point) * length));
  parallel_for(points * blocks * columns, grain, [&, sums](Index begin, Index end) {
    alignas(64) T g[detail::piece];
    for (Index item = begin; item < end; ++item) {
      const Index block = item / columns, from = block % blocks * a_block,
                  to = std::min(per_point, from + a_block);
      const Offsets base = base_of(block / blocks);
      if (one_sum) {
        T sum(0);
        for (Index k = from; k < to; ++k) {
          const Index first = k % pieces * detail::piece, n = std::min(detail::piece, inner - first);
          loop.for_rows(k / pieces, k / pieces + 1, [&](const Offsets& at) {
            partials(base, at, first, n, g);
            sum = sum + detail::sum_piece(g, n);
          });
        }
        sums[block] = sum;
        continue;
      }
      const Index first = item % columns * detail::piece, n = std::min(detail::piece, inner - first);
      T* const row = sums + block * width + first;
      Index done = from;
      loop.for_rows(from, to, [&](const Offsets& at) {
        T* const to_row = done++ == from ? row : g;
        partials(base, at, first, n, to_row);
        if (to_row == g)
          detail::for_vectors<T>(n, [=, &g](Index i, auto load, auto store) WENGERT_INLINE_LAMBDA {
            store(load(row + i) + load(g + i), row + i);
          });
      });
    }
  });
  for (Index p = 0; p < points; ++p)
    detail::sum_pairwise(sums + p * blocks * width, blocks, width, dx + base_of(p)[K + 1], add);
}

}  // namespace wengert::inline WENGERT_ISA::kernels
