// Patches of images as rows of a matrix (im2col), and the adjoint, which sums overlapping patches: gathered
// row by row of the image, so that threads never meet. Floor: kernels.
#pragma once

#include <wengert/base/window.hpp>
#include <wengert/kernels/copy.hpp>
#include <wengert/kernels/runs.hpp>

namespace wengert::inline WENGERT_ISA::kernels {

namespace detail {

/// Calls `f(position, tap)` for the output positions whose windows read input i along one axis, in order.
template <class F>
WENGERT_INLINE void for_windows_over(const WindowAxis& a, Index i, F f) {
  const Index at = i + a.before;
  for (Index o = std::max<Index>(0, (at - a.span() + a.stride) / a.stride); o < a.out; ++o) {
    const Index past = at - o * a.stride;
    if (past < 0) return;
    if (past % a.dilation == 0 && past < a.span()) f(o, past / a.dilation);
  }
}

}  // namespace detail

/// y (batch, outputs, taps * channels) = the windows of x, 0 outside; or += with Add.
template <bool Add, Scalar T>
void unfold(const Window& win, const T* x, T* y) {
  const Index c = win.channels, columns = win.taps() * c;
  const Index rows = win.batch * win.depth().out * win.height().out;
  const Index width = win.width().out * columns;
  if (rows * width == 0) return;
  parallel_for(rows, std::max<Index>(1, copy_grain / width), [=, &win](Index begin, Index end) {
    const WindowAxis &d = win.axis[0], &h = win.axis[1], &w = win.axis[2];
    const bool dense = w.dilation == 1;  // the taps of one kernel row are neighbours in x
    for (Index row = begin; row < end; ++row) {
      const Index oh = row % h.out, od = row / h.out % d.out, n = row / h.out / d.out;
      for (Index ow = 0; ow < w.out; ++ow) {
        T* to = y + row * width + ow * columns;
        const Index first = w.first(ow), tap_begin = w.tap_begin(ow);
        const Index tap_end = std::max(tap_begin, w.tap_end(ow));
        for (Index kd = 0; kd < d.kernel; ++kd)
          for (Index kh = 0; kh < h.kernel; ++kh, to += w.kernel * c) {
            const Index id = d.first(od) + kd * d.dilation, ih = h.first(oh) + kh * h.dilation;
            const bool outside = id < 0 || id >= d.in || ih < 0 || ih >= h.in;
            if (outside || tap_begin == tap_end) {
              if constexpr (!Add) fill_run(T(0), w.kernel * c, to);
              continue;
            }
            const T* const from = x + (((n * d.in + id) * h.in + ih) * w.in + first) * c;
            if constexpr (!Add) {
              fill_run(T(0), tap_begin * c, to);
              fill_run(T(0), (w.kernel - tap_end) * c, to + tap_end * c);
            }
            if (dense)
              copy_run<Add>(from + tap_begin * c, (tap_end - tap_begin) * c, to + tap_begin * c);
            else
              for (Index t = tap_begin; t < tap_end; ++t)
                copy_run<Add>(from + t * w.dilation * c, c, to + t * c);
          }
      }
    }
  });
}

/// y = the adjoint of `unfold`, from x (batch, outputs, taps * channels); or += when `add`.
template <Field T>
void fold(const Window& win, const T* x, T* y, bool add) {
  const Index c = win.channels, columns = win.taps() * c;
  const Index rows = win.batch * win.depth().in * win.height().in, width = win.width().in * c;
  if (rows * width == 0) return;
  const Index work = win.width().out * columns / std::max<Index>(1, win.height().stride) + width;
  parallel_for(rows, std::max<Index>(1, copy_grain / work), [=, &win](Index begin, Index end) {
    const WindowAxis &d = win.axis[0], &h = win.axis[1], &w = win.axis[2];
    const bool dense = w.dilation == 1;
    for (Index row = begin; row < end; ++row) {
      const Index ih = row % h.in, id = row / h.in % d.in, n = row / h.in / d.in;
      T* const to = y + row * width;
      if (!add) fill_run(T(0), width, to);
      detail::for_windows_over(d, id, [&](Index od, Index kd) {
        detail::for_windows_over(h, ih, [&](Index oh, Index kh) {
          const T* from = x + ((n * d.out + od) * h.out + oh) * w.out * columns;
          from += (kd * h.kernel + kh) * w.kernel * c;
          for (Index ow = 0; ow < w.out; ++ow, from += columns) {
            const Index first = w.first(ow), tap_begin = w.tap_begin(ow);
            const Index tap_end = std::max(tap_begin, w.tap_end(ow));
            if (dense)
              copy_run<true>(from + tap_begin * c, (tap_end - tap_begin) * c, to + (first + tap_begin) * c);
            else
              for (Index t = tap_begin; t < tap_end; ++t)
                copy_run<true>(from + t * c, c, to + (first + t * w.dilation) * c);
          }
        });
      });
    }
  });
}

}  // namespace wengert::inline WENGERT_ISA::kernels
