// Between our layout of images and weights, channels last, and PyTorch's, channels first. Floor: ops.
#pragma once

#include <wengert/ops/view.hpp>

namespace wengert::inline WENGERT_ISA {

namespace detail {

/// The axes of a tensor of `rank` after axis `from` has moved to `to`.
inline Shape moved_axis(int rank, int from, int to) {
  Shape order;
  for (int i = 0; i < rank; ++i)
    if (i != from) order.push_back(i);
  order.insert(to, from);
  return order;
}

inline void check_layout(std::string_view op, const char* what, const char* layout, const Shape& x) {
  if (x.rank() < 3 || x.rank() > 5)
    fail<ShapeError>(op, "the rank does not fit; ", what, " is ", x, "; expected ", layout,
                     " with one to three spatial axes");
}

/// A contiguous copy of x with its axes in another order.
template <OpName Name, Scalar T>
Tensor<T> permuted_copy(const Tensor<T>& x, const Shape& order) {
  const Recorder rec(Name.view(), x);
  Shape shape;
  Strides strides;
  for (const Index axis : order) {
    shape.push_back(x.shape()[static_cast<int>(axis)]);
    strides.push_back(x.strides()[static_cast<int>(axis)]);
  }
  Tensor<T> y(shape);
  kernels::copy(shape, x.data(), strides, y.fresh_data(), y.strides());
  record_if(rec, y, [&] { return PermuteRule<Name, T>{order}; });
  return y;
}

}  // namespace detail

/// Images (N, H, W, C) seen as (N, C, H, W), without a copy; also (N, W, C) and (N, D, H, W, C).
///   dx += nchw_to_nhwc(dy)             saves nothing
/// Throws ShapeError for other ranks.
template <Scalar T>
Tensor<T> nhwc_to_nchw(const Tensor<T>& x) {
  detail::check_layout("nhwc_to_nchw", "x", "(N, ..., C)", x.shape());
  return detail::permute_to<"nhwc_to_nchw">(x, detail::moved_axis(x.rank(), x.rank() - 1, 1));
}

/// Images (N, C, H, W) seen as (N, H, W, C), without a copy; also (N, C, W) and (N, C, D, H, W).
///   dx += nhwc_to_nchw(dy)             saves nothing
/// Throws ShapeError for other ranks.
template <Scalar T>
Tensor<T> nchw_to_nhwc(const Tensor<T>& x) {
  detail::check_layout("nchw_to_nhwc", "x", "(N, C, ...)", x.shape());
  return detail::permute_to<"nchw_to_nhwc">(x, detail::moved_axis(x.rank(), 1, x.rank() - 1));
}

/// PyTorch's weights of a convolution, (out, in / groups, kh, kw), as ours: [kh, kw, in / groups, out], a
/// contiguous copy; also of one and three spatial axes. The same call serves transposed convolutions, whose
/// weights PyTorch keeps as (in, out / groups, kh, kw) and we as those of the convolution they are the
/// adjoint of, [kh, kw, out / groups, in].
///   y[kh, kw, i, o] = w[o, i, kh, kw]
///   dw += conv_weight_to_torch(dy)             saves nothing
/// Throws ShapeError unless w has rank 3 to 5.
template <Scalar T>
Tensor<T> conv_weight_from_torch(const Tensor<T>& w) {
  detail::check_layout("conv_weight_from_torch", "w", "(out, in / groups, ...)", w.shape());
  Shape order;
  for (int i = 2; i < w.rank(); ++i) order.push_back(i);
  order.push_back(1);
  order.push_back(0);
  return detail::permuted_copy<"conv_weight_from_torch">(w, order);
}

/// The inverse of conv_weight_from_torch: [kh, kw, in / groups, out] as (out, in / groups, kh, kw), or
/// [kh, kw, out / groups, in] of a transposed convolution as (in, out / groups, kh, kw); a contiguous copy.
///   y[o, i, kh, kw] = w[kh, kw, i, o]
///   dw += conv_weight_from_torch(dy)             saves nothing
/// Throws ShapeError unless w has rank 3 to 5.
template <Scalar T>
Tensor<T> conv_weight_to_torch(const Tensor<T>& w) {
  detail::check_layout("conv_weight_to_torch", "w", "[..., in / groups, out]", w.shape());
  Shape order{w.rank() - 1, w.rank() - 2};
  for (int i = 0; i + 2 < w.rank(); ++i) order.push_back(i);
  return detail::permuted_copy<"conv_weight_to_torch">(w, order);
}

}  // namespace wengert::inline WENGERT_ISA
