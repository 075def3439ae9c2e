// Convolutions as loops over every product, in double: what the kernels are compared with.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <wengert/kernels/conv_shape.hpp>

namespace conv_reference {

namespace k = wengert::kernels;
using wengert::Index;

struct Axis {
  Index in = 1, kernel = 1, stride = 1, before = 0, after = 0, dilation = 1;
};
struct Sizes {
  Index batch, channels, out_channels, groups = 1;
  Axis d, h, w;
};

inline k::ConvShape shape_of(const Sizes& s) {
  k::ConvShape out;
  out.window.batch = s.batch;
  out.window.channels = s.channels;
  out.out_channels = s.out_channels;
  out.groups = s.groups;
  const Axis* axes[] = {&s.d, &s.h, &s.w};
  for (int i = 0; i < 3; ++i) {
    const Axis& a = *axes[i];
    const Index count = (a.in + a.before + a.after - (a.kernel - 1) * a.dilation - 1) / a.stride + 1;
    out.window.axis[i] = {a.in, count, a.kernel, a.stride, a.before, a.dilation};
  }
  return out;
}

/// Calls f(x index, w index, y index) for every product of the convolution.
template <class F>
void for_products(const k::ConvShape& s, F f) {
  const wengert::Window& v = s.window;
  const Index cg = s.group_in(), kg = s.group_out();
  for (Index n = 0; n < v.batch; ++n)
    for (Index od = 0; od < v.axis[0].out; ++od)
      for (Index oh = 0; oh < v.axis[1].out; ++oh)
        for (Index ow = 0; ow < v.axis[2].out; ++ow)
          for (Index td = 0; td < v.axis[0].kernel; ++td)
            for (Index th = 0; th < v.axis[1].kernel; ++th)
              for (Index tw = 0; tw < v.axis[2].kernel; ++tw) {
                const Index o[] = {od, oh, ow}, t[] = {td, th, tw};
                Index in = n, out = n, tap = 0;
                bool inside = true;
                for (int i = 0; i < 3; ++i) {
                  const wengert::WindowAxis& a = v.axis[i];
                  const Index at = o[i] * a.stride - a.before + t[i] * a.dilation;
                  inside = inside && at >= 0 && at < a.in;
                  in = in * a.in + at;
                  out = out * a.out + o[i];
                  tap = tap * a.kernel + t[i];
                }
                if (!inside) continue;
                for (Index g = 0; g < s.groups; ++g)
                  for (Index c = 0; c < cg; ++c)
                    for (Index m = 0; m < kg; ++m)
                      f(in * s.in_channels() + g * cg + c, (tap * cg + c) * s.out_channels + g * kg + m,
                        out * s.out_channels + g * kg + m);
              }
}

inline std::vector<double> numbers(Index n, std::uint64_t seed) {
  std::vector<double> v(static_cast<std::size_t>(n));
  for (double& x : v) {
    seed = seed * 6364136223846793005U + 1442695040888963407U;
    x = static_cast<double>(seed >> 40) / double{1 << 23} - 1.0;
  }
  return v;
}

template <class T>
std::vector<T> as(const std::vector<double>& v) {
  return std::vector<T>(v.begin(), v.end());
}

template <class T>
void expect_within(const std::vector<T>& got, const std::vector<double>& expected, double bound,
                   const std::string& what) {
  ASSERT_EQ(got.size(), expected.size()) << what;
  for (std::size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(static_cast<double>(got[i]), expected[i], bound) << what << " at " << i;
}

/// Operands that float holds exactly, and what every pass makes of them.
struct Reference {
  std::vector<double> x, w, dy, bias, y, dx, dw;

  explicit Reference(const k::ConvShape& s)
      : x(numbers(s.input_size(), 1)),
        w(numbers(s.weight_size(), 2)),
        dy(numbers(s.output_size(), 3)),
        bias(numbers(s.out_channels, 4)),
        y(dy.size()),
        dx(x.size()),
        dw(w.size()) {
    for (auto* v : {&x, &w, &dy, &bias})
      for (double& value : *v) value = static_cast<double>(static_cast<float>(value));
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = bias[i % bias.size()];
    const auto at = [](std::vector<double>& v, Index i) -> double& { return v[static_cast<std::size_t>(i)]; };
    for_products(s, [&](Index i, Index j, Index o) {
      at(y, o) += at(x, i) * at(w, j);
      at(dx, i) += at(dy, o) * at(w, j);
      at(dw, j) += at(dy, o) * at(x, i);
    });
  }
};

inline std::vector<double> plus(std::vector<double> v, double c) {
  for (double& value : v) value += c;
  return v;
}

/// relu of y without its bias.
inline std::vector<double> relu_without_bias(const Reference& r) {
  std::vector<double> y = r.y;
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = std::max(0.0, y[i] - r.bias[i % r.bias.size()]);
  return y;
}

}  // namespace conv_reference
