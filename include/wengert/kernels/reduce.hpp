// Folds of (outer, reduce, inner) arrays: sums, largest and smallest, of the elements or of a function of
// them. Blocks never depend on the number of threads, and long sums are cut into short ones. Floor: kernels.
#pragma once

#include <algorithm>

#include <wengert/kernels/math.hpp>
#include <wengert/kernels/parallel.hpp>
#include <wengert/kernels/reduce_view.hpp>
#include <wengert/memory/buffer.hpp>

namespace wengert::inline WENGERT_ISA::kernels {

inline constexpr Index fold_block = 4096;         // elements summed before a partial result is put aside
inline constexpr Index fold_grain = 32 * 1024;    // elements of one task; about 3 us
inline constexpr Index fold_columns_wide = 2048;  // columns of one task, so that their results stay in L1
inline constexpr Index fold_rows_high = 512;      // rows summed before a partial result is put aside

/// The type in which few partial results are added up.
template <class T>
using Wide = std::conditional_t<std::same_as<T, float>, double, T>;

/// What a fold joins with. `join` works on vectors; `total` folds n >= 1 partial results in order.
struct FoldSum {
  static constexpr bool from_zero = true;  // otherwise a fold starts from its first element
  template <class V>
  static WENGERT_INLINE V join(V a, V b) noexcept {
    return a + b;
  }
  template <class T>
  static T total(const T* x, Index n) noexcept {
    Wide<T> sum = static_cast<Wide<T>>(x[0]);
    for (Index i = 1; i < n; ++i) sum += static_cast<Wide<T>>(x[i]);
    return static_cast<T>(sum);
  }
};
/// The largest (or smallest) element; NaN if one is NaN.
template <bool largest>
struct FoldExtreme {
  static constexpr bool from_zero = false;
  template <class V>
  static WENGERT_INLINE V join(V a, V b) noexcept {
    if constexpr (largest)
      return max(a, b);
    else
      return min(a, b);
  }
  template <class T>
  static WENGERT_INLINE bool beats(const T& a, const T& b) noexcept {  // NaN beats all but an earlier NaN
    return (largest ? b < a : a < b) || (a != a && !(b != b));
  }
  template <class T>
  static T total(const T* x, Index n) noexcept {
    T best = x[0];
    for (Index i = 1; i < n; ++i)
      if (beats(x[i], best)) best = x[i];
    return best;
  }
};
/// The largest element, unspecified if one is NaN: for callers that meet the NaN again.
struct FoldLargest : FoldExtreme<true> {
  template <class V>
  static WENGERT_INLINE V join(V a, V b) noexcept {
    return max_or_second(a, b);
  }
};

namespace detail {

template <Scalar T>
struct LaneNumbers {
  alignas(64) T value[static_cast<std::size_t>(Vec<T>::lanes)];
  constexpr LaneNumbers() : value{} {
    for (Index i = 0; i < Vec<T>::lanes; ++i) value[i] = static_cast<T>(i);
  }
};
template <Scalar T>
inline constexpr LaneNumbers<T> lane_numbers;

}  // namespace detail

/// `v` in the first n lanes and `other` beyond.
template <Scalar T>
WENGERT_INLINE Vec<T> first_lanes(Vec<T> v, Index n, Vec<T> other) noexcept {
  if constexpr (SimdScalar<T>)
    return where(Vec<T>::load_aligned(detail::lane_numbers<T>.value) < Vec<T>(static_cast<T>(n)), v, other);
  else
    return n > 0 ? v : other;
}

/// n elements at p, and 0 beyond; for n known to be a whole Vec when inlined, one load.
template <Scalar T>
WENGERT_INLINE Vec<T> load_n(const T* p, Index n) noexcept {
  return n == Vec<T>::lanes ? Vec<T>::load(p) : Vec<T>::load_partial(p, n);
}
template <Scalar T>
WENGERT_INLINE void store_n(Vec<T> v, T* p, Index n) noexcept {
  if (n == Vec<T>::lanes)
    v.store(p);
  else
    v.store_partial(p, n);
}

/// What is folded: the elements themselves. Other maps hold numbers for each output and bring the same three
/// functions: the function of a row o, and of n <= lanes neighbouring outputs at o.
struct Same {
  struct At {
    template <class V>
    WENGERT_INLINE V operator()(V x) const noexcept {
      return x;
    }
  };
  WENGERT_INLINE At row(Index) const noexcept { return {}; }
  WENGERT_INLINE At columns(Index, Index) const noexcept { return {}; }
};

/// sum of f(i, n) over [0, size) in steps of n <= lanes elements; the lanes beyond n are ignored.
template <int unroll, Scalar T, class F>
WENGERT_INLINE T sum_vectors(Index size, F f) noexcept {
  using V = Vec<T>;
  constexpr Index lanes = V::lanes, step = unroll * lanes;
  V acc[unroll];
  for (V& a : acc) a = V(T(0));
  Index i = 0;
  for (; i + step <= size; i += step)
    for (int k = 0; k < unroll; ++k) acc[k] += f(i + k * lanes, lanes);
  for (; i + lanes <= size; i += lanes) acc[0] += f(i, lanes);
  if (i < size) acc[unroll - 1] += first_lanes<T>(f(i, size - i), size - i, V(T(0)));
  for (int w = unroll / 2; w > 0; w /= 2)
    for (int k = 0; k < w; ++k) acc[k] += acc[k + w];
  return hsum(acc[0]);
}

/// The fold of f(x[i]) over n elements, n >= 1 unless it starts from zero.
template <class Op, int unroll = 8, Scalar T, class F = Same::At>
WENGERT_INLINE T fold_span(const T* x, Index n, F f = {}) noexcept {
  using V = Vec<T>;
  constexpr Index lanes = V::lanes, step = unroll * lanes;
  if constexpr (Op::from_zero) {
    return sum_vectors<unroll, T>(
        n, [=](Index i, Index k) WENGERT_INLINE_LAMBDA { return f(load_n(x + i, k)); });
  } else {
    if (n < lanes) return Op::total(x, n);
    V acc[unroll];
    for (V& a : acc) a = V::load(x);
    Index i = lanes;
    for (; i + step <= n; i += step)
      for (int k = 0; k < unroll; ++k) acc[k] = Op::join(acc[k], V::load(x + i + k * lanes));
    for (; i + lanes <= n; i += lanes) acc[0] = Op::join(acc[0], V::load(x + i));
    if (i < n) acc[unroll - 1] = Op::join(acc[unroll - 1], V::load(x + n - lanes));
    for (int w = unroll / 2; w > 0; w /= 2)
      for (int k = 0; k < w; ++k) acc[k] = Op::join(acc[k], acc[k + w]);
    alignas(64) T lane[static_cast<std::size_t>(lanes)];
    acc[0].store_aligned(lane);
    return Op::total(lane, lanes);
  }
}

/// y[o] = the fold of map(x[o, :]) over rows of n elements.
template <class Op, int unroll = 8, Scalar T, class Map = Same>
void fold_rows(const T* x, Index outer, Index n, T* y, Map map = {}) {
  const Index blocks = n <= fold_block ? 1 : (n - 1) / fold_block + 1;
  const Scratch<T> partial(blocks == 1 ? 0 : outer * blocks);
  T* const part = blocks == 1 ? y : partial.data();
  const Index grain = fold_grain / std::clamp<Index>(n, 1, fold_block);
  parallel_for(outer * blocks, grain, [=](Index begin, Index end) {
    for (Index j = begin; j < end; ++j) {
      const Index o = blocks == 1 ? j : j / blocks, from = (j - o * blocks) * fold_block;
      part[j] = fold_span<Op, unroll>(x + o * n + from, std::min(fold_block, n - from), map.row(o));
    }
  });
  if (blocks == 1) return;
  for (Index o = 0; o < outer; ++o) y[o] = Op::total(part + o * blocks, blocks);
}

namespace detail {

// y[i] = the fold of map(x[r * stride + i]) over `height` rows, joined with what y holds unless `store`.
template <class Op, int height, Scalar T, class Map>
WENGERT_INLINE void fold_few_rows(const T* x, Index stride, Index width, T* y, bool store, Map map,
                                  Index output) noexcept {
  using V = Vec<T>;
  const auto step = [=](Index i, Index n) WENGERT_INLINE_LAMBDA {
    const auto f = map.columns(output + i, n);
    V v[height];
    for (int r = 0; r < height; ++r) v[r] = f(load_n(x + r * stride + i, n));
    for (int w = height / 2; w > 0; w /= 2)
      for (int r = 0; r < w; ++r) v[r] = Op::join(v[r], v[r + w]);
    store_n(store ? v[0] : Op::join(load_n(y + i, n), v[0]), y + i, n);
  };
  Index i = 0;
  for (; i + V::lanes <= width; i += V::lanes) step(i, V::lanes);
  if (i < width) step(i, width - i);
}

template <class Op, Scalar T, class Map>
void fold_block_columns(const T* x, Index rows, Index stride, Index width, T* y, bool store, Map map,
                        Index output) noexcept {
  Index r = 0;
  for (; r + 4 <= rows; r += 4, store = false)
    fold_few_rows<Op, 4>(x + r * stride, stride, width, y, store, map, output);
  for (; r < rows; ++r, store = false)
    fold_few_rows<Op, 1>(x + r * stride, stride, width, y, store, map, output);
}

// As above for rows without gaps that are shorter than a few vectors: several are folded as if they were one.
template <class Op, Scalar T>
void fold_block_narrow(const T* x, Index rows, Index width, T* y) noexcept {
  constexpr Index room = 16 * Vec<T>::lanes;
  const Index together = room / width;
  if (together < 2 || rows < 2 * together)
    return fold_block_columns<Op>(x, rows, width, width, y, true, Same{}, 0);
  T sums[static_cast<std::size_t>(room)];
  const Index joined = together * width, groups = rows / together, done = groups * together;
  fold_block_columns<Op>(x, groups, joined, joined, sums, true, Same{}, 0);
  fold_block_columns<Op>(sums, together, width, width, y, true, Same{}, 0);
  fold_block_columns<Op>(x + done * width, rows - done, width, width, y, false, Same{}, 0);
}

}  // namespace detail

/// y[o, i] = the fold of map(x[o, :, i]) over `rows` >= 1 rows of `width` elements.
template <class Op, Scalar T, class Map = Same>
void fold_columns(const T* x, Index outer, Index rows, Index width, T* y, Map map = {}) {
  const Index wide = std::min(width, fold_columns_wide), chunks = (width - 1) / wide + 1;
  const Index high = std::clamp<Index>(2 * fold_grain / wide, 32, fold_rows_high);
  const Index blocks = (rows - 1) / high + 1;
  const Scratch<T> partial(blocks == 1 ? 0 : outer * blocks * width);
  T* to = blocks == 1 ? y : partial.data();
  const Index work = std::min(rows, high) * wide;
  parallel_for(outer * blocks * chunks, fold_grain / work, [=](Index begin, Index end) {
    for (Index j = begin; j < end; ++j) {
      const Index i = j % chunks * wide, block = j / chunks % blocks, o = j / chunks / blocks;
      const Index r = block * high, n = std::min(high, rows - r), w = std::min(wide, width - i);
      const T* from = x + (o * rows + r) * width + i;
      T* dest = to + (o * blocks + block) * width + i;
      if constexpr (std::same_as<Map, Same>) {
        if (w == width && width < 8 * Vec<T>::lanes) {
          detail::fold_block_narrow<Op>(from, n, width, dest);
          continue;
        }
      }
      detail::fold_block_columns<Op>(from, n, width, w, dest, true, map, o * width + i);
    }
  });
  if (blocks > 1) fold_columns<Op>(to, outer, blocks, width, y);
}

/// y = the fold of map(x) over the reduced axis of `v`. An empty fold gives 0, and only `FoldSum` allows it.
template <class Op, int unroll = 8, Scalar T, class Map = Same>
void fold(const ReduceView& v, const T* x, T* y, Map map = {}) {
  if (v.outputs() == 0) return;
  if (v.reduce == 0)
    std::fill(y, y + v.outputs(), T(0));
  else if (v.inner == 1)
    fold_rows<Op, unroll>(x, v.outer, v.reduce, y, map);
  else
    fold_columns<Op>(x, v.outer, v.reduce, v.inner, y, map);
}

/// dx[o, r, i] = map(x[o, r, i]), or += when `add`: the way back of every reduction. Maps that ignore x may
/// get null.
template <Scalar T, class Map>
void spread(const ReduceView& v, const T* x, T* dx, bool add, Map map) {
  const bool by_row = v.inner == 1;
  const Index rows = by_row ? v.outer : v.outer * v.reduce, width = by_row ? v.reduce : v.inner;
  if (rows == 0 || width == 0) return;
  const Index wide = std::min(width, fold_grain), chunks = (width - 1) / wide + 1, reduce = v.reduce;
  using V = Vec<T>;
  parallel_for(rows * chunks, fold_grain / wide, [=](Index begin, Index end) {
    for (Index j = begin; j < end; ++j) {
      const Index row = j / chunks, from = j % chunks * wide, n = std::min(wide, width - from);
      const Index at = row * width + from;
      const auto put = [=](Index i, Index k, auto f) WENGERT_INLINE_LAMBDA {
        V d;
        if constexpr (requires { f(); })
          d = f();
        else
          d = f(load_n(x + at + i, k));
        if (add) d += load_n(dx + at + i, k);
        store_n(d, dx + at + i, k);
      };
      Index i = 0;
      if (by_row) {
        const auto f = map.row(row);
        for (; i + V::lanes <= n; i += V::lanes) put(i, V::lanes, f);
        if (i < n) put(i, n - i, f);
      } else {
        const Index output = row / reduce * width + from;
        for (; i + V::lanes <= n; i += V::lanes) put(i, V::lanes, map.columns(output + i, V::lanes));
        if (i < n) put(i, n - i, map.columns(output + i, n - i));
      }
    }
  });
}

}  // namespace wengert::inline WENGERT_ISA::kernels
