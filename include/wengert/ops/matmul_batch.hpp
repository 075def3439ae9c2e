// Matrix products over broadcast batch axes, forward and backward: what lies in one line is folded into one
// larger product, the rest is a loop. Floor: ops.
#pragma once

#include <algorithm>
#include <array>

#include <wengert/base/shape.hpp>
#include <wengert/kernels/copy.hpp>
#include <wengert/kernels/gemm.hpp>

namespace wengert::inline WENGERT_ISA::detail {

/// One matrix for each index of a batch: strides inside the matrix and along the batch's axes.
template <class T>
struct MatrixBatch {
  kernels::MatrixView<T> first;
  Strides strides;

  MatrixBatch transposed() const noexcept { return {first.transposed(), strides}; }
};

/// The axes of a batch with their strides in a, b and c; neighbours that lie in one line are merged.
struct BatchAxes {
  struct Axis {
    Index size, a, b, c;
  };
  std::array<Axis, max_rank> axes;
  int count = 0;

  void push(const Axis& x) noexcept {
    if (count > 0) {
      Axis& before = last();
      if (before.a == x.a * x.size && before.b == x.b * x.size && before.c == x.c * x.size) {
        before = {before.size * x.size, x.a, x.b, x.c};
        return;
      }
    }
    axes[static_cast<std::size_t>(count++)] = x;
  }
  Axis& last() noexcept { return axes[static_cast<std::size_t>(count - 1)]; }
  Index size() const noexcept {
    Index n = 1;
    for (int i = 0; i < count; ++i) n *= axes[static_cast<std::size_t>(i)].size;
    return n;
  }
  /// Offsets of item i in a, b and c; `size` is meaningless.
  Axis at(Index i) const noexcept {
    Axis offset{0, 0, 0, 0};
    for (int k = count; k-- > 0;) {
      const Axis& x = axes[static_cast<std::size_t>(k)];
      const Index step = i % x.size;
      i /= x.size;
      offset.a += step * x.a;
      offset.b += step * x.b;
      offset.c += step * x.c;
    }
    return offset;
  }
};

/// c[t] = sum of a[t] b[t], or c[t] + that when `add`, for every index t of `batch`; items of c that a stride
/// of 0 makes one are summed over, in order. Each a[t] is m x k, each b[t] is k x n; c is contiguous.
template <Scalar T>
void multiply_batches(const Shape& batch, Index m, Index n, Index k, MatrixBatch<T> a, MatrixBatch<T> b, T* c,
                      const Strides& c_strides, bool add) {
  if (m == 0 || n == 0) return;
  BatchAxes kept, summed;
  Index terms = 1;
  for (int i = 0; i < batch.rank(); ++i) {
    const bool sums = c_strides[i] == 0;
    if (sums) terms *= batch[i];
    if (batch[i] != 1) (sums ? summed : kept).push({batch[i], a.strides[i], b.strides[i], c_strides[i]});
  }
  if (terms == 0 || k == 0) {
    if (!add) kernels::fill(c, kept.size() * m * n, T(0));
    return;
  }

  kernels::MatrixView<T> left = a.first, right = b.first;
  Index row = n;           // of c
  if (summed.count > 0) {  // a sum over matrices side by side is one product with a longer inner dimension
    const BatchAxes::Axis x = summed.last();
    if (k == 1) left.col = x.a, right.row = x.b;
    if (x.a == k * left.col && x.b == k * right.row) {
      k *= x.size;
      --summed.count;
    }
  }
  if (kept.count > 0) {  // matrices below each other over one b are one taller product
    const BatchAxes::Axis x = kept.last();
    const bool single = m == 1;
    if (x.b == 0 && (single || (x.a == m * left.row && x.c == m * row))) {
      if (single) left.row = x.a, row = x.c;
      m *= x.size;
      --kept.count;
    }
  }

  const Index items = kept.size(), sums = summed.size();
  if (items == 0) return;  // m * n * k may overflow beside an empty batch
  constexpr Index task_products = SimdScalar<T> ? 1 << 18 : 1 << 12, shared_products = 1 << 23;
  const Index products = std::max<Index>(1, m * n * std::max<Index>(k, 1) * sums);
  // Large items share their own work over the threads; small ones are shared out whole.
  const Index grain = products >= shared_products ? items : std::max<Index>(1, task_products / products);
  kernels::parallel_for(items, grain, [&](Index begin, Index end) {
    for (Index i = begin; i < end; ++i)
      for (Index s = 0; s < sums; ++s) {
        const BatchAxes::Axis at = kept.at(i), also = summed.at(s);
        kernels::gemm<T>(m, n, k, {left.data + at.a + also.a, left.row, left.col},
                         {right.data + at.b + also.b, right.row, right.col}, c + at.c, row, add || s > 0);
      }
  });
}

}  // namespace wengert::inline WENGERT_ISA::detail
