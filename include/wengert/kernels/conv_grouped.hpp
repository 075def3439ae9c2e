// Convolutions of many small groups as depthwise ones: a vector of output channels finds the input channels
// of its groups lane by lane, put in order in registers, or else in memory, where each pixel's channels are
// spread out. Floor: kernels.
#pragma once

#include <wengert/kernels/conv_depthwise.hpp>

namespace wengert::inline WENGERT_ISA::kernels::detail {

/// v's elements in the order of `lane`: as many indices as lanes, each below that number.
template <SimdScalar T>
WENGERT_INLINE Batch<T> permute(Batch<T> v, const std::int32_t* lane) noexcept {
#if defined(__AVX512F__)
  if constexpr (std::same_as<T, float>)
    return _mm512_permutexvar_ps(_mm512_loadu_si512(lane), v);
  else
    return _mm512_permutexvar_pd(
        _mm512_cvtepi32_epi64(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(lane))), v);
#else
#if defined(__AVX2__)
  if constexpr (std::same_as<T, float>)
    return _mm256_permutevar8x32_ps(v, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(lane)));
#endif
  alignas(64) T from[simd_lanes<T>], to[simd_lanes<T>];
  v.store_aligned(from);
  for (Index i = 0; i < simd_lanes<T>; ++i) to[i] = from[lane[i]];
  return Batch<T>::load_aligned(to);
#endif
}

/// Spreads pixels of `groups` groups of `from` channels for `to` output channels a group: out[pixel, c, k] =
/// in[pixel, k / to * from + c], c < from, k < groups * to.
template <SimdScalar T>
void spread(Index pixels, Index groups, Index from, Index to, const T* in, T* out) {
  constexpr Index lanes = simd_lanes<T>;
  const Index channels = groups * from, outputs = groups * to, whole = outputs / lanes * lanes;
  const Scratch<std::int32_t> table(2 * outputs);  // where output k reads: from the pixel, from its vector
  for (Index k = 0; k < outputs; ++k) {
    table[k] = static_cast<std::int32_t>(k / to * from);
    table[outputs + k] = table[k] - table[k / lanes * lanes];
  }
  constexpr Index task_elements = 1 << 15;
  const Index grain = std::max<Index>(1, task_elements / (from * outputs));
  const std::int32_t *const source = table.data(), *const lane = table.data() + outputs;
  parallel_for(pixels, grain, [=](Index begin, Index end) {
    for (Index pixel = begin; pixel < end; ++pixel) {
      const T* const x = in + pixel * channels;
      for (Index c = 0; c < from; ++c) {
        T* const y = out + (pixel * from + c) * outputs;
        const auto one_by_one = [=](Index first, Index last) {
          for (Index k = first; k < last; ++k) y[k] = x[source[k] + c];
        };
        for (Index k = 0; k < whole; k += lanes) {
          if (lane[k + lanes - 1] >= lanes) {  // its inputs lie in more than one vector
            one_by_one(k, k + lanes);
            continue;
          }
          const Index first = source[k] + c;
          const Batch<T> v = Vec<T>::load_partial(x + first, std::min(lanes, channels - first)).v;
          permute<T>(v, lane + k).store_unaligned(y + k);
        }
        one_by_one(whole, outputs);
      }
    }
  });
}

/// A line of pixels whose groups have as many outputs as inputs, and a whole number of them a vector: inputs
/// are put in order in registers, once for each plane, instead of spread in memory.
template <SimdScalar T>
struct GroupedLine {
  static constexpr bool spread = false;  // a pair for a tap
  Index channels;
  const T *w, *bias;
  bool add;
  Index planes;
  const std::int32_t* lanes;  // plane after plane, where each output's input lies in its vector
  const Index* pairs = nullptr;
  Index taps = 0, count = 0, in_step = 0, out_step = 0;

  /// Whether a convolution can run so, and in less time than with spread pixels.
  static constexpr bool suits(Index from, Index to) noexcept {
#if defined(__AVX512F__)
    constexpr bool in_registers = true;
#elif defined(__AVX2__)
    constexpr bool in_registers = std::same_as<T, float>;
#else
    constexpr bool in_registers = false;
#endif
    return in_registers && from == to && simd_lanes<T> % to == 0;
  }
  static void list_lanes(Index group, std::int32_t* lane) noexcept {
    for (Index plane = 0; plane < group; ++plane)
      for (Index i = 0; i < simd_lanes<T>; ++i)
        *lane++ = static_cast<std::int32_t>(i / group * group + plane);
  }

  void run(const T* in, T* out) const {
    Index i = 0;
    for (; i + most <= count; i += most) pixels<most>(in, i, out);
    for (; i + 2 <= count; i += 2) pixels<2>(in, i, out);
    if (i < count) pixels<1>(in, i, out);
  }

 private:
  using V = Vec<T>;
  static constexpr int most = simd_registers == 32 ? 8 : 4;

  template <int P>
  void pixels(const T* in, Index i, T* out) const {
    for (Index c = 0; c < channels; c += V::lanes) {
      const Index n = std::min(V::lanes, channels - c);
      V sum[P];
      const V first = bias != nullptr ? V::load_partial(bias + c, n) : V(T(0));
#pragma GCC unroll 8
      for (int p = 0; p < P; ++p) sum[p] = first;
      for (Index t = 0; t < taps; ++t) {
        const T *const a = in + (i * in_step + pairs[2 * t] + c), *b = w + (pairs[2 * t + 1] + c);
        V x[P];
#pragma GCC unroll 8
        for (int p = 0; p < P; ++p) x[p] = V::load_partial(a + p * in_step, n);
        for (Index plane = 0; plane < planes; ++plane, b += channels) {
          const V weight = V::load_partial(b, n);
#pragma GCC unroll 8
          for (int p = 0; p < P; ++p)
            sum[p] = fma(V(permute<T>(x[p].v, lanes + plane * V::lanes)), weight, sum[p]);
        }
      }
#pragma GCC unroll 8
      for (int p = 0; p < P; ++p) {
        T* const to = out + (i + p) * out_step + c;
        (add ? V::load_partial(to, n) + sum[p] : sum[p]).store_partial(to, n);
      }
    }
  }
};

/// Images whose spread pixels fit the cache.
template <SimdScalar T>
Index images_at_once(Index batch, Index elements) noexcept {
  constexpr Index bytes = 4 << 20;
  return std::clamp<Index>(bytes / Index{sizeof(T)} / std::max<Index>(1, elements), 1,
                           std::max<Index>(1, batch));
}

/// One pass of a grouped correlation, of images that are read with `from` channels a group and written with
/// `to`: w has (tap, from, groups * to). `each_axes` calls its argument with the axes of the pass, or of each
/// of its phases.
template <SimdScalar T, class EachAxes>
void grouped_correlate(const ConvShape& s, Index from, Index to, Index inputs, const Index (&out_size)[3],
                       const T* in, const T* w, const T* bias, bool add, T* out, EachAxes each_axes) {
  const Window& v = s.window;
  const Index kernel[] = {v.depth().kernel, v.height().kernel, v.width().kernel};
  const Index channels = s.groups * to, outputs = out_size[0] * out_size[1] * out_size[2];
  if (GroupedLine<T>::suits(from, to)) {
    const Scratch<std::int32_t> lanes(from * simd_lanes<T>);
    GroupedLine<T>::list_lanes(from, lanes.data());
    const GroupedLine<T> line{channels, w, bias, add, from, lanes.data()};
    each_axes([&](const AxisPlan& d, const AxisPlan& h, const AxisPlan& x) {
      depthwise_correlate(v.batch, from, {d, h, x}, kernel, out_size, line, in, out);
    });
    return;
  }
  const Index size = inputs * from * channels, images = images_at_once<T>(v.batch, size);
  const Scratch<T> spread_out(images * size);
  for (Index n = 0; n < v.batch; n += images) {
    const Index count = std::min(images, v.batch - n);
    spread(count * inputs, s.groups, from, to, in + n * inputs * s.groups * from, spread_out.data());
    each_axes([&](const AxisPlan& d, const AxisPlan& h, const AxisPlan& x) {
      depthwise_correlate<DepthwiseLine<T>, T>(count, from, {d, h, x}, kernel, out_size,
                                               {channels, w, bias, add}, spread_out.data(),
                                               out + n * outputs * channels);
    });
  }
}

template <SimdScalar T>
void grouped_forward(const ConvShape& s, const T* x, const T* w, const T* bias, T* y) {
  const Window& v = s.window;
  grouped_correlate(s, s.group_in(), s.group_out(), v.inputs(),
                    {v.depth().out, v.height().out, v.width().out}, x, w, bias, false, y, [&](auto run) {
                      run(forward_axis(v.depth()), forward_axis(v.height()), forward_axis(v.width()));
                    });
}

template <SimdScalar T>
void grouped_backward_data(const ConvShape& s, const T* dy, const T* w, T* dx, bool add) {
  const Window& v = s.window;
  const Index planes = s.group_out();
  const Scratch<T> turned(s.weight_size());  // weights as (tap, k of its group, c)
  for (Index t = 0; t < v.taps(); ++t)
    for (Index c = 0; c < v.channels; ++c)
      for (Index k = 0; k < planes; ++k)
        turned[(t * planes + k) * v.channels + c] =
            w[(t * s.group_in() + c % s.group_in()) * s.out_channels + c / s.group_in() * planes + k];
  const T* const no_bias = nullptr;
  grouped_correlate(s, planes, s.group_in(), v.outputs(), {v.depth().in, v.height().in, v.width().in}, dy,
                    static_cast<const T*>(turned.data()), no_bias, add, dx,
                    [&](auto run) { for_phases(v, run); });
}

template <SimdScalar T>
void grouped_backward_weights(const ConvShape& s, const T* x, const T* dy, T* dw, bool add) {
  Window v = s.window;
  const Index planes = s.group_in(), size = v.inputs() * planes * s.out_channels, batch = v.batch;
  const Index images = images_at_once<T>(batch, size);
  const Scratch<T> spread_out(images * size);
  if (batch == 0 && !add) std::fill_n(dw, s.weight_size(), T(0));
  for (Index n = 0; n < batch; n += images) {
    v.batch = std::min(images, batch - n);
    spread(v.batch * v.inputs(), s.groups, planes, s.group_out(), x + n * v.inputs() * v.channels,
           spread_out.data());
    depthwise_weights<T>(v, s.out_channels, planes, spread_out.data(), dy + n * v.outputs() * s.out_channels,
                         dw, add || n > 0);
  }
}

}  // namespace wengert::inline WENGERT_ISA::kernels::detail
