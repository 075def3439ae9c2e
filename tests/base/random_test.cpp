// Random numbers: published vectors, golden bits that every compiler and flag must give, distributions,
// journal.
#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include <wengert/base/random.hpp>

namespace {

using wengert::Byte;
using wengert::Generator;
using wengert::RandomJournal;
using wengert::ValueError;

TEST(Philox, GivesThePublishedAnswers) {
  using Words = std::array<std::uint32_t, 4>;
  EXPECT_EQ(wengert::philox({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(wengert::philox({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(wengert::philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Generator, WordsAreThoseOfPhilox) {
  Generator g(0);
  EXPECT_EQ(g.next(), 0x6627e8d5u);
  EXPECT_EQ(g.next(), 0xe169c58du);
  EXPECT_EQ(g.next(), 0xbc57ac4cu);
  EXPECT_EQ(g.next(), 0x9b00dbd8u);
  EXPECT_EQ(g.counter(), 4u);
  EXPECT_EQ(g.next(), wengert::philox({1, 0, 0, 0}, {0, 0})[0]);
}

// Box and Muller in long double, from the same words.
std::pair<long double, long double> reference_normals(std::uint64_t seed, std::uint64_t block) {
  const auto half = [](std::uint64_t x, int i) { return static_cast<std::uint32_t>(x >> (32 * i)); };
  const auto w = wengert::philox({half(block, 0), half(block, 1), 0, 0}, {half(seed, 0), half(seed, 1)});
  const std::uint64_t a = w[0] | std::uint64_t{w[1]} << 32, b = w[2] | std::uint64_t{w[3]} << 32;
  const long double u = 1 - std::ldexp(static_cast<long double>(a >> 12), -52);
  const long double quarter = std::acos(-1.0L) / 2;
  const long double t = (std::ldexp(static_cast<long double>(b >> 12), -52) - 0.5L) * quarter;
  const long double r = std::sqrt(-2 * std::log(u)) * ((b & 2) != 0 ? -1 : 1);
  return (b & 1) != 0 ? std::pair(r * std::sin(t), r * std::cos(t))
                      : std::pair(r * std::cos(t), r * std::sin(t));
}

TEST(Generator, NormalsHaveAllDigits) {
  Generator g(20240607);
  std::vector<double> z(20000);
  g.fill_normal(z.data(), z.size(), 0.0, 1.0);
  for (std::size_t i = 0; i < z.size(); i += 2) {
    const auto [first, second] = reference_normals(20240607, i / 2);
    ASSERT_NEAR(z[i], static_cast<double>(first), 4e-15) << i;
    ASSERT_NEAR(z[i + 1], static_cast<double>(second), 4e-15) << i;
  }
}

template <class T>
std::uint64_t hash(const std::vector<T>& v) {
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  std::uint64_t h = 0;
  for (T x : v) h = h * 6364136223846793005u + std::bit_cast<Bits>(x);
  return h;
}

// The same bits with g++ and clang++, with and without FMA, for every size.
TEST(Generator, GoldenBits) {
  std::vector<float> f(4099);
  std::vector<double> d(4099);
  Generator g(42);
  g.fill_normal(f.data(), f.size(), 0.5f, 0.1f);
  EXPECT_EQ(hash(f), 1485615243393155160u);
  g.fill_normal(d.data(), d.size(), 0.5, 0.1);
  EXPECT_EQ(hash(d), 11732737064515600485u);
  g.fill_uniform(f.data(), f.size(), -0.3f, 0.7f);
  EXPECT_EQ(hash(f), 14596675795778847319u);
  g.fill_uniform(d.data(), d.size(), -0.3, 0.7);
  EXPECT_EQ(hash(d), 7218822053222579754u);
}

TEST(Generator, AFillDependsOnlyOnSeedCounterAndIndex) {
  std::vector<float> whole(500);
  Generator g(7);
  g.set_counter(8);
  g.fill_normal(whole.data(), whole.size(), 0.f, 1.f);
  for (std::size_t n : {1u, 2u, 3u, 31u, 32u, 33u, 35u, 499u}) {
    std::vector<float> part(n), rest(500 - n / 2 * 2);
    Generator h(7);
    h.set_counter(n % 2 == 0 ? 8 : 5);  // 5 is rounded up to the next block
    h.fill_normal(part.data(), n, 0.f, 1.f);
    EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin())) << n;
    h.set_counter(8 + n / 2 * 4);
    h.fill_normal(rest.data(), rest.size(), 0.f, 1.f);
    EXPECT_TRUE(std::equal(rest.begin(), rest.end(), whole.begin() + static_cast<std::ptrdiff_t>(n / 2 * 2)))
        << n;
  }
  Generator h(7);
  h.set_counter(8);
  EXPECT_EQ(h.normal<float>(), whole[0]);
}

TEST(Generator, CopiesAndRestoresItsState) {
  Generator g(3);
  for (int i = 0; i < 5; ++i) g.next();
  Generator copy = g, restored(g.seed());
  restored.set_counter(g.counter());
  for (int i = 0; i < 9; ++i) {
    const auto word = g.next();
    EXPECT_EQ(copy.next(), word);
    EXPECT_EQ(restored.next(), word);
  }
  EXPECT_EQ(g.split(1).seed(), Generator(3).split(1).seed());
  EXPECT_NE(g.split(1).next(), g.split(2).next());
  EXPECT_NE(g.split(0).next(), Generator(3).next());
}

// Kolmogorov-Smirnov: the largest distance between the empirical and the true distribution function.
template <class F>
double ks_distance(std::vector<double> x, F cdf) {
  std::sort(x.begin(), x.end());
  const auto n = static_cast<double>(x.size());
  double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double c = cdf(x[i]), at = static_cast<double>(i);
    worst = std::max({worst, c - at / n, (at + 1) / n - c});
  }
  return worst * std::sqrt(n);
}

TEST(Generator, HasTheRightDistributions) {
  constexpr std::size_t n = 200000;
  const double critical = 1.95;  // exceeded once in a thousand
  std::vector<double> x(n);
  std::vector<float> f(n);
  Generator g(11);
  g.fill_normal(x.data(), n, 1.0, 2.0);
  EXPECT_LT(ks_distance(x, [](double v) { return 0.5 * std::erfc((1 - v) / 2 / std::sqrt(2.0)); }), critical);
  double sum = 0, square = 0, fourth = 0, lag = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const double z = (x[i] - 1) / 2;
    sum += z, square += z * z, fourth += z * z * z * z;
    if (i > 0) lag += z * (x[i - 1] - 1) / 2;
  }
  EXPECT_NEAR(sum / n, 0, 0.01);
  EXPECT_NEAR(square / n, 1, 0.015);
  EXPECT_NEAR(fourth / n, 3, 0.1);
  EXPECT_NEAR(lag / n, 0, 0.01);
  g.fill_uniform(f.data(), n, -2.f, 3.f);
  EXPECT_GE(*std::min_element(f.begin(), f.end()), -2.f);
  EXPECT_LT(*std::max_element(f.begin(), f.end()), 3.f);
  EXPECT_LT(ks_distance({f.begin(), f.end()}, [](double v) { return (v + 2) / 5; }), critical);
  for (auto& v : x) v = g.uniform();
  EXPECT_LT(ks_distance(x, [](double v) { return v; }), critical);
  for (auto& v : x) v = static_cast<double>(g.uniform<float>());
  EXPECT_LT(ks_distance(x, [](double v) { return v; }), critical);
}

TEST(Generator, UniformStaysBelowItsUpperEnd) {
  std::vector<float> x(100000);
  Generator g(1);
  const float hi = std::nextafter(1.f, 2.f);
  g.fill_uniform(x.data(), x.size(), 1.f, hi);
  for (float v : x) ASSERT_EQ(v, 1.f);
}

TEST(Generator, BernoulliBytes) {
  std::vector<Byte> b(100001, Byte{7});
  Generator g(5);
  g.fill_bernoulli(b.data(), 100000, 0.3);
  EXPECT_EQ(b.back(), 7);
  EXPECT_NEAR(std::accumulate(b.begin(), b.end() - 1, 0.0) / 100000, 0.3, 0.006);
  g.fill_bernoulli(b.data(), 1000, 1);
  EXPECT_EQ(std::accumulate(b.begin(), b.begin() + 1000, 0), 1000);
  g.fill_bernoulli(b.data(), 1000, 0);
  EXPECT_EQ(std::accumulate(b.begin(), b.begin() + 1000, 0), 0);
}

TEST(Generator, BelowIsUnbiased) {
  Generator g(9);
  std::vector<int> count(6);
  for (int i = 0; i < 60000; ++i) ++count[g.below(6)];
  double chi2 = 0;
  for (int c : count) chi2 += (c - 10000.0) * (c - 10000.0) / 10000;
  EXPECT_LT(chi2, 20.5);  // 5 degrees of freedom, once in a thousand
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(g.below(1), 0u);
    EXPECT_LT(g.below((std::uint64_t{1} << 40) + 1), (std::uint64_t{1} << 40) + 1);
  }
  EXPECT_GT(g.below(~std::uint64_t{0}) | g.below(~std::uint64_t{0}), std::uint64_t{1} << 40);
}

TEST(Generator, ShuffleGivesEveryOrder) {
  Generator g(13);
  std::vector<int> count(6);
  for (int i = 0; i < 6000; ++i) {
    int x[3] = {0, 1, 2};
    g.shuffle(std::span<int>(x));
    ++count[static_cast<std::size_t>(x[0] * 2 + (x[1] > x[2]))];
  }
  for (int c : count) EXPECT_NEAR(c, 1000, 130);
}

template <class F>
std::string message_of(F f) {
  try {
    f();
  } catch (const ValueError& e) {
    return e.what();
  }
  return "nothing thrown";
}

TEST(Generator, BadArgumentsThrow) {
  Generator g(1);
  float x = 0;
  Byte b = 0;
  EXPECT_EQ(message_of([&] { g.below(0); }), "below: no number is below 0; n is 0; expected n >= 1");
  EXPECT_EQ(message_of([&] { g.fill_uniform(&x, 1, 2.f, 1.f); }),
            "fill_uniform: bad interval; lo is 2, hi is 1; expected finite lo < hi");
  EXPECT_EQ(message_of([&] { g.fill_bernoulli(&b, 1, 1.5); }),
            "fill_bernoulli: bad probability; got 1.5; expected 0..1");
  EXPECT_EQ(g.counter(), 0u);
}

TEST(RandomJournal, ReplaysWhatAScopeDrew) {
  Generator a(1), b(2), unused(3);
  a.next();
  RandomJournal outer, inner;
  std::vector<double> drawn, again;
  const auto draw = [&](std::vector<double>& into) {
    into.push_back(a.uniform());
    into.push_back(b.normal());
    into.push_back(a.normal());
  };
  {
    const RandomJournal::Scope scope(outer);
    {
      const RandomJournal::Scope nested(inner);
      draw(drawn);
    }
    unused.set_counter(5);
  }
  EXPECT_EQ(RandomJournal::active(), nullptr);
  ASSERT_EQ(inner.entries().size(), 2u);
  ASSERT_EQ(outer.entries().size(), 2u);
  EXPECT_EQ(inner.entries()[0], std::pair(&a, std::uint64_t{1}));
  EXPECT_EQ(inner.entries()[1], std::pair(&b, std::uint64_t{0}));
  a.next();
  const auto counter_a = a.counter(), counter_b = b.counter();
  for (const RandomJournal* journal : {&inner, &outer}) {
    again.clear();
    {
      const RandomJournal::Replay replay(*journal);
      draw(again);
    }
    EXPECT_EQ(again, drawn);
    EXPECT_EQ(a.counter(), counter_a);
    EXPECT_EQ(b.counter(), counter_b);
  }
}

}  // namespace
