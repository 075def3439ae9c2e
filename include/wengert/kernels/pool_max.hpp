// The largest element of each window of an image, and its gradient: vectors over channels. Floor: kernels.
#pragma once

#include <wengert/kernels/pool_gather.hpp>
#include <wengert/kernels/pool_place.hpp>
#include <wengert/kernels/runs.hpp>

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

}  // namespace detail

/// y = the largest element of each window, NaN if there is one, -inf of none; `place`, unless of void, gets
/// the number of its tap: the first of the largest, the last NaN.
template <Scalar T, class Place>
void max_pool(const PoolWindow& window, const T* x, T* y, Place* place) {
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
      detail::for_channel_strips<T>(v.channels, strip);
    }
  };
  const PoolTables::View v = tables.view();
  detail::for_pool_rows(v.batch * v.out[0] * v.out[1], v.out[2], v.channels * window.taps(), body);
}

/// dx[i] (+)= the sum of dy over the windows that i won.
template <Scalar T, class Place>
void max_pool_vjp(const PoolWindow& window, const T* dy, const Place* place, T* dx, bool add) {
  using V = Vec<T>;
  const Index image_size = window.window.outputs() * window.window.channels;
  pool_gather(window, dx, add, [=](Index image, const PoolTerm* terms) WENGERT_INLINE_LAMBDA {
    return [=, g = dy + image * image_size, p = place + image * image_size](int i, Index c,
                                                                            Index n) WENGERT_INLINE_LAMBDA {
      const Index at = terms[i].from + c;
      return where(detail::places_equal<T>(p + at, n, terms[i].tap), load_n(g + at, n), V::broadcast(T(0)));
    };
  });
}

}  // namespace wengert::inline WENGERT_ISA::kernels
