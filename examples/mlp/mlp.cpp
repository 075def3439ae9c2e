// Trains a network of three layers, 784-256-128-10, on Fashion-MNIST.
#include <cinttypes>
#include <cstdio>
#include <exception>
#include <string>

#include <CLI/CLI.hpp>

#include <wengert/data/mnist.hpp>
#include <wengert/wengert.hpp>

#include "../common/checksum.hpp"
#include "../common/time_table.hpp"
#include "../common/training_log.hpp"

namespace wg = wengert;
using example::Phase;

namespace {

using Images = wg::data::Dataset<float, std::int64_t>;

wg::data::Mnist<float> load(const std::string& folder) {
  try {
    wg::data::Mnist<float> data = wg::data::read_mnist<float>(folder);
    for (const Images* part : {&data.train, &data.test})
      if (part->size() == 0 || part->x().dim(1) != 28 || part->x().dim(2) != 28)
        wg::fail<wg::IoError>("read_mnist", "wrong images in ", folder, "; shape is ", part->x().shape(),
                              "; expected 28 x 28 pixels");
    return data;
  } catch (const wg::IoError& e) {
    throw wg::IoError(e.what() +
                      std::string("\nFashion-MNIST is the package dataset-fashion-mnist of Debian and Ubuntu "
                                  "(apt install dataset-fashion-mnist);\n--data takes the folder of its four "
                                  "files from anywhere else"));
  }
}

/// Loss and accuracy on a data set, outside the tape.
example::Score test(auto& model, const Images& data) {
  const wg::NoGrad no_grad;
  constexpr wg::Index batch = 1000;
  double loss = 0;
  wg::Index right = 0;
  model.eval();
  for (wg::Index i = 0; i < data.size(); i += batch) {
    const auto [x, y] = data.range(i, std::min(i + batch, data.size()));
    const wg::Tensor<float> logits = model(x);
    loss += wg::cross_entropy(logits, y, {.reduction = wg::Reduction::sum}).item();
    right += wg::sum(wg::cast<wg::Index>(wg::argmax(logits, 1) == y)).item();
  }
  model.train();
  const auto n = static_cast<double>(data.size());
  return {loss / n, static_cast<double>(right) / n};
}

int run(const std::string& folder, const example::RunOptions& options) {
  wg::set_num_threads(options.threads);
  const wg::data::Mnist<float> data = load(folder);

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
    log.end_epoch(test(model, data.test));
    times.lap(Phase::rest);
  }

  if (!options.quiet) std::printf("\n%s\n", times.text(log.steps()).c_str());
  std::printf("checksum of the weights: %016" PRIx64 "\n", example::checksum(model.state()));
  return log.finish();
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Trains a network of three layers, 784-256-128-10, on Fashion-MNIST with Adam."};
  std::string folder = "/usr/share/datasets/fashion-mnist";
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
