// The largest element of each window of an image, and its gradient: vectors over channels. Floor: kernels.
#pragma once

#include <wengert/kernels/pool_place.hpp>
#include <wengert/kernels/pool_window.hpp>
#include <wengert/kernels/reduce.hpp>

namespace wengert::inline WENGERT_ISA::kernels {

namespace detail {

/// The channels c .. of one window: `registers` full ones, or the first n lanes of one. Place void: values
/// alone.
template <int registers, Scalar T, class Place>
WENGERT_INLINE void max_window(const PoolTables::View& v, const T* x, const PoolSpan& d, const PoolSpan& h,
                               const PoolSpan& w, Index n, T* y, Place* place) noexcept {
  using V = Vec<T>;
  constexpr bool tracks = !std::is_void_v<Place>;
  using At = std::conditional_t<SimdScalar<T>, V, Index>;
  const auto load = [n](const T* p) WENGERT_INLINE_LAMBDA { return load_n(p, registers > 1 ? V::lanes : n); };
  const V lowest = V::broadcast(static_cast<T>(-HUGE_VAL));
  V best[registers];
  [[maybe_unused]] At at[registers];
  const Index first = (d.begin * v.kernel[1] + h.begin) * v.kernel[2] + w.begin;
  for (int r = 0; r < registers; ++r) best[r] = lowest;
  if constexpr (tracks)
    for (int r = 0; r < registers; ++r)
      at[r] = At(static_cast<std::conditional_t<SimdScalar<T>, T, Index>>(first));
  const Index step = v.dilation[2] * v.channels;
  for (Index i = d.begin; i < d.end; ++i)
    for (Index j = h.begin; j < h.end; ++j) {
      const Index row = (d.first + i * v.dilation[0]) * v.in[1] + h.first + j * v.dilation[1];
      const T* p = x + (row * v.in[2] + w.first + w.begin * v.dilation[2]) * v.channels;
      [[maybe_unused]] Index tap = (i * v.kernel[1] + j) * v.kernel[2] + w.begin;
      for (Index k = w.begin; k < w.end; ++k, ++tap, p += step) {
        if constexpr (!tracks) {
          for (int r = 0; r < registers; ++r) best[r] = max(best[r], load(p + r * V::lanes));
        } else if constexpr (SimdScalar<T>) {
          const V number(static_cast<T>(tap));
          for (int r = 0; r < registers; ++r) {
            const V value = load(p + r * V::lanes);
            const Mask<T> wins = (value > best[r]) | isnan(value);
            best[r] = where(wins, value, best[r]);
            at[r] = where(wins, number, at[r]);
          }
        } else if (*p > best[0].v || *p != *p) {
          best[0] = *p;
          at[0] = tap;
        }
      }
    }
  for (int r = 0; r < registers; ++r) {
    const Index lanes = registers > 1 ? V::lanes : n;
    store_n(best[r], y + r * V::lanes, lanes);
    if constexpr (tracks && SimdScalar<T>)
      store_places(at[r], place + r * V::lanes, lanes);
    else if constexpr (tracks)
      *place = static_cast<Place>(at[r]);
  }
}

/// dx (+)= the dy of up to `count` windows whose place is the tap that reads this input.
template <int count, Scalar T, class Place>
WENGERT_INLINE void max_spread(const Index* from, const Index* tap, Index channels, const T* dy,
                               const Place* place, T* dx, bool add) noexcept {
  using V = Vec<T>;
  const auto step = [=](Index c, Index n) WENGERT_INLINE_LAMBDA {
    V sum = V::broadcast(T(0));
    if (add) sum = load_n(dx + c, n);
    for (int i = 0; i < count; ++i) {
      const Index at = from[i] + c;
      sum += where(places_equal<T>(place + at, n, tap[i]), load_n(dy + at, n), V::broadcast(T(0)));
    }
    store_n(sum, dx + c, n);
  };
  Index c = 0;
  for (; c + V::lanes <= channels; c += V::lanes) step(c, V::lanes);
  if (c < channels) step(c, channels - c);
}

}  // namespace detail

/// y = the largest element of each window, NaN if there is one, -inf of none; `place`, unless of void, gets
/// the number of its tap: the first of the largest, the last NaN.
template <Scalar T, class Place>
void max_pool(const PoolWindow& window, const T* x, T* y, Place* place) {
  using V = Vec<T>;
  const PoolTables tables(window, false);
  const auto body = [=, v = tables.view()](Index row, Index begin, Index end) {
    const Index image = row / (v.out[0] * v.out[1]), od = row / v.out[1] % v.out[0], oh = row % v.out[1];
    const T* from = x + image * v.inputs() * v.channels;
    for (Index ow = begin; ow < end; ++ow) {
      const Index to = (row * v.out[2] + ow) * v.channels;
      const auto strip = [&]<int registers>(Index c, Index n) WENGERT_INLINE_LAMBDA {
        Place* at = nullptr;
        if constexpr (!std::is_void_v<Place>) at = place + to + c;
        detail::max_window<registers>(v, from + c, v.span[0][od], v.span[1][oh], v.span[2][ow], n, y + to + c,
                                      at);
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

/// dx[i] (+)= the sum of dy over the windows that i won.
template <Scalar T, class Place>
void max_pool_vjp(const PoolWindow& window, const T* dy, const Place* place, T* dx, bool add) {
  const PoolTables tables(window, true);
  const auto body = [=, v = tables.view()](Index row, Index begin, Index end) {
    const Index image = row / (v.in[0] * v.in[1]), d = row / v.in[1] % v.in[0], h = row % v.in[1];
    const T* g = dy + image * v.outputs() * v.channels;
    const Place* at = place + image * v.outputs() * v.channels;
    for (Index w = begin; w < end; ++w) {
      T* to = dx + (row * v.in[2] + w) * v.channels;
      constexpr int most = 4;
      Index from[most], tap[most];
      int count = 0;
      bool adds = add;
      const auto flush = [&]() WENGERT_INLINE_LAMBDA {
        switch (count) {
          case 1:
            detail::max_spread<1>(from, tap, v.channels, g, at, to, adds);
            break;
          case 2:
            detail::max_spread<2>(from, tap, v.channels, g, at, to, adds);
            break;
          case 3:
            detail::max_spread<3>(from, tap, v.channels, g, at, to, adds);
            break;
          case 4:
            detail::max_spread<4>(from, tap, v.channels, g, at, to, adds);
            break;
          default:
            if (!adds) std::fill(to, to + v.channels, T(0));
        }
        count = 0;
        adds = true;
      };
      detail::for_pool_windows(v, d, h, w, [&](Index od, Index oh, Index ow, Index t) WENGERT_INLINE_LAMBDA {
        if (count == most) flush();
        from[count] = ((od * v.out[1] + oh) * v.out[2] + ow) * v.channels;
        tap[count++] = t;
      });
      flush();
    }
  };
  const PoolTables::View v = tables.view();
  detail::for_pool_rows(v.batch * v.in[0] * v.in[1], v.in[2], 4 * v.channels, body);
}

}  // namespace wengert::inline WENGERT_ISA::kernels
