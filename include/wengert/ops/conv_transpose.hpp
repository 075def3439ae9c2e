// Transposed convolutions: the adjoint of a convolution as an operator. Floor: ops.
#pragma once

#include <wengert/ops/conv_window.hpp>
#include <wengert/ops/linear_rows.hpp>

namespace wengert::inline WENGERT_ISA {

namespace detail {

template <int Axes, Field T>
struct ConvTransposeRule {
  static constexpr std::string_view name = conv_transpose_names[Axes - 1];
  Saved<T> x, w;             // without values where the other asks for no gradient
  kernels::ConvShape shape;  // of the convolution from y to x
  bool exact;
  auto saved() const { return std::tie(x, w); }

  void backward(Vjp& v) const {
    const T* const dy = v.dy<T>();
    if (v.wants(2)) {  // db += sums of dy over the pixels
      const GradRef<T> db = v.into<T>(2);
      sum_and_mask<T>(shape.window.batch * shape.window.inputs(), shape.in_channels(), dy, nullptr, nullptr,
                      {db.data, db.add});
    }
    if (v.wants(1)) {
      const GradRef<T> dw = v.into<T>(1);
      kernels::conv_backward_weights(shape, dy, x.data(), dw.data, dw.add, exact);
    }
    if (v.wants(0)) {  // dx += convolution of dy
      const GradRef<T> dx = v.into<T>(0);
      const Index size = shape.output_size();
      const Scratch<T> apart(dx.add ? size : 0);
      kernels::conv_forward<T>(shape, dy, w.data(), nullptr, kernels::Activation::none,
                               dx.add ? apart.data() : dx.data, exact);
      if (dx.add) kernels::accumulate(apart.data(), size, dx.data, true);
    }
  }
};

template <int Axes, Field T>
Tensor<T> conv_transpose(const Tensor<T>& x, const Tensor<T>& w, const Tensor<T>* b,
                         const ConvTransposeOptions& options) {
  using Rule = ConvTransposeRule<Axes, T>;
  const kernels::ConvShape s = conv_transpose_shape(Rule::name, Axes, x.shape(), w.shape(),
                                                    b != nullptr ? &b->shape() : nullptr, options);
  const Shape shape = image_shape(s.window, Axes, false, s.in_channels());
  checked_size(Rule::name, shape, sizeof(T));
  const Tensor<T> absent;
  const Recorder rec(Rule::name, x, w, b != nullptr ? *b : absent);
  const Tensor<T> xp = x.packed(), wp = w.packed(), bias = b != nullptr ? b->packed() : absent;
  const bool exact = exact_convolutions();
  Tensor<T> y(shape);
  T* const out = y.fresh_data();
  if (b != nullptr) {
    Strides repeated = contiguous_strides(shape);
    for (int i = 0; i <= Axes; ++i) repeated[i] = 0;
    kernels::copy(shape, bias.data(), repeated, out, contiguous_strides(shape));
  }
  kernels::conv_backward_data(s, xp.data(), wp.data(), out, b != nullptr, exact);
  if (rec) rec.record(y, Rule{save_if(w.requires_grad(), xp), save_if(x.requires_grad(), wp), s, exact});
  return y;
}

}  // namespace detail

/// Transposed convolution of images, channels last: the adjoint of `conv2d` with the same weights, which
/// gives every input pixel a window of the output. One record.
///   x: (N, H, W, C), w: (kh, kw, K / groups, C), b: (K); y: (N, Ho, Wo, K)
///   Ho = (H - 1) stride - 2 padding + dilation (kh - 1) + output_padding + 1, and so for Wo
///   y = b + what conv2d's backward pass gives for dy = x;   dx += conv2d(dy, w);   db += sum of dy over N,
///   Ho, Wo
/// Saves x if w, and w if x, asks for a gradient. Throws ShapeError when ranks, channels, groups or the bias
/// do not fit or the output would be empty, ValueError on options out of range.
template <Field T>
Tensor<T> conv_transpose2d(const Tensor<T>& x, const Tensor<T>& w, const Tensor<T>& b,
                           const ConvTransposeOptions& options = {}) {
  return detail::conv_transpose<2>(x, w, &b, options);
}
/// As above, without bias.
template <Field T>
Tensor<T> conv_transpose2d(const Tensor<T>& x, const Tensor<T>& w, const ConvTransposeOptions& options = {}) {
  return detail::conv_transpose<2>(x, w, static_cast<const Tensor<T>*>(nullptr), options);
}

/// As `conv_transpose2d` for sequences: x: (N, W, C), w: (kw, K / groups, C); y: (N, Wo, K).
template <Field T>
Tensor<T> conv_transpose1d(const Tensor<T>& x, const Tensor<T>& w, const Tensor<T>& b,
                           const ConvTransposeOptions& options = {}) {
  return detail::conv_transpose<1>(x, w, &b, options);
}
/// As above, without bias.
template <Field T>
Tensor<T> conv_transpose1d(const Tensor<T>& x, const Tensor<T>& w, const ConvTransposeOptions& options = {}) {
  return detail::conv_transpose<1>(x, w, static_cast<const Tensor<T>*>(nullptr), options);
}

/// As `conv_transpose2d` for volumes: x: (N, D, H, W, C), w: (kd, kh, kw, K / groups, C).
template <Field T>
Tensor<T> conv_transpose3d(const Tensor<T>& x, const Tensor<T>& w, const Tensor<T>& b,
                           const ConvTransposeOptions& options = {}) {
  return detail::conv_transpose<3>(x, w, &b, options);
}
/// As above, without bias.
template <Field T>
Tensor<T> conv_transpose3d(const Tensor<T>& x, const Tensor<T>& w, const ConvTransposeOptions& options = {}) {
  return detail::conv_transpose<3>(x, w, static_cast<const Tensor<T>*>(nullptr), options);
}

}  // namespace wengert::inline WENGERT_ISA
