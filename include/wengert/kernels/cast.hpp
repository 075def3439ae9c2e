// Conversion between element types. Floor: kernels.
#pragma once

#include <limits>
#include <type_traits>

#include <wengert/kernels/copy.hpp>

namespace wengert::inline WENGERT_ISA::kernels {

/// One element converted. A floating-point number outside an integer type becomes the nearest end of its
/// range, and NaN becomes 0; towards bool, everything but 0 is true.
template <class U, class T>
constexpr U convert(const T& x) noexcept {
  if constexpr (std::is_same_v<U, bool> && std::is_arithmetic_v<T>) {
    return x != T(0);
  } else if constexpr (std::is_integral_v<U> && std::is_floating_point_v<T>) {
    constexpr U low = std::numeric_limits<U>::min(), high = std::numeric_limits<U>::max();
    if (!(x > static_cast<T>(low))) return x <= static_cast<T>(low) ? low : U(0);
    return x >= static_cast<T>(high) ? high : static_cast<U>(x);  // T(high) may be rounded up, hence >=
  } else {
    return static_cast<U>(x);
  }
}

/// y[i] = convert(x[i]) for n contiguous elements, or += when `add`.
template <class T, class U>
void cast(const T* x, Index n, U* y, bool add = false) {
  parallel_for(n, copy_grain, [=](Index begin, Index end) {
    if (add) {
      for (Index i = begin; i < end; ++i) y[i] = static_cast<U>(y[i] + convert<U>(x[i]));
    } else {
      for (Index i = begin; i < end; ++i) y[i] = convert<U>(x[i]);
    }
  });
}

}  // namespace wengert::inline WENGERT_ISA::kernels
