// Channels of small images to and from the pixels of large ones: each small pixel is a (C, r^2) matrix whose
// transpose lies in r runs of r * C elements. Floor: kernels.
#pragma once

#include <wengert/base/shape.hpp>
#include <wengert/kernels/copy.hpp>

namespace wengert::inline WENGERT_ISA::kernels {

/// Small images (rows, width, C * r * r), rows of all images one after another, and large ones
/// (rows * r, width * r, C).
struct PixelGrid {
  Index rows, width, channels, factor;
};

namespace detail {

/// One row of small pixels and the `r` rows of large ones it belongs to; R = r, or 0 where only the run of
/// the program knows it.
template <bool Shuffle, bool Add, Index R, class T>
void pixel_row(const T* x, T* y, Index width, Index c, Index factor) {
  const auto put = [](T from, T& to) { to = Add ? T(to + from) : from; };
  const Index r = R > 0 ? R : factor, line = width * r * c;
  for (Index w = 0; w < width; ++w) {
    const Index large = w * r * c, small = w * r * r * c;
    if constexpr (R == 2) {  // together, so that the loop is one of vectors
      const T* const from = Shuffle ? x + small : x + large;
      T* const to = Shuffle ? y + large : y + small;
      for (Index k = 0; k < c; ++k) {
        if constexpr (Shuffle) {
          put(from[4 * k], to[k]);
          put(from[4 * k + 1], to[c + k]);
          put(from[4 * k + 2], to[line + k]);
          put(from[4 * k + 3], to[line + c + k]);
        } else {
          put(from[k], to[4 * k]);
          put(from[c + k], to[4 * k + 1]);
          put(from[line + k], to[4 * k + 2]);
          put(from[line + c + k], to[4 * k + 3]);
        }
      }
    } else {
      for (Index i = 0; i < r; ++i)
        for (Index j = 0; j < r; ++j)
          for (Index k = 0; k < c; ++k) {
            const Index s = small + k * r * r + i * r + j, l = large + i * line + j * c + k;
            put(x[Shuffle ? s : l], y[Shuffle ? l : s]);
          }
    }
  }
}

}  // namespace detail

/// Large images from small ones (Shuffle), or small ones from large ones; += with Add.
template <bool Shuffle, bool Add, class T>
void pixel_shuffle(const PixelGrid& g, const T* x, T* y) {
  const Index row = g.width * g.channels * g.factor * g.factor;
  if (g.rows * row == 0) return;
  const auto run = g.factor == 2   ? &detail::pixel_row<Shuffle, Add, 2, T>
                   : g.factor == 3 ? &detail::pixel_row<Shuffle, Add, 3, T>
                                   : &detail::pixel_row<Shuffle, Add, 0, T>;
  parallel_for(g.rows, std::max<Index>(1, copy_grain / row), [=](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) run(x + i * row, y + i * row, g.width, g.channels, g.factor);
  });
}

}  // namespace wengert::inline WENGERT_ISA::kernels
