// The mean of each window of an image, and its gradient: vectors over channels. Floor: kernels.
#pragma once

#include <wengert/kernels/pool_gather.hpp>
#include <wengert/kernels/runs.hpp>

namespace wengert::inline WENGERT_ISA::kernels {

namespace detail {

inline constexpr Index avg_block = 256;  // taps that one accumulator adds up before it goes to the total

/// The channels c .. of one window: `registers` full ones, or the first n lanes of one.
template <int registers, Scalar T>
WENGERT_INLINE void avg_window(const PoolTables::View& v, const T* x, const PoolSpan& d, const PoolSpan& h,
                               const PoolSpan& w, Index n, T* y) noexcept {
  using V = Vec<T>;
  const auto load = [n](const T* p) WENGERT_INLINE_LAMBDA { return load_n(p, registers > 1 ? V::lanes : n); };
  V total[registers];
  for (int r = 0; r < registers; ++r) total[r] = V::broadcast(T(0));
  for (Index i = d.begin; i < d.end; ++i)
    for (Index j = h.begin; j < h.end; ++j) {
      const T* p = x + (((d.first + i) * v.in[1] + h.first + j) * v.in[2] + w.first + w.begin) * v.channels;
      for (Index k = w.begin; k < w.end;) {
        const Index stop = std::min(w.end, k + avg_block);
        V part[registers];
        for (int r = 0; r < registers; ++r) part[r] = load(p + r * V::lanes);
        for (++k, p += v.channels; k < stop; ++k, p += v.channels)
          for (int r = 0; r < registers; ++r) part[r] += load(p + r * V::lanes);
        for (int r = 0; r < registers; ++r) total[r] += part[r];
      }
    }
  const V divisor = V::broadcast(static_cast<T>(d.count * h.count * w.count));
  for (int r = 0; r < registers; ++r)
    store_n(total[r] / divisor, y + r * V::lanes, registers > 1 ? V::lanes : n);
}

}  // namespace detail

/// y = the sum of each window divided by its count. No dilation.
template <Scalar T>
void avg_pool(const PoolWindow& window, const T* x, T* y) {
  const PoolTables tables(window, false);
  const auto body = [=, v = tables.view()](Index row, Index begin, Index end) {
    const Index image = row / (v.out[0] * v.out[1]), od = row / v.out[1] % v.out[0], oh = row % v.out[1];
    const T* from = x + image * v.inputs() * v.channels;
    for (Index ow = begin; ow < end; ++ow) {
      T* to = y + (row * v.out[2] + ow) * v.channels;
      const auto strip = [&]<int registers>(Index c, Index n) WENGERT_INLINE_LAMBDA {
        detail::avg_window<registers>(v, from + c, v.span[0][od], v.span[1][oh], v.span[2][ow], n, to + c);
      };
      detail::for_channel_strips<T>(v.channels, strip);
    }
  };
  const PoolTables::View v = tables.view();
  detail::for_pool_rows(v.batch * v.out[0] * v.out[1], v.out[2], v.channels * window.taps(), body);
}

/// dx[i] (+)= the sum of dy / count over the windows that cover i.
template <Scalar T>
void avg_pool_vjp(const PoolWindow& window, const T* dy, T* dx, bool add) {
  using V = Vec<T>;
  const Index image_size = window.window.outputs() * window.window.channels;
  pool_gather(window, dx, add, [=](Index image, const PoolTerm* terms) WENGERT_INLINE_LAMBDA {
    return [=, g = dy + image * image_size](int i, Index c, Index n) WENGERT_INLINE_LAMBDA {
      const T share = static_cast<T>(T(1) / static_cast<T>(terms[i].count));
      return load_n(g + terms[i].from + c, n) * V::broadcast(share);
    };
  });
}

}  // namespace wengert::inline WENGERT_ISA::kernels
