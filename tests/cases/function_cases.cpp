// Rows of elementary and activation functions.
#include <limits>

#include <wengert/ops/activation.hpp>

#include "cases/case.hpp"

namespace cases {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();
const Shapes large{{512, 1024}};

const Rows functions([] {
  row(
      "exp", [](const auto& x) { return exp(x); }, real({3, 4}))
      .reference(elementwise([](double x) { return std::exp(x); }))
      .resizable(0)
      .at({0}, 1, {1})
      .at({-inf}, 0, {0})
      .at({inf}, inf, {inf})
      .at({nan}, nan)
      .bench(large);
  row(
      "expm1", [](const auto& x) { return expm1(x); }, real({3, 4}))
      .reference(elementwise([](double x) { return std::expm1(x); }))
      .resizable(0)
      .at({1e-10}, 1e-10, {1 + 1e-10})
      .at({-inf}, -1, {0})
      .bench(large);
  row(
      "log", [](const auto& x) { return log(x); }, real({3, 4}, 0.2, 4))
      .reference(elementwise([](double x) { return std::log(x); }))
      .resizable()
      .at({1}, 0, {1})
      .at({0}, -inf, {inf})
      .at({-1}, nan)
      .at({inf}, inf, {0})
      .bench(large);
  row(
      "log1p", [](const auto& x) { return log1p(x); }, real({3, 4}, -0.5, 2))
      .reference(elementwise([](double x) { return std::log1p(x); }))
      .resizable()
      .at({1e-10}, 1e-10, {1 - 1e-10})
      .at({-1}, -inf, {inf})
      .bench(large);
  row(
      "sqrt", [](const auto& x) { return sqrt(x); }, real({3, 4}, 0.2, 4))
      .reference(elementwise([](double x) { return std::sqrt(x); }))
      .resizable()
      .at({4}, 2, {0.25})
      .at({0}, 0, {inf})
      .at({-1}, nan)
      .bench(large);
  row(
      "square", [](const auto& x) { return square(x); }, real({3, 4}))
      .reference(elementwise([](double x) { return x * x; }))
      .resizable(0)
      .at({-3}, 9, {-6})
      .bench(large);
  row(
      "abs", [](const auto& x) { return abs(x); }, real({3, 4}).away_from({0}))
      .reference(elementwise([](double x) { return std::abs(x); }))
      .resizable(0)
      .at({-3}, 3, {-1})
      .at({0}, 0, {0})
      .bench(large);
  row(
      "sin", [](const auto& x) { return sin(x); }, real({3, 4}))
      .reference(elementwise([](double x) { return std::sin(x); }))
      .resizable(0)
      .at({0}, 0, {1})
      .bench(large);
  row(
      "cos", [](const auto& x) { return cos(x); }, real({3, 4}))
      .reference(elementwise([](double x) { return std::cos(x); }))
      .resizable(0)
      .at({0}, 1, {0})
      .bench(large);
  row(
      "erf", [](const auto& x) { return erf(x); }, real({3, 4}))
      .reference(elementwise([](double x) { return std::erf(x); }))
      .resizable(0)
      .at({inf}, 1, {0})
      .bench(large);
  row(
      "pow/number", [](const auto& x) { return pow(x, 3); }, real({3, 4}))
      .reference(elementwise([](double x) { return x * x * x; }))
      .resizable(0)
      .at({-2}, -8, {12})
      .bench(large);
  row(
      "pow/half", [](const auto& x) { return pow(x, 0.5); }, real({3, 4}, 0.2, 3))
      .reference(elementwise([](double x) { return std::sqrt(x); }))
      .resizable()
      .at({4}, 2, {0.25})
      .at({-1}, nan)
      .bench(large);
  row(
      "pow/zero", [](const auto& x) { return pow(x, 0); }, real({3, 4}))
      .reference(elementwise([](double) { return 1.0; }))
      .resizable(0)
      .at({0}, 1, {0})
      .at({inf}, 1, {0})
      .bench(large);
  row(
      "pow", [](const auto& a, const auto& b) { return pow(a, b); }, real({3, 4}, 0.3, 2), real({4}))
      .reference(elementwise([](double a, double b) { return std::pow(a, b); }))
      .resizable()
      .at({2, 3}, 8, {12, 8 * std::log(2)})
      .at({0, 0}, 1, {0, 0})
      .at({0, 2}, 0, {0, 0})
      .at({-2, 2}, 4, {-4, nan})
      .bench({{512, 1024}, {1024}});
});

const Rows activations([] {
  row(
      "tanh", [](const auto& x) { return tanh(x); }, real({3, 4}))
      .reference(elementwise([](double x) { return std::tanh(x); }))
      .resizable(0)
      .at({0}, 0, {1})
      .at({inf}, 1, {0})
      .at({-800}, -1, {0})
      .at({nan}, nan)
      .bench(large);
  row(
      "sigmoid", [](const auto& x) { return sigmoid(x); }, real({3, 4}))
      .reference(elementwise([](double x) { return 1 / (1 + std::exp(-x)); }))
      .resizable(0)
      .at({0}, 0.5, {0.25})
      .at({-800}, 0, {0})
      .at({800}, 1, {0})
      .at({-inf}, 0, {0})
      .bench(large);
  row(
      "relu", [](const auto& x) { return relu(x); }, real({3, 4}).away_from({0}))
      .reference(elementwise([](double x) { return x > 0 ? x : 0; }))
      .resizable(0)
      .at({0}, 0, {0})
      .at({-1}, 0, {0})
      .at({inf}, inf, {1})
      .at({nan}, nan)
      .bench(large);
  row(
      "leaky_relu", [](const auto& x) { return leaky_relu(x, 0.1); }, real({3, 4}).away_from({0}))
      .reference(elementwise([](double x) { return x > 0 ? x : 0.1 * x; }))
      .resizable(0)
      .at({0}, 0, {0.1})
      .bench(large);
  row(
      "gelu", [](const auto& x) { return gelu(x); }, real({3, 4}))
      .reference(elementwise([](double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }))
      .resizable(0)
      .at({0}, 0, {0.5})
      .at({50}, 50, {1})
      .at({-50}, 0, {0})
      .bench(large);
  row(
      "gelu/tanh", [](const auto& x) { return gelu(x, wengert::Gelu::tanh); }, real({3, 4}))
      .reference(elementwise([](double x) {
        return 0.5 * x * (1 + std::tanh(std::sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)));
      }))
      .resizable(0)
      .at({0}, 0, {0.5})
      .at({50}, 50, {1})
      .bench(large);
  row(
      "silu", [](const auto& x) { return silu(x); }, real({3, 4}))
      .reference(elementwise([](double x) { return x / (1 + std::exp(-x)); }))
      .resizable(0)
      .at({0}, 0, {0.5})
      .at({-800}, 0, {0})
      .at({800}, 800, {1})
      .bench(large);
  row(
      "softplus", [](const auto& x) { return softplus(x); }, real({3, 4}))
      .reference(elementwise([](double x) { return std::log1p(std::exp(x)); }))
      .resizable(0)
      .at({0}, std::log(2), {0.5})
      .at({800}, 800, {1})
      .at({-800}, 0, {0})
      .bench(large);
});

}  // namespace
}  // namespace cases
