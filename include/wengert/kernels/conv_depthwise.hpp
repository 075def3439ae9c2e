// Depthwise convolution, one input and one output channel a group: vectors over the channels. Floor: kernels.
#pragma once

#include <wengert/kernels/conv_plain.hpp>
#include <wengert/kernels/vec.hpp>

namespace wengert::inline WENGERT_ISA::kernels::detail {

/// y[c] = (or +=) bias[c] + sum over `count` pairs (pixel, tap) of in[pixel, c] * w[tap, c].
template <class T>
void depthwise_pixel(const Index* pairs, Index count, Index channels, const T* in, const T* w, const T* bias,
                     bool add, T* y) {
  using V = Vec<T>;
  const auto sum_at = [&](Index c, auto load) WENGERT_INLINE_LAMBDA {
    V sum = bias != nullptr ? load(bias + c) : V(T(0));
    for (Index i = 0; i < count; ++i)
      sum = fma(load(in + pairs[2 * i] * channels + c), load(w + pairs[2 * i + 1] * channels + c), sum);
    return add ? load(y + c) + sum : sum;
  };
  Index c = 0;
  for (; c + V::lanes <= channels; c += V::lanes)
    sum_at(c, [](const T* p) WENGERT_INLINE_LAMBDA { return V::load(p); }).store(y + c);
  const Index left = channels - c;
  if (left > 0)
    sum_at(c, [left](const T* p) WENGERT_INLINE_LAMBDA {
      return V::load_partial(p, left);
    }).store_partial(y + c, left);
}

inline constexpr Index depthwise_task_products = 1 << 16;

template <class T>
void depthwise_forward(const ConvShape& s, const T* x, const T* w, const T* bias, T* y) {
  const Index taps = s.window.taps(), c = s.in_channels();
  const Index grain = std::max<Index>(1, depthwise_task_products / (taps * c));
  parallel_for_scratch<Index>(
      s.window.batch * s.window.outputs(), grain, 2 * taps, [=](Index begin, Index end, Index* pairs) {
        for_outputs(s.window, begin, end, [&](Index pixel, Index n, Index d, Index h, Index wo) {
          Index count = 0;
          for_taps(s.window, n, d, h, wo, [&](Index tap, Index in) {
            pairs[2 * count] = in;
            pairs[2 * count++ + 1] = tap;
          });
          depthwise_pixel(pairs, count, c, x, w, bias, false, y + pixel * c);
        });
      });
}

/// Calls f(tap, output position) for the taps through which input i is read.
template <class F>
void for_readers(const WindowAxis& a, Index i, F f) {
  for (Index t = 0; t < a.kernel; ++t) {
    const Index from = i + a.before - t * a.dilation;
    if (from >= 0 && from % a.stride == 0 && from / a.stride < a.out) f(t, from / a.stride);
  }
}

template <class T>
void depthwise_backward_data(const ConvShape& s, const T* dy, const T* w, T* dx, bool add) {
  const Index taps = s.window.taps(), c = s.in_channels();
  const Index grain = std::max<Index>(1, depthwise_task_products / (taps * c));
  parallel_for_scratch<Index>(
      s.window.batch * s.window.inputs(), grain, 2 * taps, [=](Index begin, Index end, Index* pairs) {
        const WindowAxis &D = s.window.depth(), &H = s.window.height(), &W = s.window.width();
        for (Index i = begin; i < end; ++i) {
          Index count = 0;
          const Index n = i / s.window.inputs();
          for_readers(D, i / W.in / H.in % D.in, [&](Index td, Index d) {
            for_readers(H, i / W.in % H.in, [&](Index th, Index h) {
              for_readers(W, i % W.in, [&](Index tw, Index wo) {
                pairs[2 * count] = ((n * D.out + d) * H.out + h) * W.out + wo;
                pairs[2 * count++ + 1] = (td * H.kernel + th) * W.kernel + tw;
              });
            });
          });
          depthwise_pixel<T>(pairs, count, c, dy, w, nullptr, add, dx + i * c);
        }
      });
}

template <class T>
void depthwise_backward_weights(const ConvShape& s, const T* x, const T* dy, T* dw, bool add) {
  using V = Vec<T>;
  const Index size = s.window.taps() * s.in_channels(), c_all = s.in_channels();
  const Index outputs = s.window.batch * s.window.outputs();
  constexpr Index most_blocks = 16;
  const Index least = std::max<Index>(64, depthwise_task_products / std::max<Index>(1, size));
  const Index grain = std::max(least, (outputs + most_blocks - 1) / most_blocks);
  const Index blocks = outputs == 0 ? 0 : (outputs - 1) / grain + 1;
  const Scratch<T> partial(blocks * size);
  parallel_for(outputs, grain, [=, sums = partial.data()](Index begin, Index end) {
    T* const sum = sums + begin / grain * size;
    std::fill_n(sum, size, T(0));
    for_outputs(s.window, begin, end, [&](Index pixel, Index n, Index d, Index h, Index wo) {
      for_taps(s.window, n, d, h, wo, [&](Index tap, Index in) {
        const T *const a = x + in * c_all, *const b = dy + pixel * c_all;
        T* const to = sum + tap * c_all;
        Index c = 0;
        for (; c + V::lanes <= c_all; c += V::lanes)
          fma(V::load(a + c), V::load(b + c), V::load(to + c)).store(to + c);
        const Index left = c_all - c;
        if (left > 0)
          fma(V::load_partial(a + c, left), V::load_partial(b + c, left), V::load_partial(to + c, left))
              .store_partial(to + c, left);
      });
    });
  });
  if (!add) std::fill_n(dw, size, T(0));
  for (Index block = 0; block < blocks; ++block)
    for (Index i = 0; i < size; ++i) dw[i] = dw[i] + partial[block * size + i];
}

}  // namespace wengert::inline WENGERT_ISA::kernels::detail
