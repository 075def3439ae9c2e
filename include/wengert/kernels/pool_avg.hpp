// The mean of each window of an image, and its gradient: vectors over channels. Floor: kernels.
#pragma once

#include <wengert/kernels/pool_window.hpp>
#include <wengert/kernels/reduce.hpp>

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

/// dx (+)= the sum of dy * scale over `count` windows.
template <int count, Scalar T>
WENGERT_INLINE void avg_spread(const Index* from, const T* scale, Index channels, const T* dy, T* dx,
                               bool add) noexcept {
  using V = Vec<T>;
  const auto step = [=](Index c, Index n) WENGERT_INLINE_LAMBDA {
    V sum = V::broadcast(T(0));
    if (add) sum = load_n(dx + c, n);
    for (int i = 0; i < count; ++i) {
      sum = fma(load_n(dy + from[i] + c, n), V::broadcast(scale[i]), sum);
    }
    store_n(sum, dx + c, n);
  };
  Index c = 0;
  for (; c + V::lanes <= channels; c += V::lanes) step(c, V::lanes);
  if (c < channels) step(c, channels - c);
}

}  // namespace detail

/// y = the sum of each window divided by its count. No dilation.
template <Scalar T>
void avg_pool(const PoolWindow& window, const T* x, T* y) {
  using V = Vec<T>;
  const PoolTables tables(window, false);
  const auto body = [=, v = tables.view()](Index row, Index begin, Index end) {
    const Index image = row / (v.out[0] * v.out[1]), od = row / v.out[1] % v.out[0], oh = row % v.out[1];
    const T* from = x + image * v.inputs() * v.channels;
    for (Index ow = begin; ow < end; ++ow) {
      T* to = y + (row * v.out[2] + ow) * v.channels;
      const auto strip = [&]<int registers>(Index c, Index n) WENGERT_INLINE_LAMBDA {
        detail::avg_window<registers>(v, from + c, v.span[0][od], v.span[1][oh], v.span[2][ow], n, to + c);
      };
      Index c = 0;
      if constexpr (V::lanes > 1)
        for (; c + 4 * V::lanes <= v.channels; c += 4 * V::lanes) strip.template operator()<4>(c, V::lanes);
      for (; c + V::lanes <= v.channels; c += V::lanes) strip.template operator()<1>(c, V::lanes);
      if (c < v.channels) strip.template operator()<1>(c, v.channels - c);
    }
  };
  const PoolTables::View v = tables.view();
  detail::for_pool_rows(v.batch * v.out[0] * v.out[1], v.out[2], v.channels * window.taps(), body);
}

/// dx[i] (+)= the sum of dy / count over the windows that cover i.
template <Scalar T>
void avg_pool_vjp(const PoolWindow& window, const T* dy, T* dx, bool add) {
  const PoolTables tables(window, true);
  const auto body = [=, v = tables.view()](Index row, Index begin, Index end) {
    const Index image = row / (v.in[0] * v.in[1]), d = row / v.in[1] % v.in[0], h = row % v.in[1];
    const T* g = dy + image * v.outputs() * v.channels;
    for (Index w = begin; w < end; ++w) {
      T* to = dx + (row * v.in[2] + w) * v.channels;
      constexpr int most = 4;
      Index from[most];
      T scale[most];
      int count = 0;
      bool adds = add;
      const auto flush = [&]() WENGERT_INLINE_LAMBDA {
        switch (count) {
          case 1:
            detail::avg_spread<1>(from, scale, v.channels, g, to, adds);
            break;
          case 2:
            detail::avg_spread<2>(from, scale, v.channels, g, to, adds);
            break;
          case 3:
            detail::avg_spread<3>(from, scale, v.channels, g, to, adds);
            break;
          case 4:
            detail::avg_spread<4>(from, scale, v.channels, g, to, adds);
            break;
          default:
            if (!adds) std::fill(to, to + v.channels, T(0));
        }
        count = 0;
        adds = true;
      };
      detail::for_pool_windows(v, d, h, w, [&](Index od, Index oh, Index ow, Index) WENGERT_INLINE_LAMBDA {
        if (count == most) flush();
        from[count] = ((od * v.out[1] + oh) * v.out[2] + ow) * v.channels;
        scale[count++] = static_cast<T>(
            T(1) / static_cast<T>(v.span[0][od].count * v.span[1][oh].count * v.span[2][ow].count));
      });
      flush();
    }
  };
  const PoolTables::View v = tables.view();
  detail::for_pool_rows(v.batch * v.in[0] * v.in[1], v.in[2], 4 * v.channels, body);
}

}  // namespace wengert::inline WENGERT_ISA::kernels
