// libtorch as the oracle of training: 20 steps of every optimizer, and of the two example models from the
// same weights, in double, where only the order of sums differs.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <wengert/wengert.hpp>

namespace {

namespace wg = wengert;
using Ours = wg::Tensor<double>;
using Theirs = torch::Tensor;
constexpr int steps = 20;
constexpr double tolerance = 1e-9;  // of a sum of some thousand products in double, through 20 steps

Theirs to_torch(const Ours& x) {
  const std::vector<std::int64_t> shape(x.shape().begin(), x.shape().end());
  return torch::tensor(x.to_vector(), torch::kDouble).reshape(shape).clone();
}

void expect_equal(const Ours& ours, const Theirs& theirs, const std::string& what) {
  const Theirs flat = theirs.detach().contiguous();
  const std::vector<double> got = ours.to_vector();
  ASSERT_EQ(static_cast<std::int64_t>(got.size()), flat.numel()) << what;
  const double* const expected = flat.data_ptr<double>();
  for (std::size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(got[i], expected[i], tolerance * (1 + std::abs(expected[i]))) << what << ", element " << i;
}

/// Two parameters under a loss with a curved valley; the second is left out of every third step.
template <class Optimizer, class TorchOptimizer>
void compare_steps(Optimizer make_ours, TorchOptimizer make_theirs) {
  wg::Generator gen(5);
  Ours a = wg::normal<double>({4, 3}, gen), b = wg::normal<double>({3}, gen);
  Theirs ta = to_torch(a).requires_grad_(), tb = to_torch(b).requires_grad_();
  a.requires_grad(true);
  b.requires_grad(true);
  auto ours = make_ours(std::vector<Ours>{a, b});
  auto theirs = make_theirs(std::vector<Theirs>{ta, tb});
  wg::GradStore grads;
  for (int s = 0; s < steps; ++s) {
    const bool both = s % 3 != 2;
    const Ours y = both ? tanh(a * b) : a * 1.0;
    wg::backward(sum(square(y) - 0.3 * y), grads);
    ours.step(grads);
    grads.zero();

    const Theirs ty = both ? torch::tanh(ta * tb) : ta * 1.0;
    for (Theirs* t : {&ta, &tb}) t->mutable_grad().reset();
    (ty.square() - 0.3 * ty).sum().backward();
    theirs.step();
    expect_equal(a, ta, "a after step " + std::to_string(s));
    expect_equal(b, tb, "b after step " + std::to_string(s));
  }
}

template <class Theirs_, class Options>
auto torch_optimizer(Options options) {
  return [options](std::vector<Theirs> p) { return Theirs_(std::move(p), options); };
}

TEST(OptimizerOracle, Sgd) {
  compare_steps([](auto p) { return wg::optim::Sgd<double>(p, {.lr = 0.1}); },
                torch_optimizer<torch::optim::SGD>(torch::optim::SGDOptions(0.1)));
}
TEST(OptimizerOracle, SgdWithMomentumAndWeightDecay) {
  compare_steps(
      [](auto p) { return wg::optim::Sgd<double>(p, {.lr = 0.05, .momentum = 0.9, .weight_decay = 0.01}); },
      torch_optimizer<torch::optim::SGD>(torch::optim::SGDOptions(0.05).momentum(0.9).weight_decay(0.01)));
}
TEST(OptimizerOracle, SgdWithNesterov) {
  compare_steps(
      [](auto p) { return wg::optim::Sgd<double>(p, {.lr = 0.05, .momentum = 0.8, .nesterov = true}); },
      torch_optimizer<torch::optim::SGD>(torch::optim::SGDOptions(0.05).momentum(0.8).nesterov(true)));
}
TEST(OptimizerOracle, SgdWithDampening) {
  compare_steps(
      [](auto p) { return wg::optim::Sgd<double>(p, {.lr = 0.05, .momentum = 0.8, .dampening = 0.3}); },
      torch_optimizer<torch::optim::SGD>(torch::optim::SGDOptions(0.05).momentum(0.8).dampening(0.3)));
}
TEST(OptimizerOracle, Adam) {
  compare_steps([](auto p) { return wg::optim::Adam<double>(p, {.lr = 0.02, .weight_decay = 0.1}); },
                torch_optimizer<torch::optim::Adam>(torch::optim::AdamOptions(0.02).weight_decay(0.1)));
}
TEST(OptimizerOracle, AdamW) {
  compare_steps([](auto p) { return wg::optim::AdamW<double>(p, {.lr = 0.02, .weight_decay = 0.1}); },
                torch_optimizer<torch::optim::AdamW>(torch::optim::AdamWOptions(0.02).weight_decay(0.1)));
}
TEST(OptimizerOracle, AdamWWithAmsgrad) {
  compare_steps([](auto p) { return wg::optim::AdamW<double>(p, {.lr = 0.02, .amsgrad = true}); },
                torch_optimizer<torch::optim::AdamW>(torch::optim::AdamWOptions(0.02).amsgrad(true)));
}

struct Mlp : wg::nn::Module<Mlp, double> {
  wg::Generator gen{7};
  wg::nn::Linear<double> hidden{784, 256, gen}, middle{256, 128, gen}, out{128, 10, gen};
  void members(auto& list) { list("hidden", hidden, "middle", middle, "out", out); }
  Ours operator()(const Ours& x) { return out(middle.with_relu(hidden.with_relu(x))); }
};

TEST(ModelOracle, MlpFollowsLibtorch) {
  constexpr std::int64_t batch = 16;
  Mlp model;
  std::vector<Theirs> p;
  for (const auto& t : model.named_parameters()) p.push_back(to_torch(t.tensor.detach()).requires_grad_());
  wg::Generator gen(3);
  const Ours x = wg::uniform<double>({batch, 784}, gen);
  std::vector<std::int64_t> label(batch);
  for (auto& l : label) l = static_cast<std::int64_t>(gen.below(10));
  const wg::Tensor<std::int64_t> labels({batch}, label);
  const Theirs tx = to_torch(x), tlabels = torch::tensor(label, torch::kLong);

  wg::optim::Adam<double> ours(model.parameters(), {.lr = 1e-3});
  torch::optim::Adam theirs(p, torch::optim::AdamOptions(1e-3));
  wg::GradStore grads;
  for (int s = 0; s < steps; ++s) {
    const Ours loss = cross_entropy(model(x), labels);
    wg::backward(loss, grads);
    ours.step(grads);
    grads.zero();
    const Theirs h = torch::relu(torch::linear(torch::relu(torch::linear(tx, p[0], p[1])), p[2], p[3]));
    const Theirs tloss = torch::cross_entropy_loss(torch::linear(h, p[4], p[5]), tlabels);
    for (Theirs& t : p) t.mutable_grad().reset();
    tloss.backward();
    theirs.step();
    ASSERT_NEAR(loss.item(), tloss.item<double>(), tolerance) << "loss of step " << s;
  }
  const auto named = model.named_parameters();
  for (std::size_t i = 0; i < named.size(); ++i) expect_equal(named[i].tensor.detach(), p[i], named[i].name);
}

// The network of the candle report.
struct Heroes : wg::nn::Module<Heroes, double> {
  wg::Generator gen{11};
  wg::nn::Embedding<double> embedding{100, 32, gen};
  wg::nn::Linear<double> team{160, 128, gen, {.bias = false}};
  wg::nn::BatchNorm1d<double> norm1{128};
  wg::nn::Linear<double> match{256, 128, gen, {.bias = false}};
  wg::nn::BatchNorm1d<double> norm2{128};
  wg::nn::Linear<double> out{128, 1, gen};
  void members(auto& list) {
    list("embedding", embedding, "team", team, "norm1", norm1, "match", match, "norm2", norm2, "out", out);
  }
  Ours operator()(const wg::Tensor<std::int64_t>& ids) {
    const Ours h = tanh(norm1(team(reshape(embedding(ids), {-1, 2, 160}))));
    return out(tanh(norm2(match(reshape(h, {-1, 256})))));
  }
};

TEST(ModelOracle, HeroesFollowLibtorch) {
  constexpr std::int64_t batch = 24;
  Heroes model;
  std::vector<Theirs> p;
  for (const auto& t : model.named_parameters()) p.push_back(to_torch(t.tensor.detach()).requires_grad_());
  std::vector<Theirs> running{torch::zeros({128}, torch::kDouble), torch::ones({128}, torch::kDouble),
                              torch::zeros({128}, torch::kDouble), torch::ones({128}, torch::kDouble)};
  wg::Generator gen(4);
  std::vector<std::int64_t> id(batch * 10), win(batch);
  for (auto& i : id) i = static_cast<std::int64_t>(gen.below(100));
  for (auto& w : win) w = static_cast<std::int64_t>(gen.below(2));
  const wg::Tensor<std::int64_t> ids({batch, 10}, id);
  const Ours wins = wg::cast<double>(wg::Tensor<std::int64_t>({batch, 1}, win));
  const Theirs tids = torch::tensor(id, torch::kLong).reshape({batch, 10}), twins = to_torch(wins);

  wg::optim::AdamW<double> ours(model.parameters(), {.lr = 0.01});
  torch::optim::AdamW theirs(p, torch::optim::AdamWOptions(0.01));
  wg::GradStore grads;
  for (int s = 0; s < steps; ++s) {
    const Ours loss = bce_with_logits(model(ids), wins);
    wg::backward(loss, grads);
    ours.step(grads);
    grads.zero();

    // 0 embedding, 1 team, 2 3 norm1, 4 match, 5 6 norm2, 7 8 out
    Theirs h = torch::linear(torch::embedding(p[0], tids).view({batch * 2, 160}), p[1]);
    h = torch::tanh(torch::batch_norm(h, p[2], p[3], running[0], running[1], true, 0.1, 1e-5, false));
    h = torch::linear(h.view({batch, 256}), p[4]);
    h = torch::tanh(torch::batch_norm(h, p[5], p[6], running[2], running[3], true, 0.1, 1e-5, false));
    const Theirs tloss = torch::binary_cross_entropy_with_logits(torch::linear(h, p[7], p[8]), twins);
    for (Theirs& t : p) t.mutable_grad().reset();
    tloss.backward();
    theirs.step();
    ASSERT_NEAR(loss.item(), tloss.item<double>(), 1e-8) << "loss of step " << s;
  }
  expect_equal(model.norm1.running_mean, running[0], "running mean 1");
  expect_equal(model.norm1.running_var, running[1], "running variance 1");
  expect_equal(model.norm2.running_var, running[3], "running variance 2");
}

}  // namespace
