// Initialisers with PyTorch's formulas. They write a tensor in place and draw from the generator passed.
// Floor: nn.
#pragma once

#include <cmath>

#include <wengert/base/random.hpp>
#include <wengert/core/tensor.hpp>

namespace wengert::inline WENGERT_ISA::nn::init {

/// How many inputs feed one output of a weight, and how many outputs one input feeds.
struct Fans {
  Index in, out;
};

/// Of a matrix (out, in), or a convolution's (..., in, out) whose leading axes are its window. Throws
/// ShapeError below rank 2.
inline Fans fans(const Shape& weight) {
  if (weight.rank() < 2)
    fail<ShapeError>("fans", "rank is too low; weight is ", weight,
                     "; expected a matrix (out, in), or (..., in, out)");
  if (weight.rank() == 2) return {weight[1], weight[0]};
  Index window = 1;
  for (int i = 0; i + 2 < weight.rank(); ++i) window *= weight[i];
  return {window * weight[weight.rank() - 2], window * weight.back()};
}

/// Which fan keeps its variance: `in` that of the forward pass, `out` that of the gradients.
enum class Fan : std::uint8_t { in, out };

struct KaimingOptions {
  double slope = 0;  ///< of the leaky relu that follows, below 0
  Fan mode = Fan::in;
};

namespace detail {

template <Field T, class Fill>
Tensor<T>& write(std::string_view op, Tensor<T>& w, Fill fill) {
  if (!w.is_contiguous())
    fail<ShapeError>(op, "the tensor is not contiguous; shape is ", w.shape(), ", strides are ", w.strides(),
                     "; expected a contiguous tensor");
  const auto n = static_cast<std::size_t>(w.size());
  T* const p = w.mutable_data();
  if constexpr (std::is_floating_point_v<T>) {
    fill(p, n);
  } else {
    const Scratch<double> numbers(w.size());
    fill(numbers.data(), n);
    for (std::size_t i = 0; i < n; ++i) p[i] = T(numbers.data()[i]);
  }
  return w;
}

inline double kaiming_std(const Shape& weight, const KaimingOptions& options) {
  const Fans f = fans(weight);
  const Index fan = options.mode == Fan::in ? f.in : f.out;
  return fan == 0 ? 0 : std::sqrt(2 / (1 + options.slope * options.slope) / static_cast<double>(fan));
}
inline double xavier_std(const Shape& weight, double gain) {
  const Fans f = fans(weight);
  return f.in + f.out == 0 ? 0 : gain * std::sqrt(2 / static_cast<double>(f.in + f.out));
}

}  // namespace detail

/// Numbers uniform in [lo, hi). Returns w, as all initialisers. Throws ShapeError when w has gaps, as all
/// initialisers, ValueError unless lo < hi are finite.
template <Field T>
Tensor<T>& uniform(Tensor<T>& w, Generator& generator, double lo = 0, double hi = 1) {
  if (!(lo < hi) || !std::isfinite(hi - lo))
    fail<ValueError>("init::uniform", "bad interval; lo is ", lo, ", hi is ", hi,
                     "; expected finite lo < hi");
  return detail::write("init::uniform", w, [&](auto* p, std::size_t n) {
    using U = std::remove_pointer_t<decltype(p)>;
    generator.fill_uniform(p, n, static_cast<U>(lo), static_cast<U>(hi));
  });
}

/// Normal numbers. Throws ValueError unless mean and std are finite and std >= 0.
template <Field T>
Tensor<T>& normal(Tensor<T>& w, Generator& generator, double mean = 0, double std = 1) {
  if (!std::isfinite(mean) || !(std >= 0) || !std::isfinite(std))
    fail<ValueError>("init::normal", "bad parameters; mean is ", mean, ", std is ", std,
                     "; expected finite numbers and std >= 0");
  return detail::write("init::normal", w, [&](auto* p, std::size_t n) {
    using U = std::remove_pointer_t<decltype(p)>;
    generator.fill_normal(p, n, static_cast<U>(mean), static_cast<U>(std));
  });
}

namespace detail {

// Uniform with the given standard deviation about 0; zeros where there is no fan.
template <Field T>
Tensor<T>& uniform_of_std(Tensor<T>& w, Generator& generator, double std) {
  const double bound = std::sqrt(3.0) * std;
  if (bound == 0) return w.fill(T(0));
  return init::uniform(w, generator, -bound, bound);
}

}  // namespace detail

/// He's: uniform in +-sqrt(3) s, where s = sqrt(2 / (1 + slope^2) / fan), for layers before a relu.
/// Throws ShapeError below rank 2, as the next three.
template <Field T>
Tensor<T>& kaiming_uniform(Tensor<T>& w, Generator& generator, const KaimingOptions& options = {}) {
  return detail::uniform_of_std(w, generator, detail::kaiming_std(w.shape(), options));
}
/// Normal with the same standard deviation s.
template <Field T>
Tensor<T>& kaiming_normal(Tensor<T>& w, Generator& generator, const KaimingOptions& options = {}) {
  return normal(w, generator, 0, detail::kaiming_std(w.shape(), options));
}
/// Glorot's: uniform in +-sqrt(3) s, where s = gain * sqrt(2 / (fan_in + fan_out)), for layers before tanh.
template <Field T>
Tensor<T>& xavier_uniform(Tensor<T>& w, Generator& generator, double gain = 1) {
  return detail::uniform_of_std(w, generator, detail::xavier_std(w.shape(), gain));
}
/// Normal with the same standard deviation s. Throws ValueError unless gain >= 0.
template <Field T>
Tensor<T>& xavier_normal(Tensor<T>& w, Generator& generator, double gain = 1) {
  return normal(w, generator, 0, detail::xavier_std(w.shape(), gain));
}

}  // namespace wengert::inline WENGERT_ISA::nn::init
