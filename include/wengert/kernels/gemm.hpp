// Matrix products: c = a b for operands of any strides, with an optional fused bias and activation. Floats
// and doubles take the SIMD path; any other element type takes plain loops. Floor: kernels.
#pragma once

#include <algorithm>

#include <wengert/base/error.hpp>
#include <wengert/kernels/copy.hpp>
#include <wengert/kernels/gemm_blocked.hpp>
#include <wengert/kernels/gemm_vector.hpp>

namespace wengert::inline WENGERT_ISA::kernels {

namespace detail {

template <class T>
T activate_any(T y, Activation activation) {
  if (activation == Activation::none) return y;
  if constexpr (requires(T t) { static_cast<bool>(t < T{}); })
    return y < T{} ? T{} : y;
  else
    fail<ValueError>("gemm", "relu on an element type without an order; expected operator<");
}

/// y(i, j) = activation(y(i, j) + bias(j)), where y is c, or zero when k was 0 and nothing is added to.
template <class T>
void finish_rows(Index begin, Index end, Index n, T* c, Index ldc, const Epilogue<T>& epilogue) {
  for (Index i = begin; i < end; ++i)
    for (Index j = 0; j < n; ++j) {
      T& y = c[i * ldc + j];
      if (epilogue.bias != nullptr) y = y + epilogue.bias[j];
      y = activate_any(y, epilogue.activation);
    }
}

/// Plain loops, blocked so that a piece of b is reused from the cache. T needs + and * only.
template <class T>
void multiply_plain(Index m, Index n, Index k, MatrixView<T> a, MatrixView<T> b, T* c, Index ldc,
                    const Epilogue<T>& epilogue) {
  constexpr Index row_block = 16, step_block = 64, column_block = 128, task_products = 1 << 12;
  const Index grain = std::max<Index>(1, task_products / (n * k) / row_block) * row_block;
  parallel_for(m, grain, [&](Index i_begin, Index i_end) {
    for (Index p0 = 0; p0 < k; p0 += step_block)
      for (Index j0 = 0; j0 < n; j0 += column_block)
        for (Index i = i_begin; i < i_end; ++i)
          for (Index p = p0; p < std::min(k, p0 + step_block); ++p) {
            const T left = a.data[i * a.row + p * a.col];
            const T* right = b.data + p * b.row;
            const bool first = p == 0 && !epilogue.add;
            for (Index j = j0; j < std::min(n, j0 + column_block); ++j) {
              T& y = c[i * ldc + j];
              y = first ? left * right[j * b.col] : y + left * right[j * b.col];
            }
          }
    finish_rows(i_begin, i_end, n, c, ldc, epilogue);
  });
}

/// Whether c^T = b^T a^T is the better product. A short sum would not pay for turning the result.
template <SimdScalar T>
bool better_transposed(Index m, Index n, Index k, MatrixView<T> a, MatrixView<T> b) noexcept {
  constexpr Index width = Tile<T>::width, columns = Tile<T>::columns;
  constexpr Index least_steps = 64, least_turned = 1 << 12, page = 4096 / Index{sizeof(T)};
  if (k < least_steps) return false;
  // Rows of a^T and b lie contiguous, and few columns of b fill the registers worse than those of a^T do.
  // Steps of a longer than a page would cost a translation of the address each.
  if (a.row == 1 && b.col == 1) return a.col <= page && n < m && n <= columns;
  // Rows of a and b^T lie contiguous: the few of a are turned, and those of the result, instead of the many
  // of b. Lanes that the rows of a leave empty cost two products a lane; an element turned, as many as a
  // vector has lanes.
  const Index empty = (m + width - 1) / width * width - m;
  const Index turned = n * k - 2 * m * (n + k);  // fewer elements, those of a and c counted twice
  return a.col == 1 && b.row == 1 && width < m && m <= columns && turned >= least_turned &&
         width * turned > 2 * n * k * empty;
}

/// c = or += a b by way of its transpose. Each sum has the bits that it has otherwise; c is added to it last.
template <SimdScalar T>
void multiply_transposed(T* workspace, Index m, Index n, Index k, MatrixView<T> a, MatrixView<T> b, T* c,
                         Index ldc, bool add) {
  const Scratch<T> owned(workspace == nullptr ? m * n : 0);
  T* const turned = workspace == nullptr ? owned.data() : workspace;
  BlockedProduct<T>({n, m, k, b.transposed(), a.transposed(), turned, m, {}})
      .run(workspace == nullptr ? nullptr : workspace + m * n);
  if (add)
    copy_add<T>({m, n}, turned, {1, m}, c, {ldc, 1});
  else
    kernels::copy<T>({m, n}, turned, {1, m}, c, {ldc, 1});
}

/// `gemm` with packed operands in `workspace`, when given: see BlockedProduct.
template <Scalar T>
void gemm_in(T* workspace, Index m, Index n, Index k, MatrixView<T> a, MatrixView<T> b, T* c, Index ldc,
             const Epilogue<T>& epilogue) {
  if (m <= 0 || n <= 0) return;
  if (k <= 0) {
    if (!epilogue.add)
      for (Index i = 0; i < m; ++i) std::fill_n(c + i * ldc, n, T{});
    finish_rows(0, m, n, c, ldc, epilogue);
    return;
  }
  if constexpr (SimdScalar<T>) {
    if (n == 1)
      multiply_vector<T>({m, k, a, b.data, c, ldc, epilogue, 0}, b.row, workspace);
    else if (m == 1)
      multiply_vector<T>({n, k, b.transposed(), a.data, c, 1, epilogue, 1}, a.col, workspace);
    else if (epilogue.bias == nullptr && epilogue.activation == Activation::none &&
             better_transposed<T>(m, n, k, a, b))
      multiply_transposed<T>(workspace, m, n, k, a, b, c, ldc, epilogue.add);
    else
      BlockedProduct<T>({m, n, k, a, b, c, ldc, epilogue}).run(workspace);
  } else {
    multiply_plain<T>(m, n, k, a, b, c, ldc, epilogue);
  }
}

/// Values that `gemm_in` needs as workspace.
template <Scalar T>
Index gemm_workspace(Index m, Index n, Index k, MatrixView<T> a, MatrixView<T> b) {
  if constexpr (SimdScalar<T>) {
    if (m <= 0 || n <= 0 || k <= 0) return 0;
    if (n == 1) return b.row == 1 ? 0 : k;
    if (m == 1) return a.col == 1 ? 0 : k;
    const Index as_it_is = BlockedProduct<T>({m, n, k, a, b, nullptr, n, {}}).workspace_size();
    if (!better_transposed<T>(m, n, k, a, b)) return as_it_is;
    const BlockedProduct<T> turned({n, m, k, b.transposed(), a.transposed(), nullptr, m, {}});
    return std::max(as_it_is, m * n + turned.workspace_size());
  }
  return 0;
}

}  // namespace detail

/// c = a b, or c + a b when `add`, then + bias (n values, added to each row), then the activation.
///   a: m x k, b: k x n, any strides; c: m x n, rows contiguous, `ldc` apart; c overlaps neither a, b nor
///   bias
/// k == 0 means a sum of nothing: zeros, or c as it is when `add`. relu keeps NaN and maps x < 0 to 0.
/// Sums over k run in blocks of 256 floats or 128 doubles, added in order; bits do not depend on the thread
/// count. NaN and infinities propagate as in plain loops.
template <Scalar T>
void gemm(Index m, Index n, Index k, MatrixView<T> a, MatrixView<T> b, T* c, Index ldc, bool add,
          const T* bias = nullptr, Activation activation = Activation::none) {
  detail::gemm_in<T>(nullptr, m, n, k, a, b, c, ldc, {add, bias, activation});
}

/// `batch` products at once: item t reads a + t * a_batch and b + t * b_batch and writes c + t * c_batch. A
/// batch stride of 0 shares an operand. Otherwise as `gemm`; items of c do not overlap.
template <Scalar T>
void gemm_batched(Index batch, Index m, Index n, Index k, MatrixView<T> a, Index a_batch, MatrixView<T> b,
                  Index b_batch, T* c, Index ldc, Index c_batch, bool add, const T* bias = nullptr,
                  Activation activation = Activation::none) {
  if (m == 1) a.row = a_batch, ldc = c_batch;  // strides that a single row does not use
  // Items that continue each other's rows over one b are a single taller product.
  if (batch > 1 && b_batch == 0 && a_batch == m * a.row && c_batch == m * ldc) {
    gemm<T>(batch * m, n, k, a, b, c, ldc, add, bias, activation);
    return;
  }
  constexpr Index task_products = SimdScalar<T> ? 1 << 18 : 1 << 12, shared_products = 1 << 23;
  const Index products = std::max<Index>(1, m * n * std::max<Index>(k, 1));
  // Large items share their own work over the threads; small ones are shared out whole.
  const Index grain = products >= shared_products ? batch : std::max<Index>(1, task_products / products);
  const bool shared_out = grain < batch;
  const Index workspace = shared_out ? detail::gemm_workspace<T>(m, n, k, a, b) : 0;
  parallel_for_scratch<T>(batch, grain, workspace, [&](Index begin, Index end, T* scratch) {
    for (Index t = begin; t < end; ++t)
      detail::gemm_in<T>(workspace > 0 ? scratch : nullptr, m, n, k, {a.data + t * a_batch, a.row, a.col},
                         {b.data + t * b_batch, b.row, b.col}, c + t * c_batch, ldc, {add, bias, activation});
  });
}

WENGERT_INSTANCE(void gemm(Index, Index, Index, MatrixView<float>, MatrixView<float>, float*, Index, bool,
                           const float*, Activation));
WENGERT_INSTANCE(void gemm_batched(Index, Index, Index, Index, MatrixView<float>, Index, MatrixView<float>,
                                   Index, float*, Index, Index, bool, const float*, Activation));
WENGERT_INSTANCE(void gemm(Index, Index, Index, MatrixView<double>, MatrixView<double>, double*, Index, bool,
                           const double*, Activation));
WENGERT_INSTANCE(void gemm_batched(Index, Index, Index, Index, MatrixView<double>, Index, MatrixView<double>,
                                   Index, double*, Index, Index, bool, const double*, Activation));

}  // namespace wengert::inline WENGERT_ISA::kernels
