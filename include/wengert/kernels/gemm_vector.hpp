// Matrix times vector, for products with one row or one column. Floor: kernels.
#pragma once

#include <algorithm>

#include <wengert/kernels/gemm_pack.hpp>
#include <wengert/kernels/parallel.hpp>
#include <wengert/memory/buffer.hpp>

namespace wengert::inline WENGERT_ISA::kernels::detail {

template <class T>
T activate(T y, Activation activation) noexcept {
  if (activation == Activation::relu) return y < T(0) ? T(0) : y;
  return y;
}

/// y = epilogue(a x) for a of m x k; bias_stride is 0 when one value serves all of y.
template <SimdScalar T>
struct VectorProduct {
  Index m, k;
  MatrixView<T> a;
  const T* x;
  T* y;
  Index y_stride;
  Epilogue<T> epilogue;
  Index bias_stride;

  void store(Index i, T sum) const noexcept {
    T* out = y + i * y_stride;
    if (epilogue.add) sum = *out + sum;
    if (epilogue.bias != nullptr) sum = sum + epilogue.bias[i * bias_stride];
    *out = activate(sum, epilogue.activation);
  }
};

/// Rows of a are contiguous: R dot products at once, each in two chains of vectors, and in blocks of k so
/// that long sums stay accurate.
template <SimdScalar T, int R>
void dot_rows(const VectorProduct<T>& v, Index i) noexcept {
  constexpr Index width = Tile<T>::width, block = 256 * width;
  const T* a = v.a.data + i * v.a.row;
  const Index whole = v.k / width * width;
  Batch<T> total[R];
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r) total[r] = Batch<T>(T(0));
  for (Index begin = 0; begin < whole; begin += block) {
    const Index end = std::min(whole, begin + block);
    Batch<T> even[R], odd[R];
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) even[r] = odd[r] = Batch<T>(T(0));
    Index p = begin;
    for (; p + 2 * width <= end; p += 2 * width) {
      const Batch<T> x0 = Batch<T>::load_unaligned(v.x + p), x1 = Batch<T>::load_unaligned(v.x + p + width);
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) {
        even[r] = xsimd::fma(Batch<T>::load_unaligned(a + r * v.a.row + p), x0, even[r]);
        odd[r] = xsimd::fma(Batch<T>::load_unaligned(a + r * v.a.row + p + width), x1, odd[r]);
      }
    }
    if (p < end) {
      const Batch<T> x0 = Batch<T>::load_unaligned(v.x + p);
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r)
        even[r] = xsimd::fma(Batch<T>::load_unaligned(a + r * v.a.row + p), x0, even[r]);
    }
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) total[r] = total[r] + (even[r] + odd[r]);
  }
  for (int r = 0; r < R; ++r) {
    alignas(64) T parts[Tile<T>::width];
    total[r].store_aligned(parts);
    for (int half = Tile<T>::width / 2; half > 0; half /= 2)
      for (int l = 0; l < half; ++l) parts[l] = parts[l] + parts[l + half];
    T tail = T(0);
    for (Index q = whole; q < v.k; ++q) tail = tail + a[r * v.a.row + q] * v.x[q];
    v.store(i + r, parts[0] + tail);
  }
}

/// Columns of a are contiguous: V vectors of sums, a block of k at a time so that long sums stay accurate.
template <SimdScalar T, int V>
void sum_columns(const VectorProduct<T>& v, Index i) noexcept {
  constexpr Index width = Tile<T>::width, block = 512;
  Batch<T> total[V];
#pragma GCC unroll 4
  for (int u = 0; u < V; ++u) total[u] = Batch<T>(T(0));
  for (Index begin = 0; begin < v.k; begin += block) {
    Batch<T> acc[V];
#pragma GCC unroll 4
    for (int u = 0; u < V; ++u) acc[u] = Batch<T>(T(0));
    for (Index p = begin; p < std::min(v.k, begin + block); ++p) {
      const Batch<T> xp(v.x[p]);
#pragma GCC unroll 4
      for (int u = 0; u < V; ++u)
        acc[u] = xsimd::fma(Batch<T>::load_unaligned(v.a.data + p * v.a.col + i + u * width), xp, acc[u]);
    }
#pragma GCC unroll 4
    for (int u = 0; u < V; ++u) total[u] = total[u] + acc[u];
  }
  alignas(64) T sums[V * Tile<T>::width];
#pragma GCC unroll 4
  for (int u = 0; u < V; ++u) total[u].store_aligned(sums + u * width);
  for (Index r = 0; r < V * width; ++r) v.store(i + r, sums[r]);
}

/// Any strides, element by element.
template <SimdScalar T>
void sum_strided(const VectorProduct<T>& v, Index i) noexcept {
  constexpr Index block = 512;
  T total = T(0);
  for (Index begin = 0; begin < v.k; begin += block) {
    T sum = T(0);
    for (Index p = begin; p < std::min(v.k, begin + block); ++p)
      sum = sum + v.a.data[i * v.a.row + p * v.a.col] * v.x[p];
    total = total + sum;
  }
  v.store(i, total);
}

/// y = epilogue(a x) with x at `x_stride`, shared out by rows of y in blocks whose bounds fix the vectors
/// used. `workspace`, when given, has room for x.
template <SimdScalar T>
void multiply_vector(VectorProduct<T> v, Index x_stride, T* workspace = nullptr) {
  constexpr Index width = Tile<T>::width;
  const Scratch<T> owned(x_stride == 1 || workspace != nullptr ? 0 : v.k);
  if (x_stride != 1) {
    T* const x = workspace != nullptr ? workspace : owned.data();
    for (Index p = 0; p < v.k; ++p) x[p] = v.x[p * x_stride];
    v.x = x;
  }
  constexpr Index unit = 4 * width, block_products = 1 << 16;
  const Index grain = std::max<Index>(1, block_products / v.k / unit) * unit;
  parallel_for(v.m, grain, [&v](Index i, Index end) {
    if (v.a.col == 1) {
      for (; i + 4 <= end; i += 4) dot_rows<T, 4>(v, i);
      for (; i < end; ++i) dot_rows<T, 1>(v, i);
      return;
    }
    if (v.a.row == 1) {
      for (; i + 4 * width <= end; i += 4 * width) sum_columns<T, 4>(v, i);
      for (; i + width <= end; i += width) sum_columns<T, 1>(v, i);
    }
    for (; i < end; ++i) sum_strided(v, i);
  });
}

}  // namespace wengert::inline WENGERT_ISA::kernels::detail
