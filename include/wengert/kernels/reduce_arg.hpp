// Where the largest or smallest element lies: the first of ties, and NaN before every number. Floor: kernels.
#pragma once

#include <wengert/kernels/copy.hpp>
#include <wengert/kernels/reduce.hpp>

namespace wengert::inline WENGERT_ISA::kernels {

namespace detail {

// The first of n elements that is m, or NaN when m is.
template <Scalar T>
Index find_span(const T* x, Index n, T m) noexcept {
  using V = Vec<T>;
  const bool nan = m != m;
  const V wanted = V::broadcast(m);
  Index i = 0;
  for (; i + V::lanes <= n; i += V::lanes) {
    const V v = V::load(x + i);
    if (any(nan ? v != v : v == wanted)) break;
  }
  while (i < n && !(nan ? x[i] != x[i] : x[i] == m)) ++i;
  return i;
}

// Rows shorter than this are searched for value and place one after the other, while they are in L2.
inline constexpr Index arg_near = 16 * 1024;

template <bool largest, Scalar T>
void arg_rows(const T* x, Index outer, Index n, Index* place, T* value) {
  using Op = FoldExtreme<largest>;
  if (n <= arg_near) {
    parallel_for(outer, fold_grain / n, [=](Index begin, Index end) {
      for (Index o = begin; o < end; ++o) {
        const T m = fold_span<Op>(x + o * n, n);
        place[o] = find_span(x + o * n, n, m);
        if (value != nullptr) value[o] = x[o * n + place[o]];
      }
    });
    return;
  }
  const Scratch<T> best(outer);
  fold_rows<Op>(x, outer, n, best.data());
  parallel_for(outer, 1, [=, m = best.data()](Index begin, Index end) {
    for (Index o = begin; o < end; ++o) {
      place[o] = find_span(x + o * n, n, m[o]);
      if (value != nullptr) value[o] = x[o * n + place[o]];
    }
  });
}

// Within a block of at most `fold_rows_high` rows the row number is kept as a T, where it is exact.
template <bool largest, Scalar T>
void arg_block(const T* x, Index rows, Index stride, Index width, T* best, T* at) noexcept {
  using V = Vec<T>;
  const auto step = [=](Index i, Index n, Index r) WENGERT_INLINE_LAMBDA {
    const V v = load_n(x + r * stride + i, n), b = load_n(best + i, n), a = load_n(at + i, n);
    const auto beaten = (!(largest ? v <= b : v >= b)) & (b == b);  // true for a first NaN
    store_n(where(beaten, v, b), best + i, n);
    store_n(where(beaten, V(r), a), at + i, n);
  };
  std::copy(x, x + width, best);
  std::fill(at, at + width, T(0));
  for (Index r = 1; r < rows; ++r) {
    Index i = 0;
    for (; i + V::lanes <= width; i += V::lanes) step(i, V::lanes, r);
    if (i < width) step(i, width - i, r);
  }
}

template <bool largest, SimdScalar T>
void arg_columns(const T* x, Index outer, Index rows, Index width, Index* place, T* value) {
  constexpr Index widest = 1024;
  const Index wide = std::min(width, widest), chunks = (width - 1) / wide + 1;
  const Index high = std::clamp<Index>(2 * fold_grain / wide, 32, fold_rows_high);
  const Index blocks = (rows - 1) / high + 1;
  const Scratch<T> partial(2 * outer * blocks * width);
  T* best = partial.data();
  T* at = best + outer * blocks * width;
  parallel_for(outer * blocks * chunks, fold_grain / (std::min(rows, high) * wide),
               [=](Index begin, Index end) {
                 for (Index j = begin; j < end; ++j) {
                   const Index i = j % chunks * wide, block = j / chunks % blocks, o = j / chunks / blocks;
                   const Index r = block * high, to = (o * blocks + block) * width + i;
                   arg_block<largest>(x + (o * rows + r) * width + i, std::min(high, rows - r), width,
                                      std::min(wide, width - i), best + to, at + to);
                 }
               });
  parallel_for(outer * width, fold_grain / (2 * blocks), [=](Index begin, Index end) {
    for (Index j = begin; j < end; ++j) {
      const Index o = j / width, i = j % width;
      Index k = (o * blocks) * width + i, row = static_cast<Index>(at[k]);
      T m = best[k];
      for (Index b = 1; b < blocks; ++b) {
        k += width;
        if (!FoldExtreme<largest>::beats(best[k], m)) continue;
        m = best[k];
        row = b * high + static_cast<Index>(at[k]);
      }
      place[j] = row;
      if (value != nullptr) value[j] = x[(o * rows + row) * width + i];
    }
  });
}
template <bool largest, Scalar T>
requires(!SimdScalar<T>) void arg_columns(const T* x, Index outer, Index rows, Index width, Index* place,
                                          T* value) {
  parallel_for(outer * width, std::max<Index>(1, fold_grain / (8 * rows)), [=](Index begin, Index end) {
    for (Index j = begin; j < end; ++j) {
      const T* column = x + j / width * rows * width + j % width;
      Index best = 0;
      for (Index r = 1; r < rows; ++r)
        if (FoldExtreme<largest>::beats(column[r * width], column[best * width])) best = r;
      place[j] = best;
      if (value != nullptr) value[j] = column[best * width];
    }
  });
}

}  // namespace detail

/// place[o, i] = the first r where x[o, :, i] is largest (smallest); the first NaN if there is one. `value`,
/// unless null, gets the element itself. v.reduce >= 1.
template <bool largest, Scalar T>
void arg_extreme(const ReduceView& v, const T* x, Index* place, T* value = nullptr) {
  if (v.outputs() == 0) return;
  if (v.inner == 1)
    detail::arg_rows<largest>(x, v.outer, v.reduce, place, value);
  else
    detail::arg_columns<largest>(x, v.outer, v.reduce, v.inner, place, value);
}

/// dx[o, place[o, i], i] += dy[o, i], into zeros unless `add`.
template <Scalar T>
void arg_spread(const ReduceView& v, const Index* place, const T* dy, T* dx, bool add) {
  if (v.outputs() == 0) return;
  const Index inner = v.inner, size = v.reduce * inner;
  const bool zero_by_row =
      !add && size <= fold_grain;  // while the row is near; longer ones on several threads
  if (!add && !zero_by_row) fill(dx, v.outer * size, T(0));
  parallel_for(v.outer, std::max<Index>(1, fold_grain / size), [=](Index begin, Index end) {
    for (Index o = begin; o < end; ++o) {
      T* to = dx + o * size;
      if (zero_by_row) std::fill(to, to + size, T(0));
      for (Index i = 0; i < inner; ++i) {
        T& d = to[place[o * inner + i] * inner + i];
        d = static_cast<T>(d + dy[o * inner + i]);
      }
    }
  });
}

}  // namespace wengert::inline WENGERT_ISA::kernels
