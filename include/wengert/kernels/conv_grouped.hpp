// Convolutions of many small groups as depthwise ones: each pixel's channels are spread out, so that a vector
// of output channels finds the input channels of its groups lane by lane. Floor: kernels.
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

/// Images whose spread pixels fit the cache.
template <SimdScalar T>
Index images_at_once(Index batch, Index elements) noexcept {
  constexpr Index bytes = 4 << 20;
  return std::clamp<Index>(bytes / Index{sizeof(T)} / std::max<Index>(1, elements), 1,
                           std::max<Index>(1, batch));
}

template <SimdScalar T>
void grouped_forward(const ConvShape& s, const T* x, const T* w, const T* bias, T* y) {
  const Window& v = s.window;
  const Index planes = s.group_in(), size = v.inputs() * planes * s.out_channels;
  const Index images = images_at_once<T>(v.batch, size);
  const Scratch<T> spread_out(images * size);
  for (Index n = 0; n < v.batch; n += images) {
    const Index count = std::min(images, v.batch - n);
    spread(count * v.inputs(), s.groups, planes, s.group_out(), x + n * v.inputs() * v.channels,
           spread_out.data());
    depthwise_correlate<T>(count, s.out_channels, planes,
                           {forward_axis(v.depth()), forward_axis(v.height()), forward_axis(v.width())},
                           {v.depth().kernel, v.height().kernel, v.width().kernel},
                           {v.depth().out, v.height().out, v.width().out}, spread_out.data(), w, bias, false,
                           y + n * v.outputs() * s.out_channels);
  }
}

template <SimdScalar T>
void grouped_backward_data(const ConvShape& s, const T* dy, const T* w, T* dx, bool add) {
  const Window& v = s.window;
  const Index planes = s.group_out(), size = v.outputs() * planes * v.channels;
  const Index images = images_at_once<T>(v.batch, size);
  const Scratch<T> spread_out(images * size), turned(s.weight_size());  // weights as (tap, k of its group, c)
  for (Index t = 0; t < v.taps(); ++t)
    for (Index c = 0; c < v.channels; ++c)
      for (Index k = 0; k < planes; ++k)
        turned[(t * planes + k) * v.channels + c] =
            w[(t * s.group_in() + c % s.group_in()) * s.out_channels + c / s.group_in() * planes + k];
  for (Index n = 0; n < v.batch; n += images) {
    const Index count = std::min(images, v.batch - n);
    spread(count * v.outputs(), s.groups, planes, s.group_in(), dy + n * v.outputs() * s.out_channels,
           spread_out.data());
    for_phases(v, [&](const AxisPlan& d, const AxisPlan& h, const AxisPlan& x) {
      depthwise_correlate<T>(count, v.channels, planes, {d, h, x},
                             {v.depth().kernel, v.height().kernel, v.width().kernel},
                             {v.depth().in, v.height().in, v.width().in}, spread_out.data(), turned.data(),
                             nullptr, add, dx + n * v.inputs() * v.channels);
    });
  }
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
