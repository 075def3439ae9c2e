// Matrix products against plain double loops: layouts, sizes, strides, epilogues, special values, threads,
// batches.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include <wengert/kernels/gemm.hpp>

namespace wg = wengert;
using wg::Index;
using wg::kernels::Activation;
using wg::kernels::gemm;
using wg::kernels::gemm_batched;
using wg::kernels::MatrixView;

namespace {

/// A small generator of our own: values in [-1, 1), the same on every platform.
struct Numbers {
  std::uint64_t state;
  double operator()() {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<double>(state >> 40) / double(1 << 23) - 1.0;
  }
};

template <class T>
std::vector<T> random_values(Index n, std::uint64_t seed) {
  Numbers next{seed * 77 + 5};
  next();
  std::vector<T> v(static_cast<std::size_t>(n));
  for (T& x : v) x = static_cast<T>(next());
  return v;
}

template <class T>
T at(MatrixView<T> x, Index i, Index j) {
  return x.data[i * x.row + j * x.col];
}

/// A matrix in one of the layouts that callers use, inside memory filled with NaN that must never be used.
template <class T>
struct Matrix {
  std::vector<T> memory;
  MatrixView<T> view{};

  Matrix(Index rows, Index cols, char layout, std::uint64_t seed) {
    const Index r = std::max<Index>(rows, 1), c = std::max<Index>(cols, 1);
    Index first = 0, size = r * c;
    switch (layout) {
      case 'N':
        view = {nullptr, c, 1};
        break;  // rows contiguous
      case 'T':
        view = {nullptr, 1, r};
        break;  // columns contiguous
      case 'n':
        view = {nullptr, c + 3, 1};
        size = r * (c + 3);
        break;  // a slice of wider rows
      case 't':
        view = {nullptr, 1, r + 5};
        size = c * (r + 5);
        break;
      case 's':
        view = {nullptr, 3 * c, 3};
        size = 3 * r * c;
        break;  // every third element
      case 'r':
        view = {nullptr, -c, 1};
        first = (r - 1) * c;
        break;  // rows backwards
      case 'c':
        view = {nullptr, c, -1};
        first = c - 1;
        break;  // columns backwards
      case 'x':
        view = {nullptr, 0, 1};
        size = c;
        break;  // one row, expanded
      case 'y':
        view = {nullptr, 1, 0};
        size = r;
        break;  // one column, expanded
      case 'z':
        view = {nullptr, 0, 0};
        size = 1;
        break;  // one element, expanded
      default:
        ADD_FAILURE() << layout;
    }
    memory.assign(static_cast<std::size_t>(size), std::numeric_limits<T>::quiet_NaN());
    view.data = memory.data() + first;
    Numbers next{seed * 31 + 7};
    next();
    for (Index i = 0; i < rows; ++i)
      for (Index j = 0; j < cols; ++j)
        memory[static_cast<std::size_t>(first + i * view.row + j * view.col)] = static_cast<T>(next());
  }
};

struct Case {
  Index m, n, k;
  char a = 'N', b = 'N';
  bool add = false, bias = false, relu = false;

  std::string str() const {
    return std::to_string(m) + "x" + std::to_string(k) + "x" + std::to_string(n) + " " + a + b +
           (add ? " add" : "") + (bias ? " bias" : "") + (relu ? " relu" : "");
  }
};

/// Runs one case and compares with plain double loops. Rounding: a sum of k products |a b| <= 1 and at most
/// two more terms, in any order, is off by at most (k + 2) u (sum of |terms|) with u half an ulp of 1;
/// doubling covers the second-order terms and, for doubles, the reference's own rounding.
template <class T>
void check(const Case& t) {
  SCOPED_TRACE(t.str());
  const Matrix<T> a(t.m, t.k, t.a, 1), b(t.k, t.n, t.b, 2);
  const Index ldc = t.n + 2;
  const T marker = T(12345);
  std::vector<T> c(static_cast<std::size_t>(t.m * ldc), marker);
  const std::vector<T> before = random_values<T>(t.m * t.n, 3), bias = random_values<T>(t.n, 4);
  for (Index i = 0; i < t.m; ++i)
    for (Index j = 0; j < t.n; ++j)
      c[static_cast<std::size_t>(i * ldc + j)] =
          t.add ? before[static_cast<std::size_t>(i * t.n + j)] : std::numeric_limits<T>::quiet_NaN();
  gemm<T>(t.m, t.n, t.k, a.view, b.view, c.data(), ldc, t.add, t.bias ? bias.data() : nullptr,
          t.relu ? Activation::relu : Activation::none);
  int wrong = 0;
  for (Index i = 0; i < t.m; ++i) {
    for (Index j = 0; j < t.n; ++j) {
      double sum = 0, size = 0;
      const auto term = [&](double v) { sum += v, size += std::fabs(v); };
      for (Index p = 0; p < t.k; ++p) term(double(at(a.view, i, p)) * double(at(b.view, p, j)));
      if (t.add) term(double(before[static_cast<std::size_t>(i * t.n + j)]));
      if (t.bias) term(double(bias[static_cast<std::size_t>(j)]));
      const double expected = t.relu ? std::max(sum, 0.0) : sum;
      const double got = double(c[static_cast<std::size_t>(i * ldc + j)]);
      const double tolerance = double(t.k + 2) * double(std::numeric_limits<T>::epsilon()) * size;
      if (!(std::fabs(got - expected) <= tolerance) && ++wrong < 4)
        ADD_FAILURE() << "at (" << i << ", " << j << "): " << got << ", expected " << expected;
    }
    for (Index j = t.n; j < ldc; ++j)
      if (c[static_cast<std::size_t>(i * ldc + j)] != marker) ADD_FAILURE() << "wrote beyond row " << i;
  }
  ASSERT_EQ(wrong, 0);
}

template <class T>
class Gemm : public ::testing::Test {};
using Floats = ::testing::Types<float, double>;
TYPED_TEST_SUITE(Gemm, Floats);

TYPED_TEST(Gemm, EveryLayoutAndEpilogue) {
  const std::string layouts = "NTntsrcxyz";
  for (char a : layouts)
    for (char b : layouts)
      for (auto [m, n, k] :
           {std::tuple<Index, Index, Index>{13, 37, 21}, {1, 37, 70}, {70, 1, 37}, {5, 4, 1}})
        for (int f = 0; f < 8; ++f)
          check<TypeParam>({m, n, k, a, b, (f & 1) != 0, (f & 2) != 0, (f & 4) != 0});
}

TYPED_TEST(Gemm, SmallSizesMixed) {
  const std::vector<Index> sizes = {0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 40};
  int f = 0;
  for (Index m : sizes)
    for (Index n : sizes)
      for (Index k : sizes) {
        const char* pair[] = {"NN", "NT", "TN", "TT"};
        for (const char* p : pair)
          check<TypeParam>({m, n, k, p[0], p[1], (f & 1) != 0, (f & 2) != 0, (f & 4) != 0});
        ++f;
      }
}

TYPED_TEST(Gemm, BeyondEveryBlockSize) {
  for (auto [m, n, k] : {std::tuple<Index, Index, Index>{203, 131, 523},
                         {3, 1301, 300},
                         {401, 50, 900},
                         {97, 2, 1031},
                         {1, 700, 1500},
                         {700, 1, 1500},
                         {1, 1, 5000},
                         {48, 96, 256},
                         {31, 410, 333},  // few rows turned, where b is transposed
                         {64, 403, 300},
                         {330, 128, 70},   // read in place beyond the rows that pack
                         {60, 1030, 90},   // rows of b a page apart
                         {1030, 70, 80},   // steps of a a page apart
                         {390, 600, 40}})  // c beyond L2
    for (const char* p : {"NN", "NT", "TN", "tt", "nn", "sc"})
      for (int f : {0, 1, 7})
        check<TypeParam>({m, n, k, p[0], p[1], (f & 1) != 0, (f & 2) != 0, (f & 4) != 0});
}

TYPED_TEST(Gemm, SameBitsAtAnyThreadCount) {
  using T = TypeParam;
  const int before = wg::num_threads();
  for (auto [m, n, k] : {std::tuple<Index, Index, Index>{203, 131, 523},
                         {32, 128, 1000},
                         {1, 900, 700},
                         {900, 1, 700},
                         {401, 50, 900},
                         {64, 403, 600},
                         {300, 1200, 17}})
    for (const char* p : {"NN", "NT", "TN", "ss"}) {
      const Matrix<T> a(m, k, p[0], 1), b(k, n, p[1], 2);
      std::vector<std::vector<T>> results;
      for (int threads : {1, 2, 3}) {
        wg::set_num_threads(threads);
        results.emplace_back(static_cast<std::size_t>(m * n));
        gemm<T>(m, n, k, a.view, b.view, results.back().data(), n, false);
      }
      for (const auto& r : results)
        EXPECT_EQ(std::memcmp(r.data(), results[0].data(), r.size() * sizeof(T)), 0)
            << m << "x" << k << "x" << n;
    }
  wg::set_num_threads(before);
}

// An infinite or NaN element of a spoils its own row and nothing else; of b its own column. Zero times
// infinity is NaN.
TYPED_TEST(Gemm, SpecialValuesReachWhatPlainLoopsReach) {
  using T = TypeParam;
  constexpr T inf = std::numeric_limits<T>::infinity(), nan = std::numeric_limits<T>::quiet_NaN();
  for (auto [m, n, k] :
       {std::tuple<Index, Index, Index>{11, 21, 19}, {65, 50, 300}, {1, 21, 40}, {21, 1, 40}})
    for (const char* p : {"NN", "NT", "TN", "ss"})
      for (T special : {inf, -inf, nan}) {
        Matrix<T> a(m, k, p[0], 1), b(k, n, p[1], 2);
        const auto put = [](Matrix<T>& x, Index i, Index j, T value) {
          x.memory[static_cast<std::size_t>(x.view.data - x.memory.data() + i * x.view.row +
                                            j * x.view.col)] = value;
        };
        put(a, m - 1, k - 1, special);
        put(b, k / 2, n - 1, special);
        put(a, m / 2, k / 2, T(0));
        std::vector<T> c(static_cast<std::size_t>(m * n));
        gemm<T>(m, n, k, a.view, b.view, c.data(), n, false);
        for (Index i = 0; i < m; ++i)
          for (Index j = 0; j < n; ++j) {
            T expected = 0;
            for (Index q = 0; q < k; ++q) expected += at(a.view, i, q) * at(b.view, q, j);
            const T got = c[static_cast<std::size_t>(i * n + j)];
            if (std::isfinite(expected))
              ASSERT_TRUE(std::isfinite(got)) << i << ", " << j;
            else if (std::isnan(expected))
              ASSERT_TRUE(std::isnan(got)) << i << ", " << j;
            else
              ASSERT_EQ(got, expected) << i << ", " << j;
          }
      }
}

TYPED_TEST(Gemm, ReluKeepsNaN) {
  using T = TypeParam;
  for (Index n : {1, 5, 70}) {
    const std::vector<T> a = {std::numeric_limits<T>::quiet_NaN(), T(-1)},
                         b(static_cast<std::size_t>(n), T(2));
    std::vector<T> c(static_cast<std::size_t>(2 * n));
    gemm<T>(2, n, 1, {a.data(), 1, 1}, {b.data(), n, 1}, c.data(), n, false, nullptr, Activation::relu);
    for (Index j = 0; j < n; ++j) {
      EXPECT_TRUE(std::isnan(c[static_cast<std::size_t>(j)]));
      EXPECT_EQ(c[static_cast<std::size_t>(n + j)], T(0));
    }
  }
}

TYPED_TEST(Gemm, LongSumsStayAccurate) {
  using T = TypeParam;
  // A million times 1/10: one running sum of floats is off by about 1000. Adding 3907 blocks, each addition
  // wrong by at most 0.0039 (half an ulp of 1e5), and blocks that are wrong by 256 u relatively, is off by at
  // most 17.
  const Index k = 1'000'000;
  const std::vector<T> a(static_cast<std::size_t>(2 * k), T(0.1)), b(static_cast<std::size_t>(2 * k), T(1));
  for (Index m : {1, 2})
    for (Index n : {1, 2}) {
      std::vector<T> c(4);
      gemm<T>(m, n, k, {a.data(), 1, m}, {b.data(), n, 1}, c.data(), n, false);
      for (Index i = 0; i < m * n; ++i) EXPECT_NEAR(double(c[static_cast<std::size_t>(i)]), 1e5, 17.0);
    }
}

/// A type that can be added and multiplied, and nothing else: a number with its derivative.
struct Jet {
  double value = 0, slope = 0;
  friend Jet operator+(Jet a, Jet b) { return {a.value + b.value, a.slope + b.slope}; }
  friend Jet operator*(Jet a, Jet b) { return {a.value * b.value, a.value * b.slope + a.slope * b.value}; }
};

TEST(GemmGeneric, TypesWithPlusAndTimes) {
  for (auto [m, n, k] :
       {std::tuple<Index, Index, Index>{3, 5, 7}, {40, 150, 130}, {1, 9, 200}, {9, 1, 3}, {4, 4, 0}})
    for (bool add : {false, true}) {
      Numbers next{9};
      const auto fill = [&](Index size) {
        std::vector<Jet> v(static_cast<std::size_t>(size));
        for (Jet& x : v) x = {next(), next()};
        return v;
      };
      const std::vector<Jet> a = fill(m * k), b = fill(k * n), bias = fill(n), before = fill(m * n);
      std::vector<Jet> c = before;
      gemm<Jet>(m, n, k, {a.data(), 1, m}, {b.data(), n, 1}, c.data(), n, add, bias.data());
      for (Index i = 0; i < m; ++i)
        for (Index j = 0; j < n; ++j) {
          const auto place = static_cast<std::size_t>(i * n + j);
          Jet expected = add ? before[place] : Jet{};
          for (Index p = 0; p < k; ++p)
            expected =
                expected + a[static_cast<std::size_t>(i + p * m)] * b[static_cast<std::size_t>(p * n + j)];
          expected = expected + bias[static_cast<std::size_t>(j)];
          // The same few hundred terms of size 1 in another order.
          ASSERT_NEAR(c[place].value, expected.value, 1e-12);
          ASSERT_NEAR(c[place].slope, expected.slope, 1e-12);
        }
    }
}

TEST(GemmGeneric, ReluNeedsAnOrder) {
  const Jet one{1, 0};
  Jet c;
  try {
    gemm<Jet>(1, 1, 1, {&one, 1, 1}, {&one, 1, 1}, &c, 1, false, nullptr, Activation::relu);
    FAIL() << "no exception";
  } catch (const wg::ValueError& e) {
    EXPECT_STREQ(e.what(), "gemm: relu on an element type without an order; expected operator<");
  }
}

template <class T>
void check_batched(Index batch, Index m, Index n, Index k, bool share_a, bool share_b, bool add, bool bias,
                   char layout = 'N', char b_layout = 'N') {
  const Case item{m, n, k, layout, b_layout};
  SCOPED_TRACE(std::to_string(batch) + " of " + item.str());
  const Index a_row = layout == 'T' ? 1 : k, a_col = layout == 'T' ? m : 1;
  const Index b_row = b_layout == 'T' ? 1 : n, b_col = b_layout == 'T' ? k : 1;
  const Index a_batch = share_a ? 0 : m * k, b_batch = share_b ? 0 : k * n;
  const std::vector<T> a = random_values<T>(batch * m * k, 1), b = random_values<T>(batch * k * n, 2),
                       shift = random_values<T>(n, 3), before = random_values<T>(batch * m * n, 4);
  std::vector<T> c = before;
  gemm_batched<T>(batch, m, n, k, {a.data(), a_row, a_col}, a_batch, {b.data(), b_row, b_col}, b_batch,
                  c.data(), n, m * n, add, bias ? shift.data() : nullptr);
  for (Index t = 0; t < batch; ++t)
    for (Index i = 0; i < m; ++i)
      for (Index j = 0; j < n; ++j) {
        const auto place = static_cast<std::size_t>((t * m + i) * n + j);
        double sum = add ? double(before[place]) : 0;
        for (Index p = 0; p < k; ++p)
          sum += double(a[static_cast<std::size_t>(t * a_batch + i * a_row + p * a_col)]) *
                 double(b[static_cast<std::size_t>(t * b_batch + p * b_row + j * b_col)]);
        if (bias) sum += double(shift[static_cast<std::size_t>(j)]);
        // As in `check`, with every term at most 1.
        const double terms = double(k + 2);
        ASSERT_NEAR(double(c[place]), sum, terms * terms * double(std::numeric_limits<T>::epsilon()));
      }
}

TYPED_TEST(Gemm, Batched) {
  const int before = wg::num_threads();
  for (int threads : {1, 3}) {
    wg::set_num_threads(threads);
    for (int f = 0; f < 16; ++f) {
      const bool share_a = (f & 1) != 0, share_b = (f & 2) != 0, add = (f & 4) != 0, bias = (f & 8) != 0;
      for (Index batch : {0, 1, 2, 7}) {
        check_batched<TypeParam>(batch, 9, 21, 13, share_a, share_b, add, bias);
        check_batched<TypeParam>(batch, 1, 21, 13, share_a, share_b, add, bias);
        check_batched<TypeParam>(batch, 5, 1, 13, share_a, share_b, add, bias);
        check_batched<TypeParam>(batch, 5, 4, 0, share_a, share_b, add, bias);
      }
    }
    check_batched<TypeParam>(3, 80, 96, 100, false, false, false, true);
    for (bool add : {false, true}) check_batched<TypeParam>(9, 70, 10, 130, false, false, add, false, 'T');
    for (bool add : {false, true})
      check_batched<TypeParam>(5, 32, 150, 130, false, false, add, false, 'N', 'T');
  }
  wg::set_num_threads(before);
}

}  // namespace
