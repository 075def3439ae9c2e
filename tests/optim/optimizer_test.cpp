// Optimizers: hand-derived steps, groups, parameters that are skipped, versions, state, refused arguments.

#include <cmath>

#include <gtest/gtest.h>

#include <wengert/optim/optim.hpp>

#include "support/errors.hpp"
#include "support/toy.hpp"

using namespace wengert;

namespace {

Tensor<double> leaf(const Shape& shape, std::initializer_list<double> values) {
  Tensor<double> x(shape, values);
  x.requires_grad(true);
  return x;
}

/// Leaves `g` as the gradient of p.
void give(GradStore& grads, const Tensor<double>& p, std::initializer_list<double> g) {
  backward(toy::dot(p, Tensor<double>(p.shape(), g)), grads);
}

TEST(Sgd, OneStepByHand) {
  auto p = leaf({2}, {1, -2});
  GradStore grads;
  give(grads, p, {0.5, 4});
  optim::Sgd<double> opt({p}, {.lr = 0.1});
  opt.step(grads);
  EXPECT_DOUBLE_EQ(p.at(0), 0.95);
  EXPECT_DOUBLE_EQ(p.at(1), -2.4);
}

TEST(Sgd, FirstMomentumStepIsNotDampened) {
  auto p = leaf({1}, {1});
  GradStore grads;
  optim::Sgd<double> opt({p}, {.lr = 1, .momentum = 0.5, .dampening = 0.75});
  give(grads, p, {2});
  opt.step(grads);  // b = 2
  EXPECT_DOUBLE_EQ(p.item(), -1);
  opt.step(grads);  // b = 0.5 * 2 + 0.25 * 2 = 1.5
  EXPECT_DOUBLE_EQ(p.item(), -2.5);
}

TEST(Adam, FirstStepIsLrTimesSign) {
  auto p = leaf({3}, {1, 1, 1});
  GradStore grads;
  give(grads, p, {5, -1e-3, 0});
  optim::Adam<double> opt({p}, {.lr = 0.1, .eps = 0});
  // 0 / 0 where the gradient is 0 and eps is 0, as in libtorch.
  opt.step(grads);
  EXPECT_NEAR(p.at(0), 0.9, 1e-12);
  EXPECT_NEAR(p.at(1), 1.1, 1e-12);
  EXPECT_TRUE(std::isnan(p.at(2)));
}

TEST(AdamW, DecayShrinksTheParameterFirst) {
  auto p = leaf({1}, {4});
  GradStore grads;
  give(grads, p, {3});
  optim::AdamW<double> opt({p}, {.lr = 0.5, .eps = 0, .weight_decay = 0.25});
  opt.step(grads);  // 4 * (1 - 0.125) - 0.5
  EXPECT_NEAR(p.item(), 3.0, 1e-12);
}

TEST(Optimizer, DefaultsArePyTorchs) {
  auto p = leaf({1}, {1});
  const optim::AdamW<double> w({p});
  EXPECT_EQ(w.options().lr, 1e-3);
  EXPECT_EQ(w.options().weight_decay, 1e-2);
  EXPECT_EQ(w.options().eps, 1e-8);
  EXPECT_EQ(w.options().betas, (std::array{0.9, 0.999}));
  EXPECT_EQ(optim::Adam<double>({p}).options().weight_decay, 0);
}

TEST(Optimizer, ParametersThatNoBackwardReachedAreLeftAlone) {
  auto p = leaf({1}, {1}), q = leaf({1}, {1});
  GradStore grads(std::vector{p, q});
  optim::Adam<double> opt({p, q}, {.lr = 0.1});
  give(grads, p, {1});
  give(grads, q, {1});
  opt.step(grads);
  grads.zero();
  const double before = p.item();
  give(grads, q, {1});
  opt.step(grads);  // p has momentum, but no gradient
  EXPECT_EQ(p.item(), before);
  EXPECT_EQ(opt.state()[0].tensor.item(), 1);
  EXPECT_EQ(opt.state()[3].tensor.item(), 2);
  EXPECT_EQ(opt.steps(), 2);
}

TEST(Optimizer, AWriteRaisesTheVersionOnlyWhereItWrites) {
  auto p = leaf({2}, {1, 1}), q = leaf({2}, {1, 1});
  GradStore grads;
  give(grads, p, {1, 1});
  optim::Sgd<double> opt({p, q});
  const auto saved = toy::mul(p, q);
  opt.step(grads);
  EXPECT_EQ(p.version(), 1u);
  EXPECT_EQ(q.version(), 0u);
  EXPECT_EQ(message_of<TapeError>([&] { backward(saved, saved.detach(), grads); }),
            "backward: a tensor that toy_mul saved was written in place since; shape is (2), version is 1; "
            "expected version 0; write to a clone, or after backward");
}

TEST(Optimizer, GroupsHaveTheirOwnOptions) {
  auto a = leaf({1}, {1}), b = leaf({1}, {1}), c = leaf({1}, {1});
  GradStore grads;
  for (const auto& p : {a, b, c}) give(grads, p, {1});
  optim::Sgd<double> opt({{{a, b}, {.lr = 0.5}}, {{c}, {.lr = 0.25, .momentum = 0.9}}});
  opt.step(grads);
  EXPECT_EQ(a.item(), 0.5);
  EXPECT_EQ(b.item(), 0.5);
  EXPECT_EQ(c.item(), 0.75);
  EXPECT_EQ(opt.groups(), 2);
  EXPECT_EQ(opt.parameters().size(), 3u);
  opt.set_lr(1, 1.0);
  EXPECT_EQ(opt.lr(0), 0.5);
  EXPECT_EQ(opt.lr(1), 1.0);
  opt.set_lr(2.0);
  EXPECT_EQ(opt.lr(0), 2.0);
  EXPECT_EQ(opt.lr(1), 2.0);
  opt.step(grads);
  EXPECT_EQ(a.item(), -1.5);
  EXPECT_DOUBLE_EQ(c.item(), 0.75 - 2 * 1.9);
}

TEST(Optimizer, GroupsMayDifferInAmsgrad) {
  auto a = leaf({1}, {1}), b = leaf({1}, {1});
  optim::AdamW<double> opt({{{a}, {.amsgrad = true}}, {{b}, {}}});
  std::vector<std::string> names;
  for (const auto& s : opt.state()) names.push_back(s.name);
  EXPECT_EQ(names, (std::vector<std::string>{"0.step", "0.exp_avg", "0.exp_avg_sq", "0.max_exp_avg_sq",
                                             "1.step", "1.exp_avg", "1.exp_avg_sq"}));
}

TEST(Optimizer, EmptyParametersAndRankZero) {
  auto none = leaf({0, 3}, {}), one = leaf({}, {2});
  GradStore grads;
  give(grads, none, {});
  give(grads, one, {1});
  optim::AdamW<double> opt({none, one}, {.lr = 0.5, .weight_decay = 0});
  opt.step(grads);
  EXPECT_NEAR(one.item(), 1.5, 1e-7);
}

TEST(Optimizer, StateGoesOnWhereItWasSaved) {
  const auto run = [](int before, int after) {
    auto p = leaf({3}, {1, 2, 3});
    GradStore grads;
    auto opt = std::make_unique<optim::AdamW<double>>(std::vector{p}, optim::AdamWOptions{.amsgrad = true});
    for (int t = 0; t < before + after; ++t) {
      if (t == before) {
        std::vector<NamedTensor<double>> saved;
        for (const auto& s : opt->state()) saved.push_back({s.name, s.tensor.packed_copy()});
        std::swap(saved.front(), saved.back());  // names count, order does not
        opt = std::make_unique<optim::AdamW<double>>(std::vector{p}, optim::AdamWOptions{.amsgrad = true});
        opt->load_state(saved);
        EXPECT_EQ(opt->steps(), before);
      }
      give(grads, p, {1.0 + t, -1, 0.5 * t});
      opt->step(grads);
      grads.zero();
    }
    return p.to_vector();
  };
  EXPECT_EQ(run(3, 4), run(0, 7));
}

TEST(Optimizer, RefusesStateOfOtherParameters) {
  auto p = leaf({3}, {1, 2, 3}), q = leaf({2}, {1, 2});
  optim::Sgd<double> a({p}, {.momentum = 0.9}), b({q}, {.momentum = 0.9}), plain({p});
  EXPECT_EQ(
      message_of<ShapeError>([&] { a.load_state(b.state()); }),
      "load_state: shapes differ for 0.momentum_buffer; given is (2), own is (3); expected equal shapes");
  EXPECT_EQ(message_of<ValueError>([&] { a.load_state(plain.state()); }),
            "load_state: names differ; missing: 0.momentum_buffer; expected the 2 names of state()");
  EXPECT_EQ(message_of<ValueError>([&] { plain.load_state(a.state()); }),
            "load_state: names differ; unexpected: 0.momentum_buffer; expected the 1 names of state()");
  auto twice = a.state();
  twice.push_back(twice.front());
  EXPECT_EQ(message_of<ValueError>([&] { a.load_state(twice); }),
            "load_state: names differ; given twice: 0.step; expected the 2 names of state()");
  auto wrong = a.state();
  *wrong[0].tensor.mutable_data() = -1;
  EXPECT_EQ(message_of<ValueError>([&] { a.load_state(wrong); }),
            "load_state: 0.step is no number of steps; it is -1; expected a whole number >= 0");
  *wrong[0].tensor.mutable_data() = 1.5;
  EXPECT_EQ(message_of<ValueError>([&] { a.load_state(wrong); }),
            "load_state: 0.step is no number of steps; it is 1.5; expected a whole number >= 0");
}

TEST(Optimizer, RefusesWrongParameters) {
  auto p = leaf({2}, {1, 2}), q = leaf({2, 2}, {1, 2, 3, 4});
  const Tensor<double> constant({2}, {1, 2});
  using O = optim::Sgd<double>;
  EXPECT_EQ(message_of<ValueError>([&] { O(std::vector<Tensor<double>>{}); }),
            "sgd: no parameters; expected at least one");
  EXPECT_EQ(message_of<ValueError>([&] {
              O({p, constant});
            }),
            "sgd: parameter 1 is no leaf; shape is (2); expected a tensor with requires_grad(true)");
  EXPECT_EQ(message_of<ValueError>([&] { O({toy::scale(p, 2.0)}); }),
            "sgd: parameter 0 is no leaf; shape is (2); expected a tensor with requires_grad(true)");
  EXPECT_EQ(message_of<ValueError>([&] {
              O({q, p, Tensor<double>(q)});
            }),
            "sgd: parameters 0 and 2 are the same; shape is (2, 2); expected each parameter once");
  EXPECT_EQ(message_of<ValueError>([&] {
              O({{{p}, {}}, {{p}, {}}});
            }),
            "sgd: parameters 0 and 1 are the same; shape is (2); expected each parameter once");
  Tensor<double> turned(q.buffer(), {2, 2}, {1, 2}, 0);
  turned.requires_grad(true);
  EXPECT_EQ(
      message_of<ShapeError>([&] { O({turned}); }),
      "sgd: parameter 0 is not contiguous; shape is (2, 2), strides are (1, 2); expected contiguous(x)");
}

template <class O, class Options>
std::string refused(const Options& options) {
  return message_of<ValueError>([&] { O({leaf({1}, {1})}, options); });
}

TEST(Optimizer, RefusesWrongOptions) {
  using Sgd = optim::Sgd<double>;
  using Adam = optim::Adam<double>;
  using AdamW = optim::AdamW<double>;
  const double nan = std::nan("");
  EXPECT_EQ(refused<Sgd>(optim::SgdOptions{.lr = -1}), "sgd: bad lr; got -1; expected a finite number >= 0");
  EXPECT_EQ(refused<Sgd>(optim::SgdOptions{.momentum = -0.5}),
            "sgd: bad momentum; got -0.5; expected a finite number >= 0");
  EXPECT_EQ(refused<Sgd>(optim::SgdOptions{.weight_decay = HUGE_VAL}),
            "sgd: bad weight_decay; got inf; expected a finite number >= 0");
  EXPECT_EQ(refused<Sgd>(optim::SgdOptions{.dampening = nan}),
            "sgd: bad dampening; got nan; expected a finite number");
  EXPECT_EQ(
      refused<Sgd>(optim::SgdOptions{.nesterov = true}),
      "sgd: nesterov does not fit; momentum is 0, dampening is 0; expected momentum > 0 and dampening == 0");
  EXPECT_EQ(refused<Adam>(optim::AdamOptions{.lr = nan}),
            "adam: bad lr; got nan; expected a finite number >= 0");
  EXPECT_EQ(refused<Adam>(optim::AdamOptions{.betas = {1, 0.999}}),
            "adam: bad betas[0]; got 1; expected 0 <= betas[0] < 1");
  EXPECT_EQ(refused<AdamW>(optim::AdamWOptions{.betas = {0.9, -0.1}}),
            "adamw: bad betas[1]; got -0.1; expected 0 <= betas[1] < 1");
  EXPECT_EQ(refused<AdamW>(optim::AdamWOptions{.eps = -1}),
            "adamw: bad eps; got -1; expected a finite number >= 0");
  AdamW opt({leaf({1}, {1})});
  EXPECT_EQ(message_of<ValueError>([&] { opt.set_lr(-2); }),
            "adamw: bad lr; got -2; expected a finite number >= 0");
  EXPECT_EQ(opt.lr(), 1e-3);
  EXPECT_EQ(message_of<IndexError>([&] { opt.set_lr(1, 0.1); }),
            "adamw: group 1 is out of range; expected 0..0");
}

TEST(Optimizer, FloatsTakeFloatOptions) {
  Tensor<float> p({2}, {1, 2});
  p.requires_grad(true);
  GradStore grads;
  backward(toy::dot(p, Tensor<float>({2}, {1, -1})), grads);
  optim::Adam<float> opt({p}, {.lr = 0.5f});
  opt.step(grads);
  EXPECT_NEAR(p.at(0), 0.5f, 1e-6);
  EXPECT_NEAR(p.at(1), 2.5f, 1e-6);
}

}  // namespace
