// Depthwise convolution, one input and one output channel a group: vectors over the channels. Floor: kernels.
#pragma once

#include <wengert/kernels/conv_plan.hpp>
#include <wengert/kernels/parallel.hpp>
#include <wengert/kernels/vec.hpp>

namespace wengert::inline WENGERT_ISA::kernels::detail {

/// One line of pixels that read alike: pixel i of `count` at out + i * out_step is (or gains) bias plus the
/// sum over `taps` pairs (a, b) of in[a + i * in_step + c] * w[b + c].
template <class T>
struct DepthwiseLine {
  static constexpr bool spread = true;  // a pair for each plane of a tap
  Index channels;
  const T *w, *bias;
  bool add;
  const Index* pairs = nullptr;
  Index taps = 0, count = 0, in_step = 0, out_step = 0;

  void run(const T* in, T* out) const {
    if (taps == 0) [[unlikely]] {  // padding alone; an image without pixels has not even an address
      for (Index j = 0; j < (add ? 0 : count); ++j)
        for (Index c = 0; c < channels; ++c) out[j * out_step + c] = bias != nullptr ? bias[c] : T(0);
      return;
    }
    Index i = 0;
    for (; i + 2 <= count; i += 2) pixels<2>(in + i * in_step, out + i * out_step);
    if (i < count) pixels<1>(in + i * in_step, out + i * out_step);
  }

 private:
  using V = Vec<T>;

  template <int P>
  void pixels(const T* in, T* out) const {
    Index c = 0;
    for (; c + 4 * V::lanes <= channels; c += 4 * V::lanes)
      block<P, 4>(
          in + c, out + c, c, [](const T* p) WENGERT_INLINE_LAMBDA { return V::load(p); },
          [](V v, T* p) WENGERT_INLINE_LAMBDA { v.store(p); });
    for (; c + V::lanes <= channels; c += V::lanes)
      block<P, 1>(
          in + c, out + c, c, [](const T* p) WENGERT_INLINE_LAMBDA { return V::load(p); },
          [](V v, T* p) WENGERT_INLINE_LAMBDA { v.store(p); });
    const Index n = channels - c;
    if (n > 0)
      block<P, 1>(
          in + c, out + c, c, [n](const T* p) WENGERT_INLINE_LAMBDA { return V::load_partial(p, n); },
          [n](V v, T* p) WENGERT_INLINE_LAMBDA { v.store_partial(p, n); });
  }

  template <int P, int K, class Load, class Store>
  WENGERT_INLINE void block(const T* in, T* out, Index c, Load load, Store store) const {
    V sum[P][K];
#pragma GCC unroll 4
    for (int k = 0; k < K; ++k) {
      const V first = bias != nullptr ? load(bias + c + k * V::lanes) : V(T(0));
#pragma GCC unroll 2
      for (int p = 0; p < P; ++p) sum[p][k] = first;
    }
    for (Index t = 0; t < taps; ++t) {
      const T *const a = in + pairs[2 * t], *const b = w + pairs[2 * t + 1] + c;
#pragma GCC unroll 4
      for (int k = 0; k < K; ++k) {
        const V weight = load(b + k * V::lanes);
#pragma GCC unroll 2
        for (int p = 0; p < P; ++p) sum[p][k] = fma(load(a + p * in_step + k * V::lanes), weight, sum[p][k]);
      }
    }
#pragma GCC unroll 4
    for (int k = 0; k < K; ++k)
#pragma GCC unroll 2
      for (int p = 0; p < P; ++p) {
        T* const to = out + p * out_step + k * V::lanes;
        store(add ? load(to) + sum[p][k] : sum[p][k], to);
      }
  }
};

inline constexpr Index depthwise_task_products = 1 << 16;

/// A depthwise correlation: the forward pass, or one phase of the backward pass to the input. Every tap of w
/// has `planes` times the channels, whose products are summed, and so has every pixel of `in` where
/// Line::spread. `kernel` are the taps of all axes, `out_size` the sizes of the written image. `like` has
/// what all lines share.
template <class Line, class T>
void depthwise_correlate(Index batch, Index planes, const AxisPlan (&axes)[3], const Index (&kernel)[3],
                         const Index (&out_size)[3], const Line& like, const T* in, T* out) {
  const Index channels = like.channels, in_planes = Line::spread ? planes : 1;
  const AxisPlan D = axes[0], H = axes[1], W = axes[2];
  const Index taps = D.taps * H.taps * W.taps * planes, step = planes * channels,
              in_step = in_planes * channels, lines = batch * D.count * H.count;
  Index inner_begin = 0, inner_end = W.count;  // pixels for which all taps of the line lie within
  while (inner_begin < inner_end && W.tap_begin(inner_begin) > 0) ++inner_begin;
  while (inner_end > inner_begin && W.tap_end(inner_end - 1) < W.taps) --inner_end;
  const Index grain =
      std::max<Index>(1, depthwise_task_products / std::max<Index>(1, taps * channels * W.count));
  const Index kh = kernel[1], kw = kernel[2], out_d = out_size[0], out_h = out_size[1], out_w = out_size[2];
  parallel_for_scratch<Index>(lines, grain, 2 * taps, [=](Index begin, Index end, Index* pairs) {
    for (Index line = begin; line < end; ++line) {
      const Index n = line / H.count / D.count, d = line / H.count % D.count, h = line % H.count;
      const Index row =
          ((n * out_d + D.out_first + d * D.out_step) * out_h + H.out_first + h * H.out_step) * out_w;
      const auto run = [&](Index j, Index count) {  // pixels j .. j + count - 1, which have the taps of j
        Index used = 0;
        const Index d_end = D.tap_end(d), h_end = H.tap_end(h), w_end = W.tap_end(j);
        for (Index td = D.tap_begin(d); td < d_end; ++td)
          for (Index th = H.tap_begin(h); th < h_end; ++th)
            for (Index tw = W.tap_begin(j); tw < w_end; ++tw) {
              const Index slice = n * D.in + d * D.in_step + D.offset_first + td * D.offset_step;
              const Index from = slice * H.in + h * H.in_step + H.offset_first + th * H.offset_step;
              const Index pixel = from * W.in + j * W.in_step + W.offset_first + tw * W.offset_step;
              const Index tap = ((D.tap_first + td * D.tap_step) * kh + H.tap_first + th * H.tap_step) * kw +
                                W.tap_first + tw * W.tap_step;
              for (Index plane = 0; plane < in_planes; ++plane, ++used) {
                pairs[2 * used] = pixel * in_step + plane * channels;
                pairs[2 * used + 1] = tap * step + plane * channels;
              }
            }
        Line alike = like;
        alike.pairs = pairs, alike.taps = used, alike.count = count;
        alike.in_step = W.in_step * in_step, alike.out_step = W.out_step * channels;
        alike.run(in, out + (row + W.out_first + j * W.out_step) * channels);
      };
      for (Index j = 0; j < inner_begin; ++j) run(j, 1);
      if (inner_end > inner_begin) run(inner_begin, inner_end - inner_begin);
      for (Index j = inner_end; j < W.count; ++j) run(j, 1);
    }
  });
}

template <class T>
void depthwise_forward(const ConvShape& s, const T* x, const T* w, const T* bias, T* y) {
  const WindowAxis &d = s.window.depth(), &h = s.window.height(), &v = s.window.width();
  depthwise_correlate(s.window.batch, 1, {forward_axis(d), forward_axis(h), forward_axis(v)},
                      {d.kernel, h.kernel, v.kernel}, {d.out, h.out, v.out},
                      DepthwiseLine<T>{s.in_channels(), w, bias, false}, x, y);
}

template <class T>
void depthwise_backward_data(const ConvShape& s, const T* dy, const T* w, T* dx, bool add) {
  for_phases(s.window, [&](const AxisPlan& d, const AxisPlan& h, const AxisPlan& v) {
    depthwise_correlate(s.window.batch, 1, {d, h, v},
                        {s.window.depth().kernel, s.window.height().kernel, s.window.width().kernel},
                        {s.window.depth().in, s.window.height().in, s.window.width().in},
                        DepthwiseLine<T>{s.in_channels(), w, nullptr, add}, dy, dx);
  });
}

/// sum[t * sum_tap + c] += the sum over `count` pixels of x[t * x_tap + i * x_step + c] * dy[i * channels +
/// c], for t < Taps, which share the loads of dy.
template <int Taps, class T>
void depthwise_line(Index count, Index channels, const T* x, Index x_step, Index x_tap, const T* dy, T* sum,
                    Index sum_tap) {
  using V = Vec<T>;
  constexpr int at_once = simd_registers == 32 || Taps == 1 ? 4 : 2;
  Index c = 0;
  for (; c + at_once * V::lanes <= channels; c += at_once * V::lanes) {
    V total[Taps][at_once];
    for (int t = 0; t < Taps; ++t)
      for (int k = 0; k < at_once; ++k) total[t][k] = V::load(sum + t * sum_tap + c + k * V::lanes);
    for (Index i = 0; i < count; ++i) {
      const T *const a = x + i * x_step + c, *const b = dy + i * channels + c;
#pragma GCC unroll 4
      for (int k = 0; k < at_once; ++k) {
        const V d = V::load(b + k * V::lanes);
#pragma GCC unroll 3
        for (int t = 0; t < Taps; ++t)
          total[t][k] = fma(V::load(a + t * x_tap + k * V::lanes), d, total[t][k]);
      }
    }
    for (int t = 0; t < Taps; ++t)
      for (int k = 0; k < at_once; ++k) total[t][k].store(sum + t * sum_tap + c + k * V::lanes);
  }
  for (; c < channels; c += V::lanes) {
    const Index n = std::min(V::lanes, channels - c);
    for (int t = 0; t < Taps; ++t) {
      T* const to = sum + t * sum_tap + c;
      V total = V::load_partial(to, n);
      for (Index i = 0; i < count; ++i)
        total = fma(V::load_partial(x + t * x_tap + i * x_step + c, n),
                    V::load_partial(dy + i * channels + c, n), total);
      total.store_partial(to, n);
    }
  }
}

/// The outputs begin .. end - 1 whose tap t reads within the input.
constexpr std::pair<Index, Index> readers(const WindowAxis& a, Index t) noexcept {
  const Index least = a.before - t * a.dilation, most = a.in - 1 + least;
  const Index begin = least <= 0 ? 0 : (least + a.stride - 1) / a.stride;
  return {begin, most < 0 ? 0 : std::min(a.out, most / a.stride + 1)};
}

/// dw[tap, plane, c] = (or +=) the sum over pixels of x[pixel of the tap, plane, c] * dy[pixel, c].
template <class T>
void depthwise_weights(const Window& window, Index channels, Index planes, const T* x, const T* dy, T* dw,
                       bool add) {
  const WindowAxis &D = window.depth(), &H = window.height(), &W = window.width();
  const Index step = planes * channels, size = window.taps() * step, lines = window.batch * D.out * H.out;
  constexpr Index most_blocks = 16;
  const Index least = std::max<Index>(1, depthwise_task_products / std::max<Index>(1, size * W.out));
  const Index grain = std::max(least, (lines + most_blocks - 1) / most_blocks);
  const Index blocks = lines == 0 ? 0 : (lines - 1) / grain + 1;
  const Scratch<T> partial(blocks * size);
  parallel_for(lines, grain, [=, &D, &H, &W, sums = partial.data()](Index begin, Index end) {
    T* const sum = sums + begin / grain * size;
    std::fill_n(sum, size, T(0));
    for (Index line = begin; line < end; ++line) {
      const Index n = line / H.out / D.out, d = line / H.out % D.out, h = line % H.out;
      for (Index td = D.tap_begin(d); td < D.tap_end(d); ++td)
        for (Index th = H.tap_begin(h); th < H.tap_end(h); ++th) {
          const Index row = (n * D.in + D.first(d) + td * D.dilation) * H.in + H.first(h) + th * H.dilation;
          const auto taps = [&]<int Taps>(std::integral_constant<int, Taps>, Index tw, Index first,
                                          Index last) {
            if (first >= last) return;
            const T* const from = x + (row * W.in + W.first(first) + tw * W.dilation) * step;
            T* const to = sum + ((td * H.kernel + th) * W.kernel + tw) * step;
            for (Index plane = 0; plane < step; plane += channels)
              depthwise_line<Taps>(last - first, channels, from + plane, W.stride * step, W.dilation * step,
                                   dy + (line * W.out + first) * channels, to + plane, step);
          };
          constexpr std::integral_constant<int, 3> three;
          constexpr std::integral_constant<int, 1> one;
          for (Index tw = 0; tw < W.kernel; tw += three) {
            Index begin = 0, end = 0;  // of the outputs that three taps share
            if (tw + three <= W.kernel) begin = readers(W, tw).first, end = readers(W, tw + three - 1).second;
            if (begin >= end) begin = end = 0;
            taps(three, tw, begin, end);
            for (Index t = tw; t < std::min(tw + three, W.kernel); ++t) {
              const auto [first, last] = readers(W, t);
              taps(one, t, first, std::min(begin, last));
              taps(one, t, std::max(first, end), last);
            }
          }
        }
    }
  });
  if (!add) std::fill_n(dw, size, T(0));
  for (Index block = 0; block < blocks; ++block)
    for (Index i = 0; i < size; ++i) dw[i] = dw[i] + partial[block * size + i];
}

template <class T>
void depthwise_backward_weights(const ConvShape& s, const T* x, const T* dy, T* dw, bool add) {
  depthwise_weights(s.window, s.in_channels(), 1, x, dy, dw, add);
}

}  // namespace wengert::inline WENGERT_ISA::kernels::detail
