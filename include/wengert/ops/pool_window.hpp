// Options of pools, and the windows they make after every check. Floor: ops.
#pragma once

#include <wengert/core/record.hpp>
#include <wengert/kernels/pool_place.hpp>
#include <wengert/kernels/pool_window.hpp>

namespace wengert::inline WENGERT_ISA {

/// Of max_pool1d, max_pool2d and max_pool3d; PyTorch's names and defaults.
struct MaxPoolOptions {
  PerAxis kernel = 0;      ///< always to be given
  PerAxis stride = 0;      ///< 0: as the kernel
  PerAxis padding = 0;     ///< at both ends of an axis; never the largest
  PerAxis dilation = 1;    ///< between the taps
  bool ceil_mode = false;  ///< a last window may reach beyond the padding, but must begin within the image
};

/// Of avg_pool1d, avg_pool2d and avg_pool3d; PyTorch's names and defaults.
struct AvgPoolOptions {
  PerAxis kernel = 0;      ///< always to be given
  PerAxis stride = 0;      ///< 0: as the kernel
  PerAxis padding = 0;     ///< zeros at both ends of an axis
  bool ceil_mode = false;  ///< as in MaxPoolOptions
  bool count_include_pad =
      true;  ///< divide by the taps in image and padding, not by those in the image alone
};

namespace detail {

/// "max_pool2d" and the like.
enum class PoolKind { max, avg, adaptive_max, adaptive_avg };
constexpr std::string_view pool_name(PoolKind kind, int axes) {
  constexpr std::string_view names[4][3] = {
      {"max_pool1d", "max_pool2d", "max_pool3d"},
      {"avg_pool1d", "avg_pool2d", "avg_pool3d"},
      {"adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d"},
      {"adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d"}};
  return names[static_cast<int>(kind)][axes - 1];
}

/// Throws ValueError unless the options fit windows over `axes` axes; PyTorch's rules.
inline void check_pool_options(std::string_view op, int axes, const MaxPoolOptions& o) {
  o.kernel.check(op, "kernel", axes, 1);
  if (o.stride != PerAxis(0)) o.stride.check(op, "stride", axes, 1);
  o.padding.check(op, "padding", axes, 0);
  o.dilation.check(op, "dilation", axes, 1);
  Index taps = 1;
  for (int i = 0; i < axes; ++i) {
    if (o.padding[i] > o.kernel[i] / 2)
      fail<ValueError>(op, "padding is more than half the kernel; kernel is ", o.kernel, ", padding is ",
                       o.padding, "; expected at most ", o.kernel[i] / 2);
    if (o.kernel[i] > kernels::pool_most_taps || (taps *= o.kernel[i]) > kernels::pool_most_taps)
      fail<ValueError>(op, "the window has too many taps; kernel is ", o.kernel, "; expected at most ",
                       kernels::pool_most_taps);
  }
}
inline void check_pool_options(std::string_view op, int axes, const AvgPoolOptions& o) {
  check_pool_options(op, axes, MaxPoolOptions{.kernel = o.kernel, .stride = o.stride, .padding = o.padding});
}

inline void check_pool_image(std::string_view op, int axes, const Shape& x) {
  if (x.rank() != axes + 2) fail<ShapeError>(op, "wrong rank; x is ", x, "; expected ", image_form(axes));
  for (int i = 1; i <= axes; ++i)
    if (x[i] == 0) fail<ShapeError>(op, "the image has no pixels; x is ", x, "; expected at least one");
}

/// The windows of a pool over x, of shape (N, spatial axes, C), after every check.
inline kernels::PoolWindow pool_window(std::string_view op, int axes, const Shape& x,
                                       const MaxPoolOptions& o) {
  check_pool_options(op, axes, o);
  check_pool_image(op, axes, x);
  kernels::PoolWindow w;
  w.window.batch = x[0];
  w.window.channels = x.back();
  for (int i = 0; i < axes; ++i) {
    WindowAxis& a = w.window.spatial(axes, i);
    a = {x[i + 1],     0, o.kernel[i], o.stride == PerAxis(0) ? o.kernel[i] : o.stride[i], o.padding[i],
         o.dilation[i]};
    const Index beyond = o.ceil_mode ? a.stride - 1 : 0;  // taps of the last window that may lie outside
    const Index reach = a.in + 2 * a.before + beyond, room = reach - a.span();
    if (room < 0)
      fail<ShapeError>(op, "the window is larger than the padded image; x is ", x, ", kernel is ", o.kernel,
                       ", padding is ", o.padding, ", dilation is ", o.dilation, "; expected at most ", reach,
                       " pixels along axis ", i + 1, ", not ", a.span());
    a.out = room / a.stride + 1;
    if (o.ceil_mode && (a.out - 1) * a.stride >= a.in + a.before) --a.out;
  }
  return w;
}
inline kernels::PoolWindow pool_window(std::string_view op, int axes, const Shape& x,
                                       const AvgPoolOptions& o) {
  kernels::PoolWindow w = pool_window(
      op, axes, x,
      MaxPoolOptions{.kernel = o.kernel, .stride = o.stride, .padding = o.padding, .ceil_mode = o.ceil_mode});
  w.count_padding = o.count_include_pad;
  return w;
}

/// The windows of an adaptive pool to `size` pixels.
inline kernels::PoolWindow adaptive_window(std::string_view op, int axes, const Shape& x,
                                           const PerAxis& size) {
  size.check(op, "output size", axes, 1);
  check_pool_image(op, axes, x);
  kernels::PoolWindow w;
  w.adaptive = true;
  w.window.batch = x[0];
  w.window.channels = x.back();
  for (int i = 0; i < axes; ++i) {
    WindowAxis& a = w.window.spatial(axes, i);
    a.in = x[i + 1];
    a.out = size[i];
  }
  if (w.taps() > kernels::pool_most_taps)
    fail<ShapeError>(op, "the window has too many pixels; x is ", x, ", output size is ", size,
                     "; expected windows of at most ", kernels::pool_most_taps);
  return w;
}

}  // namespace detail

}  // namespace wengert::inline WENGERT_ISA
