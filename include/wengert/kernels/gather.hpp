// Kernels that fetch elements from where an index tells: whole rows, or one element a position. Floor:
// kernels.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstring>

#include <wengert/kernels/copy.hpp>

namespace wengert::inline WENGERT_ISA::kernels {

/// The first position whose index is not in [0, limit), or -1.
template <std::integral I>
Index find_out_of_range(const I* index, Index n, Index limit) noexcept {
  // The sign bit of v | (limit - 1 - v) tells whether v lies outside; unsigned, so that nothing overflows.
  const auto outside = [last = static_cast<std::uint64_t>(limit) - 1](I i) {
    const auto v = static_cast<std::uint64_t>(static_cast<std::int64_t>(i));
    return v | (last - v);
  };
  constexpr std::uint64_t sign = std::uint64_t{1} << 63;
  constexpr Index block = 1024;
  for (Index b = 0; b < n; b += block) {
    const Index end = std::min(n, b + block);
    std::uint64_t any = 0;
    for (Index i = b; i < end; ++i) any |= outside(index[i]);
    if ((any & sign) == 0) continue;
    for (Index i = b; i < end; ++i)
      if ((outside(index[i]) & sign) != 0) return i;
  }
  return -1;
}

namespace detail {

inline constexpr Index prefetch_rows = 8;  // how far ahead of the copy memory is asked for random rows

/// Asks for the start of the row that position i + prefetch_rows names.
template <class T, std::integral I>
inline void prefetch(const T* x, const I* index, Index i, Index n, Index row_stride) noexcept {
  if (i + prefetch_rows >= n) return;
  const T* row = x + static_cast<Index>(index[i + prefetch_rows]) * row_stride;
  __builtin_prefetch(row);
  __builtin_prefetch(reinterpret_cast<const char*>(row) + 64);
}

/// Calls f(target, p) for every position p of a contiguous index of `shape`, where `target` is the offset
/// that `strides` give to p's coordinates with the one along `axis` replaced by index[p]. Positions that
/// differ only along `axis` are visited in order by one thread.
template <std::integral I, class F>
void each_target(const Shape& shape, int axis, const Strides& strides, const I* index, F f) {
  if (shape.size() == 0) return;
  const Strides dense = contiguous_strides(shape);
  Shape lines_shape = shape;
  Index along = 1, index_step = 0, target_step = 0;
  if (shape.rank() > 0) {
    lines_shape[axis] = 1;
    along = shape[axis];
    index_step = dense[axis];
    target_step = strides[axis];
  }
  const NdLoop<2> loop(lines_shape, {strides, dense});
  const Index lines = loop.rows * loop.inner, inner = loop.inner;
  const Index ts = loop.inner_stride[0], ps = loop.inner_stride[1];
  const auto visit = [=](Index target, Index p) {
    f(target + static_cast<Index>(index[p]) * target_step, p);
  };
  parallel_for(lines, std::max<Index>(64, copy_grain / 4 / along), [=](Index begin, Index end) {
    for (Index line = begin; line < end;) {
      const Index row = line / inner, k0 = line % inner, k1 = std::min(inner, k0 + end - line);
      loop.for_rows(row, row + 1, [&](const auto& at) {
        if (ps == 1) {  // the lines lie side by side: walk across them
          for (Index a = 0; a < along; ++a)
            for (Index k = k0; k < k1; ++k) visit(at[0] + k * ts, at[1] + a * index_step + k);
        } else {
          for (Index k = k0; k < k1; ++k)
            for (Index a = 0; a < along; ++a) visit(at[0] + k * ts, at[1] + k * ps + a * index_step);
        }
      });
      line += k1 - k0;
    }
  });
}

}  // namespace detail

/// y[o, i, :] = x[o, index[i], :], where x's first two axes have the given strides and its last, of `inner`
/// elements, is contiguous, as is y, of (outer, n, inner).
template <class T, std::integral I>
void gather_rows(const T* x, Index outer_stride, Index row_stride, const I* index, Index outer, Index n,
                 Index inner, T* y) {
  if (inner == 0) return;
  parallel_for(outer * n, std::max<Index>(1, copy_grain / inner), [=](Index begin, Index end) {
    for (Index row = begin; row < end;) {
      const Index o = row / n, i0 = row % n, i1 = std::min(n, i0 + end - row);
      const T* from = x + o * outer_stride;
      T* to = y + o * n * inner;
      if (inner == 1) {
        for (Index i = i0; i < i1; ++i) to[i] = from[static_cast<Index>(index[i]) * row_stride];
      } else {
        for (Index i = i0; i < i1; ++i) {
          detail::prefetch(from, index, i, n, row_stride);
          std::memcpy(to + i * inner, from + static_cast<Index>(index[i]) * row_stride,
                      static_cast<std::size_t>(inner) * sizeof(T));
        }
      }
      row += i1 - i0;
    }
  });
}

/// y[p] = x[... index[p] ...] for every position p of the index, which has `shape` and replaces the
/// coordinate along `axis`; the index and y are contiguous.
template <class T, std::integral I>
void gather(const T* x, const Strides& x_strides, const I* index, const Shape& shape, int axis, T* y) {
  detail::each_target(shape, axis, x_strides, index, [=](Index target, Index p) { y[p] = x[target]; });
}

}  // namespace wengert::inline WENGERT_ISA::kernels
