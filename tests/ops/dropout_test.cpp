// dropout where a row cannot look: identity, frequencies, the generator's state, errors, NaN, threads.
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include <wengert/core/backward.hpp>
#include <wengert/ops/create.hpp>
#include <wengert/ops/dropout.hpp>
#include <wengert/ops/reduce.hpp>

namespace {

using namespace wengert;

Tensor<float> ones(const Shape& shape) {
  Tensor<float> x(shape);
  x.fill(1);
  return x;
}

TEST(Dropout, IsTheTensorItselfInEvaluationAndAtZero) {
  Tensor<float> x = ones({3});
  x.requires_grad(true);
  Generator generator(1);
  for (const Tensor<float>& y : {dropout(x, 0, generator), dropout(x, 0.5, generator, false)}) {
    EXPECT_TRUE(y.shares_buffer(x));
    EXPECT_TRUE(y.requires_grad());
  }
  EXPECT_EQ(generator.counter(), 0u);
  EXPECT_TRUE(Tape::current().empty());
}

TEST(Dropout, DropsAShareOfPAndKeepsTheMean) {
  for (const double p : {0.1, 0.5, 0.9}) {
    Generator generator(7);
    const Index n = 100'000;
    const Tensor<float> y = dropout(ones({n}), p, generator);
    Index dropped = 0;
    for (const float v : y.span()) {
      dropped += v == 0;
      if (v != 0) {
        ASSERT_FLOAT_EQ(v, static_cast<float>(1 / (1 - p)));
      }
    }
    // Five standard deviations of a binomial count.
    EXPECT_NEAR(static_cast<double>(dropped), p * double(n), 5 * std::sqrt(double(n) * p * (1 - p)));
  }
}

TEST(Dropout, GivesTheGradientOfExactlyTheElementsItKept) {
  Tensor<float> x = ones({1000});
  x.requires_grad(true);
  Generator generator(3);
  GradStore grads;
  const Tensor<float> y = dropout(x, 0.3, generator);
  const auto values = y.to_vector();
  backward(y, ones({1000}), grads);
  EXPECT_EQ(grads[x].to_vector(), values);
}

TEST(Dropout, MovesTheGeneratorOnAndRepeatsFromItsState) {
  Generator generator(9);
  const auto first = dropout(ones({100}), 0.5, generator).to_vector();
  const std::uint64_t middle = generator.counter();
  EXPECT_EQ(middle, 128u);
  const auto second = dropout(ones({100}), 0.5, generator).to_vector();
  EXPECT_NE(first, second);
  generator.set_counter(middle);
  EXPECT_EQ(dropout(ones({100}), 0.5, generator).to_vector(), second);
  // Whatever follows, element i is the same in a longer tensor.
  generator.set_counter(middle);
  auto longer = dropout(ones({1000}), 0.5, generator).to_vector();
  longer.resize(100);
  EXPECT_EQ(longer, second);
  // Single draws may leave the counter inside a block of four.
  Generator single(9);
  single.next();
  dropout(ones({1}), 0.5, single);
  EXPECT_EQ(single.counter(), 4u + 64u);
}

TEST(Dropout, IsPartOfWhatACheckpointRepeats) {
  Generator generator(11);
  RandomJournal journal;
  std::vector<float> first;
  {
    const RandomJournal::Scope scope(journal);
    first = dropout(ones({50}), 0.5, generator).to_vector();
  }
  const RandomJournal::Replay replay(journal);
  EXPECT_EQ(dropout(ones({50}), 0.5, generator).to_vector(), first);
}

TEST(Dropout, DropsNan) {
  Tensor<float> x(Shape{256});
  x.fill(std::numeric_limits<float>::quiet_NaN());
  Generator generator(5);
  Index zeros = 0;
  for (const float v : dropout(x, 0.5, generator).span()) zeros += v == 0;
  EXPECT_GT(zeros, 80);
  EXPECT_LT(zeros, 176);
}

TEST(Dropout, GivesTheSameBitsAtAnyNumberOfThreads) {
  const int before = num_threads();
  const auto run = [](int threads) {
    set_num_threads(threads);
    Generator generator(2);
    return dropout(ones({100'001}), 0.4, generator).to_vector();
  };
  const auto one = run(1);
  EXPECT_EQ(run(2), one);
  EXPECT_EQ(run(3), one);
  set_num_threads(before);
}

TEST(Dropout, OfProbabilityOneIsZeroAndSoIsItsGradient) {
  Generator generator(1);
  auto x = linspace<double>(-3, 3, 130);
  x.requires_grad(true);
  GradStore grads;
  const auto y = dropout(x, 1, generator);
  EXPECT_EQ(y.to_vector(), std::vector<double>(130, 0));
  backward(sum(y), grads);
  EXPECT_EQ(grads[x].to_vector(), std::vector<double>(130, 0));
}

TEST(Dropout, RefusesAProbabilityOutsideItsRange) {
  Generator generator(1);
  const auto message = [&](double p) -> std::string {
    try {
      dropout(ones({2}), p, generator);
    } catch (const ValueError& e) {
      return e.what();
    }
    return "no error";
  };
  EXPECT_EQ(message(1.5), "dropout: p is out of range; p is 1.5; expected 0 <= p <= 1");
  EXPECT_EQ(message(-0.25), "dropout: p is out of range; p is -0.25; expected 0 <= p <= 1");
  EXPECT_EQ(message(std::numeric_limits<double>::quiet_NaN()),
            "dropout: p is out of range; p is nan; expected 0 <= p <= 1");
  EXPECT_EQ(generator.counter(), 0u);
}

}  // namespace
