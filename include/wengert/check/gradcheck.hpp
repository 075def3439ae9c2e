// gradcheck: compares what backward computes with differences of the function itself, for the library's own
// operators and for users'. Floor: check.
#pragma once

#include <cmath>
#include <concepts>
#include <cstdio>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <wengert/core/backward.hpp>

namespace wengert::inline WENGERT_ISA {

/// How closely, and where, `gradcheck` looks.
struct GradcheckOptions {
  double eps = 1e-5;            ///< step, times max(1, |x|)
  double rtol = 1e-6;           ///< allowed error, relative to the larger of the two derivatives
  double atol = 1e-7;           ///< and absolute
  std::uint64_t seed = 0;       ///< of dy and of the directions
  int projections = 4;          ///< random directions for an input that is too large to try each element
  Index every_coordinate = 64;  ///< the largest input of which each element is tried
};

/// What `gradcheck` found: `EXPECT_TRUE(report.ok) << report.message`.
struct GradcheckReport {
  bool ok = true;
  double worst_error = 0;  ///< largest error, in units of what is allowed: at most 1 when ok
  std::string message;     ///< input, element, expected and got of the worst error; empty when ok
  explicit operator bool() const noexcept { return ok; }
};

namespace detail {

/// The part of gradcheck that does not depend on the type of f. A template, though T is double, so that only
/// programs that check gradients compile it.
template <std::same_as<double> T>
class Gradcheck {
 public:
  using Tensors = std::span<const Tensor<T>>;
  using Call = Tensor<T> (*)(void* f, Tensors x);

  Gradcheck(Call call, void* f, Tensors x, const GradcheckOptions& options)
      : call_(call), f_(f), options_(options), random_(options.seed) {
    for (const Tensor<T>& t : x) x_.push_back(t.packed_copy());
  }

  GradcheckReport run() {
    const NestedTape nested;
    const EnableGrad enable;
    GradStore grads;
    for (Tensor<T>& x : x_) x.requires_grad(true);
    const Tensor<T> y = call_(f_, x_);
    if (!finite(y) || !repeats(y)) return report_;
    dy_ = Tensor<T>(y.shape());
    for (Index k = 0; k < dy_.size(); ++k) dy_.fresh_data()[k] = uniform();
    tracked_ = y.requires_grad();
    if (tracked_) backward(y, dy_, grads);
    const NoGrad no_grad;
    for (std::size_t i = 0; i < x_.size(); ++i) {
      const auto found = grads.find(x_[i]);
      reached_ = found.has_value();
      const std::vector<T> dx =
          found ? found->to_vector() : std::vector<T>(static_cast<std::size_t>(x_[i].size()), 0.0);
      check(i, dx);
    }
    return report_;
  }

 private:
  bool finite(const Tensor<T>& y) {
    const std::vector<T> v = y.to_vector();
    for (std::size_t k = 0; k < v.size(); ++k)
      if (!std::isfinite(v[k]))
        return refuse("f(x) is not finite at element ", k, "; expected finite values");
    return true;
  }
  bool repeats(const Tensor<T>& y) {
    const NoGrad no_grad;
    const Tensor<T> again = call_(f_, x_);
    if (again.shape() != y.shape() || again.to_vector() != y.to_vector())
      return refuse(
          "f gives another result when called again; expected a function of its arguments: make "
          "random generators inside f");
    return true;
  }
  template <class... P>
  bool refuse(const P&... parts) {
    report_.ok = false;
    report_.worst_error = std::numeric_limits<double>::infinity();
    report_.message = text("gradcheck: ", parts...);
    return false;
  }

  void check(std::size_t i, const std::vector<T>& dx) {
    const Index n = x_[i].size();
    const bool all = n <= options_.every_coordinate;
    for (Index k = 0; k < n; k += all || n == 1 ? 1 : n - 1) {  // of a large input, the first and the last
      direction_ = {{k, 1.0}};
      compare(i, dx, text("element ", k));
    }
    if (all) return;
    for (int p = 0; p < options_.projections; ++p) {
      direction_.clear();
      for (Index k = 0; k < n; ++k) direction_.emplace_back(k, uniform());
      compare(i, dx, text("random direction ", p));
    }
  }

  void compare(std::size_t i, const std::vector<T>& dx, const std::string& where) {
    double analytic = 0, norm = 0, step = options_.eps;
    for (const auto& [k, u] : direction_) {
      const double term = dx[static_cast<std::size_t>(k)] * u;
      analytic += term;
      norm += term * term;
    }
    if (direction_.size() == 1) step *= std::max(1.0, std::abs(x_[i].data()[direction_[0].first]));
    const Tensor<T> before = x_[i].packed_copy(), middle = call_(f_, x_);
    const Tensor<T> right = moved(i, step), left = moved(i, -step);
    x_[i].copy_from(before);
    const double after = slope(middle, right, step), fore = slope(left, middle, step);
    const double numeric = (after + fore) / 2;
    const double allowed =
        options_.atol + options_.rtol * std::max({std::abs(analytic), std::abs(numeric), std::sqrt(norm)});
    const double error = std::abs(analytic - numeric) / allowed;
    if (error <= report_.worst_error) return;  // false for a NaN
    report_.worst_error = std::isnan(error) ? std::numeric_limits<double>::infinity() : error;
    if (error <= 1) return;
    report_.ok = false;
    report_.message =
        text("gradcheck: the gradient of input ", i, ", shape ", x_[i].shape(), ", is wrong at ", where,
             "; expected ", digits(numeric), ", got ", digits(analytic));
    if (!tracked_)
      report_.message += "; f(x) was not recorded";
    else if (!reached_)
      report_.message += "; no gradient reached this input";
    if (std::abs(after - fore) > 1e-2 * std::max(std::abs(after), std::abs(fore)))
      report_.message +=
          text("; a kink? the slopes before and after are ", digits(fore), " and ", digits(after));
  }

  /// f where input i has moved by `step` along the direction; leaves the input moved.
  Tensor<T> moved(std::size_t i, double step) {
    const Tensor<T> start = x_[i].packed_copy();
    double* x = x_[i].mutable_data();
    for (const auto& [k, u] : direction_) x[k] += step * u;
    Tensor<T> y = call_(f_, x_).packed_copy();
    x_[i].copy_from(start);
    return y;
  }
  /// sum(dy * (b - a)) / step: differences first, so that a large sum does not swallow a small change.
  double slope(const Tensor<T>& a, const Tensor<T>& b, double step) const {
    const Tensor<T> pa = a.packed(), pb = b.packed();
    double sum = 0;
    for (Index k = 0; k < dy_.size(); ++k) sum += dy_.data()[k] * (pb.data()[k] - pa.data()[k]);
    return sum / step;
  }
  static std::string digits(double v) {
    char s[32];
    std::snprintf(s, sizeof s, "%.9g", v);
    return s;
  }
  /// From -1 to 1 and never close to 0, by splitmix64.
  double uniform() noexcept {
    std::uint64_t z = (random_ += 0x9E3779B97F4A7C15U);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    z ^= z >> 31;
    const double magnitude = 0.25 + 0.75 * static_cast<double>(z >> 12) * 0x1p-52;
    return z & 1U ? magnitude : -magnitude;
  }

  Call call_;
  void* f_;
  GradcheckOptions options_;
  std::uint64_t random_;
  std::vector<Tensor<T>> x_;
  Tensor<T> dy_;
  std::vector<std::pair<Index, T>> direction_;
  bool tracked_ = false, reached_ = false;
  GradcheckReport report_;
};

}  // namespace detail

/// As below for a list of inputs: `f` takes a `std::span<const Tensor<double>>`.
template <class F>
GradcheckReport gradcheck(F&& f, std::span<const Tensor<double>> x, const GradcheckOptions& options = {}) {
  using Callable = std::remove_reference_t<F>;
  const auto call = [](void* callable, std::span<const Tensor<double>> inputs) -> Tensor<double> {
    return (*static_cast<Callable*>(callable))(inputs);
  };
  void* callable = const_cast<void*>(static_cast<const void*>(std::addressof(f)));
  return detail::Gradcheck<double>(call, callable, x, options).run();
}

/// Whether backward through `f` agrees with central differences of f:
///
///   auto report = gradcheck([&](const auto& x, const auto& w) { return my_op(x, w, labels); }, {x, w});
///
/// `f` returns a tensor of any shape; its gradient is taken for a random dy. Each element of a small input is
/// tried, random directions of a large one. Integer inputs and constants are captured by f. An input that f
/// does not use passes. Choose x away from kinks. Works on copies, on a tape of its own. Differences need
/// double: float has no digits to spare. Throws what f throws.
template <class F, class T, std::size_t N>
GradcheckReport gradcheck(F&& f, const Tensor<T> (&x)[N], const GradcheckOptions& options = {}) {
  static_assert(std::same_as<T, double>,
                "gradcheck: differences of float values have no digits to spare; pass Tensor<double>");
  return gradcheck(
      [&f](std::span<const Tensor<double>> inputs) -> Tensor<double> {
        return [&]<std::size_t... i>(std::index_sequence<i...>) { return f(inputs[i]...); }
        (std::make_index_sequence<N>());
      },
      std::span<const Tensor<double>>(x), options);
}

/// As above for one input.
template <class F, class T>
GradcheckReport gradcheck(F&& f, const Tensor<T>& x, const GradcheckOptions& options = {}) {
  return gradcheck(std::forward<F>(f), {x}, options);
}

}  // namespace wengert::inline WENGERT_ISA
