// Resizing, pixel shuffling and padding as modules, for Sequential. They hold no parameters. Floor: nn.
#pragma once

#include <wengert/nn/activation.hpp>
#include <wengert/ops/pad.hpp>
#include <wengert/ops/pixel_shuffle.hpp>
#include <wengert/ops/upsample.hpp>

namespace wengert::inline WENGERT_ISA::nn {

/// Resizes images: `Upsample({.scale = 2})`; see `wengert::upsample`.
struct Upsample : detail::Stateless<Upsample> {
  explicit Upsample(const UpsampleOptions& options) : options(options) {}
  template <Field T>
  Tensor<T> apply(const Tensor<T>& x) const {
    return upsample(x, options);
  }
  UpsampleOptions options;
};

/// Images of `factor` times the height and width from factor^2 times the channels; see
/// `wengert::pixel_shuffle`.
struct PixelShuffle : detail::Stateless<PixelShuffle> {
  explicit PixelShuffle(Index factor) : factor(factor) {}
  template <Field T>
  Tensor<T> apply(const Tensor<T>& x) const {
    return pixel_shuffle(x, factor);
  }
  Index factor;
};

/// Padding around images: `Pad(1)`, `Pad({{1, 1}, {0, 2}}, {.mode = PadMode::reflect})`; see `wengert::pad`.
struct Pad : detail::Stateless<Pad> {
  explicit Pad(const PadWidths& widths, const PadOptions& options = {}) : widths(widths), options(options) {}
  template <Field T>
  Tensor<T> apply(const Tensor<T>& x) const {
    return pad(x, widths, options);
  }
  PadWidths widths;
  PadOptions options;
};

}  // namespace wengert::inline WENGERT_ISA::nn
