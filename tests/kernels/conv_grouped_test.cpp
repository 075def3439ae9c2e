// Convolutions of small groups, every size that has its own path, against loops over every product: the
// channels of a group may straddle vectors in any way.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <wengert/kernels/conv.hpp>

#include "kernels/conv_reference.hpp"

namespace {

using namespace conv_reference;

template <class T>
void check(Index groups, Index from, Index to) {
  const k::ConvShape s =
      shape_of({2, groups * from, groups * to, groups, {}, {2, 2, 1, 1, 0}, {4, 3, 2, 0, 1}});
  const auto algorithm = k::conv_algorithm<T>(s, k::ConvPass::forward);
  ASSERT_EQ(algorithm, from * to == 1 ? k::ConvAlgorithm::depthwise : k::ConvAlgorithm::grouped);
  const Reference r(s);
  const std::string what =
      std::to_string(groups) + " groups of " + std::to_string(from) + " to " + std::to_string(to) + ", ";
  const double bound = sizeof(T) == 4 ? 2e-5 : 1e-13;
  const std::vector<T> x = as<T>(r.x), w = as<T>(r.w), dy = as<T>(r.dy), bias = as<T>(r.bias);
  std::vector<T> y(dy.size(), T(99)), dx(x.size(), T(2)), dw(w.size(), T(3));
  k::conv_forward<T>(s, x.data(), w.data(), bias.data(), k::Activation::none, y.data());
  expect_within(y, r.y, bound, what + "y");
  k::conv_backward_data<T>(s, dy.data(), w.data(), dx.data(), true);
  expect_within(dx, plus(r.dx, 2), bound, what + "dx");
  k::conv_backward_weights<T>(s, x.data(), dy.data(), dw.data(), true);
  expect_within(dw, plus(r.dw, 3), bound, what + "dw");
}

TEST(GroupedConvolution, EqualsTheSumOfAllProducts) {
  for (Index from = 1; from <= 8; ++from)
    for (Index to = 1; to <= 8; ++to)
      for (const Index groups : {2, 5, 21}) {
        check<float>(groups, from, to);
        check<double>(groups, from, to);
        if (HasFatalFailure()) return;
      }
}

}  // namespace
