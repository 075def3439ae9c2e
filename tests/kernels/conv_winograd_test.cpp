// Winograd's convolution against loops over every product, both tile sizes, all passes.
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <wengert/kernels/conv_winograd_weights.hpp>

#include "kernels/conv_reference.hpp"

namespace {

using namespace conv_reference;
namespace d = wengert::kernels::detail;

/// The error that the documentation states, relative to the size of the sums of `terms` products below 1.
template <int M, class T>
double bound(Index terms) {
  const double scale = std::sqrt(static_cast<double>(terms)) + 3;
  return scale * (M == 2 ? 3e-6 : 1e-5) * (sizeof(T) == 4 ? 1 : 1e-8);
}

template <int M, class T>
void check(const Sizes& sizes) {
  const k::ConvShape s = shape_of(sizes);
  const Reference r(s);
  const std::vector<T> x = as<T>(r.x), w = as<T>(r.w), dy = as<T>(r.dy), bias = as<T>(r.bias);
  std::vector<T> y(dy.size(), T(99)), dx(x.size(), T(99)), dw(w.size(), T(99));
  const double y_bound = bound<M, T>(s.products()), dx_bound = bound<M, T>(9 * s.out_channels),
               dw_bound = bound<M, T>(s.window.batch * s.window.outputs());
  d::winograd_forward<M, T>(s, x.data(), w.data(), y.data(), {false, bias.data(), k::Activation::none});
  expect_within(y, r.y, y_bound, "y");
  d::winograd_forward<M, T>(s, x.data(), w.data(), y.data(), {false, nullptr, k::Activation::relu});
  expect_within(y, relu_without_bias(r), y_bound, "relu");
  d::winograd_backward_data<M, T>(s, dy.data(), w.data(), dx.data(), false);
  expect_within(dx, r.dx, dx_bound, "dx");
  dx.assign(x.size(), T(2));
  d::winograd_backward_data<M, T>(s, dy.data(), w.data(), dx.data(), true);
  expect_within(dx, plus(r.dx, 2), dx_bound, "dx added");
  d::winograd_backward_weights<M, T>(s, x.data(), dy.data(), dw.data(), false);
  expect_within(dw, r.dw, dw_bound, "dw");
  dw.assign(w.size(), T(3));
  d::winograd_backward_weights<M, T>(s, x.data(), dy.data(), dw.data(), true);
  expect_within(dw, plus(r.dw, 3), dw_bound, "dw added");
}

struct Case {
  const char* name;
  Sizes sizes;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class Winograd : public ::testing::TestWithParam<Case> {};

TEST_P(Winograd, EqualsTheSumOfAllProducts) {
  check<2, float>(GetParam().sizes);
  check<4, float>(GetParam().sizes);
  check<2, double>(GetParam().sizes);
  check<4, double>(GetParam().sizes);
}

const Case cases[] = {
    {"OneChannel", {1, 1, 1, 1, {}, {4, 3, 1, 1, 1}, {4, 3, 1, 1, 1}}},
    {"ThreeChannels", {2, 3, 7, 1, {}, {9, 3, 1, 1, 1}, {10, 3, 1, 1, 1}}},
    {"Sixteen", {3, 16, 16, 1, {}, {8, 3, 1, 1, 1}, {8, 3, 1, 1, 1}}},
    {"Odd", {1, 33, 17, 1, {}, {7, 3, 1, 1, 1}, {5, 3, 1, 1, 1}}},
    {"Valid", {2, 8, 20, 1, {}, {9, 3}, {12, 3}}},
    {"Padding2", {1, 5, 6, 1, {}, {6, 3, 1, 2, 2}, {5, 3, 1, 2, 2}}},
    {"Padding3", {1, 5, 6, 1, {}, {6, 3, 1, 3, 3}, {5, 3, 1, 3, 3}}},
    {"Asymmetric", {1, 4, 4, 1, {}, {6, 3, 1, 0, 2}, {7, 3, 1, 1, 0}}},
    {"OnePixel", {2, 9, 8, 1, {}, {1, 3, 1, 1, 1}, {1, 3, 1, 1, 1}}},
    {"Deep", {1, 300, 70, 1, {}, {5, 3, 1, 1, 1}, {6, 3, 1, 1, 1}}},
    {"ManyBlocks", {20, 64, 64, 1, {}, {16, 3, 1, 1, 1}, {14, 3, 1, 1, 1}}},
    {"NoImages", {0, 4, 4, 1, {}, {6, 3, 1, 1, 1}, {7, 3, 1, 1, 1}}},
};
INSTANTIATE_TEST_SUITE_P(Sizes, Winograd, ::testing::ValuesIn(cases),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
