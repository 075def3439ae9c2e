// Reductions beyond their rows: errors, empty tensors, blocks of long and wide arrays, exact sums, threads.
#include <cmath>
#include <cstring>
#include <limits>

#include <gtest/gtest.h>

#include <wengert/core/backward.hpp>
#include <wengert/kernels/dual.hpp>
#include <wengert/ops/arg.hpp>
#include <wengert/ops/reduce.hpp>

#include "support/errors.hpp"

namespace wg = wengert;
using wg::Index;
using wg::Shape;
using wg::Tensor;

namespace {

const float infinity = std::numeric_limits<float>::infinity();

// Whole numbers from a small generator, so that sums of few of them are exact.
template <class T>
Tensor<T> numbers(const Shape& shape, int range = 1000) {
  Tensor<T> x(shape);
  std::uint64_t state = 1;
  for (Index i = 0; i < x.size(); ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    x.fresh_data()[i] = static_cast<T>(static_cast<int>(state >> 40) % range - range / 2);
  }
  return x;
}

TEST(ReduceErrors, NameTheAxisAndTheShape) {
  const Tensor<float> x = numbers<float>({2, 3});
  EXPECT_EQ(message_of<wg::ShapeError>([&] { sum(x, 2); }),
            "sum: axis 2 is out of range; rank is 2; expected -2..1");
  EXPECT_EQ(message_of<wg::ShapeError>([&] {
              mean(x, {0, -3});
            }),
            "mean: axis -3 is out of range; rank is 2; expected -2..1");
  EXPECT_EQ(message_of<wg::ShapeError>([&] {
              var(x, {1, -1});
            }),
            "var: axis -1 is given twice; axes are (1, -1), rank is 2; expected different axes");
  EXPECT_EQ(message_of<wg::ShapeError>([&] { wg::std(x, 5); }),
            "std: axis 5 is out of range; rank is 2; expected -2..1");
  EXPECT_EQ(message_of<wg::ShapeError>([&] { logsumexp(x, 5); }),
            "logsumexp: axis 5 is out of range; rank is 2; expected -2..1");
  EXPECT_EQ(message_of<wg::ShapeError>([&] { argmin(x, -3); }),
            "argmin: axis -3 is out of range; rank is 2; expected -2..1");
  EXPECT_EQ(message_of<wg::ShapeError>([&] { sum(Tensor<float>(Shape(), {1}), 0); }),
            "sum: axis 0 is out of range; rank is 0; expected no axis");
}

TEST(ReduceErrors, NothingHasNoLargestElement) {
  const Tensor<float> x({3, 0});
  EXPECT_EQ(message_of<wg::ShapeError>([&] { max(x, 1); }),
            "max: axis 1 has no elements; x is (3, 0); expected at least one");
  EXPECT_EQ(message_of<wg::ShapeError>([&] { min(x); }),
            "min: axis 1 has no elements; x is (3, 0); expected at least one");
  EXPECT_EQ(message_of<wg::ShapeError>([&] { argmax(x); }),
            "argmax: axis 1 has no elements; x is (3, 0); expected at least one");
  EXPECT_EQ(max(x, 0).shape(), Shape{0});
}

TEST(Reduce, OfNothing) {
  Tensor<float> x({2, 0, 3});
  x.requires_grad(true);
  wg::GradStore grads;
  const Tensor<float> total = sum(x, 1);
  EXPECT_EQ(total.to_vector(), std::vector<float>(6, 0.0f));
  EXPECT_TRUE(std::isnan(mean(x).item()));
  EXPECT_TRUE(std::isnan(var(x).item()));
  EXPECT_EQ(logsumexp(x, 1).to_vector(), std::vector<float>(6, -infinity));
  EXPECT_EQ(sum(x, 0).shape(), (Shape{0, 3}));
  backward(sum(total), grads);
  EXPECT_EQ(grads[x].shape(), x.shape());
}

TEST(Reduce, ShapesOfResults) {
  const Tensor<double> x = numbers<double>({2, 3, 4});
  EXPECT_EQ(sum(x).shape(), Shape());
  EXPECT_EQ(sum(x, {}).shape(), Shape());
  EXPECT_EQ(sum(x, {}, true).shape(), (Shape{1, 1, 1}));
  EXPECT_EQ(sum(x, {2, 0}).shape(), Shape{3});
  EXPECT_EQ(sum(x, {-1, 0}, true).shape(), (Shape{1, 3, 1}));
  EXPECT_EQ(var(x, 1, {.keepdim = true}).shape(), (Shape{2, 1, 4}));
  EXPECT_EQ(argmax(x, 1).shape(), (Shape{2, 4}));
  EXPECT_EQ(argmax(x, {}, true).shape(), (Shape{1, 1, 1}));
  EXPECT_EQ(sum(Tensor<float>(Shape(), {3})).item(), 3);
}

TEST(Reduce, IntegersAndMasks) {
  const Tensor<std::uint8_t> ones({2, 200}, std::vector<std::uint8_t>(400, 1));
  EXPECT_EQ(sum(ones).item(), 400);
  EXPECT_EQ(sum(ones, 0).to_vector(), std::vector<Index>(200, 2));
  const Tensor<std::int32_t> i({4}, {3, -7, 9, 9});
  EXPECT_EQ(wg::max(i).item(), 9);
  EXPECT_EQ(wg::min(i).item(), -7);
  EXPECT_EQ(argmax(i).item(), 2);
  EXPECT_EQ(argmin(i, 0).item(), 1);
}

TEST(Reduce, TenMillionFloatsKeepTheirDigits) {
  const Index n = 10'000'000;
  Tensor<float> x({n});
  double expected = 0, squares = 0;
  for (Index i = 0; i < n; ++i) {
    x.fresh_data()[i] = 0.1f + 1e-3f * static_cast<float>(i % 97);
    expected += static_cast<double>(x.data()[i]);
  }
  const double mean_of = expected / static_cast<double>(n);
  for (Index i = 0; i < n; ++i) squares += std::pow(static_cast<double>(x.data()[i]) - mean_of, 2);
  EXPECT_NEAR(static_cast<double>(sum(x).item()) / expected, 1, 2e-7);
  EXPECT_NEAR(static_cast<double>(mean(x).item()) / mean_of, 1, 2e-7);
  EXPECT_NEAR(static_cast<double>(var(x).item()) / (squares / static_cast<double>(n - 1)), 1, 2e-6);
  const Tensor<float> columns(x.buffer(), {n / 2, 2}, {2, 1}, 0);
  double first = 0;
  for (Index i = 0; i < n; i += 2) first += static_cast<double>(x.data()[i]);
  EXPECT_NEAR(static_cast<double>(sum(columns, 0).at(0)) / first, 1, 4e-7);
}

TEST(Reduce, VarianceSurvivesALargeMean) {
  Tensor<float> x({1000});
  for (Index i = 0; i < 1000; ++i) x.fresh_data()[i] = 1e6f + static_cast<float>(i % 2);
  EXPECT_NEAR(var(x, 0, {.correction = 0}).item(), 0.25f, 1e-6f);
  EXPECT_NEAR(wg::std(x, 0, {.correction = 0}).item(), 0.5f, 1e-6f);
  const Tensor<float> columns(x.buffer(), {500, 2}, {1, 500}, 0);
  EXPECT_NEAR(var(columns.packed(), 0, {.correction = 0}).at(1), 0.25f, 1e-6f);
}

// (outer, reduce, inner) that meet every cut into blocks: long rows, many rows, narrow and wide columns.
const Shape arrangements[] = {{1, 20000, 1}, {3, 4097, 1},  {700, 33, 1}, {1, 5000, 3}, {2, 1500, 7},
                              {1, 600, 100}, {2, 70, 2500}, {1, 3, 9000}, {40, 5, 130}, {1, 1100, 40}};

TEST(Reduce, BlocksCoverEveryElementOnce) {
  for (const Shape& shape : arrangements) {
    Tensor<double> x = numbers<double>(shape);
    x.requires_grad(true);
    const Index n = shape[1], inner = shape[2];
    const Tensor<double> s = sum(x, 1), top = max(x, 1), low = min(x, 1), v = var(x, 1, {.correction = 0});
    const Tensor<Index> place = argmax(x, 1), lowest = argmin(x, 1);
    wg::GradStore grads;
    Tensor<double> seed(s.shape());
    for (Index k = 0; k < seed.size(); ++k) seed.fresh_data()[k] = static_cast<double>(k % 13 + 1);
    backward(top, seed, grads);
    const Tensor<double> dx = grads[x];
    for (Index k = 0; k < s.size(); ++k) {
      const double* column = x.data() + k / inner * n * inner + k % inner;
      double total = 0, squares = 0;
      Index best = 0, worst = 0;
      for (Index r = 0; r < n; ++r) {
        total += column[r * inner];
        squares += column[r * inner] * column[r * inner];
        if (column[r * inner] > column[best * inner]) best = r;
        if (column[r * inner] < column[worst * inner]) worst = r;
      }
      const double m = total / static_cast<double>(n);
      ASSERT_EQ(s.data()[k], total) << shape.str() << " output " << k;  // whole numbers: exact in any order
      ASSERT_EQ(top.data()[k], column[best * inner]) << shape.str() << " output " << k;
      ASSERT_EQ(low.data()[k], column[worst * inner]) << shape.str() << " output " << k;
      ASSERT_EQ(place.data()[k], best) << shape.str() << " output " << k;
      ASSERT_EQ(lowest.data()[k], worst) << shape.str() << " output " << k;
      ASSERT_NEAR(v.data()[k], squares / static_cast<double>(n) - m * m, 1e-6)
          << shape.str() << " output " << k;
      for (Index r = 0; r < n; ++r)
        ASSERT_EQ(dx.data()[column + r * inner - x.data()], r == best ? seed.data()[k] : 0)
            << shape.str() << " output " << k << " element " << r;
    }
  }
}

TEST(Reduce, FirstOfTiesAcrossBlocks) {
  for (const Shape& shape : {Shape{40000, 1}, Shape{3000, 20}}) {
    const Tensor<float> x(shape, std::vector<float>(static_cast<std::size_t>(shape.size()), 2.0f));
    Tensor<float> y = x.packed_copy();
    y.fresh_data()[y.size() - 1] = NAN;
    EXPECT_EQ(argmax(x, 0).at(0), 0) << shape.str();
    EXPECT_EQ(argmax(y, 0).at(shape[1] - 1), shape[0] - 1) << shape.str();
    EXPECT_TRUE(std::isnan(wg::max(y).item())) << shape.str();
    EXPECT_TRUE(std::isnan(wg::min(y, 0).at(shape[1] - 1))) << shape.str();
  }
}

TEST(Reduce, AccumulatesIntoWhatIsThere) {
  Tensor<float> x = numbers<float>({4, 5, 6});
  x.requires_grad(true);
  wg::GradStore grads;
  backward(sum(x, {0, 2}), Tensor<float>({5}, {1, 2, 3, 4, 5}), grads);
  backward(mean(x), grads);
  backward(max(x, 1), Tensor<float>({4, 6}, std::vector<float>(24, 0.0f)), grads);
  for (Index k = 0; k < x.size(); ++k)
    EXPECT_FLOAT_EQ(grads[x].data()[k], static_cast<float>(k / 6 % 5 + 1) + 1.0f / 120);
}

TEST(Reduce, SavedValuesMustNotChange) {
  Tensor<float> x({2}, {1, 2});
  x.requires_grad(true);
  const Tensor<float> y = var(x);
  x.mutable_data()[0] = 5;
  wg::GradStore grads;
  EXPECT_EQ(
      message_of<wg::TapeError>([&] { backward(y, grads); }),
      "backward: a tensor that var saved was written in place since; shape is (2), version is 1; expected "
      "version 0; write to a clone, or after backward");
}

template <class F>
void expect_same_bits(const Shape& shape, F f) {
  Tensor<float> x = numbers<float>(shape, 1 << 20);
  for (Index i = 0; i < x.size(); ++i) x.fresh_data()[i] *= 1e-5f;
  x.requires_grad(true);
  const int before = wg::num_threads();
  std::vector<float> y, dx;
  for (const int threads : {1, 2, 3}) {
    wg::set_num_threads(threads);
    wg::GradStore grads;
    const Tensor<float> out = f(x);
    Tensor<float> seed(out.shape());
    for (Index k = 0; k < seed.size(); ++k) seed.fresh_data()[k] = 0.1f * static_cast<float>(k % 7);
    backward(out, seed, grads);
    const std::vector<float> values = out.to_vector(), slopes = grads[x].to_vector();
    if (threads == 1) {
      y = values;
      dx = slopes;
    }
    EXPECT_EQ(std::memcmp(y.data(), values.data(), 4 * y.size()), 0) << shape.str() << ", " << threads;
    EXPECT_EQ(std::memcmp(dx.data(), slopes.data(), 4 * dx.size()), 0) << shape.str() << ", " << threads;
  }
  wg::set_num_threads(before);
}

TEST(Reduce, SameBitsAtAnyNumberOfThreads) {
  for (const Shape& shape : {Shape{3, 100003}, Shape{1500, 130}, Shape{200000, 3}, Shape{5, 7, 3000}})
    for (const Index axis : {Index{0}, Index{-1}}) {
      expect_same_bits(shape, [&](const auto& x) { return sum(x, axis); });
      expect_same_bits(shape, [&](const auto& x) { return wg::std(x, axis); });
      expect_same_bits(shape, [&](const auto& x) { return logsumexp(x, axis); });
      expect_same_bits(shape, [&](const auto& x) { return max(x, axis); });
      expect_same_bits(shape, [&](const auto& x) { return mean(x); });
    }
}

TEST(Reduce, OfDualNumbersCarriesTheDirectionalDerivative) {
  using D = wg::Dual<double>;
  Tensor<D> x({3});
  for (Index i = 0; i < 3; ++i) x.fresh_data()[i] = D(static_cast<double>(i), i == 1 ? 1.0 : 0.0);
  EXPECT_DOUBLE_EQ(sum(x).item().d[0], 1);
  EXPECT_DOUBLE_EQ(logsumexp(x).item().d[0], std::exp(1) / (1 + std::exp(1) + std::exp(2)));
  EXPECT_DOUBLE_EQ(wg::max(x).item().d[0], 0);
  EXPECT_NEAR(wg::std(x).item().d[0], 0, 1e-15);  // the middle of 0, 1, 2
}

}  // namespace
