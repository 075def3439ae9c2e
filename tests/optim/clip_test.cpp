// Clipping by norm and by value.

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include <wengert/optim/clip.hpp>

#include "support/errors.hpp"
#include "support/toy.hpp"

using namespace wengert;

namespace {

struct Two {
  Tensor<float> a{{2}, {0, 0}}, b{{1}, {0}}, unreached{{3}, {0, 0, 0}};
  GradStore grads;
  std::vector<Tensor<float>> all;
  Two(float x, float y, float z) {
    for (Tensor<float>* t : {&a, &b, &unreached}) t->requires_grad(true);
    all = {a, unreached, b};
    backward(toy::dot(a, Tensor<float>({2}, {x, y})), grads);
    backward(toy::dot(b, Tensor<float>({1}, {z})), grads);
  }
};

TEST(ClipGradNorm, ScalesToTheNorm) {
  Two t(2, 3, 6);  // norm 7
  EXPECT_DOUBLE_EQ(optim::clip_grad_norm(t.grads, t.all, 3.5), 7);
  EXPECT_NEAR(t.grads[t.a].at(0), 1, 1e-6);
  EXPECT_NEAR(t.grads[t.a].at(1), 1.5, 1e-6);
  EXPECT_NEAR(t.grads[t.b].at(0), 3, 1e-6);
  EXPECT_FALSE(t.grads.find(t.unreached));
}

TEST(ClipGradNorm, LeavesSmallGradientsAlone) {
  Two t(2, 3, 6);
  EXPECT_DOUBLE_EQ(optim::clip_grad_norm(t.grads, t.all, 7.5), 7);
  EXPECT_EQ(t.grads[t.a].at(0), 2);
  EXPECT_DOUBLE_EQ(optim::clip_grad_norm(t.grads, t.all, HUGE_VAL), 7);
  EXPECT_EQ(t.grads[t.a].at(0), 2);
}

TEST(ClipGradNorm, ReportsANormThatIsNotFiniteAndScalesNothing) {
  Two inf(2, std::numeric_limits<float>::infinity(), 6);
  EXPECT_EQ(optim::clip_grad_norm(inf.grads, inf.all, 1), HUGE_VAL);
  EXPECT_EQ(inf.grads[inf.a].at(0), 2);
  Two nan(2, std::nanf(""), 6);
  EXPECT_TRUE(std::isnan(optim::clip_grad_norm(nan.grads, nan.all, 1)));
  EXPECT_EQ(nan.grads[nan.b].at(0), 6);
}

TEST(ClipGradNorm, LargeGradientsDoNotOverflow) {
  Two t(2e25f, 3e25f, 6e25f);
  EXPECT_NEAR(optim::clip_grad_norm(t.grads, t.all, 7) / 7e25, 1, 1e-6);
  EXPECT_NEAR(t.grads[t.b].at(0), 6, 1e-5);
}

TEST(ClipGradNorm, LongSumsKeepTheirDigits) {
  const Index n = 3'000'017;
  Tensor<float> p((Shape{n}));
  p.fill(0);
  p.requires_grad(true);
  Tensor<float> g((Shape{n}));
  double sum = 0;
  for (Index i = 0; i < n; ++i) {
    g.fresh_data()[i] = 0.1f + static_cast<float>(i % 7);
    sum += static_cast<double>(g.data()[i]) * static_cast<double>(g.data()[i]);
  }
  GradStore grads;
  backward(toy::dot(p, g), grads);
  EXPECT_NEAR(optim::grad_norm(grads, std::vector{p}) / std::sqrt(sum), 1, 1e-7);
}

TEST(ClipGradNorm, RefusesABadNorm) {
  Two t(1, 1, 1);
  EXPECT_EQ(message_of<ValueError>([&] { optim::clip_grad_norm(t.grads, t.all, -1); }),
            "clip_grad_norm: bad max_norm; got -1; expected max_norm >= 0");
  EXPECT_EQ(message_of<ValueError>([&] { optim::clip_grad_norm(t.grads, t.all, std::nan("")); }),
            "clip_grad_norm: bad max_norm; got nan; expected max_norm >= 0");
}

TEST(ClipGradValue, ClampsEachElement) {
  const Index n = 37;
  Tensor<double> p((Shape{n})), g((Shape{n}));
  p.fill(0);
  p.requires_grad(true);
  for (Index i = 0; i < n; ++i) g.fresh_data()[i] = 0.25 * static_cast<double>(i - 18);
  g.fresh_data()[3] = std::nan("");
  GradStore grads;
  backward(toy::dot(p, g), grads);
  optim::clip_grad_value(grads, std::vector{p}, 2);
  for (Index i = 0; i < n; ++i) {
    const double got = grads[p].at(i), x = 0.25 * static_cast<double>(i - 18);
    if (i == 3)
      EXPECT_TRUE(std::isnan(got));
    else
      EXPECT_EQ(got, x < -2 ? -2 : x > 2 ? 2 : x) << i;
  }
  EXPECT_EQ(message_of<ValueError>([&] { optim::clip_grad_value(grads, std::vector{p}, -1); }),
            "clip_grad_value: bad limit; got -1; expected limit >= 0");
}

}  // namespace
