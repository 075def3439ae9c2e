// Walks several strided operands of one shape row by row, after merging axes that lie in one line for all of
// them. Floor: kernels.
#pragma once

#include <array>

#include <wengert/base/shape.hpp>

namespace wengert::inline WENGERT_ISA::kernels {

/// The loop nest of an element-wise operation over N operands. Axes of size 1 are dropped and neighbours
/// merged, so a contiguous tensor is one row; `inner` is the length of a row and `rows` their number.
template <std::size_t N>
struct NdLoop {
  std::array<Index, max_rank> dims{};                    // outer axes, without the innermost
  std::array<std::array<Index, max_rank>, N> strides{};  // of the outer axes
  std::array<Index, N> inner_stride{};
  Index inner = 1, rows = 1;
  int outer_rank = 0;

  NdLoop(const Shape& shape, const std::array<Strides, N>& operand) {
    std::array<Index, max_rank> d{};
    std::array<std::array<Index, max_rank>, N> s{};
    int n = 0;
    for (int axis = 0; axis < shape.rank(); ++axis) {
      const auto k = static_cast<std::size_t>(n);
      if (shape[axis] == 1) continue;
      bool merges = n > 0;
      for (std::size_t o = 0; o < N && merges; ++o) merges = s[o][k - 1] == operand[o][axis] * shape[axis];
      const std::size_t at = merges ? k - 1 : k;
      d[at] = merges ? d[at] * shape[axis] : shape[axis];
      for (std::size_t o = 0; o < N; ++o) s[o][at] = operand[o][axis];
      n += merges ? 0 : 1;
    }
    if (n > 0) {
      const auto last = static_cast<std::size_t>(n - 1);
      inner = d[last];
      for (std::size_t o = 0; o < N; ++o) inner_stride[o] = s[o][last];
      outer_rank = n - 1;
    }
    for (std::size_t i = 0; i < static_cast<std::size_t>(outer_rank); ++i) {
      dims[i] = d[i];
      rows *= d[i];
      for (std::size_t o = 0; o < N; ++o) strides[o][i] = s[o][i];
    }
  }

  /// Calls `f(offsets)` for rows [begin, end), where `offsets[o]` is the first element of the row in operand
  /// o.
  template <class F>
  [[gnu::noinline]] void for_rows(Index begin, Index end, F f) const {
    if (begin >= end) return;
    std::array<Index, max_rank> at{};
    std::array<Index, N> offset{};
    Index rest = begin;
    for (int i = outer_rank; i-- > 0;) {
      const auto k = static_cast<std::size_t>(i);
      at[k] = rest % dims[k];
      rest /= dims[k];
      for (std::size_t o = 0; o < N; ++o) offset[o] += at[k] * strides[o][k];
    }
    for (Index row = begin; row < end; ++row) {
      f(static_cast<const std::array<Index, N>&>(offset));
      for (int i = outer_rank; i-- > 0;) {
        const auto k = static_cast<std::size_t>(i);
        for (std::size_t o = 0; o < N; ++o) offset[o] += strides[o][k];
        if (++at[k] < dims[k]) break;
        for (std::size_t o = 0; o < N; ++o) offset[o] -= dims[k] * strides[o][k];
        at[k] = 0;
      }
    }
  }
};

}  // namespace wengert::inline WENGERT_ISA::kernels
