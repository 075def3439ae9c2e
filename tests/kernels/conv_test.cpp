// Convolution kernels against loops over every product, in double, for sizes that meet each path.
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <wengert/kernels/conv.hpp>

namespace wg = wengert;
namespace k = wengert::kernels;
using wg::Index;

namespace {

struct Axis {
  Index in = 1, kernel = 1, stride = 1, before = 0, after = 0, dilation = 1;
};
struct Sizes {
  Index batch, channels, out_channels, groups = 1;
  Axis d, h, w;
};

k::ConvShape shape_of(const Sizes& s) {
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
  const wg::Window& v = s.window;
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
                  const wg::WindowAxis& a = v.axis[i];
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

std::vector<double> numbers(Index n, std::uint64_t seed) {
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
void expect_near(const std::vector<T>& got, const std::vector<double>& expected, double scale,
                 const std::string& what) {
  ASSERT_EQ(got.size(), expected.size()) << what;
  const double bound = scale * (sizeof(T) == 4 ? 3e-6 : 1e-14);
  for (std::size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(static_cast<double>(got[i]), expected[i], bound) << what << " at " << i;
}

template <class T>
void check(const Sizes& sizes) {
  const k::ConvShape s = shape_of(sizes);
  const auto at = [](std::vector<double>& v, Index i) -> double& { return v[static_cast<std::size_t>(i)]; };
  std::vector<double> x = numbers(s.input_size(), 1), w = numbers(s.weight_size(), 2),
                      dy = numbers(s.output_size(), 3), bias = numbers(s.out_channels, 4);
  for (auto* v : {&x, &w, &dy, &bias})  // what both element types hold exactly
    for (double& value : *v) value = static_cast<double>(static_cast<float>(value));
  std::vector<double> y(dy.size()), dx(x.size()), dw(w.size());
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = bias[i % bias.size()];
  for_products(s, [&](Index i, Index j, Index o) {
    at(y, o) += at(x, i) * at(w, j);
    at(dx, i) += at(dy, o) * at(w, j);
    at(dw, j) += at(dy, o) * at(x, i);
  });
  const auto plus = [](std::vector<double> v, double c) {
    for (double& value : v) value += c;
    return v;
  };
  const auto sqrt_of = [](Index n) { return std::sqrt(static_cast<double>(n)); };
  const std::vector<T> xt = as<T>(x), wt = as<T>(w), dyt = as<T>(dy), bt = as<T>(bias);
  std::vector<T> yt(y.size(), T(99)), dxt(x.size(), T(99)), dwt(w.size(), T(99));
  k::conv_forward<T>(s, xt.data(), wt.data(), bt.data(), k::Activation::none, yt.data());
  expect_near(yt, y, sqrt_of(s.products()), "y");
  k::conv_backward_data<T>(s, dyt.data(), wt.data(), dxt.data(), false);
  expect_near(dxt, dx, sqrt_of(s.window.taps() * s.group_out()), "dx");
  k::conv_backward_weights<T>(s, xt.data(), dyt.data(), dwt.data(), false);
  const double pixels = sqrt_of(s.window.batch * s.window.outputs() + 1);
  expect_near(dwt, dw, pixels, "dw");
  dxt.assign(x.size(), T(2));
  dwt.assign(w.size(), T(3));
  k::conv_backward_data<T>(s, dyt.data(), wt.data(), dxt.data(), true);
  expect_near(dxt, plus(dx, 2), sqrt_of(s.window.taps() * s.group_out()) + 2, "dx added");
  k::conv_backward_weights<T>(s, xt.data(), dyt.data(), dwt.data(), true);
  expect_near(dwt, plus(dw, 3), pixels + 3, "dw added");
  k::conv_forward<T>(s, xt.data(), wt.data(), nullptr, k::Activation::relu, yt.data());
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = std::max(0.0, y[i] - bias[i % bias.size()]);
  expect_near(yt, y, sqrt_of(s.products()), "relu");
}

struct Case {
  const char* name;
  Sizes sizes;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class Convolution : public ::testing::TestWithParam<Case> {};

TEST_P(Convolution, EqualsTheSumOfAllProducts) {
  check<float>(GetParam().sizes);
  check<double>(GetParam().sizes);
}

const Case cases[] = {
    {"Pad1", {2, 8, 16, 1, {}, {9, 3, 1, 1, 1}, {10, 3, 1, 1, 1}}},
    {"Deep", {1, 70, 130, 1, {}, {6, 3, 1, 1, 1}, {5, 3, 1, 1, 1}}},
    {"Stride2", {2, 7, 9, 1, {}, {11, 3, 2, 1, 1}, {12, 3, 2, 1, 1}}},
    {"Stride3Kernel2", {1, 3, 5, 1, {}, {11, 2, 3}, {10, 2, 3}}},
    {"Stem", {1, 3, 64, 1, {}, {30, 7, 2, 3, 3}, {28, 7, 2, 3, 3}}},
    {"OneByOne", {3, 17, 33, 1, {}, {5}, {4}}},
    {"OneByOneStride2", {2, 16, 8, 1, {}, {7, 1, 2}, {8, 1, 2}}},
    {"OneByOnePadded", {2, 4, 8, 1, {}, {3, 1, 1, 2, 2}, {3, 1, 2, 1, 1}}},
    {"Dilated", {2, 5, 6, 1, {}, {12, 3, 1, 2, 2, 2}, {13, 3, 2, 3, 3, 3}}},
    {"DilationSharesTheStride", {1, 4, 4, 1, {}, {15, 3, 4, 2, 2, 2}, {14, 3, 2, 0, 0, 4}}},
    {"Asymmetric", {1, 3, 4, 1, {}, {8, 4, 2, 1, 2}, {7, 2, 1, 0, 1}}},
    {"Groups", {2, 12, 18, 3, {}, {6, 3, 1, 1, 1}, {7, 3, 1, 1, 1}}},
    {"GroupsStride2", {2, 64, 128, 2, {}, {6, 3, 2, 1, 1}, {7, 3, 2, 1, 1}}},
    {"OneInputAGroup", {1, 5, 15, 5, {}, {6, 3, 1, 1, 1}, {7, 3, 1, 1, 1}}},
    {"ManyGroups", {2, 36, 72, 9, {}, {6, 3, 1, 1, 1}, {7, 3, 2, 1, 1}}},
    {"GroupsOfFour", {3, 128, 128, 32, {}, {7, 3, 1, 1, 1}, {5, 3, 1, 1, 1}}},
    {"GroupsNarrow", {1, 48, 12, 6, {}, {6, 3, 2, 1, 1}, {7, 2, 1, 1, 0}}},
    {"GroupsOfNine", {1, 27, 27, 3, {}, {6, 3, 2, 1, 1}, {7, 2, 1, 1, 0}}},
    {"NoImagesInGroups", {0, 8, 8, 2, {}, {5, 3, 1, 1, 1}, {5, 3, 1, 1, 1}}},
    {"Depthwise", {2, 37, 37, 37, {}, {8, 3, 1, 1, 1}, {9, 3, 1, 1, 1}}},
    {"DepthwiseStride2", {1, 20, 20, 20, {}, {9, 5, 2, 2, 2}, {9, 5, 2, 2, 2, 2}}},
    {"KernelLargerThanInput", {2, 3, 5, 1, {}, {2, 5, 1, 2, 2}, {1, 3, 1, 1, 1}}},
    {"OnePixel", {1, 33, 17, 1, {}, {1, 1}, {1, 1}}},
    {"NoImages", {0, 3, 5, 1, {}, {5, 3, 1, 1, 1}, {5, 3, 1, 1, 1}}},
    {"Line", {2, 6, 7, 1, {}, {}, {1200, 5, 1, 2, 2}}},
    {"LineStride2", {1, 1, 3, 1, {}, {}, {101, 4, 2, 1, 1}}},
    {"Volume", {1, 3, 4, 1, {5, 3, 1, 1, 1}, {6, 3, 1, 1, 1}, {7, 3, 1, 1, 1}}},
    {"VolumeStride2", {2, 2, 3, 1, {6, 2, 2}, {5, 3, 2, 1, 1}, {7, 3, 2, 0, 0, 2}}},
    {"VolumeInPlace", {1, 4, 16, 1, {5, 3}, {6, 2}, {7, 3}}},
    {"ManyBlocks", {3, 16, 16, 1, {}, {40, 3, 1, 1, 1}, {41, 3, 1, 1, 1}}},
    {"ManyImages", {70, 4, 8, 1, {}, {4, 3, 2, 1, 1}, {4, 3, 2, 1, 1}}},
    {"FarPadding", {1, 2, 3, 1, {}, {3, 2, 1, 4, 5}, {2, 2, 3, 5, 4}}},
};
INSTANTIATE_TEST_SUITE_P(Sizes, Convolution, ::testing::ValuesIn(cases),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
