// Convolution and its two backward passes, by the algorithm that suits the sizes. Floor: kernels.
#pragma once

#include <wengert/kernels/conv_algorithm.hpp>
#include <wengert/kernels/conv_grouped.hpp>
#include <wengert/kernels/conv_plain.hpp>
#include <wengert/kernels/conv_weights.hpp>
#include <wengert/kernels/conv_winograd_weights.hpp>
#include <wengert/kernels/gemm.hpp>

namespace wengert::inline WENGERT_ISA::kernels {

/// y = activation(x * w + bias); bias may be null. Sums are chains of at most 256 floats or 128 doubles,
/// added in order; bits do not depend on the number of threads. Where Winograd is chosen, a NaN or infinity
/// in x reaches the other outputs of its tile.
template <Scalar T>
void conv_forward(const ConvShape& s, const T* x, const T* w, const T* bias, Activation activation, T* y,
                  bool exact = false) {
  if (s.window.batch == 0) return;  // before anything is planned for images whose sizes nothing bounds
  const Index pixels = s.window.batch * s.window.outputs(), k = s.out_channels, c = s.in_channels();
  const ConvAlgorithm algorithm = conv_algorithm<T>(s, ConvPass::forward, exact);
  if constexpr (SimdScalar<T>) {
    const detail::Epilogue<T> epilogue{false, bias, activation};
    switch (algorithm) {
      case ConvAlgorithm::product:
        return gemm<T>(pixels, k, c, {x, c, 1}, {w, k, 1}, y, k, false, bias, activation);
      case ConvAlgorithm::direct:
        return detail::direct_forward<T>(s, x, w, y, epilogue);
      case ConvAlgorithm::winograd2:
        return detail::winograd_forward<2, T>(s, x, w, y, epilogue);
      case ConvAlgorithm::winograd4:
        return detail::winograd_forward<4, T>(s, x, w, y, epilogue);
      case ConvAlgorithm::grouped:
        detail::grouped_forward<T>(s, x, w, bias, y);
        break;
      default:
        break;
    }
  }
  if (algorithm == ConvAlgorithm::depthwise) detail::depthwise_forward(s, x, w, bias, y);
  if (algorithm == ConvAlgorithm::plain) detail::plain_forward(s, x, w, bias, y);
  if (activation != Activation::none)
    detail::finish_rows<T>(0, pixels, k, y, k, {false, nullptr, activation});
}

/// dx = or += what dy gives back to x. A NaN or infinity in dy may reach the dx of neighbours as well, where
/// Winograd is chosen or x has few channels, whose pixels are computed several at a time.
template <Scalar T>
void conv_backward_data(const ConvShape& s, const T* dy, const T* w, T* dx, bool add, bool exact = false) {
  if (s.window.batch == 0) return;
  const Index pixels = s.window.batch * s.window.outputs(), k = s.out_channels, c = s.in_channels();
  const ConvAlgorithm algorithm = conv_algorithm<T>(s, ConvPass::data, exact);
  if constexpr (SimdScalar<T>) {
    switch (algorithm) {
      case ConvAlgorithm::product:
        return gemm<T>(pixels, c, k, {dy, k, 1}, {w, 1, k}, dx, c, add);
      case ConvAlgorithm::direct:
        return detail::direct_backward_data<T>(s, dy, w, dx, add);
      case ConvAlgorithm::winograd2:
        return detail::winograd_backward_data<2, T>(s, dy, w, dx, add);
      case ConvAlgorithm::winograd4:
        return detail::winograd_backward_data<4, T>(s, dy, w, dx, add);
      case ConvAlgorithm::grouped:
        return detail::grouped_backward_data<T>(s, dy, w, dx, add);
      default:
        break;
    }
  }
  if (algorithm == ConvAlgorithm::depthwise) return detail::depthwise_backward_data(s, dy, w, dx, add);
  if (!add) std::fill_n(dx, s.input_size(), T(0));
  detail::plain_backward_data(s, dy, w, dx);
}

/// dw = or += the gradient of the weights.
template <Scalar T>
void conv_backward_weights(const ConvShape& s, const T* x, const T* dy, T* dw, bool add, bool exact = false) {
  if (s.window.batch == 0) {
    if (!add) std::fill_n(dw, s.weight_size(), T(0));
    return;
  }
  const Index pixels = s.window.batch * s.window.outputs(), k = s.out_channels, c = s.in_channels();
  const ConvAlgorithm algorithm = conv_algorithm<T>(s, ConvPass::weights, exact);
  if constexpr (SimdScalar<T>) {
    switch (algorithm) {
      case ConvAlgorithm::product:
        return gemm<T>(c, k, pixels, {x, 1, c}, {dy, k, 1}, dw, k, add);
      case ConvAlgorithm::direct:
        return detail::direct_backward_weights<T>(s, x, dy, dw, add);
      case ConvAlgorithm::winograd2:
        return detail::winograd_backward_weights<2, T>(s, x, dy, dw, add);
      case ConvAlgorithm::winograd4:
        return detail::winograd_backward_weights<4, T>(s, x, dy, dw, add);
      case ConvAlgorithm::grouped:
        return detail::grouped_backward_weights<T>(s, x, dy, dw, add);
      default:
        break;
    }
  }
  if (algorithm == ConvAlgorithm::depthwise) return detail::depthwise_backward_weights(s, x, dy, dw, add);
  if (!add) std::fill_n(dw, s.weight_size(), T(0));
  detail::plain_backward_weights(s, x, dy, dw);
}

WENGERT_INSTANCE(void conv_forward(const ConvShape&, const float*, const float*, const float*, Activation,
                                   float*, bool));
WENGERT_INSTANCE(void conv_backward_data(const ConvShape&, const float*, const float*, float*, bool, bool));
WENGERT_INSTANCE(void conv_backward_weights(const ConvShape&, const float*, const float*, float*, bool,
                                            bool));
WENGERT_INSTANCE(void conv_forward(const ConvShape&, const double*, const double*, const double*, Activation,
                                   double*, bool));
WENGERT_INSTANCE(void conv_backward_data(const ConvShape&, const double*, const double*, double*, bool,
                                         bool));
WENGERT_INSTANCE(void conv_backward_weights(const ConvShape&, const double*, const double*, double*, bool,
                                            bool));

}  // namespace wengert::inline WENGERT_ISA::kernels
