// Convolutions of channels-last images, with bias and, on request, relu, as one record. Floor: ops.
#pragma once

#include <wengert/ops/conv_window.hpp>
#include <wengert/ops/linear_rows.hpp>

namespace wengert::inline WENGERT_ISA {

namespace detail {

template <int Axes, bool Relu, Field T>
struct ConvRule {
  static constexpr std::string_view name = (Relu ? conv_relu_names : conv_names)[Axes - 1];
  Saved<T> x, w;  // without values where the other asks for no gradient
  Saved<T> y;     // when Relu
  kernels::ConvShape shape;
  bool exact;
  auto saved() const { return std::tie(x, w, y); }

  void backward(Vjp& v) const {
    const Index pixels = shape.window.batch * shape.window.outputs(), k = shape.out_channels;
    const T* dz = v.dy<T>();  // of the sums before relu
    const Scratch<T> masked(Relu ? pixels * k : 0);
    if (Relu || v.wants(2)) {  // db += sums of dz over the pixels
      const GradRef<T> db = v.wants(2) ? v.into<T>(2) : GradRef<T>{nullptr, false};
      dz = sum_and_mask(pixels, k, dz, Relu ? y.data() : nullptr, masked.data(), {db.data, db.add});
    }
    if (v.wants(1)) {
      const GradRef<T> dw = v.into<T>(1);
      kernels::conv_backward_weights(shape, x.data(), dz, dw.data, dw.add, exact);
    }
    if (v.wants(0)) {
      const GradRef<T> dx = v.into<T>(0);
      kernels::conv_backward_data(shape, dz, w.data(), dx.data, dx.add, exact);
    }
  }
};

template <int Axes, bool Relu, Field T>
Tensor<T> conv(const Tensor<T>& x, const Tensor<T>& w, const Tensor<T>* b, const ConvOptions& options) {
  using Rule = ConvRule<Axes, Relu, T>;
  const kernels::ConvShape s =
      conv_shape(Rule::name, Axes, x.shape(), w.shape(), b != nullptr ? &b->shape() : nullptr, options);
  const Shape shape = image_shape(s.window, Axes, true, s.out_channels);
  checked_size(Rule::name, shape, sizeof(T));
  const Tensor<T> absent;
  const Recorder rec(Rule::name, x, w, b != nullptr ? *b : absent);
  const Tensor<T> xp = x.packed(), wp = w.packed(), bias = b != nullptr ? b->packed() : absent;
  const bool exact = exact_convolutions();
  Tensor<T> y(shape);
  kernels::conv_forward(s, xp.data(), wp.data(), bias.data(),
                        Relu ? kernels::Activation::relu : kernels::Activation::none, y.fresh_data(), exact);
  if (rec) {
    Rule rule{save_if(w.requires_grad(), xp), save_if(x.requires_grad(), wp), {}, s, exact};
    if (Relu) rule.y = save(y);
    rec.record(y, std::move(rule));
  }
  return y;
}

}  // namespace detail

/// Convolution (correlation, as in every library of the field) of images, channels last. One record.
///   x: (N, H, W, C), w: (kh, kw, C / groups, K), b: (K); y: (N, Ho, Wo, K)
///   Ho = floor((H + 2 padding - dilation (kh - 1) - 1) / stride) + 1, and so for Wo
///   y[n, i, j, k]  = b[k] + sum over p, q, c of x[n, i stride - padding + p dilation, ..., c] w[p, q, c, k]
///   dx, dw += the adjoints;   db += sum of dy over N, Ho, Wo
/// Saves x if w, and w if x, asks for a gradient. Where 3x3 kernels take Winograd's way, a NaN or infinity in
/// x spoils the rest of its tile of pixels as well. `kernels::conv_algorithm` has the algorithms and their
/// errors. Throws ShapeError when ranks, channels, groups or the bias do not fit or the kernel is larger than
/// the padded input, ValueError on options out of range.
template <Field T>
Tensor<T> conv2d(const Tensor<T>& x, const Tensor<T>& w, const Tensor<T>& b,
                 const ConvOptions& options = {}) {
  return detail::conv<2, false>(x, w, &b, options);
}
/// As above, without bias.
template <Field T>
Tensor<T> conv2d(const Tensor<T>& x, const Tensor<T>& w, const ConvOptions& options = {}) {
  return detail::conv<2, false>(x, w, static_cast<const Tensor<T>*>(nullptr), options);
}
/// y = relu(conv2d(x, w, b)) as one record; saves y in place of the sums. relu'(0) = 0, and NaN passes.
template <Field T>
requires detail::Ordered<T> Tensor<T> conv2d_relu(const Tensor<T>& x, const Tensor<T>& w, const Tensor<T>& b,
                                                  const ConvOptions& options = {}) {
  return detail::conv<2, true>(x, w, &b, options);
}

/// As `conv2d` for sequences: x: (N, W, C), w: (kw, C / groups, K); y: (N, Wo, K).
template <Field T>
Tensor<T> conv1d(const Tensor<T>& x, const Tensor<T>& w, const Tensor<T>& b,
                 const ConvOptions& options = {}) {
  return detail::conv<1, false>(x, w, &b, options);
}
/// As above, without bias.
template <Field T>
Tensor<T> conv1d(const Tensor<T>& x, const Tensor<T>& w, const ConvOptions& options = {}) {
  return detail::conv<1, false>(x, w, static_cast<const Tensor<T>*>(nullptr), options);
}
/// y = relu(conv1d(x, w, b)) as one record.
template <Field T>
requires detail::Ordered<T> Tensor<T> conv1d_relu(const Tensor<T>& x, const Tensor<T>& w, const Tensor<T>& b,
                                                  const ConvOptions& options = {}) {
  return detail::conv<1, true>(x, w, &b, options);
}

/// As `conv2d` for volumes: x: (N, D, H, W, C), w: (kd, kh, kw, C / groups, K); y: (N, Do, Ho, Wo, K).
template <Field T>
Tensor<T> conv3d(const Tensor<T>& x, const Tensor<T>& w, const Tensor<T>& b,
                 const ConvOptions& options = {}) {
  return detail::conv<3, false>(x, w, &b, options);
}
/// As above, without bias.
template <Field T>
Tensor<T> conv3d(const Tensor<T>& x, const Tensor<T>& w, const ConvOptions& options = {}) {
  return detail::conv<3, false>(x, w, static_cast<const Tensor<T>*>(nullptr), options);
}
/// y = relu(conv3d(x, w, b)) as one record.
template <Field T>
requires detail::Ordered<T> Tensor<T> conv3d_relu(const Tensor<T>& x, const Tensor<T>& w, const Tensor<T>& b,
                                                  const ConvOptions& options = {}) {
  return detail::conv<3, true>(x, w, &b, options);
}

}  // namespace wengert::inline WENGERT_ISA
