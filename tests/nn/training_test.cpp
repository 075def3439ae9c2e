// A network learns y = sin x, with modules and an optimizer; its steady-state step asks the heap for nothing.

#include <cmath>

#include <gtest/gtest.h>

#include <wengert/wengert.hpp>

#include "support/heap_counter.hpp"

using namespace wengert;

namespace {

struct Wave : nn::Module<Wave> {
  Generator gen{42};
  nn::Linear<float> in{1, 32, gen}, middle{32, 32, gen}, out{32, 1, gen};
  void members(auto& list) { list("in", in, "middle", middle, "out", out); }
  Tensor<float> operator()(const Tensor<float>& x) { return out(tanh(middle(tanh(in(x))))); }
};

float learn(Wave& model, int steps) {
  GradStore grads(model.parameters());
  optim::Adam<float> opt(model.parameters(), {.lr = 1e-2});
  const optim::CosineSchedule schedule({.lr = 1e-2, .steps = steps, .min_lr = 1e-4, .warmup = {.steps = 10}});
  const auto x = reshape(linspace<float>(-3, 3, 128), {128, 1});
  Tensor<float> y(x.shape());
  for (Index i = 0; i < y.size(); ++i) y.fresh_data()[i] = std::sin(x.data()[i]);
  float last = 0;
  for (int i = 0; i < steps; ++i) {
    const auto loss = mse_loss(model(x), y);
    last = loss.item();
    backward(loss, grads);
    optim::clip_grad_norm(grads, opt.parameters(), 1);
    opt.set_lr(schedule(i));
    opt.step(grads);
    grads.zero();
  }
  return last;
}

TEST(Training, LearnsTheSine) {
  Wave model;
  EXPECT_LT(learn(model, 500), 1e-4f);
  const auto y = model(Tensor<float>({1, 1}, {1.0f}));
  EXPECT_NEAR(y.item(), std::sin(1.0), 0.03);
}

TEST(Training, SameBitsAtAnyNumberOfThreads) {
  std::vector<std::vector<float>> weights;
  for (const int threads : {1, 2, 3}) {
    set_num_threads(threads);
    Wave model;
    learn(model, 20);
    weights.push_back(model.middle.weight.to_vector());
  }
  EXPECT_EQ(weights[0], weights[1]);
  EXPECT_EQ(weights[0], weights[2]);
}

TEST(Training, ASteadyStepAsksTheHeapForNothing) {
  Generator gen(1);
  nn::Sequential model{nn::Embedding<float>(100, 16, gen), nn::Flatten(), nn::Linear<float>(64, 32, gen),
                       nn::BatchNorm1d<float>(32),         nn::Tanh(),    nn::Dropout(0.1, gen),
                       nn::Linear<float>(32, 32, gen),     nn::ReLU(),    nn::LayerNorm<float>({32}),
                       nn::Linear<float>(32, 5, gen)};
  optim::AdamW<float> opt(model.parameters(), {.amsgrad = true});
  optim::Sgd<float> other(model.parameters(), {.momentum = 0.9});
  GradStore grads;
  const auto x = randint<Index>({48, 4}, gen, 0, 100), y = randint<Index>({48}, gen, 0, 5);
  const auto step = [&] {
    backward(cross_entropy(model(x), y), grads);
    optim::clip_grad_norm(grads, opt.parameters(), 0.5);
    optim::clip_grad_value(grads, opt.parameters(), 0.1);
    opt.set_lr(1e-3);
    opt.step(grads);
    other.step(grads);
    grads.zero();
  };
  for (int i = 0; i < 3; ++i) step();
  EXPECT_EQ(heap::requests_of([&] {
              for (int i = 0; i < 10; ++i) step();
            }),
            0u);
}

}  // namespace
