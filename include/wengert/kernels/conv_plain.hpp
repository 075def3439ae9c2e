// Convolutions of any element type as plain loops. Floor: kernels.
#pragma once

#include <wengert/kernels/conv_shape.hpp>
#include <wengert/kernels/parallel.hpp>

namespace wengert::inline WENGERT_ISA::kernels::detail {

/// Calls f(tap, input pixel) for the taps of output (d, h, w) of image n that read within the input, in
/// order.
template <class F>
void for_taps(const Window& v, Index n, Index d, Index h, Index w, F f) {
  const WindowAxis &D = v.depth(), &H = v.height(), &W = v.width();
  for (Index td = D.tap_begin(d); td < D.tap_end(d); ++td)
    for (Index th = H.tap_begin(h); th < H.tap_end(h); ++th)
      for (Index tw = W.tap_begin(w); tw < W.tap_end(w); ++tw)
        f((td * H.kernel + th) * W.kernel + tw,
          ((n * D.in + D.first(d) + td * D.dilation) * H.in + H.first(h) + th * H.dilation) * W.in +
              W.first(w) + tw * W.dilation);
}

/// Calls f(output pixel, d, h, w) for output pixels begin .. end - 1, counted over all images.
template <class F>
void for_outputs(const Window& v, Index begin, Index end, F f) {
  for (Index i = begin; i < end; ++i) {
    const Index w = i % v.width().out, h = i / v.width().out % v.height().out;
    f(i, i / v.outputs(), i / v.width().out / v.height().out % v.depth().out, h, w);
  }
}

/// y = x * w + bias, where bias may be null.
template <class T>
void plain_forward(const ConvShape& s, const T* x, const T* w, const T* bias, T* y) {
  const Index k_all = s.out_channels, c_group = s.group_in(), k_group = s.group_out();
  parallel_for(s.window.batch * s.window.outputs(), 64, [=](Index begin, Index end) {
    for_outputs(s.window, begin, end, [&](Index pixel, Index n, Index d, Index h, Index wo) {
      for (Index k = 0; k < k_all; ++k) {
        T sum = bias != nullptr ? bias[k] : T(0);
        for_taps(s.window, n, d, h, wo, [&](Index tap, Index in) {
          for (Index c = 0; c < c_group; ++c)
            sum = sum +
                  x[in * s.in_channels() + k / k_group * c_group + c] * w[(tap * c_group + c) * k_all + k];
        });
        y[pixel * k_all + k] = sum;
      }
    });
  });
}

/// dx += the adjoint of the forward pass applied to dy.
template <class T>
void plain_backward_data(const ConvShape& s, const T* dy, const T* w, T* dx) {
  const Index k_all = s.out_channels, c_group = s.group_in(), k_group = s.group_out();
  parallel_for(s.window.batch, 1, [=](Index begin, Index end) {  // images do not share inputs
    for_outputs(s.window, begin * s.window.outputs(), end * s.window.outputs(),
                [&](Index pixel, Index n, Index d, Index h, Index wo) {
                  for_taps(s.window, n, d, h, wo, [&](Index tap, Index in) {
                    for (Index k = 0; k < k_all; ++k)
                      for (Index c = 0; c < c_group; ++c) {
                        T& g = dx[in * s.in_channels() + k / k_group * c_group + c];
                        g = g + dy[pixel * k_all + k] * w[(tap * c_group + c) * k_all + k];
                      }
                  });
                });
  });
}

/// dw += the products of x and dy.
template <class T>
void plain_backward_weights(const ConvShape& s, const T* x, const T* dy, T* dw) {
  const Index k_all = s.out_channels, c_group = s.group_in(), k_group = s.group_out();
  parallel_for(k_all, 1, [=](Index begin, Index end) {
    for_outputs(s.window, 0, s.window.batch * s.window.outputs(),
                [&](Index pixel, Index n, Index d, Index h, Index wo) {
                  for_taps(s.window, n, d, h, wo, [&](Index tap, Index in) {
                    for (Index k = begin; k < end; ++k)
                      for (Index c = 0; c < c_group; ++c) {
                        T& g = dw[(tap * c_group + c) * k_all + k];
                        g = g + dy[pixel * k_all + k] * x[in * s.in_channels() + k / k_group * c_group + c];
                      }
                  });
                });
  });
}

}  // namespace wengert::inline WENGERT_ISA::kernels::detail
