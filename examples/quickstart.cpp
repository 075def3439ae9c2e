// Fits y = sin x with a small network, and shows what a tape holds.
#include <cstdio>
#include <vector>

#include <wengert/wengert.hpp>

#include "common/output.hpp"

namespace wg = wengert;

int main() {
  wg::Generator gen(1);
  const auto x = wg::uniform({256, 1}, gen, -3, 3), y = sin(x);

  wg::nn::Sequential model{wg::nn::Linear<float>(1, 32, gen), wg::nn::Tanh(),
                           wg::nn::Linear<float>(32, 1, gen)};
  wg::optim::Adam<float> opt(model.parameters(), {.lr = 0.02});
  wg::GradStore grads;  // owns the gradients' memory; every step reuses it

  for (int step = 0; step <= 1000; ++step) {
    const auto loss = wg::mse_loss(model(x), y);
    if (step % 200 == 0) std::printf("step %4d  loss %.6f\n", step, loss.item());
    wg::backward(loss, grads);  // adds into grads in place; the tape is clear again
    opt.step(grads);
    grads.zero();  // keeps the memory and touches none of it
  }

  {
    std::vector<wg::LeafName> names;
    for (const auto& p : model.named_parameters()) names.emplace_back(p.name, p.tensor);
    const auto loss = wg::mse_loss(model(x), y);
    std::printf("\nthe tape of one forward pass:\n%s\n", wg::print_tape(names).c_str());
  }

  const wg::NoGrad no_grad;
  const auto points = wg::linspace<float>(-3, 3, 7);
  const auto fitted = model(unsqueeze(points, 1));
  for (wg::Index i = 0; i < points.size(); ++i)
    std::printf("x %4.1f  sin x %7.4f  model %7.4f\n", points.at(i), sin(points).at(i), fitted.at(i, 0));
  return example::output_is_written("quickstart") ? 0 : 1;
}
