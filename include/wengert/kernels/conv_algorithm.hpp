// Which algorithm a pass of a convolution takes: a rule of its sizes, never a search. Floor: kernels.
#pragma once

#include <atomic>
#include <string_view>

#include <wengert/kernels/conv_shape.hpp>
#include <wengert/kernels/simd.hpp>

namespace wengert::inline WENGERT_ISA::kernels {

/// The passes of a convolution: to its output, back to its input, back to its weights.
enum class ConvPass : std::uint8_t { forward, data, weights };

/// How a pass is computed.
enum class ConvAlgorithm : std::uint8_t { plain, depthwise, grouped, product, direct, winograd2, winograd4 };

constexpr std::string_view name_of(ConvAlgorithm a) noexcept {
  constexpr std::string_view names[] = {"plain",  "depthwise",       "grouped",        "product",
                                        "direct", "Winograd F(2x2)", "Winograd F(4x4)"};
  return names[static_cast<int>(a)];
}

namespace detail {

inline std::atomic<bool>& exact_convolutions_flag() noexcept {
  static std::atomic<bool> flag{false};
  return flag;
}

/// What Winograd F(m x m) costs, in multiply-adds of a direct convolution: products at (m + 2)^2 points of
/// each tile, 12 an element to map tiles there and back, 40 a weight to map them through memory. Fitted to
/// measured times of layers of ResNet-18 and ResNet-20 on an Ice Lake, the 40 (50 there) to those of 512
/// channels on a Zen 4: see bench/RESULTS.md.
template <class T>
constexpr double winograd_cost(const ConvShape& s, double rows, double columns, Index m) noexcept {
  const auto up = [](Index n) {
    return static_cast<double>((n + simd_lanes<T> - 1) / simd_lanes<T> * simd_lanes<T>);
  };
  const Index tiles =
      s.window.batch * ((s.window.height().out + m - 1) / m) * ((s.window.width().out + m - 1) / m);
  const double points = static_cast<double>((m + 2) * (m + 2)), t = static_cast<double>(tiles);
  return points *
         (t * rows * columns + 12 * t * (up(s.in_channels()) + up(s.out_channels)) + 40 * rows * columns);
}

}  // namespace detail

/// The rule.
/// - plain loops for element types other than float and double;
/// - depthwise where every channel is a group of its own; grouped, much the same, for groups of at most 8
/// channels;
/// - one matrix product for 1 x 1 taps with stride 1 and no padding;
/// - for 3 x 3 taps with stride 1, whichever of direct, Winograd F(2 x 2) and F(4 x 4) has the lowest cost by
///   `winograd_cost`; F(4 x 4) not when `exact`;
/// - else direct.
/// Errors, relative to the largest result, in all three passes of float layers with 64 .. 512 channels:
/// direct and F(2 x 2) below 1e-6, F(4 x 4) below 1e-5.
template <Scalar T>
constexpr ConvAlgorithm conv_algorithm(const ConvShape& s, ConvPass pass, bool exact = false) noexcept {
  if (s.group_in() == 1 && s.group_out() == 1) return ConvAlgorithm::depthwise;
  if constexpr (SimdScalar<T>) {
    if (s.groups > 1 && std::max(s.group_in(), s.group_out()) <= 8) return ConvAlgorithm::grouped;
    const WindowAxis &d = s.window.depth(), &h = s.window.height(), &w = s.window.width();
    bool pointwise = s.groups == 1, square = s.groups == 1 && d.in == 1 && d.out == 1 && d.kernel == 1;
    for (const WindowAxis& a : s.window.axis)
      pointwise = pointwise && a.kernel == 1 && a.stride == 1 && a.before == 0 && a.in == a.out;
    if (pointwise) return ConvAlgorithm::product;
    for (const WindowAxis& a : {h, w}) square = square && a.kernel == 3 && a.stride == 1 && a.dilation == 1;
    if (!square) return ConvAlgorithm::direct;
    const auto up = [](Index n) { return (n + simd_lanes<T> - 1) / simd_lanes<T> * simd_lanes<T>; };
    const bool back = pass == ConvPass::data;
    const double rows = static_cast<double>(back ? s.out_channels : s.in_channels());
    const double columns = static_cast<double>(up(back ? s.in_channels() : s.out_channels));
    const double direct = 9 * static_cast<double>(s.window.batch * s.window.outputs()) * rows * columns;
    const double two = detail::winograd_cost<T>(s, rows, columns, 2);
    const double four = detail::winograd_cost<T>(s, rows, columns, 4);
    if (!exact && four < std::min(direct, two)) return ConvAlgorithm::winograd4;
    return two < direct ? ConvAlgorithm::winograd2 : ConvAlgorithm::direct;
  }
  return ConvAlgorithm::plain;
}

}  // namespace wengert::inline WENGERT_ISA::kernels

namespace wengert::inline WENGERT_ISA {

/// Whether convolutions recorded from here on leave out Winograd F(4 x 4), whose error is two to ten
/// times that of the other algorithms. Off from the beginning; of the process, so that models need not pass
/// it on. The passes back of a convolution follow what held when it was recorded.
inline void set_exact_convolutions(bool exact) noexcept {
  kernels::detail::exact_convolutions_flag().store(exact, std::memory_order_relaxed);
}
inline bool exact_convolutions() noexcept {
  return kernels::detail::exact_convolutions_flag().load(std::memory_order_relaxed);
}

}  // namespace wengert::inline WENGERT_ISA
