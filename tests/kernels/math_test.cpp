// The functions of Vec<float> and Vec<double> against long double references: dense sweeps for the promises
// of math.hpp, extremes, and tails that equal the body bit by bit.
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <vector>

#include <gtest/gtest.h>

#include <wengert/kernels/math.hpp>

namespace {

using wengert::Index;
using wengert::kernels::Vec;

template <class T>
constexpr T inf = std::numeric_limits<T>::infinity();
template <class T>
constexpr T nan = std::numeric_limits<T>::quiet_NaN();

// Error of y in units in the last place of the reference; results below the normal range may be flushed.
template <class T>
double ulp_error(T y, long double reference) {
  const auto r = static_cast<T>(reference);
  if (std::isinf(r) || std::isinf(y)) return y == r ? 0 : 1e30;
  const T size = std::abs(r);
  const T unit = std::max(std::nextafter(size, inf<T>) - size, std::numeric_limits<T>::denorm_min());
  if (size < std::numeric_limits<T>::min() && y == 0) return 0;
  return static_cast<double>(std::abs(static_cast<long double>(y) - reference) /
                             static_cast<long double>(unit));
}

// Evenly spaced numbers of [lo, hi] and, per sign, evenly spaced bit patterns: every exponent gets its share.
template <class T>
std::vector<T> sweep(double lo, double hi, std::size_t n) {
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  std::vector<T> x;
  for (std::size_t i = 0; i < n; ++i)
    x.push_back(static_cast<T>(lo + (hi - lo) * static_cast<double>(i) / static_cast<double>(n - 1)));
  const auto patterns = [&](T from, T to, T sign) {
    const Bits first = std::bit_cast<Bits>(from), last = std::bit_cast<Bits>(to);
    const Bits step = (last - first) / static_cast<Bits>(n) + 1;
    for (Bits b = first; b <= last && last - b >= step; b += step) x.push_back(sign * std::bit_cast<T>(b));
  };
  if (hi > 0) patterns(static_cast<T>(std::max(lo, 0.0)), static_cast<T>(hi), T(1));
  if (lo < 0) patterns(static_cast<T>(std::max(-hi, 0.0)), static_cast<T>(-lo), T(-1));
  return x;
}

// Worst error of f over the sweep; `scale` turns ULP into another measure when it is not null.
template <class T, class F, class R>
void expect_ulp(const char* name, F f, R reference, double lo, double hi, double promise) {
  double worst = 0;
  T where_worst = 0;
  const auto x = sweep<T>(lo, hi, sizeof(T) == 4 ? 100000 : 30000);
  constexpr Index lanes = Vec<T>::lanes;
  for (std::size_t i = 0; i < x.size(); i += lanes) {
    const Index n = std::min(lanes, static_cast<Index>(x.size() - i));
    T y[lanes];
    f(Vec<T>::load_partial(&x[i], n)).store(y);
    for (Index k = 0; k < n; ++k) {
      const T at = x[i + static_cast<std::size_t>(k)];
      const double e = ulp_error<T>(y[k], reference(static_cast<long double>(at)));
      if (!(e <= worst)) worst = e, where_worst = at;
    }
  }
  EXPECT_LE(worst, promise) << name << " at " << where_worst;
}

using L = long double;
L gelu_reference(L x) { return x / 2 * std::erfc(-x / std::numbers::sqrt2_v<L>); }
L softplus_reference(L x) { return std::max(x, L(0)) + std::log1p(std::exp(-std::abs(x))); }

#define EXPECT_ULP(T, call, plain, lo, hi, promise) \
  expect_ulp<T>(                                    \
      #call, [](auto x) { return call; }, [](L x) -> L { return plain; }, lo, hi, promise)

TEST(Math, FloatKeepsItsPromises) {
  EXPECT_ULP(float, exp(x), std::exp(x), -87.33, 88.7228, 1.1);
  EXPECT_ULP(float, expm1(x), std::expm1(x), -90, 88.7228, 1.7);
  EXPECT_ULP(float, log(x), std::log(x), 1e-45, 3e38, 0.9);
  EXPECT_ULP(float, log(x), std::log(x), 0.5, 2, 0.9);
  EXPECT_ULP(float, log1p(x), std::log1p(x), -0.999999, 10, 1.5);
  EXPECT_ULP(float, log1p(x), std::log1p(x), 0, 3e38, 1.5);
  EXPECT_ULP(float, tanh(x), std::tanh(x), -12, 12, 5.2);
  EXPECT_ULP(float, sigmoid(x), 1 / (1 + std::exp(-x)), -87, 30, 2.3);
  EXPECT_ULP(float, silu(x), x / (1 + std::exp(-x)), -80, 30, 3);
  EXPECT_ULP(float, softplus(x), softplus_reference(x), -80, 100, 3);
  EXPECT_ULP(float, sin(x), std::sin(x), -1e4, 1e4, 2.2);
  EXPECT_ULP(float, cos(x), std::cos(x), -1e4, 1e4, 2.2);
  EXPECT_ULP(float, sin(x), std::sin(x), 1e4, 1e30, 2.2);
  EXPECT_ULP(float, rsqrt(x), 1 / std::sqrt(x), 1e-37, 3e38, 1.5);
  EXPECT_ULP(float, pow(x, 2.7), std::pow(x, L(2.7f)), 1e-12, 1e12, 1);
  EXPECT_ULP(float, pow(x, -3.3), std::pow(x, L(-3.3f)), 1e-10, 1e10, 1);
  EXPECT_ULP(float, pow(1.7, x), std::pow(L(1.7f), x), -120, 120, 1);
  EXPECT_ULP(float, pow(x, 0.5), std::sqrt(x), 0, 3e38, 1);
}

TEST(Math, DoubleKeepsItsPromises) {
  EXPECT_ULP(double, exp(x), std::exp(x), -708, 709.4, 1.5);
  EXPECT_ULP(double, expm1(x), std::expm1(x), -50, 709, 2);
  EXPECT_ULP(double, log(x), std::log(x), 5e-324, 1e308, 0.9);
  EXPECT_ULP(double, log(x), std::log(x), 0.5, 2, 0.9);
  EXPECT_ULP(double, log1p(x), std::log1p(x), -0.999, 1e10, 1.5);
  EXPECT_ULP(double, tanh(x), std::tanh(x), -22, 22, 1.3);
  EXPECT_ULP(double, sigmoid(x), 1 / (1 + std::exp(-x)), -700, 50, 3);
  EXPECT_ULP(double, silu(x), x / (1 + std::exp(-x)), -700, 50, 4);
  EXPECT_ULP(double, softplus(x), softplus_reference(x), -700, 1000, 3);
  EXPECT_ULP(double, erf(x), std::erf(x), -7, 7, 1e-14 / 1.1e-16);
  EXPECT_ULP(double, sin(x), std::sin(x), -1e4, 1e4, 2.2);
  EXPECT_ULP(double, cos(x), std::cos(x), -1e4, 1e4, 2.2);
  EXPECT_ULP(double, pow(x, 2.7), std::pow(x, L(2.7)), 1e-100, 1e100, 1);
}

// Functions whose promise is absolute, in units of max(1, |x|).
template <class T, class F, class R>
void expect_absolute(const char* name, F f, R reference, double promise) {
  for (T x : sweep<T>(-12, 12, 20000)) {
    const L y = f(Vec<T>(x)).get(0), r = reference(static_cast<L>(x));
    ASSERT_LE(std::abs(y - r) / std::max(L(1), std::abs(static_cast<L>(x))), promise) << name << " at " << x;
  }
}

TEST(Math, GeluAndErfAreAbsolutelyClose) {
  const auto gelu_of = [](auto x) { return gelu(x); };
  const auto gelu_tanh_of = [](auto x) { return gelu_tanh(x); };
  const auto tanh_form = [](L x) {
    return x / 2 * (1 + std::tanh(std::sqrt(2 / std::numbers::pi_v<L>) * (x + 0.044715L * x * x * x)));
  };
  expect_absolute<float>(
      "erf", [](auto x) { return erf(x); }, [](L x) { return std::erf(x); }, 4.5e-7);
  expect_absolute<float>("gelu", gelu_of, gelu_reference, 6e-7);
  expect_absolute<double>("gelu", gelu_of, gelu_reference, 1e-14);
  expect_absolute<float>("gelu_tanh", gelu_tanh_of, tanh_form, 6e-7);
  expect_absolute<double>("gelu_tanh", gelu_tanh_of, tanh_form, 1e-14);
}

template <class T>
class MathExtremes : public testing::Test {};
using FloatTypes = testing::Types<float, double>;
TYPED_TEST_SUITE(MathExtremes, FloatTypes);

TYPED_TEST(MathExtremes, Values) {
  using T = TypeParam;
  using V = Vec<T>;
  const auto same = [](V y, T expected) {
    const T v = y.get(V::lanes - 1);
    return (std::isnan(v) && std::isnan(expected)) || v == expected;
  };
  EXPECT_TRUE(same(exp(V(inf<T>)), inf<T>));
  EXPECT_TRUE(same(exp(V(-inf<T>)), 0));
  EXPECT_TRUE(same(exp(V(-1000)), 0));
  EXPECT_TRUE(same(exp(V(1000)), inf<T>));
  EXPECT_TRUE(same(exp(V(0)), 1));
  EXPECT_TRUE(same(expm1(V(-inf<T>)), -1));
  EXPECT_TRUE(same(expm1(V(inf<T>)), inf<T>));
  EXPECT_TRUE(same(log(V(0)), -inf<T>));
  EXPECT_TRUE(same(log(V(-0.0)), -inf<T>));
  EXPECT_TRUE(same(log(V(inf<T>)), inf<T>));
  EXPECT_TRUE(same(log(V(1)), 0));
  EXPECT_TRUE(same(log(V(-1)), nan<T>));
  EXPECT_TRUE(same(log(V(-inf<T>)), nan<T>));
  EXPECT_TRUE(same(log1p(V(-1)), -inf<T>));
  EXPECT_TRUE(same(log1p(V(-2)), nan<T>));
  EXPECT_TRUE(same(log1p(V(inf<T>)), inf<T>));
  EXPECT_TRUE(same(log1p(V(0)), 0));
  for (T x : {T(40), T(1e30), inf<T>}) {
    EXPECT_TRUE(same(tanh(V(x)), 1)) << x;
    EXPECT_TRUE(same(tanh(V(-x)), -1)) << x;
    EXPECT_TRUE(same(erf(V(x)), 1)) << x;
    EXPECT_TRUE(same(erf(V(-x)), -1)) << x;
    EXPECT_TRUE(same(gelu(V(x)), x)) << x;
    EXPECT_TRUE(same(gelu(V(-x)), 0)) << x;
    EXPECT_TRUE(same(gelu_tanh(V(x)), x)) << x;
    EXPECT_TRUE(same(gelu_tanh(V(-x)), 0)) << x;
    EXPECT_TRUE(same(softplus(V(x)), x)) << x;
  }
  EXPECT_TRUE(same(sigmoid(V(-800)), 0));
  EXPECT_TRUE(same(sigmoid(V(800)), 1));
  EXPECT_TRUE(same(sigmoid(V(-inf<T>)), 0));
  EXPECT_TRUE(same(silu(V(-inf<T>)), 0));
  EXPECT_TRUE(same(silu(V(inf<T>)), inf<T>));
  EXPECT_TRUE(same(softplus(V(-inf<T>)), 0));
  EXPECT_TRUE(same(relu(V(-3)), 0));
  EXPECT_TRUE(same(sign(V(-3)), -1));
  EXPECT_TRUE(same(sign(V(0)), 0));
  EXPECT_TRUE(same(reciprocal(V(0)), inf<T>));
  EXPECT_TRUE(same(sin(V(inf<T>)), nan<T>));
}

TYPED_TEST(MathExtremes, NanInNanOut) {
  using V = Vec<TypeParam>;
  for (const TypeParam x : {nan<TypeParam>, -nan<TypeParam>}) {
    const V v(x);
    for (auto y : {exp(v),         expm1(v),     log(v),   log1p(v),    tanh(v),    sigmoid(v), erf(v),
                   gelu(v),        gelu_tanh(v), silu(v),  softplus(v), relu(v),    square(v),  pow(v, 2),
                   pow(v, V(1.3)), pow(V(2), v), sin(v),   cos(v),      sqrt(v),    rsqrt(v),   reciprocal(v),
                   sign(v),        abs(v),       floor(v), round(v),    pow(v, 0.5)})
      EXPECT_TRUE(all(isnan(y)));
  }
}

TYPED_TEST(MathExtremes, PowHasIeeeSpecialValues) {
  using T = TypeParam;
  const T values[] = {0, T(-0.0), 1,      -1,     2,       -2,     T(0.5), T(-0.5),
                      3, -3,      T(2.5), inf<T>, -inf<T>, nan<T>, T(1e10)};
  for (T a : values)
    for (T b : values) {
      const T expected = std::pow(a, b);
      for (T y : {pow(Vec<T>(a), Vec<T>(b)).get(0), pow(Vec<T>(a), b).get(0)}) {
        EXPECT_TRUE(std::isnan(y) == std::isnan(expected)) << a << "^" << b << " gave " << y;
        if (std::isnan(expected)) continue;
        EXPECT_LE(ulp_error<T>(y, expected), 2) << a << "^" << b;
        EXPECT_EQ(std::signbit(y), std::signbit(expected)) << a << "^" << b;
      }
    }
}

// A tail is a partly loaded Vec: each element has the bits it has in a full one, whatever its neighbours.
TYPED_TEST(MathExtremes, TailsEqualBodies) {
  using T = TypeParam;
  using V = Vec<T>;
  const auto check = [](auto f) {
    std::vector<T> in, full(64), out(64);
    for (int i = 0; i < 64; ++i) in.push_back(static_cast<T>(0.37 * (i - 20)));
    in[7] = nan<T>, in[9] = inf<T>, in[11] = T(0), in[13] = std::numeric_limits<T>::denorm_min();
    for (std::size_t i = 0; i < 64; i += V::lanes) f(V::load(&in[i])).store(&full[i]);
    for (Index n = 1; n <= V::lanes; ++n)
      for (Index i = 0; i + n <= 64; i += n) {
        f(V::load_partial(&in[static_cast<std::size_t>(i)], n))
            .store_partial(&out[static_cast<std::size_t>(i)], n);
        for (Index k = i; k < i + n; ++k) {
          const T a = out[static_cast<std::size_t>(k)], b = full[static_cast<std::size_t>(k)];
          EXPECT_TRUE(a == b || (a != a && b != b)) << n << " " << k << ": " << a << " and " << b;
        }
      }
  };
  check([](V x) { return exp(x); });
  check([](V x) { return log(x) + log1p(x); });
  check([](V x) { return tanh(x) + erf(x); });
  check([](V x) { return gelu(x) + silu(x) + softplus(x); });
  check([](V x) { return sin(x) + cos(x) + pow(x, V(3)); });
}

TEST(Math, OtherTypesUseTheirOwnFunctions) {
  const Vec<long double> x(0.3L);
  EXPECT_EQ(tanh(x).v, std::tanh(0.3L));
  EXPECT_NEAR(static_cast<double>(gelu(x).v), static_cast<double>(gelu_reference(0.3L)), 1e-17);
  EXPECT_EQ(pow(x, 3).v, 0.3L * 0.3L * 0.3L);
  EXPECT_EQ(relu(Vec<int>(-2)).v, 0);
  EXPECT_EQ(abs(Vec<int>(-2)).v, 2);
}

}  // namespace
