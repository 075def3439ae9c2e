// softmax and log_softmax beyond their rows: columns of every width, long rows, threads, dy's memory reused.
#include <cmath>
#include <cstring>

#include <gtest/gtest.h>

#include <wengert/core/backward.hpp>
#include <wengert/ops/softmax.hpp>

namespace wg = wengert;
using wg::Index;
using wg::Shape;
using wg::Tensor;

namespace {

Tensor<float> waves(const Shape& shape) {
  Tensor<float> x(shape);
  for (Index i = 0; i < x.size(); ++i) x.fresh_data()[i] = 5 * std::sin(0.7f * static_cast<float>(i));
  return x;
}

// Middle axis of (outer, n, inner), by plain loops in double.
void expect_softmax(const Shape& shape) {
  Tensor<float> x = waves(shape);
  x.requires_grad(true);
  const Tensor<float> y = softmax(x, 1), l = log_softmax(x, 1);
  const Tensor<float> dy = waves(shape);
  wg::GradStore of_y, of_l;
  backward(y, dy, of_y, {.retain = true});
  backward(l, dy, of_l);
  const Tensor<float> dx = of_y[x], dl = of_l[x];
  const Index n = shape[1], inner = shape[2];
  for (Index k = 0; k < shape[0] * inner; ++k) {
    const Index first = k / inner * n * inner + k % inner;
    double s = 0, dot = 0, total = 0;
    for (Index r = 0; r < n; ++r) s += std::exp(static_cast<double>(x.data()[first + r * inner]));
    for (Index r = 0; r < n; ++r) {
      const double d = static_cast<double>(dy.data()[first + r * inner]);
      dot += d * std::exp(static_cast<double>(x.data()[first + r * inner])) / s;
      total += d;
    }
    for (Index r = 0; r < n; ++r) {
      const Index at = first + r * inner;
      const double p = std::exp(static_cast<double>(x.data()[at])) / s,
                   d = static_cast<double>(dy.data()[at]);
      ASSERT_NEAR(y.data()[at], p, 1e-6) << shape.str() << " at " << at;
      ASSERT_NEAR(l.data()[at], std::log(p), 1e-5) << shape.str() << " at " << at;
      ASSERT_NEAR(dx.data()[at], p * (d - dot), 1e-5) << shape.str() << " at " << at;
      ASSERT_NEAR(dl.data()[at], d - p * total, 1e-4) << shape.str() << " at " << at;
    }
  }
}

TEST(Softmax, RowsAndColumnsOfEverySize) {
  for (const Index n : {1, 2, 33, 5000}) expect_softmax({2, n, 1});
  for (const Index inner : {2, 15, 16, 17, 63, 64, 65, 130, 300}) expect_softmax({2, 9, inner});
}

TEST(Softmax, ErrorsNameTheOperator) {
  const Tensor<float> x = waves({2, 3});
  try {
    log_softmax(x, 2);
    FAIL();
  } catch (const wg::ShapeError& e) {
    EXPECT_STREQ(e.what(), "log_softmax: axis 2 is out of range; rank is 2; expected -2..1");
  }
}

TEST(Softmax, GradientOverTheMemoryOfDy) {
  Tensor<float> x = waves({3, 40});
  x.requires_grad(true);
  wg::GradStore grads;
  backward(softmax(softmax(x, 1), 0), waves({3, 40}), grads);
  const Tensor<float> chained = grads[x].packed_copy();
  // The same with the inner gradient taken by itself.
  const Tensor<float> inner = softmax(x, 1);
  Tensor<float> middle = inner.detach();
  middle.requires_grad(true);
  wg::GradStore of_middle, again;
  backward(inner, Tensor<float>({3, 40}, std::vector<float>(120, 0.0f)), again);
  backward(softmax(middle, 0), waves({3, 40}), of_middle);
  again.zero();
  backward(softmax(x, 1), of_middle[middle], again);
  for (Index k = 0; k < x.size(); ++k) EXPECT_FLOAT_EQ(chained.data()[k], again[x].data()[k]);
}

TEST(Softmax, SameBitsAtAnyNumberOfThreads) {
  const int before = wg::num_threads();
  for (const Index axis : {0, 1}) {
    std::vector<float> first;
    for (const int threads : {1, 2, 3}) {
      wg::set_num_threads(threads);
      Tensor<float> x = waves({333, 517});
      x.requires_grad(true);
      wg::GradStore grads;
      backward(log_softmax(softmax(x, axis), axis), waves({333, 517}), grads);
      const std::vector<float> dx = grads[x].to_vector();
      if (threads == 1) first = dx;
      EXPECT_EQ(std::memcmp(first.data(), dx.data(), 4 * dx.size()), 0) << threads;
    }
  }
  wg::set_num_threads(before);
}

}  // namespace
