// Convolution kernels against loops over every product, for sizes that meet each path.
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <wengert/kernels/conv.hpp>

#include "kernels/conv_reference.hpp"

namespace {

using namespace conv_reference;

template <class T>
void check(const Sizes& sizes) {
  const k::ConvShape s = shape_of(sizes);
  const Reference r(s);
  const auto bound = [](Index terms) {
    return (std::sqrt(static_cast<double>(terms)) + 3) * (sizeof(T) == 4 ? 3e-6 : 1e-14);
  };
  const double y_bound = bound(s.products()), dx_bound = bound(s.window.taps() * s.group_out()),
               dw_bound = bound(s.window.batch * s.window.outputs());
  const std::vector<T> x = as<T>(r.x), w = as<T>(r.w), dy = as<T>(r.dy), bias = as<T>(r.bias);
  std::vector<T> y(dy.size(), T(99)), dx(x.size(), T(99)), dw(w.size(), T(99));
  k::conv_forward<T>(s, x.data(), w.data(), bias.data(), k::Activation::none, y.data(), true);
  expect_within(y, r.y, y_bound, "y");
  k::conv_backward_data<T>(s, dy.data(), w.data(), dx.data(), false, true);
  expect_within(dx, r.dx, dx_bound, "dx");
  k::conv_backward_weights<T>(s, x.data(), dy.data(), dw.data(), false, true);
  expect_within(dw, r.dw, dw_bound, "dw");
  dx.assign(x.size(), T(2));
  dw.assign(w.size(), T(3));
  k::conv_backward_data<T>(s, dy.data(), w.data(), dx.data(), true, true);
  expect_within(dx, plus(r.dx, 2), dx_bound, "dx added");
  k::conv_backward_weights<T>(s, x.data(), dy.data(), dw.data(), true, true);
  expect_within(dw, plus(r.dw, 3), dw_bound, "dw added");
  k::conv_forward<T>(s, x.data(), w.data(), nullptr, k::Activation::relu, y.data(), true);
  expect_within(y, relu_without_bias(r), y_bound, "relu");
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
    {"FewChannelsBack", {2, 3, 20, 1, {}, {9, 7, 2, 3, 3}, {37, 7, 2, 3, 3}}},
    {"FewChannelsBackStride1", {2, 6, 16, 1, {}, {7, 5, 1, 2, 2}, {19, 5, 1, 2, 2}}},
    {"FewChannelsBackWithHoles", {1, 1, 9, 1, {}, {7, 2, 3}, {50, 2, 3}}},
    {"FewChannelsBackFarPadding", {1, 2, 17, 1, {}, {}, {61, 2, 2, 5, 4}}},
    {"FewChannelsBackCut", {1, 3, 5, 1, {}, {5, 3, 2}, {40, 4, 3, 0, 1}}},
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

k::ConvShape layer(Index batch, Index size, Index channels, Index out_channels, Index kernel,
                   Index groups = 1) {
  const Axis axis{size, kernel, 1, kernel / 2, kernel / 2};
  return shape_of({batch, channels, out_channels, groups, {}, axis, axis});
}

TEST(ConvolutionAlgorithm, FollowsTheSizes) {
  using k::ConvAlgorithm;
  using k::ConvPass;
  const auto forward = [](const k::ConvShape& s, bool exact = false) {
    return k::conv_algorithm<float>(s, ConvPass::forward, exact);
  };
  EXPECT_EQ(forward(layer(8, 56, 64, 64, 3)), ConvAlgorithm::winograd4);
  EXPECT_EQ(forward(layer(8, 56, 64, 64, 3), true), ConvAlgorithm::winograd2);
  EXPECT_EQ(forward(layer(8, 56, 64, 64, 5)), ConvAlgorithm::direct);
  EXPECT_EQ(forward(layer(8, 56, 64, 64, 1)), ConvAlgorithm::product);
  EXPECT_EQ(forward(layer(8, 56, 64, 64, 3, 64)), ConvAlgorithm::depthwise);
  EXPECT_EQ(forward(layer(8, 56, 64, 64, 3, 16)), ConvAlgorithm::grouped);
  EXPECT_EQ(forward(layer(8, 56, 64, 64, 3, 4)), ConvAlgorithm::direct);
  EXPECT_EQ(forward(layer(1, 7, 512, 512, 3)), ConvAlgorithm::direct);  // more weights than pixels to map
  EXPECT_EQ((k::conv_algorithm<long double>(layer(8, 56, 64, 64, 3), ConvPass::forward)),
            ConvAlgorithm::plain);
}

TEST(ConvolutionAlgorithm, HasAName) {
  EXPECT_EQ(k::name_of(k::ConvAlgorithm::plain), "plain");
  EXPECT_EQ(k::name_of(k::ConvAlgorithm::winograd4), "Winograd F(4x4)");
}

}  // namespace
