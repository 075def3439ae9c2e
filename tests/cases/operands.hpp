// Operands for a row's inputs, one run of a row forward and backward, and comparisons that say what differs.
#pragma once

#include <bit>
#include <cmath>
#include <cstdio>
#include <random>

#include <wengert/core/backward.hpp>

#include "cases/case.hpp"

namespace cases {

using Arrays = std::vector<Array>;
using Anys = std::vector<Any>;

/// Values for a row's inputs, in the given shapes: the same for a seed on every platform, all exact in float.
inline Arrays values_for(const Case& c, const Shapes& shapes, std::uint32_t seed = 1) {
  std::mt19937 bits(seed);
  const auto uniform = [&bits] { return static_cast<double>(bits()) / 4294967296.0; };
  const auto shuffled = [&bits](std::size_t n) {
    std::vector<std::size_t> p(n);
    for (std::size_t i = 0; i < n; ++i) p[i] = i;
    for (std::size_t i = n; i > 1; --i) std::swap(p[i - 1], p[bits() % i]);
    return p;
  };
  Index total_distinct = 0;
  for (std::size_t i = 0; i < shapes.size(); ++i)
    if (c.inputs[i].kind == Input::Kind::real && c.inputs[i].is_distinct) total_distinct += shapes[i].size();
  const std::vector<std::size_t> order = shuffled(static_cast<std::size_t>(total_distinct));
  std::size_t next_distinct = 0;

  Arrays out;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const Input& in = c.inputs[i];
    Array x(shapes[i]);
    const std::size_t n = x.v.size();
    const double width = in.hi - in.lo;
    if (!in.explicit_values.empty()) {
      for (std::size_t k = 0; k < n; ++k) x.v[k] = in.explicit_values[k % in.explicit_values.size()];
    } else if (in.kind == Input::Kind::real && in.is_distinct) {
      for (double& v : x.v)
        v = static_cast<float>(in.lo + width * (static_cast<double>(order[next_distinct++]) + 0.5) /
                                           static_cast<double>(total_distinct));
    } else if (in.kind == Input::Kind::real) {
      constexpr double margin = 0.05;
      const auto near_kink = [&](double v) {
        for (const double kink : in.kinks)
          if (std::abs(v - kink) < margin) return true;
        return false;
      };
      for (double& v : x.v) do
          v = static_cast<float>(in.lo + width * uniform());
        while (near_kink(v));
    } else if (in.is_distinct) {
      const auto p = shuffled(static_cast<std::size_t>(width));
      for (std::size_t k = 0; k < n; ++k) x.v[k] = in.lo + static_cast<double>(p.at(k));
    } else {
      const double choices = in.kind == Input::Kind::mask ? 2 : width;
      for (double& v : x.v) v = in.lo + std::floor(uniform() * choices);
    }
    out.push_back(std::move(x));
  }
  return out;
}
inline Arrays values_for(const Case& c, std::uint32_t seed = 1) { return values_for(c, c.shapes(), seed); }

/// A dy without pattern, exact in float.
inline Array seed_for(const Shape& shape, std::uint32_t seed = 7) {
  std::mt19937 bits(seed);
  Array dy(shape);
  for (double& v : dy.v) v = static_cast<float>(static_cast<double>(bits()) / 2147483648.0 - 1);
  return dy;
}

/// The operand for input i; a leaf when the row differentiates it.
template <class T>
Any operand(const Case& c, std::size_t i, const Array& values, Layout layout = Layout::contiguous) {
  const Input& in = c.inputs[i];
  if (in.make != nullptr) return in.make(values, layout);
  Tensor<T> x = tensor_of<T>(values, layout);
  if (in.differentiable && c.differentiable) x.requires_grad(true);
  return x;
}
template <class T>
Anys operands(const Case& c, const Arrays& values) {
  Anys out;
  for (std::size_t i = 0; i < values.size(); ++i) out.push_back(operand<T>(c, i, values[i]));
  return out;
}
inline bool is_leaf(const Any& x) {
  return std::visit([](const auto& t) { return static_cast<bool>(t.place().leaf()); }, x);
}

template <class T>
const Call& call_of(const Case& c) {
  if constexpr (std::is_same_v<T, float>)
    return c.in_float;
  else
    return c.in_double;
}

/// What one run of a row gave. `dx[i]` is empty where no gradient reached input i.
struct Outcome {
  Array y;
  std::vector<std::optional<Array>> dx;
};
template <class T>
std::vector<std::optional<Array>> gradients(const wengert::GradStore& grads, std::span<const Any> x) {
  std::vector<std::optional<Array>> out(x.size());
  for (std::size_t i = 0; i < x.size(); ++i)
    if (const auto* t = std::get_if<Tensor<T>>(&x[i]); t != nullptr && t->place().leaf())
      if (const auto g = grads.find(*t)) out[i] = to_array(*g);
  return out;
}
/// y = f(x), and backward from `dy` when the row is differentiable.
template <class T>
Outcome run(const Case& c, std::span<const Any> x, const Array* dy = nullptr) {
  Outcome out;
  const Any y = call_of<T>(c)(x);
  out.y = to_array(y);
  out.dx.resize(x.size());
  if (!c.differentiable) return out;
  const Array seed = dy != nullptr ? *dy : seed_for(out.y.shape);
  wengert::GradStore grads;
  const auto& typed = std::get<Tensor<T>>(y);
  if (typed.requires_grad()) wengert::backward(typed, tensor_of<T>(seed, Layout::contiguous), grads);
  out.dx = gradients<T>(grads, x);
  return out;
}

/// Empty when `got` is as expected, within tolerance * (1 + |expected|); otherwise what differs first.
inline std::string difference(const Array& got, const Array& expected, double tolerance) {
  if (!(got.shape == expected.shape))
    return wengert::detail::text("shape: expected ", expected.shape, ", got ", got.shape);
  for (Index k = 0; k < got.size(); ++k) {
    const double g = got[k], e = expected[k];
    const bool equal = std::isnan(e)   ? std::isnan(g)
                       : std::isinf(e) ? g == e
                                       : std::abs(g - e) <= tolerance * (1 + std::abs(e));
    if (equal) continue;
    char numbers[96];
    std::snprintf(numbers, sizeof numbers, ": expected %.9g, got %.9g", e, g);
    return wengert::detail::text("index ", got.index(k), static_cast<const char*>(numbers));
  }
  return {};
}
inline std::string difference_in_bits(const Array& got, const Array& expected) {
  if (!(got.shape == expected.shape))
    return wengert::detail::text("shape: expected ", expected.shape, ", got ", got.shape);
  for (Index k = 0; k < got.size(); ++k) {
    if (std::bit_cast<std::uint64_t>(got[k]) == std::bit_cast<std::uint64_t>(expected[k])) continue;
    char numbers[96];
    std::snprintf(numbers, sizeof numbers, ": expected %a, got %a", expected[k], got[k]);
    return wengert::detail::text("index ", got.index(k), static_cast<const char*>(numbers));
  }
  return {};
}
/// As `difference`, for the gradients of all inputs; names the input. Negative tolerance: the same bits.
inline std::string difference(const std::vector<std::optional<Array>>& got,
                              const std::vector<std::optional<Array>>& expected, double tolerance) {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const std::string where = wengert::detail::text("gradient of input ", i, ", ");
    if (got[i].has_value() != expected[i].has_value())
      return where + (got[i] ? "expected none, got one" : "expected one, got none");
    if (!got[i]) continue;
    const std::string d = tolerance < 0 ? difference_in_bits(*got[i], *expected[i])
                                        : difference(*got[i], *expected[i], tolerance);
    if (!d.empty()) return where + d;
  }
  return {};
}

template <class T>
double tolerance_of(const Case& c) {
  return std::is_same_v<T, float> ? c.float_tolerance : c.double_tolerance;
}
template <class T>
const char* type_name() {
  return std::is_same_v<T, float> ? "float" : "double";
}

}  // namespace cases
