// The sizes of a convolution, as all its kernels see them. Floor: kernels.
#pragma once

#include <wengert/base/window.hpp>

namespace wengert::inline WENGERT_ISA::kernels {

/// x: (N, D, H, W, C); w: (kd, kh, kw, C / groups, K); y: (N, Do, Ho, Wo, K), all contiguous. `window` holds
/// N, C and the axes; axes that the image has not are of size 1. Output channel k reads the input channels of
/// its group, k / (K / groups).
struct ConvShape {
  Window window;
  Index out_channels = 1, groups = 1;

  constexpr Index in_channels() const noexcept { return window.channels; }
  constexpr Index group_in() const noexcept { return window.channels / groups; }
  constexpr Index group_out() const noexcept { return out_channels / groups; }
  /// Products that one output element sums.
  constexpr Index products() const noexcept { return window.taps() * group_in(); }
  constexpr Index input_size() const noexcept { return window.batch * window.inputs() * window.channels; }
  constexpr Index output_size() const noexcept { return window.batch * window.outputs() * out_channels; }
  constexpr Index weight_size() const noexcept { return products() * out_channels; }
};

}  // namespace wengert::inline WENGERT_ISA::kernels
