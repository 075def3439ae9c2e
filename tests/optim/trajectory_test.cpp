// Twenty steps of every optimizer and option against plain loops in double, written from the formulas of
// PyTorch's documentation.

#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include <wengert/optim/optim.hpp>

#include "support/toy.hpp"

using namespace wengert;

namespace {

constexpr int steps = 20;

template <class T>
Tensor<T> random_tensor(const Shape& shape, std::mt19937& random) {
  std::normal_distribution<double> normal;
  Tensor<T> x(shape);
  T* p = x.mutable_data();
  for (Index i = 0; i < x.size(); ++i) p[i] = static_cast<T>(normal(random));
  return x;
}

/// Runs `steps` steps with random gradients and compares with `reference(p, g, t)`, which updates a vector of
/// doubles in place, after every step.
template <class T, class Optimizer, class Reference>
void compare(Optimizer& opt, std::vector<Tensor<T>> parameters, Reference reference, double tolerance) {
  std::mt19937 random(7);
  GradStore grads;
  std::vector<std::vector<double>> expected;
  for (const Tensor<T>& p : parameters) {
    const std::vector<T> v = p.to_vector();
    expected.emplace_back(v.begin(), v.end());
  }
  for (int t = 1; t <= steps; ++t) {
    for (std::size_t k = 0; k < parameters.size(); ++k) {
      const Tensor<T> g = random_tensor<T>(parameters[k].shape(), random);
      backward(toy::dot(parameters[k], g), grads);
      const std::vector<T> v = g.to_vector();
      reference(k, expected[k], std::vector<double>(v.begin(), v.end()), t);
    }
    opt.step(grads);
    grads.zero();
    for (std::size_t k = 0; k < parameters.size(); ++k) {
      const std::vector<T> got = parameters[k].to_vector();
      double worst = 0;
      for (std::size_t i = 0; i < got.size(); ++i)
        worst = std::max(worst, std::abs(static_cast<double>(got[i]) - expected[k][i]) /
                                    std::max(1.0, std::abs(expected[k][i])));
      ASSERT_LE(worst, tolerance) << "parameter " << k << ", step " << t;
    }
  }
}

/// Sizes below, at and above vectors, and one that several blocks share with its neighbours.
template <class T>
std::vector<Tensor<T>> parameters() {
  std::mt19937 random(3);
  std::vector<Tensor<T>> out;
  for (const Index n : {1, 7, 16, 33, 40000, 5}) {
    out.push_back(random_tensor<T>({n}, random));
    out.back().requires_grad(true);
  }
  return out;
}

template <class T>
double tolerance() {
  return std::same_as<T, float> ? 1e-6 : 1e-14;
}

template <class T>
class Trajectory : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(Trajectory, Types);

template <class T>
void check_sgd(const optim::SgdOptions& o) {
  const auto p = parameters<T>();
  optim::Sgd<T> opt(p, o);
  std::vector<std::vector<double>> buffer(p.size());
  compare<T>(
      opt, p,
      [&](std::size_t k, std::vector<double>& x, const std::vector<double>& g, int t) {
        buffer[k].resize(x.size());
        for (std::size_t i = 0; i < x.size(); ++i) {
          double d = g[i] + o.weight_decay * x[i];
          if (o.momentum != 0) {
            double& b = buffer[k][i];
            b = t == 1 ? d : o.momentum * b + (1 - o.dampening) * d;
            d = o.nesterov ? d + o.momentum * b : b;
          }
          x[i] -= o.lr * d;
        }
      },
      tolerance<T>() * 4);
}

TYPED_TEST(Trajectory, Sgd) { check_sgd<TypeParam>({.lr = 0.01}); }
TYPED_TEST(Trajectory, SgdWeightDecay) { check_sgd<TypeParam>({.lr = 0.1, .weight_decay = 0.01}); }
TYPED_TEST(Trajectory, SgdMomentum) { check_sgd<TypeParam>({.lr = 0.01, .momentum = 0.9}); }
TYPED_TEST(Trajectory, SgdDampening) {
  check_sgd<TypeParam>({.lr = 0.01, .momentum = 0.9, .dampening = 0.3, .weight_decay = 0.1});
}
TYPED_TEST(Trajectory, SgdNesterov) {
  check_sgd<TypeParam>({.lr = 0.01, .momentum = 0.9, .weight_decay = 0.01, .nesterov = true});
}

template <class T, class Optimizer, class Options>
void check_adam(const Options& o) {
  constexpr bool decoupled = std::same_as<Options, optim::AdamWOptions>;
  const auto p = parameters<T>();
  Optimizer opt(p, o);
  std::vector<std::vector<double>> m(p.size()), v(p.size()), largest(p.size());
  compare<T>(
      opt, p,
      [&](std::size_t k, std::vector<double>& x, std::vector<double> g, int t) {
        m[k].resize(x.size());
        v[k].resize(x.size());
        largest[k].resize(x.size());
        for (std::size_t i = 0; i < x.size(); ++i) {
          if (decoupled)
            x[i] *= 1 - o.lr * o.weight_decay;
          else
            g[i] += o.weight_decay * x[i];
          m[k][i] = o.betas[0] * m[k][i] + (1 - o.betas[0]) * g[i];
          v[k][i] = o.betas[1] * v[k][i] + (1 - o.betas[1]) * g[i] * g[i];
          largest[k][i] = std::max(largest[k][i], v[k][i]);
          const double m_hat = m[k][i] / (1 - std::pow(o.betas[0], t));
          const double v_hat = (o.amsgrad ? largest[k][i] : v[k][i]) / (1 - std::pow(o.betas[1], t));
          x[i] -= o.lr * m_hat / (std::sqrt(v_hat) + o.eps);
        }
      },
      tolerance<T>() * 4);
}

TYPED_TEST(Trajectory, Adam) {
  check_adam<TypeParam, optim::Adam<TypeParam>>(optim::AdamOptions{.lr = 0.01});
}
TYPED_TEST(Trajectory, AdamL2) {
  check_adam<TypeParam, optim::Adam<TypeParam>>(
      optim::AdamOptions{.lr = 0.01, .betas = {0.8, 0.95}, .eps = 1e-3, .weight_decay = 0.1});
}
TYPED_TEST(Trajectory, AdamAmsgrad) {
  check_adam<TypeParam, optim::Adam<TypeParam>>(
      optim::AdamOptions{.lr = 0.01, .betas = {0.9, 0.5}, .amsgrad = true});
}
TYPED_TEST(Trajectory, AdamW) {
  check_adam<TypeParam, optim::AdamW<TypeParam>>(optim::AdamWOptions{.lr = 0.01});
}
TYPED_TEST(Trajectory, AdamWAmsgrad) {
  check_adam<TypeParam, optim::AdamW<TypeParam>>(
      optim::AdamWOptions{.lr = 0.02, .betas = {0.9, 0.5}, .weight_decay = 0.3, .amsgrad = true});
}

/// The bits do not depend on the number of threads.
TEST(Threads, SameBits) {
  std::vector<std::vector<float>> results;
  for (const int n : {1, 2, 3}) {
    set_num_threads(n);
    auto p = parameters<float>();
    optim::AdamW<float> opt(p, {.lr = 0.01, .amsgrad = true});
    GradStore grads;
    std::mt19937 random(5);
    for (int t = 0; t < 3; ++t) {
      for (const auto& x : p) backward(toy::dot(x, random_tensor<float>(x.shape(), random)), grads);
      optim::clip_grad_norm(grads, opt.parameters(), 10);
      opt.step(grads);
      grads.zero();
    }
    results.push_back(p[4].to_vector());
  }
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
}

}  // namespace
