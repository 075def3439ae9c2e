// The small linear maps of Winograd's convolution with 3 x 3 taps, along one axis and along both. Floor:
// kernels.
#pragma once

#include <wengert/kernels/runs.hpp>

namespace wengert::inline WENGERT_ISA::kernels::detail {

/// F(M, 3): M outputs of a tile come from M + 2 inputs by M + 2 products instead of 3 M. With V = B^T d, U =
/// G g and the products X = U V, y = A^T X (Lavin and Gray, arXiv:1509.09308). Points 0, 1, -1 and infinity
/// for M = 2; 0, +-3/4, +-3/2 and infinity for M = 4, with a quarter of the rounding error of 0, +-1 and
/// +-2. `Vec` values are channels.
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
  // The finite points other than 0, and their squares: exact in float, as are all coefficients but the
  // weights'.
  static constexpr double a = 0.75, b = 1.5, a2 = a * a, b2 = b * b;
  // What the weights are scaled by at 0, +-a and +-b.
  static constexpr double zero = 1 / (a2 * b2);
  static constexpr double near = 1 / (2 * a2 * (a2 - b2)), far = 1 / (2 * b2 * (b2 - a2));

  template <class V>
  static WENGERT_INLINE void input(const V (&d)[6], V (&v)[6]) noexcept {
    const V even_a = fma(V(-b2), d[2], d[4]), odd_a = fma(V(-b2), d[1], d[3]);
    const V even_b = fma(V(-a2), d[2], d[4]), odd_b = fma(V(-a2), d[1], d[3]);
    v[0] = fma(V(a2 * b2), d[0], fma(V(-a2 - b2), d[2], d[4]));
    v[1] = fma(V(a), odd_a, even_a);
    v[2] = fma(V(-a), odd_a, even_a);
    v[3] = fma(V(b), odd_b, even_b);
    v[4] = fma(V(-b), odd_b, even_b);
    v[5] = fma(V(a2 * b2), d[1], fma(V(-a2 - b2), d[3], d[5]));
  }
  template <class V>
  static WENGERT_INLINE void output(const V (&x)[6], V (&y)[4]) noexcept {
    const V even_a = x[1] + x[2], odd_a = x[1] - x[2], even_b = x[3] + x[4], odd_b = x[3] - x[4];
    y[0] = x[0] + (even_a + even_b);
    y[1] = fma(V(b), odd_b, V(a) * odd_a);
    y[2] = fma(V(b2), even_b, V(a2) * even_a);
    y[3] = fma(V(b2 * b), odd_b, fma(V(a2 * a), odd_a, x[5]));
  }
  template <class V>
  static WENGERT_INLINE void output_adjoint(const V (&y)[4], V (&x)[6]) noexcept {
    const V even_a = fma(V(a2), y[2], y[0]), odd_a = fma(V(a2), y[3], y[1]);
    const V even_b = fma(V(b2), y[2], y[0]), odd_b = fma(V(b2), y[3], y[1]);
    x[0] = y[0];
    x[1] = fma(V(a), odd_a, even_a);
    x[2] = fma(V(-a), odd_a, even_a);
    x[3] = fma(V(b), odd_b, even_b);
    x[4] = fma(V(-b), odd_b, even_b);
    x[5] = y[3];
  }
  template <class V>
  static WENGERT_INLINE void weights(const V (&g)[3], V (&u)[6]) noexcept {
    const V even_a = V(near) * fma(V(a2), g[2], g[0]), odd_a = V(near * a) * g[1];
    const V even_b = V(far) * fma(V(b2), g[2], g[0]), odd_b = V(far * b) * g[1];
    u[0] = V(zero) * g[0];
    u[1] = even_a + odd_a;
    u[2] = even_a - odd_a;
    u[3] = even_b + odd_b;
    u[4] = even_b - odd_b;
    u[5] = g[2];
  }
  template <class V>
  static WENGERT_INLINE void weights_adjoint(const V (&u)[6], V (&g)[3]) noexcept {
    const V even_a = V(near) * (u[1] + u[2]), odd_a = V(near * a) * (u[1] - u[2]);
    const V even_b = V(far) * (u[3] + u[4]), odd_b = V(far * b) * (u[3] - u[4]);
    g[0] = fma(V(zero), u[0], even_a + even_b);
    g[1] = odd_a + odd_b;
    g[2] = fma(V(a2), even_a, fma(V(b2), even_b, u[5]));
  }
};

/// Rows of points: all, known to the compiler, or some.
template <int Out>
struct AllRows {
  static constexpr int begin = 0, end = Out;
};
struct SomeRows {
  int begin, end;
};

/// Maps values get(r, s) along both axes by f, columns first, and calls put(r, s, value) for each result of
/// `rows`. Values are fetched and put one line at a time: all of them would not fit the
/// registers.
template <class V, int In, int Out, class Get, class Put, class F, class Rows = AllRows<Out>>
WENGERT_INLINE void transform_both(Get get, Put put, F f, Rows rows = {}) noexcept {
  V half[Out][In];
#pragma GCC unroll 6
  for (int s = 0; s < In; ++s) {
    V column[In], mapped[Out];
#pragma GCC unroll 6
    for (int r = 0; r < In; ++r) column[r] = get(r, s);
    f(column, mapped);
#pragma GCC unroll 6
    for (int r = 0; r < Out; ++r) half[r][s] = mapped[r];
  }
#pragma GCC unroll 6
  for (int r = rows.begin; r < rows.end; ++r) {
    V mapped[Out];
    f(half[r], mapped);
#pragma GCC unroll 6
    for (int s = 0; s < Out; ++s) put(r, s, mapped[s]);
  }
}

}  // namespace wengert::inline WENGERT_ISA::kernels::detail
