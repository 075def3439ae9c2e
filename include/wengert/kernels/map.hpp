// The loops behind every element-wise operator: forward, and the gradients of all inputs in one pass.
// What depends on the operation is one row of each; the loops over rows are compiled once. Floor: kernels.
#pragma once

#include <array>
#include <utility>

#include <wengert/kernels/dual.hpp>
#include <wengert/kernels/nd_loop.hpp>
#include <wengert/kernels/parallel.hpp>
#include <wengert/kernels/runs.hpp>

namespace wengert::inline WENGERT_ISA::kernels {

inline constexpr Index map_grain = 8 * 1024;  // elements a block: about 3 us of tanh

/// Which values an operation's `vjp` reads: bit k for input k, and `saves_y` for the result.
inline constexpr unsigned saves_nothing = 0, saves_y = 1U << 8;
constexpr unsigned saves_x(unsigned k = 0) { return 1U << k; }

/// The operands of an element-wise operation: each is read with its own strides as if it had shape `shape`.
/// Along the last axis longer than 1 an operand has stride 1 or 0. When all are `dense`, strides are not
/// looked at.
template <class T, std::size_t K>
struct MapInputs {
  Shape shape;
  std::array<const T*, K> data{};
  std::array<Strides, K> strides{};
};

/// One operand along a row: consecutive elements, or one that repeats.
template <class T>
struct RowOperand {
  const T* p;
  bool repeats;
};

/// A row of the reverse pass.
template <class T, std::size_t K>
struct VjpRow {
  std::array<RowOperand<T>, K> x;
  const T *y, *dy;
  std::array<T*, K> dx;  // null: not wanted
  std::array<bool, K> add;
};

/// The rows of an operation, forward and reverse.
template <class T, std::size_t K>
struct MapRows {
  void (*forward)(const void* op, const std::array<RowOperand<T>, K>& x, Index n, void* y);
  void (*vjp)(const void* op, const VjpRow<T, K>& row, Index n);
};

namespace detail {

template <class T, std::size_t K>
WENGERT_INLINE std::array<Vec<T>, K> repeated(const std::array<RowOperand<T>, K>& x) {
  std::array<Vec<T>, K> r;
  for (std::size_t k = 0; k < K; ++k) r[k] = x[k].repeats ? Vec<T>(*x[k].p) : Vec<T>(T(0));
  return r;
}

template <class Op, class T, class R, std::size_t... k>
void map_row(const Op& op, const std::array<RowOperand<T>, sizeof...(k)>& x, Index n, R* y,
             std::index_sequence<k...>) {
  const auto constant = repeated(x);
  for_vectors<T>(n, [&](Index i, auto load, auto store) WENGERT_INLINE_LAMBDA {
    store(op.value((x[k].repeats ? constant[k] : load(x[k].p + i))...), y + i);
  });
}

template <class Op, class T, std::size_t... k>
void vjp_row(const Op& op, const VjpRow<T, sizeof...(k)>& row, Index n, std::index_sequence<k...>) {
  using V = Vec<T>;
  const VjpRow<T, sizeof...(k)> r = row;  // a copy: stores to dx cannot alias it
  const auto constant = repeated(r.x);
  for_vectors<T>(n, [&](Index i, auto load, auto store) WENGERT_INLINE_LAMBDA {
    // What vjp does not read is not loaded.
    const auto x = [&](std::size_t j)
                       WENGERT_INLINE_LAMBDA { return r.x[j].repeats ? constant[j] : load(r.x[j].p + i); };
    const V dy = load(r.dy + i);
    std::array<V, sizeof...(k)> g =
        op.vjp(dy, Op::saves & saves_y ? load(r.y + i) : V(T(0)), (Op::saves >> k & 1U ? x(k) : V(T(0)))...);
    // A branch that `where` did not take arrives as dy = 0, and must stay 0 across an infinite slope.
    if constexpr (requires { Op::has_poles; }) ((g[k] = where(dy == V(T(0)), V(T(0)), g[k])), ...);
    // In order, since dx of two inputs that are one tensor is one array.
    ((r.dx[k] != nullptr ? store(r.add[k] ? load(r.dx[k] + i) + g[k] : g[k], r.dx[k] + i) : void()), ...);
  });
}

/// Calls `row(at, first, n)` for pieces of rows: `at` as NdLoop gives it, `first` the place in the row.
template <std::size_t N, class Row>
void for_pieces(const NdLoop<N>& loop, Row row) {
  if (loop.inner > map_grain) {
    const Index pieces = (loop.inner + map_grain - 1) / map_grain;
    parallel_for(loop.rows * pieces, 1, [&loop, pieces, row](Index begin, Index end) {
      for (Index k = begin; k < end; ++k) {
        const Index first = k % pieces * map_grain;
        loop.for_rows(k / pieces, k / pieces + 1,
                      [&](const auto& at) { row(at, first, std::min(map_grain, loop.inner - first)); });
      }
    });
  } else {
    parallel_for(loop.rows, map_grain / loop.inner, [&loop, row](Index begin, Index end) {
      loop.for_rows(begin, end, [&](const auto& at) { row(at, 0, loop.inner); });
    });
  }
}

template <class T, std::size_t K>
NdLoop<K + 1> map_loop(const MapInputs<T, K>& in) {
  std::array<Strides, K + 1> strides;
  strides[0] = contiguous_strides(in.shape);
  for (std::size_t k = 0; k < K; ++k) strides[k + 1] = in.strides[k];
  return NdLoop<K + 1>(in.shape, strides);
}

template <class T>
RowOperand<T> row_operand(const T* p, Index stride, Index first) {
  return {p + first * stride, stride == 0};
}

}  // namespace detail

/// The rows of `Op`: `value(x...)` on Vecs; `vjp(dy, y, x...)` giving an array of partials; `saves`. R is the
/// element type of the result: T, or Byte for comparisons.
template <class Op, class T, class R, std::size_t K>
inline constexpr MapRows<T, K> map_rows{
    [](const void* op, const std::array<RowOperand<T>, K>& x, Index n, void* y) {
      detail::map_row(*static_cast<const Op*>(op), x, n, static_cast<R*>(y), std::make_index_sequence<K>{});
    },
    [](const void* op, const VjpRow<T, K>& row, Index n) {
      if constexpr (requires { Op::saves; })
        detail::vjp_row(*static_cast<const Op*>(op), row, n, std::make_index_sequence<K>{});
    }};

/// y = op.value(x...) for n elements of dense operands; an element of y has `y_bytes` bytes.
template <class T, std::size_t K>
void map_dense(const MapRows<T, K>& rows, const void* op, Index n, const std::array<const T*, K>& x, void* y,
               Index y_bytes) {
  const auto forward = rows.forward;
  auto* const out = static_cast<std::byte*>(y);
  const auto piece = [=](Index begin, Index end) {
    std::array<RowOperand<T>, K> row;
    for (std::size_t k = 0; k < K; ++k) row[k] = {x[k] + begin, false};
    forward(op, row, end - begin, out + begin * y_bytes);
  };
  if (n <= map_grain)  // without the calls that would cost a small operator a tenth of its time
    piece(0, n);
  else
    parallel_for(n, map_grain, piece);
}

/// y = op.value(x...), contiguous in `in.shape`; an element of y has `y_bytes` bytes.
template <class T, std::size_t K>
void map(const MapRows<T, K>& rows, const void* op, const MapInputs<T, K>& in, void* y, Index y_bytes) {
  if (in.shape.size() == 0) return;
  const auto forward = rows.forward;
  auto* const out = static_cast<std::byte*>(y);
  const NdLoop<K + 1> loop = detail::map_loop(in);
  detail::for_pieces(loop, [=, &loop, &in](const auto& at, Index first, Index length) {
    std::array<RowOperand<T>, K> x;
    for (std::size_t k = 0; k < K; ++k)
      x[k] = detail::row_operand(in.data[k] + at[k + 1], loop.inner_stride[k + 1], first);
    forward(op, x, length, out + (at[0] + first) * y_bytes);
  });
}

/// What a reverse pass reads and writes: y, dy and dx are contiguous in the operation's shape, dx_k is null
/// when it is not wanted, and may be the memory of dy or of another dx.
template <class T, std::size_t K>
struct MapGradients {
  const T *y, *dy;
  std::array<T*, K> dx;
  std::array<bool, K> add;

  /// The row of them that starts at element o.
  VjpRow<T, K> row(Index o) const noexcept {
    VjpRow<T, K> r{{}, y == nullptr ? nullptr : y + o, dy + o, dx, add};
    for (T*& p : r.dx)
      if (p != nullptr) p += o;
    return r;
  }
};

/// dx_k = dy * d op / d x_k (or += where add[k]) for n elements of dense operands.
template <class T, std::size_t K>
void map_vjp_dense(const MapRows<T, K>& rows, const void* op, Index n, const std::array<const T*, K>& x,
                   const MapGradients<T, K>& g) {
  const auto vjp = rows.vjp;
  parallel_for(n, map_grain, [=](Index begin, Index end) {
    VjpRow<T, K> r = g.row(begin);
    for (std::size_t k = 0; k < K; ++k) r.x[k] = {x[k] + begin, false};
    vjp(op, r, end - begin);
  });
}

/// The same for strided operands; inputs whose dx is wanted are not broadcast.
template <class T, std::size_t K>
void map_vjp(const MapRows<T, K>& rows, const void* op, const MapInputs<T, K>& in,
             const MapGradients<T, K>& g) {
  if (in.shape.size() == 0) return;
  const auto vjp = rows.vjp;
  const NdLoop<K + 1> loop = detail::map_loop(in);
  detail::for_pieces(loop, [=, &loop, &in](const auto& at, Index first, Index length) {
    VjpRow<T, K> r = g.row(at[0] + first);
    for (std::size_t k = 0; k < K; ++k)
      r.x[k] = detail::row_operand(in.data[k] + at[k + 1], loop.inner_stride[k + 1], first);
    vjp(op, r, length);
  });
}

}  // namespace wengert::inline WENGERT_ISA::kernels
