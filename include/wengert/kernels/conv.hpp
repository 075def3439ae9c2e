// Convolution and its two backward passes: chooses the algorithm by the sizes alone. Floor: kernels.
#pragma once

#include <wengert/kernels/conv_grouped.hpp>
#include <wengert/kernels/conv_plain.hpp>
#include <wengert/kernels/conv_weights.hpp>
#include <wengert/kernels/gemm.hpp>

namespace wengert::inline WENGERT_ISA::kernels {

/// How a pass of a convolution is computed.
enum class ConvAlgorithm { plain, depthwise, grouped, product, direct };

constexpr std::string_view name_of(ConvAlgorithm a) noexcept {
  constexpr std::string_view names[] = {"plain", "depthwise", "grouped", "product", "direct"};
  return names[static_cast<int>(a)];
}

/// The rule: plain loops for other element types than float and double; depthwise where every channel is a
/// group of its own; one matrix product for 1 x 1 with stride 1 and no padding; else direct.
template <Scalar T>
constexpr ConvAlgorithm conv_algorithm(const ConvShape& s) noexcept {
  if (s.group_in() == 1 && s.group_out() == 1) return ConvAlgorithm::depthwise;
  if (!SimdScalar<T>) return ConvAlgorithm::plain;
  if (s.groups > 1 && std::max(s.group_in(), s.group_out()) <= 8) return ConvAlgorithm::grouped;
  bool pointwise = s.groups == 1;
  for (const WindowAxis& a : s.window.axis) pointwise &= a.kernel == 1 && a.stride == 1 && a.in == a.out;
  if (pointwise) return ConvAlgorithm::product;
  return ConvAlgorithm::direct;
}

/// y = activation(x * w + bias); bias may be null. Sums are chains of at most 256 floats or 128 doubles,
/// added in order; bits do not depend on the number of threads.
template <Scalar T>
void conv_forward(const ConvShape& s, const T* x, const T* w, const T* bias, Activation activation, T* y) {
  const ConvAlgorithm algorithm = conv_algorithm<T>(s);
  const Index pixels = s.window.batch * s.window.outputs(), k = s.out_channels, c = s.in_channels();
  if constexpr (SimdScalar<T>) {
    if (algorithm == ConvAlgorithm::product)
      return gemm<T>(pixels, k, c, {x, c, 1}, {w, k, 1}, y, k, false, bias, activation);
    if (algorithm == ConvAlgorithm::direct)
      return detail::direct_forward<T>(s, x, w, y, {false, bias, activation});
    if (algorithm == ConvAlgorithm::grouped) detail::grouped_forward<T>(s, x, w, bias, y);
  }
  if (algorithm == ConvAlgorithm::depthwise) detail::depthwise_forward(s, x, w, bias, y);
  if (algorithm == ConvAlgorithm::plain) detail::plain_forward(s, x, w, bias, y);
  detail::finish_rows<T>(0, pixels, k, y, k, {false, nullptr, activation});
}

/// dx = or += what dy gives back to x.
template <Scalar T>
void conv_backward_data(const ConvShape& s, const T* dy, const T* w, T* dx, bool add) {
  const ConvAlgorithm algorithm = conv_algorithm<T>(s);
  const Index pixels = s.window.batch * s.window.outputs(), k = s.out_channels, c = s.in_channels();
  if (algorithm == ConvAlgorithm::depthwise) return detail::depthwise_backward_data(s, dy, w, dx, add);
  if constexpr (SimdScalar<T>) {
    if (algorithm == ConvAlgorithm::product) return gemm<T>(pixels, c, k, {dy, k, 1}, {w, 1, k}, dx, c, add);
    if (algorithm == ConvAlgorithm::grouped) return detail::grouped_backward_data<T>(s, dy, w, dx, add);
    return detail::direct_backward_data<T>(s, dy, w, dx, add);
  }
  if (!add) std::fill_n(dx, s.input_size(), T(0));
  detail::plain_backward_data(s, dy, w, dx);
}

/// dw = or += the gradient of the weights.
template <Scalar T>
void conv_backward_weights(const ConvShape& s, const T* x, const T* dy, T* dw, bool add) {
  const ConvAlgorithm algorithm = conv_algorithm<T>(s);
  const Index pixels = s.window.batch * s.window.outputs(), k = s.out_channels, c = s.in_channels();
  if (algorithm == ConvAlgorithm::depthwise) return detail::depthwise_backward_weights(s, x, dy, dw, add);
  if constexpr (SimdScalar<T>) {
    if (algorithm == ConvAlgorithm::product) return gemm<T>(c, k, pixels, {x, 1, c}, {dy, k, 1}, dw, k, add);
    if (algorithm == ConvAlgorithm::grouped) return detail::grouped_backward_weights<T>(s, x, dy, dw, add);
    return detail::direct_backward_weights<T>(s, x, dy, dw, add);
  }
  if (!add) std::fill_n(dw, s.weight_size(), T(0));
  detail::plain_backward_weights(s, x, dy, dw);
}

}  // namespace wengert::inline WENGERT_ISA::kernels
