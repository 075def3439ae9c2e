// Images as matrices of patches and back: unfold (im2col), fold. Floor: ops.
#pragma once

#include <wengert/core/record.hpp>
#include <wengert/kernels/fold.hpp>

namespace wengert::inline WENGERT_ISA {

/// The windows of `unfold` and `fold`; a single number serves every spatial axis.
struct FoldOptions {
  PerAxis kernel = 1;
  PerAxis stride = 1;
  PerAxis padding = 0;  ///< zeros on either side
  PerAxis dilation = 1;
};

namespace detail {

/// Windows over images of `shape` (N, spatial..., C), checked.
inline Window fold_window(std::string_view op, const Shape& shape, const FoldOptions& o) {
  const int axes = shape.rank() - 2;
  o.kernel.check(op, "kernel", axes, 1);
  o.stride.check(op, "stride", axes, 1);
  o.padding.check(op, "padding", axes, 0);
  o.dilation.check(op, "dilation", axes, 1);
  Window w;
  w.batch = shape[0];
  w.channels = shape.back();
  for (int i = 0; i < axes; ++i) {
    WindowAxis& a = w.spatial(axes, i);
    a = {shape[i + 1], 0, o.kernel[i], o.stride[i], o.padding[i], o.dilation[i]};
    a.out = a.fitting(2 * a.before);
    if (a.out == 0)
      fail<ShapeError>(op, "the window does not fit spatial axis ", i, "; the image is ", shape,
                       ", kernel is ", o.kernel, ", padding is ", o.padding, ", dilation is ", o.dilation,
                       "; expected size + 2 * padding >= ", a.span());
  }
  return w;
}

/// (N, L, taps * C), the shape of the patches, after checking that it fits.
inline Shape patches_shape(std::string_view op, const Window& w, std::size_t bytes_each) {
  Shape all{w.batch, w.channels};
  for (const WindowAxis& a : w.axis) {
    all.push_back(a.out);
    all.push_back(a.kernel);
  }
  checked_size(op, all, bytes_each);
  return {w.batch, w.outputs(), w.taps() * w.channels};
}

template <Field T>
struct UnfoldRule {
  static constexpr std::string_view name = "unfold";
  Window window;
  void backward(Vjp& v) const {
    if (!v.wants(0)) return;
    const GradRef<T> dx = v.into<T>(0);
    kernels::fold(window, v.dy<T>(), dx.data, dx.add);
  }
};

template <Field T>
struct FoldRule {
  static constexpr std::string_view name = "fold";
  Window window;
  void backward(Vjp& v) const {
    if (!v.wants(0)) return;
    const GradRef<T> dx = v.into<T>(0);
    if (dx.add)
      kernels::unfold<true>(window, v.dy<T>(), dx.data);
    else
      kernels::unfold<false>(window, v.dy<T>(), dx.data);
  }
};

}  // namespace detail

/// The patches of images under a sliding window: (N, H, W, C) to (N, L, kh * kw * C), L = OH * OW windows in
/// row-major order; also (N, W, C) and (N, D, H, W, C). The columns of a patch are in [kh, kw, C] order, that
/// of convolution weights [kh, kw, C, out]: matmul(unfold(x, o), reshape(w, {kh * kw * C, out})) is their
/// convolution. PyTorch's columns are in [C, kh, kw] order, and its patches are (N, columns, L).
///   y   = x under the windows, 0 in the padding;  OH = (H + 2 padding - dilation (kh - 1) - 1) / stride + 1
///   dx += fold(dy)             saves nothing; same bits at any number of threads
/// Throws ShapeError for other ranks and where a window does not fit, ValueError for bad numbers.
template <Scalar T>
Tensor<T> unfold(const Tensor<T>& x, const FoldOptions& options) {
  if (x.rank() < 3 || x.rank() > 5)
    fail<ShapeError>("unfold", "the rank does not fit; x is ", x.shape(),
                     "; expected images (N, W, C), (N, H, W, C) or (N, D, H, W, C)");
  const Window w = detail::fold_window("unfold", x.shape(), options);
  const Shape shape = detail::patches_shape("unfold", w, sizeof(T));
  const Recorder rec("unfold", x);
  const Tensor<T> xc = x.packed();
  Tensor<T> y(shape);
  kernels::unfold<false>(w, xc.data(), y.fresh_data());
  if constexpr (Field<T>)
    if (rec) rec.record(y, detail::UnfoldRule<T>{w});
  return y;
}

/// The adjoint of unfold: patches (N, L, kh * kw * C), columns in [kh, kw, C] order, summed where they
/// overlap into images (N, H, W, C) of `size` {H, W}; also {W} and {D, H, W}. Not the inverse:
/// fold(unfold(x)) is x times the number of windows over each pixel.
///   y[pixel] = the sum of x over the windows and taps that read the pixel; what fell into padding is dropped
///   dx += unfold(dy)             saves nothing; same bits at any number of threads
/// Throws ShapeError when x does not have rank 3, or does not fit the windows over `size`; ValueError for bad
/// numbers.
template <Field T>
Tensor<T> fold(const Tensor<T>& x, const Shape& size, const FoldOptions& options) {
  const int axes = size.rank();
  if (axes < 1 || axes > 3)
    fail<ShapeError>("fold", "the number of axes does not fit; size is ", size,
                     "; expected {W}, {H, W} or {D, H, W}");
  if (x.rank() != 3)
    fail<ShapeError>("fold", "the rank does not fit; x is ", x.shape(),
                     "; expected patches (N, L, kernel * C)");
  Shape shape{x.shape()[0]};
  for (const Index s : size) shape.push_back(s);
  shape.push_back(1);
  checked_size("fold", shape, sizeof(T));
  Window w = detail::fold_window("fold", shape, options);
  detail::patches_shape("fold", w, sizeof(T));
  if (x.shape()[1] != w.outputs() || x.shape()[2] % w.taps() != 0)
    fail<ShapeError>("fold", "the patches do not fit; x is ", x.shape(), ", size is ", size, ", kernel is ",
                     options.kernel, ", stride is ", options.stride, ", padding is ", options.padding,
                     ", dilation is ", options.dilation, "; expected ", w.outputs(),
                     " patches of a multiple of ", w.taps(), " columns");
  w.channels = x.shape()[2] / w.taps();
  shape[shape.rank() - 1] = w.channels;
  checked_size("fold", shape, sizeof(T));
  const Recorder rec("fold", x);
  const Tensor<T> xc = x.packed();
  Tensor<T> y(shape);
  kernels::fold(w, xc.data(), y.fresh_data(), false);
  if (rec) rec.record(y, detail::FoldRule<T>{w});
  return y;
}

}  // namespace wengert::inline WENGERT_ISA
