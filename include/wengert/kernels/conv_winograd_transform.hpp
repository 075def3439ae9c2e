// The small linear maps of Winograd's convolution with 3 x 3 taps, along one axis and along both. Floor:
// kernels.
#pragma once

#include <wengert/kernels/vec.hpp>

namespace wengert::inline WENGERT_ISA::kernels::detail {

/// F(M, 3): M outputs of a tile come from M + 2 inputs by M + 2 products instead of 3 M. With V = B^T d, U =
/// G g and the products X = U V, y = A^T X (Lavin and Gray, arXiv:1509.09308). Points 0, 1, -1 and infinity
/// for M = 2; also 2 and -2 for M = 4. `Vec` values are channels.
template <int M>
struct WinogradAxis;

template <>
struct WinogradAxis<2> {
  static constexpr int outputs = 2, points = 4;

  template <class V>
  static WENGERT_INLINE void input(const V (&d)[4], V (&v)[4]) noexcept {
    v[0] = d[0] - d[2];
    v[1] = d[1] + d[2];
    v[2] = d[2] - d[1];
    v[3] = d[1] - d[3];
  }
  template <class V>
  static WENGERT_INLINE void output(const V (&x)[4], V (&y)[2]) noexcept {
    y[0] = x[0] + x[1] + x[2];
    y[1] = x[1] - x[2] - x[3];
  }
  template <class V>
  static WENGERT_INLINE void output_adjoint(const V (&y)[2], V (&x)[4]) noexcept {
    x[0] = y[0];
    x[1] = y[0] + y[1];
    x[2] = y[0] - y[1];
    x[3] = -y[1];
  }
  template <class V>
  static WENGERT_INLINE void weights(const V (&g)[3], V (&u)[4]) noexcept {
    using T = typename V::value_type;
    const V half(T(0.5)), ends = half * (g[0] + g[2]), middle = half * g[1];
    u[0] = g[0];
    u[1] = ends + middle;
    u[2] = ends - middle;
    u[3] = g[2];
  }
  template <class V>
  static WENGERT_INLINE void weights_adjoint(const V (&u)[4], V (&g)[3]) noexcept {
    using T = typename V::value_type;
    const V half(T(0.5)), sum = half * (u[1] + u[2]);
    g[0] = u[0] + sum;
    g[1] = half * (u[1] - u[2]);
    g[2] = sum + u[3];
  }
};

template <>
struct WinogradAxis<4> {
  static constexpr int outputs = 4, points = 6;

  template <class V>
  static WENGERT_INLINE void input(const V (&d)[6], V (&v)[6]) noexcept {
    using T = typename V::value_type;
    const V two(T(2)), four(T(4)), five(T(5));
    const V even = d[4] - four * d[2], odd = d[3] - four * d[1];
    const V even2 = d[4] - d[2], odd2 = two * (d[3] - d[1]);
    v[0] = fma(four, d[0], d[4] - five * d[2]);
    v[1] = even + odd;
    v[2] = even - odd;
    v[3] = even2 + odd2;
    v[4] = even2 - odd2;
    v[5] = fma(four, d[1], d[5] - five * d[3]);
  }
  template <class V>
  static WENGERT_INLINE void output(const V (&x)[6], V (&y)[4]) noexcept {
    using T = typename V::value_type;
    const V two(T(2)), four(T(4)), eight(T(8));
    const V sum1 = x[1] + x[2], difference1 = x[1] - x[2], sum2 = x[3] + x[4], difference2 = x[3] - x[4];
    y[0] = x[0] + sum1 + sum2;
    y[1] = fma(two, difference2, difference1);
    y[2] = fma(four, sum2, sum1);
    y[3] = fma(eight, difference2, difference1 + x[5]);
  }
  template <class V>
  static WENGERT_INLINE void output_adjoint(const V (&y)[4], V (&x)[6]) noexcept {
    using T = typename V::value_type;
    const V two(T(2)), four(T(4)), eight(T(8));
    const V even = y[0] + y[2], odd = y[1] + y[3];
    const V even2 = fma(four, y[2], y[0]), odd2 = fma(eight, y[3], two * y[1]);
    x[0] = y[0];
    x[1] = even + odd;
    x[2] = even - odd;
    x[3] = even2 + odd2;
    x[4] = even2 - odd2;
    x[5] = y[3];
  }
  template <class V>
  static WENGERT_INLINE void weights(const V (&g)[3], V (&u)[6]) noexcept {
    using T = typename V::value_type;
    const V sixth(T(-1) / T(6)), quarter(T(0.25)), two(T(2)), four(T(4)), small(T(1) / T(24));
    const V ends = sixth * (g[0] + g[2]), middle = sixth * g[1];
    const V ends2 = small * fma(four, g[2], g[0]), middle2 = small * (two * g[1]);
    u[0] = quarter * g[0];
    u[1] = ends + middle;
    u[2] = ends - middle;
    u[3] = ends2 + middle2;
    u[4] = ends2 - middle2;
    u[5] = g[2];
  }
  template <class V>
  static WENGERT_INLINE void weights_adjoint(const V (&u)[6], V (&g)[3]) noexcept {
    using T = typename V::value_type;
    const V sixth(T(-1) / T(6)), quarter(T(0.25)), two(T(2)), four(T(4)), small(T(1) / T(24));
    const V sum = sixth * (u[1] + u[2]), sum2 = small * (u[3] + u[4]);
    g[0] = fma(quarter, u[0], sum + sum2);
    g[1] = fma(two * small, u[3] - u[4], sixth * (u[1] - u[2]));
    g[2] = fma(four, sum2, sum) + u[5];
  }
};

/// out = f along both axes of in, columns first.
template <int In, int Out, class V, class F>
WENGERT_INLINE void transform_both(const V (&in)[In][In], V (&out)[Out][Out], F f) noexcept {
  V half[Out][In];
#pragma GCC unroll 6
  for (int s = 0; s < In; ++s) {
    V column[In], mapped[Out];
#pragma GCC unroll 6
    for (int r = 0; r < In; ++r) column[r] = in[r][s];
    f(column, mapped);
#pragma GCC unroll 6
    for (int r = 0; r < Out; ++r) half[r][s] = mapped[r];
  }
#pragma GCC unroll 6
  for (int r = 0; r < Out; ++r) f(half[r], out[r]);
}

/// Calls f(begin, load, store) for whole vectors of n elements, then for the rest, if any.
template <class T, class F>
WENGERT_INLINE void for_channel_vectors(Index n, F f) noexcept {
  using V = Vec<T>;
  Index c = 0;
  for (; c + V::lanes <= n; c += V::lanes)
    f(
        c, [](const T* p) WENGERT_INLINE_LAMBDA { return V::load(p); },
        [](V v, T* p) WENGERT_INLINE_LAMBDA { v.store(p); });
  const Index left = n - c;
  if (left > 0)
    f(
        c, [left](const T* p) WENGERT_INLINE_LAMBDA { return V::load_partial(p, left); },
        [left](V v, T* p) WENGERT_INLINE_LAMBDA { v.store_partial(p, left); });
}

}  // namespace wengert::inline WENGERT_ISA::kernels::detail
