// Trains a network of three layers, 784-256-128-10, on Fashion-MNIST.
#include <cinttypes>
#include <cstdio>
#include <exception>
#include <string>

#include <CLI/CLI.hpp>

#include <wengert/wengert.hpp>

#include "../common/checksum.hpp"
#include "../common/evaluate.hpp"
#include "../common/fashion_mnist.hpp"
#include "../common/time_table.hpp"
#include "../common/training_log.hpp"

namespace wg = wengert;
using example::Phase;

namespace {

int run(const std::string& folder, const example::RunOptions& options) {
  wg::set_num_threads(options.threads);
  const wg::data::Mnist<float> data = example::load_fashion_mnist(folder);

  wg::Generator gen(options.seed);
  wg::nn::Sequential model{wg::nn::Flatten(), wg::nn::Linear<float>(784, 256, gen),
                           wg::nn::ReLU(),    wg::nn::Linear<float>(256, 128, gen),
                           wg::nn::ReLU(),    wg::nn::Linear<float>(128, 10, gen)};
  wg::optim::Adam<float> opt(model.parameters(), {.lr = options.lr});
  wg::GradStore grads(model.parameters());
  wg::data::Loader loader(data.train, {.batch = options.batch, .seed = options.seed});
  if (!options.quiet) {
    std::puts(model.summary(data.test.range(0, 1).x).c_str());
    std::printf("%s, %d threads; %lld images to train on, %lld to test on\n\n", wg::simd_name(),
                options.threads, static_cast<long long>(data.train.size()),
                static_cast<long long>(data.test.size()));
  }

  example::TrainingLog log("mlp", options, loader.samples(), "images");
  example::TimeTable times;
  while (log.begin_epoch()) {
    times.start();
    for (const auto& [x, y] : loader) {
      times.lap(Phase::data);
      const wg::Tensor<float> loss = wg::cross_entropy(model(x), y);
      times.lap(Phase::forward);
      wg::backward(loss, grads);
      times.lap(Phase::backward);
      opt.step(grads);
      grads.zero();
      times.lap(Phase::optimizer);
      if (!log.step(loss.item(), x.dim(0), opt.lr())) break;
      times.lap(Phase::rest);
    }
    log.end_epoch(example::evaluate(model, data.test, 1000, [](const auto& x) { return x; }));
    times.lap(Phase::rest);
  }

  if (!options.quiet) std::printf("\n%s\n", times.text(log.steps()).c_str());
  std::printf("checksum of the weights: %016" PRIx64 "\n", example::checksum(model.state()));
  return log.finish();
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Trains a network of three layers, 784-256-128-10, on Fashion-MNIST with Adam."};
  std::string folder = example::fashion_mnist_folder;
  example::RunOptions options;
  options.epochs = 3;
  options.csv = "mlp.csv";
  options.plot = "mlp.png";
  app.add_option("--data", folder, "folder of the four IDX files, plain or .gz")
      ->check(example::RunOptions::path())
      ->capture_default_str();
  options.add_to(app);
  CLI11_PARSE(app, argc, argv);
  try {
    return run(folder, options);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "mlp: %s\n", e.what());
    return 1;
  }
}
