// Gradients of pools: each input pixel gathers from the windows that cover it, so that it is written once, by
// one thread, and always in the same order. Floor: kernels.
#pragma once

#include <wengert/kernels/pool_window.hpp>
#include <wengert/kernels/reduce.hpp>
#include <wengert/kernels/stream.hpp>

namespace wengert::inline WENGERT_ISA::kernels {

/// A window that covers a pixel: where its channels lie within the image's outputs, the number of the tap
/// that reads the pixel, and the window's divisor.
struct PoolTerm {
  Index from, tap, count;
};

namespace detail {

/// The tap by which window o reads input i, one of those that may, or -1.
WENGERT_INLINE Index pool_tap(const PoolTables::View& v, int axis, Index o, Index i) noexcept {
  const Index far = i - v.span[axis][o].first, step = v.dilation[axis];
  if (step == 1) return far;
  return far % step == 0 ? far / step : -1;
}

/// The rows of windows that cover the row (d, h) of inputs, a few at a time: calls `work(terms, count)` with
/// those of window 0 of each row, and at least once.
template <class Work>
WENGERT_INLINE void for_pool_term_rows(const PoolTables::View& v, Index d, Index h, Work work) {
  constexpr int most = 8;
  PoolTerm rows[most];
  int count = 0;
  bool worked = false;
  for (Index od = v.cover[0][d].begin; od < v.cover[0][d].end; ++od) {
    const Index td = pool_tap(v, 0, od, d);
    if (td < 0) continue;
    for (Index oh = v.cover[1][h].begin; oh < v.cover[1][h].end; ++oh) {
      const Index th = pool_tap(v, 1, oh, h);
      if (th < 0) continue;
      if (count == most) {
        work(rows, count);
        worked = true;
        count = 0;
      }
      rows[count++] = {(od * v.out[1] + oh) * v.out[2] * v.channels, (td * v.kernel[1] + th) * v.kernel[2],
                       v.span[0][od].count * v.span[1][oh].count};
    }
  }
  if (count > 0 || !worked) work(rows, count);
}

/// dx (+)= the sum of `count` terms; `term(i, c, n)` gives n channels of one from c on.
template <int count, Scalar T, class Term>
WENGERT_INLINE void gather_terms(Index channels, T* dx, bool add, bool past_cache, Term term) noexcept {
  using V = Vec<T>;
  const auto step = [=](Index c, Index n) WENGERT_INLINE_LAMBDA {
    V sum = V::broadcast(T(0));
    if (add) sum = load_n(dx + c, n);
    for (int i = 0; i < count; ++i) sum += term(i, c, n);
    if (past_cache)
      detail::stream(dx + c, sum);
    else
      store_n(sum, dx + c, n);
  };
  Index c = 0;
  for (; c + V::lanes <= channels; c += V::lanes) step(c, V::lanes);
  if (c < channels) step(c, channels - c);
}

}  // namespace detail

/// dx[i] (+)= the terms of all windows that cover pixel i: `term_of(image, terms)` is a function of the
/// number of a term, a channel and n lanes.
template <Scalar T, class TermOf>
void pool_gather(const PoolWindow& window, T* dx, bool add, TermOf term_of) {
  const PoolTables tables(window, true);
  constexpr int most = 4;
  const bool past_cache =
      !add && tables.view().overlap <= most &&
      detail::streams(window.window.batch * window.window.inputs(), window.window.channels, dx);
  const auto body = [=, v = tables.view()](Index row, Index begin, Index end) {
    const Index image = row / (v.in[0] * v.in[1]), d = row / v.in[1] % v.in[0], h = row % v.in[1];
    bool first = true;
    detail::for_pool_term_rows(v, d, h, [&](const PoolTerm* rows, int row_count) {
      for (Index w = begin; w < end; ++w) {
        T* to = dx + (row * v.in[2] + w) * v.channels;
        PoolTerm terms[most];
        int count = 0;
        bool adds = add || !first;
        const auto flush = [&]() WENGERT_INLINE_LAMBDA {
          const auto term = term_of(image, terms);
          switch (count) {
            case 0:
              if (!adds) detail::gather_terms<0>(v.channels, to, false, past_cache, term);
              break;
            case 1:
              detail::gather_terms<1>(v.channels, to, adds, past_cache, term);
              break;
            case 2:
              detail::gather_terms<2>(v.channels, to, adds, past_cache, term);
              break;
            case 3:
              detail::gather_terms<3>(v.channels, to, adds, past_cache, term);
              break;
            default:
              detail::gather_terms<4>(v.channels, to, adds, past_cache, term);
          }
          count = 0;
          adds = true;
        };
        for (int r = 0; r < row_count; ++r)
          for (Index ow = v.cover[2][w].begin; ow < v.cover[2][w].end; ++ow) {
            const Index tap = detail::pool_tap(v, 2, ow, w);
            if (tap < 0) continue;
            if (count == most) flush();
            terms[count++] = {rows[r].from + ow * v.channels, rows[r].tap + tap,
                              rows[r].count * v.span[2][ow].count};
          }
        flush();
      }
      first = false;
    });
    if (past_cache) detail::stream_fence();
  };
  const PoolTables::View v = tables.view();
  detail::for_pool_rows(v.batch * v.in[0] * v.in[1], v.in[2], 4 * v.channels, body);
}

}  // namespace wengert::inline WENGERT_ISA::kernels
