// gradcheck finds what it must: wrong, missing and severed gradients, and nothing where all is well.
#include <gtest/gtest.h>

#include <wengert/check/gradcheck.hpp>

#include "support/toy.hpp"

using namespace wengert;

namespace {

Tensor<double> values(const Shape& shape) {
  Tensor<double> x(shape);
  for (Index i = 0; i < x.size(); ++i) x.fresh_data()[i] = 0.5 + 0.125 * static_cast<double>(i % 11);
  return x;
}

/// y = x * x whose rule is off by `error`, in the element `at` only, or everywhere for -1.
struct WrongSquareRule {
  static constexpr std::string_view name = "wrong_square";
  Saved<double> x;
  double error;
  Index at;
  auto saved() const { return std::tie(x); }
  void backward(Vjp& v) {
    const double* dy = v.dy<double>();
    const GradRef<double> dx = v.into<double>(0);
    for (Index i = 0; i < v.size(); ++i) {
      const double g = dy[i] * 2 * x.data()[i] * (at < 0 || at == i ? 1 + error : 1);
      dx.data[i] = dx.add ? dx.data[i] + g : g;
    }
  }
};
Tensor<double> wrong_square(const Tensor<double>& x, double error, Index at) {
  const Recorder rec("wrong_square", x);
  const Tensor<double> xc = x.packed();
  Tensor<double> y(x.shape());
  for (Index i = 0; i < y.size(); ++i) y.fresh_data()[i] = xc.data()[i] * xc.data()[i];
  if (rec) rec.record(y, WrongSquareRule{save(xc), error, at});
  return y;
}

TEST(Gradcheck, PassesRightGradients) {
  const auto report = gradcheck([](const auto& a, const auto& b) { return toy::mul(toy::mul(a, b), a); },
                                {values({3, 4}), values({3, 4})});
  EXPECT_TRUE(report.ok) << report.message;
  EXPECT_TRUE(report.message.empty());
  EXPECT_LE(report.worst_error, 1);
  EXPECT_TRUE(gradcheck([](const auto& x) { return wrong_square(x, 0, -1); }, values({500})));
  EXPECT_TRUE(
      gradcheck([](const auto& x) { return toy::dot(x, x.detach().packed_copy()); }, values(Shape())).ok ==
      false)
      << "the second use of x is severed";
}

TEST(Gradcheck, FindsAWrongElementOfASmallInput) {
  const auto report = gradcheck([](const auto& x) { return wrong_square(x, 1e-4, 5); }, values({7}));
  EXPECT_FALSE(report);
  EXPECT_EQ(report.message.substr(0, 76),
            "gradcheck: the gradient of input 0, shape (7), is wrong at element 5; expect");
  EXPECT_GT(report.worst_error, 10);
}

TEST(Gradcheck, FindsAWrongElementOfALargeInputByProjections) {
  const auto report = gradcheck([](const auto& x) { return wrong_square(x, 1e-2, 777); }, values({2000}));
  EXPECT_FALSE(report.ok);
  EXPECT_NE(report.message.find("is wrong at random direction"), std::string::npos) << report.message;
}

TEST(Gradcheck, NamesTheInputAndWhyNothingReachedIt) {
  const auto severed = gradcheck([](const auto& a, const auto& b) { return toy::mul(a, b.detach()); },
                                 {values({3}), values({3})});
  EXPECT_NE(severed.message.find("the gradient of input 1, shape (3), is wrong at element"),
            std::string::npos);
  EXPECT_NE(severed.message.find("got 0; no gradient reached this input"), std::string::npos)
      << severed.message;
  const auto unrecorded =
      gradcheck([](const auto& x) { return no_grad([&] { return toy::mul(x, x); }); }, values({3}));
  EXPECT_NE(unrecorded.message.find("got 0; f(x) was not recorded"), std::string::npos) << unrecorded.message;
}

TEST(Gradcheck, AcceptsInputsThatDoNotMatter) {
  EXPECT_TRUE(
      gradcheck([](const auto& a, const auto&) { return toy::mul(a, a); }, {values({3}), values({2})}));
  const Tensor<double> c = values({2});
  EXPECT_TRUE(gradcheck([&](const auto&) { return c; }, values({3})));
}

TEST(Gradcheck, TakesIntegerInputsByCapture) {
  const Tensor<Index> which({3}, {Index{2}, Index{0}, Index{2}});
  EXPECT_TRUE(gradcheck([&](const auto& x) { return toy::rows(x, which); }, values({4, 2})));
}

TEST(Gradcheck, RefusesFunctionsThatChangeOrAreNotFinite) {
  int calls = 0;
  const auto changing = gradcheck([&](const auto& x) { return toy::scale(x, 1.0 + calls++); }, values({3}));
  EXPECT_EQ(changing.message,
            "gradcheck: f gives another result when called again; expected a function of its arguments: make "
            "random "
            "generators inside f");
  const auto infinite = gradcheck([](const auto& x) { return toy::scale(x, 1e308 * 10); }, values({3}));
  EXPECT_EQ(infinite.message, "gradcheck: f(x) is not finite at element 0; expected finite values");
}

/// y = |x|, with slope 1 at and above 0.
struct AbsRule {
  static constexpr std::string_view name = "toy_abs";
  Saved<double> x;
  void backward(Vjp& v) {
    const GradRef<double> dx = v.into<double>(0);
    const double g = v.dy<double>()[0] * (*x.data() < 0 ? -1 : 1);
    *dx.data = dx.add ? *dx.data + g : g;
  }
};

TEST(Gradcheck, PointsAtKinks) {
  const auto abs = [](const Tensor<double>& x) {
    const Recorder rec("toy_abs", x);
    Tensor<double> y(x.shape());
    *y.fresh_data() = std::abs(*x.data());
    if (rec) rec.record(y, AbsRule{save(x)});
    return y;
  };
  EXPECT_TRUE(gradcheck(abs, Tensor<double>({1}, {0.5})));
  const auto report = gradcheck(abs, Tensor<double>({1}, {0.0}));
  EXPECT_NE(report.message.find("; a kink? the slopes before and after are "), std::string::npos)
      << report.message;
}

TEST(Gradcheck, LeavesInputsAndTheTapeAlone) {
  Tensor<double> x = values({3});
  x.requires_grad(true);
  const Tensor<double> outer = toy::scale(x, 2.0);
  const std::uint32_t version = x.version();
  EXPECT_TRUE(gradcheck([](const auto& v) { return toy::mul(v, v); }, x));
  EXPECT_EQ(x.version(), version);
  EXPECT_EQ(Tape::current().size(), 1U);
  GradStore grads;
  backward(outer, values({3}), grads);
  EXPECT_EQ(grads[x].to_vector()[0], 1.0);
}

}  // namespace
