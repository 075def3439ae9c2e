// Dual numbers: every derivative against central differences of the standard library, kinks, poles, nesting,
// mixing.
#include <cmath>
#include <limits>
#include <type_traits>

#include <gtest/gtest.h>

#include <wengert/kernels/dual.hpp>

namespace {

using wengert::Dual;
using wengert::kernels::Vec;

static_assert(wengert::Field<Dual<float>> && wengert::Field<Dual<double>> &&
              wengert::Field<Dual<Dual<double>>>);
static_assert(std::is_trivially_copyable_v<Dual<Vec<float>, 3>>);
static_assert(std::is_same_v<decltype(Dual<Vec<float>, 2>() < 1), wengert::kernels::Mask<float>>);
static_assert(std::is_same_v<decltype(Dual<double>() < 1), bool>);

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

// f: a generic lambda of two inputs; reference: the same function in plain doubles.
template <class F, class R>
void expect_derivatives(const char* name, F f, R reference, double x, double w) {
  SCOPED_TRACE(testing::Message() << name << " at " << x << ", " << w);
  const double h = 1e-5;
  const double y = reference(x, w);
  const double dx = (reference(x + h, w) - reference(x - h, w)) / (2 * h);
  const double dw = (reference(x, w + h) - reference(x, w - h)) / (2 * h);
  const double near = 1e-8 * (1 + std::abs(y) + std::abs(dx) + std::abs(dw));

  using V = Vec<double>;
  const Dual<V, 2> v = f(Dual<V, 2>::variable(x, 0), Dual<V, 2>::variable(w, 1));
  EXPECT_NEAR(v.value.get(0), y, near);
  EXPECT_NEAR(v.d[0].get(0), dx, near);
  EXPECT_NEAR(v.d[1].get(0), dw, near);
  const V plain = f(V(x), V(w));
  EXPECT_NEAR(plain.get(V::lanes - 1), y, near);

  using F32 = Vec<float>;
  const Dual<F32, 2> s = f(Dual<F32, 2>::variable(x, 0), Dual<F32, 2>::variable(w, 1));
  const double coarse = 2e-5 * (1 + std::abs(y) + std::abs(dx) + std::abs(dw));
  EXPECT_NEAR(s.value.get(0), y, coarse);
  EXPECT_NEAR(s.d[0].get(F32::lanes - 1), dx, coarse);
  EXPECT_NEAR(s.d[1].get(0), dw, coarse);

  // An element type: jvp through Vec, and reverse over it.
  using E = Vec<Dual<double>>;
  const E e = f(E(Dual<double>(x, 1.0)), E(Dual<double>(w, 0.0)));
  EXPECT_NEAR(e.v.value, y, near);
  EXPECT_NEAR(e.v.d[0], dx, near);
  const Dual<E, 2> m =
      f(Dual<E, 2>::variable(E(Dual<double>(x, 0.0)), 0), Dual<E, 2>::variable(E(Dual<double>(w, 1.0)), 1));
  EXPECT_NEAR(m.d[0].v.value, dx, near);
  EXPECT_NEAR(m.d[1].v.value, dw, near);
  // The mixed second derivative, against a difference of the first.
  const auto slope_at = [&](double ww) {
    return E(f(E(Dual<double>(x, 1.0)), E(Dual<double>(ww, 0.0)))).v.d[0];
  };
  const double dxw = (slope_at(w + h) - slope_at(w - h)) / (2 * h);
  EXPECT_NEAR(m.d[0].v.d[0], dxw, 1e-7 * (1 + std::abs(dxw)));
}

#define EXPECT_DERIVATIVES(expression, plain)                                                    \
  for (double x_ : {-1.7, -0.3, 0.4, 1.9})                                                       \
    for (double w_ : {0.6, 1.3})                                                                 \
  expect_derivatives(                                                                            \
      #expression, [=]([[maybe_unused]] auto x, [[maybe_unused]] auto w) { return expression; }, \
      [=]([[maybe_unused]] double x, [[maybe_unused]] double w) -> double { return plain; }, x_, w_)

TEST(Dual, ArithmeticMixesWithConstants) {
  const float f = 0.25f;
  const int i = 3;
  const double d = 1.5;
  EXPECT_DERIVATIVES(x * w + f, x * w + f);
  EXPECT_DERIVATIVES(x / w - i, x / w - i);
  EXPECT_DERIVATIVES(d / w + i * x, d / w + i * x);
  EXPECT_DERIVATIVES(i - x * w / d, i - x * w / d);
  EXPECT_DERIVATIVES(-x + +w, -x + w);
  EXPECT_DERIVATIVES(fma(x, w, 2), x * w + 2);
  EXPECT_DERIVATIVES((x += w, x *= 2, x -= f, x /= w, x), ((x + w) * 2 - f) / w);
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

TEST(Dual, Functions) {
  EXPECT_DERIVATIVES(exp(x * w), std::exp(x * w));
  EXPECT_DERIVATIVES(expm1(x * w), std::expm1(x * w));
  EXPECT_DERIVATIVES(log(x * x + w), std::log(x * x + w));
  EXPECT_DERIVATIVES(log1p(x * x * w), std::log1p(x * x * w));
  EXPECT_DERIVATIVES(tanh(x * w), std::tanh(x * w));
  EXPECT_DERIVATIVES(sigmoid(x * w), sigmoid(x * w));
  EXPECT_DERIVATIVES(erf(x * w), std::erf(x * w));
  EXPECT_DERIVATIVES(gelu(x * w), x * w / 2 * (1 + std::erf(x * w / std::sqrt(2.0))));
  EXPECT_DERIVATIVES(silu(x) * w, x * sigmoid(x) * w);
  EXPECT_DERIVATIVES(softplus(x * w), std::log1p(std::exp(x * w)));
  EXPECT_DERIVATIVES(relu(x) * w, (x > 0 ? x : 0) * w);
  EXPECT_DERIVATIVES(abs(x) * w, std::abs(x) * w);
  EXPECT_DERIVATIVES(square(x) * w, x * x * w);
  EXPECT_DERIVATIVES(sqrt(x * x + w), std::sqrt(x * x + w));
  EXPECT_DERIVATIVES(rsqrt(x * x + w), 1 / std::sqrt(x * x + w));
  EXPECT_DERIVATIVES(reciprocal(x) * w, w / x);
  EXPECT_DERIVATIVES(sin(x) * cos(w), std::sin(x) * std::cos(w));
  EXPECT_DERIVATIVES(sign(x) * w + floor(x) + round(w), (x > 0 ? w : -w) + std::floor(x) + std::nearbyint(w));
}

TEST(Dual, GeluTanh) {
  const double c = std::sqrt(2 / std::acos(-1.0));
  EXPECT_DERIVATIVES(gelu_tanh(x * w),
                     x * w / 2 * (1 + std::tanh(c * (x * w + 0.044715 * x * w * x * w * x * w))));
}

TEST(Dual, PowersAndChoices) {
  const double third = 1.0 / 3;
  EXPECT_DERIVATIVES(pow(abs(x), w), std::pow(std::abs(x), w));
  EXPECT_DERIVATIVES(pow(x, 2) * w, x * x * w);
  EXPECT_DERIVATIVES(pow(x, 3.0) + pow(w, -0.5), x * x * x + 1 / std::sqrt(w));
  EXPECT_DERIVATIVES(pow(w, third) * x, std::pow(w, third) * x);
  EXPECT_DERIVATIVES(pow(2.f, x) * w, std::pow(2.0, x) * w);
  EXPECT_DERIVATIVES(where(x > w, x * x, 0.1f * w), x > w ? x * x : 0.1 * w);
  EXPECT_DERIVATIVES(where(x > 0, 1, 0) * w, x > 0 ? w : 0);
  EXPECT_DERIVATIVES(max(x, 0.f) + min(w, 1) + maximum(x, w) * minimum(2, x),
                     std::max(x, 0.0) + std::min(w, 1.0) + std::max(x, w) * std::min(2.0, x));
  EXPECT_DERIVATIVES(clamp(x, -1, w), std::min(std::max(x, -1.0), w));
}

Dual<double> at(double x, double dx = 1) { return {x, dx}; }

TEST(Dual, Kinks) {
  EXPECT_EQ(relu(at(0)).d[0], 0);
  EXPECT_EQ(abs(at(0)).d[0], 0);
  EXPECT_EQ(sign(at(0)).d[0], 0);
  EXPECT_EQ(clamp(at(1), 0, 1).d[0], 1);
  EXPECT_EQ(clamp(at(0), 0, 1).d[0], 1);
  EXPECT_EQ(clamp(at(1.5), 0, 1).d[0], 0);
  EXPECT_EQ(max(at(2, 1), at(2, 3)).d[0], 2);
  EXPECT_EQ(min(at(2, 1), 2).d[0], 0.5);
  EXPECT_EQ(pow(at(0, 1), 0).d[0], 0);
  EXPECT_EQ(pow(at(0, 1), at(0, 0)).value, 1);
  EXPECT_EQ(pow(at(0, 1), at(0, 1)).d[0], 0);
  EXPECT_EQ(pow(0.0, at(0, 1)).d[0], 0);
  EXPECT_EQ(pow(at(0, 1), at(2, 1)).d[0], 0);
}

TEST(Dual, AnInfiniteSlopeMeetsOnlyPartialsThatAreNotZero) {
  EXPECT_EQ(sqrt(at(0, 1)).d[0], inf);
  EXPECT_EQ(sqrt(at(0, 0)).value, 0);
  EXPECT_EQ(log(at(0, 1)).d[0], inf);
  for (const auto& y :
       {sqrt(at(0, 0)), log(at(0, 0)), rsqrt(at(0, 0)), reciprocal(at(0, 0)), pow(at(0, 0), 0.5),
        log1p(at(-1, 0)), at(1, 0) / at(0, 0), 1 / at(0, 0), at(1, 0) / 0.0})
    EXPECT_EQ(y.d[0], 0);
  using V = Dual<Vec<float>, 2>;
  const V y = sqrt(V::variable(0, 0)) + V::variable(1, 1);
  EXPECT_EQ(y.d[0].get(0), inf);
  EXPECT_EQ(y.d[1].get(0), 1);
  // A nested partial counts as zero only with all its own partials.
  using DD = Dual<Dual<double>>;
  const DD x(Dual<double>(0, 1), Dual<double>(0, 1));
  EXPECT_EQ(log1p(x).d[0].d[0], 1);
}

TEST(Dual, WhereLeavesNoTraceOfTheOtherBranch) {
  using V = Dual<Vec<double>, 1>;
  const V x = V::variable(0, 0);
  const V y = where(x > 0, log(x), 3 * x), z = where(x <= 0, x, x * nan);
  EXPECT_EQ(y.value.get(0), 0);
  EXPECT_EQ(y.d[0].get(0), 3);
  EXPECT_EQ(z.d[0].get(0), 1);
}

TEST(Dual, ExtremesHaveFiniteSlopes) {
  for (double x : {-inf, -800.0, -100.0, 100.0, 800.0, inf}) {
    const double one = x > 0 ? 1 : 0;
    EXPECT_NEAR(sigmoid(at(x)).d[0], 0, 1e-40) << x;
    EXPECT_EQ(tanh(at(x)).d[0], 0) << x;
    EXPECT_EQ(gelu(at(x)).d[0], one) << x;
    EXPECT_EQ(gelu_tanh(at(x)).d[0], one) << x;
    EXPECT_NEAR(silu(at(x)).d[0], one, 1e-40) << x;
    EXPECT_NEAR(softplus(at(x)).d[0], one, 1e-40) << x;
    using V = Dual<Vec<float>>;
    EXPECT_EQ(gelu(V::variable(x)).d[0].get(0), one) << x;
    EXPECT_EQ(gelu_tanh(V::variable(x)).d[0].get(0), one) << x;
    EXPECT_NEAR(sigmoid(V::variable(x)).d[0].get(0), 0, 1e-35) << x;
    EXPECT_NEAR(silu(V::variable(x)).d[0].get(0), one, 1e-35) << x;
    EXPECT_NEAR(softplus(V::variable(x)).d[0].get(0), one, 1e-35) << x;
  }
}

TEST(Dual, SecondDerivatives) {
  using DD = Dual<Dual<double>>;
  const auto twice = [](double x) { return DD(Dual<double>(x, 1), Dual<double>(1, 0)); };
  const double x = 0.7, t = std::tanh(x);
  EXPECT_NEAR(tanh(twice(x)).d[0].d[0], -2 * t * (1 - t * t), 1e-14);
  EXPECT_NEAR(pow(twice(x), 3).d[0].d[0], 6 * x, 1e-14);
  EXPECT_NEAR(sqrt(twice(x)).d[0].d[0], -0.25 * std::pow(x, -1.5), 1e-14);
  EXPECT_NEAR((1 / twice(x)).d[0].d[0], 2 / (x * x * x), 1e-13);
  EXPECT_TRUE(twice(1) < twice(2));
  EXPECT_TRUE(twice(1) == 1);
}

}  // namespace
