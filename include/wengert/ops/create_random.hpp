// Random tensors. The generator is passed, never global; element i depends only on its seed, its counter and
// i, so numbers are the same on every platform and at any number of threads. Floor: ops.
#pragma once

#include <wengert/base/random.hpp>
#include <wengert/ops/create.hpp>

namespace wengert::inline WENGERT_ISA {

/// Numbers uniform in [lo, hi). A constant. Throws ValueError unless lo < hi are finite.
template <std::floating_point T = float>
Tensor<T> uniform(const Shape& shape, Generator& generator, std::type_identity_t<T> lo = 0,
                  std::type_identity_t<T> hi = 1) {
  if (!(lo < hi) || !std::isfinite(hi - lo))
    fail<ValueError>("uniform", "bad interval; lo is ", lo, ", hi is ", hi, "; expected finite lo < hi");
  checked_size("uniform", shape, sizeof(T));
  Tensor<T> y(shape);
  generator.fill_uniform(y.fresh_data(), static_cast<std::size_t>(y.size()), lo, hi);
  return y;
}

/// Normal numbers of the given mean and standard deviation. A constant. Throws ValueError when either is not
/// finite or std is negative.
template <std::floating_point T = float>
Tensor<T> normal(const Shape& shape, Generator& generator, std::type_identity_t<T> mean = 0,
                 std::type_identity_t<T> std = 1) {
  if (!std::isfinite(mean) || !(std >= 0) || !std::isfinite(std))
    fail<ValueError>("normal", "bad parameters; mean is ", mean, ", std is ", std,
                     "; expected finite numbers and std >= 0");
  checked_size("normal", shape, sizeof(T));
  Tensor<T> y(shape);
  generator.fill_normal(y.fresh_data(), static_cast<std::size_t>(y.size()), mean, std);
  return y;
}

/// Whole numbers lo <= y < hi, each as likely as the others to one part in 2^64 / (hi - lo). Throws
/// ValueError unless lo < hi.
template <std::integral T = Index>
Tensor<T> randint(const Shape& shape, Generator& generator, std::type_identity_t<T> lo,
                  std::type_identity_t<T> hi) {
  if (lo >= hi)
    fail<ValueError>("randint", "no number fits; lo is ", lo, ", hi is ", hi, "; expected lo < hi");
  checked_size("randint", shape, sizeof(T));
  Tensor<T> y(shape);
  T* const p = y.fresh_data();
  const std::uint64_t first = static_cast<std::uint64_t>(lo), range = static_cast<std::uint64_t>(hi) - first;
  generator.fill_chunks<2>(
      p, static_cast<std::size_t>(y.size()), [=](const std::uint32_t* w, T* to, std::size_t count) {
        for (std::size_t i = 0; i < count; ++i) {
          // The upper half of a 64-bit fraction times the range.
          const std::uint64_t high = w[2 * i + 1], low = w[2 * i], range_high = range >> 32,
                              range_low = range & 0xFFFFFFFFu;
          const std::uint64_t middle = high * range_low + (low * range_low >> 32), across = low * range_high;
          const std::uint64_t carry = ((middle & 0xFFFFFFFFu) + (across & 0xFFFFFFFFu)) >> 32;
          const std::uint64_t k = high * range_high + (middle >> 32) + (across >> 32) + carry;
          to[i] = static_cast<T>(first + k);
        }
      });
  return y;
}

/// 0, 1, ..., n - 1 in random order, each order equally likely. Throws ValueError when n is negative.
inline Tensor<Index> permutation(Index n, Generator& generator) {
  if (n < 0) fail<ValueError>("permutation", "n is ", n, "; expected n >= 0");
  Tensor<Index> y = arange<Index>(n);
  generator.shuffle(std::span<Index>(y.fresh_data(), static_cast<std::size_t>(n)));
  return y;
}

}  // namespace wengert::inline WENGERT_ISA
