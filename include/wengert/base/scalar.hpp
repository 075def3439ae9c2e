// Which element types a tensor may hold. Floor: base.
#pragma once

#include <concepts>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include <wengert/base/config.hpp>

namespace wengert::inline WENGERT_ISA {

/// Sizes, strides, axes and indices.
using Index = std::int64_t;

/// Element type of masks: 0 is false, anything else true.
using Byte = std::uint8_t;

/// An element type: copied as bytes, so that buffers can be pooled and never run destructors.
template <class T>
concept Scalar =
    std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T> && !std::is_pointer_v<T> &&
    !std::is_const_v<T>;

/// Types with SIMD kernels.
template <class T>
concept SimdScalar = std::same_as<T, float> || std::same_as<T, double>;

/// Field-like element types, which may carry gradients: float, double, dual numbers, a user's own.
template <class T>
concept Field = Scalar<T> && !std::integral<T> && requires(T a, T b) {
  { a + b } -> std::convertible_to<T>;
  { a - b } -> std::convertible_to<T>;
  { a* b } -> std::convertible_to<T>;
  { a / b } -> std::convertible_to<T>;
  { -a } -> std::convertible_to<T>;
  T(1);
};

/// Name of an element type as printed, such as "float32"; "scalar" for a type the library does not know.
template <Scalar T>
constexpr std::string_view dtype_name() noexcept {
  if constexpr (std::same_as<T, float>) return "float32";
  if constexpr (std::same_as<T, double>) return "float64";
  if constexpr (std::same_as<T, bool>) return "bool";
  if constexpr (std::integral<T>) {
    constexpr std::string_view is[] = {"int8", "int16", "int32", "int64"};
    constexpr std::string_view us[] = {"uint8", "uint16", "uint32", "uint64"};
    constexpr int k = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
    return std::is_signed_v<T> ? is[k] : us[k];
  }
  return "scalar";
}

}  // namespace wengert::inline WENGERT_ISA
