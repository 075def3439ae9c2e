// Vec and Mask: lanes, partial loads and stores, NaN rules, mixing with constants.
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include <wengert/kernels/vec.hpp>

namespace {

using wengert::Byte;
using wengert::Index;
using wengert::kernels::Mask;
using wengert::kernels::Vec;

template <class T>
class VecTest : public testing::Test {};
using Types = testing::Types<float, double, int, std::int64_t, std::uint8_t, long double>;
TYPED_TEST_SUITE(VecTest, Types);

template <class T>
std::vector<T> counted(Index n) {
  std::vector<T> v(static_cast<std::size_t>(n));
  std::iota(v.begin(), v.end(), T(1));
  return v;
}

TYPED_TEST(VecTest, LoadsAndStoresEveryLane) {
  using V = Vec<TypeParam>;
  const auto in = counted<TypeParam>(V::lanes + 1);
  std::vector<TypeParam> out(static_cast<std::size_t>(V::lanes + 2), TypeParam(99));
  V::load(in.data() + 1).store(out.data() + 1);
  EXPECT_EQ(out.front(), TypeParam(99));
  EXPECT_EQ(out.back(), TypeParam(99));
  for (Index i = 0; i < V::lanes; ++i) {
    EXPECT_EQ(out[static_cast<std::size_t>(i + 1)], static_cast<TypeParam>(i + 2));
    EXPECT_EQ(V::load(in.data()).get(i), static_cast<TypeParam>(i + 1));
  }
}

// Sizes 1..35 as body and tail; the buffer ends exactly at n, so that the address sanitizer sees any reach
// beyond it.
TYPED_TEST(VecTest, PartialLoadsAndStoresKeepToTheirElements) {
  using V = Vec<TypeParam>;
  for (Index n = 1; n <= 35; ++n) {
    const auto in = counted<TypeParam>(n);
    std::vector<TypeParam> out(static_cast<std::size_t>(n + 2), TypeParam(77));
    Index i = 0;
    for (; i + V::lanes <= n; i += V::lanes) (V::load(in.data() + i) + 1).store(out.data() + 1 + i);
    const V tail = V::load_partial(in.data() + i, n - i);
    for (Index k = n - i; k < V::lanes; ++k) EXPECT_EQ(tail.get(k), TypeParam(0));
    (tail + 1).store_partial(out.data() + 1 + i, n - i);
    EXPECT_EQ(out.front(), TypeParam(77)) << n;
    EXPECT_EQ(out.back(), TypeParam(77)) << n;
    for (Index k = 0; k < n; ++k)
      EXPECT_EQ(out[static_cast<std::size_t>(k + 1)], static_cast<TypeParam>(k + 2));
  }
}

TYPED_TEST(VecTest, ArithmeticAndReductions) {
  using V = Vec<TypeParam>;
  const auto in = counted<TypeParam>(V::lanes);
  const V x = V::load(in.data());
  V y = 2 * x + 1;
  y -= 1;
  y /= 2;
  for (Index i = 0; i < V::lanes; ++i) EXPECT_EQ(y.get(i), x.get(i));
  EXPECT_EQ(hsum(x), static_cast<TypeParam>(V::lanes * (V::lanes + 1) / 2));
  EXPECT_EQ(hmax(x), static_cast<TypeParam>(V::lanes));
  EXPECT_EQ(hmin(x), TypeParam(1));
  EXPECT_EQ(fma(V(3), V(4), V(5)).get(0), TypeParam(17));
  EXPECT_EQ(clamp(V(9), 2, 5).get(0), TypeParam(5));
  EXPECT_EQ(clamp(V(1), 2, 5).get(0), TypeParam(2));
  EXPECT_EQ(max(V(3), 7).get(0), TypeParam(7));
  EXPECT_EQ(minimum(3, V(7)).get(0), TypeParam(3));
}

TYPED_TEST(VecTest, MasksSelectAndCrossBytes) {
  using V = Vec<TypeParam>;
  using M = Mask<TypeParam>;
  for (Index n = 1; n <= V::lanes; ++n) {
    std::vector<Byte> in(static_cast<std::size_t>(n)), out(static_cast<std::size_t>(n + 2), Byte{9});
    for (Index i = 0; i < n; ++i) in[static_cast<std::size_t>(i)] = i % 3 == 1 ? Byte{200} : Byte{0};
    const M m = M::load_partial(in.data(), n);
    const V y = where(m, V(1), 2);
    for (Index i = 0; i < V::lanes; ++i) EXPECT_EQ(y.get(i), TypeParam(i < n && i % 3 == 1 ? 1 : 2)) << n;
    m.store_partial(out.data() + 1, n);
    EXPECT_EQ(out.front(), 9);
    EXPECT_EQ(out.back(), 9);
    for (Index i = 0; i < n; ++i) EXPECT_EQ(out[static_cast<std::size_t>(i + 1)], i % 3 == 1 ? 1 : 0) << n;
    EXPECT_EQ(any(m), n > 1);
    EXPECT_TRUE(all(m || !m));
    EXPECT_FALSE(any(m && !m));
    EXPECT_FALSE(any(m ^ m));
    EXPECT_EQ(where(!m, 4, 5).get(0), TypeParam(4));
  }
  std::vector<Byte> ones(static_cast<std::size_t>(V::lanes), Byte{1}), out(ones.size());
  EXPECT_TRUE(all(M::load(ones.data())));
  (V(1) < V(2)).store(out.data());
  EXPECT_EQ(out, ones);
}

template <class T>
class FloatVecTest : public testing::Test {};
using FloatTypes = testing::Types<float, double>;
TYPED_TEST_SUITE(FloatVecTest, FloatTypes);

TYPED_TEST(FloatVecTest, NanPropagates) {
  using V = Vec<TypeParam>;
  const TypeParam nan = std::numeric_limits<TypeParam>::quiet_NaN();
  for (auto y : {max(V(nan), 1), max(V(1), nan), min(V(nan), 1), min(V(1), nan), clamp(V(nan), 0, 1),
                 max_or_second(V(1), nan), min_or_second(V(1), nan), abs(V(nan)), sqrt(V(-1))})
    EXPECT_TRUE(all(isnan(y)));
  std::vector<TypeParam> in(static_cast<std::size_t>(V::lanes), TypeParam(1));
  for (auto& x : in) {
    x = nan;
    EXPECT_TRUE(std::isnan(hmax(V::load(in.data()))));
    EXPECT_TRUE(std::isnan(hmin(V::load(in.data()))));
    EXPECT_TRUE(any(isnan(V::load(in.data()))));
    x = 1;
  }
}

TYPED_TEST(FloatVecTest, Rounding) {
  using V = Vec<TypeParam>;
  for (double x : {-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 2.51, -3.2, 7.0, 0.0}) {
    EXPECT_EQ(round(V(x)).get(0), std::nearbyint(static_cast<TypeParam>(x))) << x;
    EXPECT_EQ(floor(V(x)).get(0), std::floor(static_cast<TypeParam>(x))) << x;
  }
  EXPECT_FALSE(std::signbit(abs(V(-0.0)).get(0)));
  EXPECT_TRUE(std::signbit((-V(0)).get(0)));
}

TEST(Vec, ConstantsStayInTheElementType) {
  static_assert(std::is_same_v<decltype(0.1 * Vec<float>(1)), Vec<float>>);
  EXPECT_EQ((0.1 * Vec<float>(3)).get(0), 0.1f * 3.f);
  EXPECT_EQ((Vec<double>(1) / 3.f).get(0), 1.0 / 3.0);
}

}  // namespace
