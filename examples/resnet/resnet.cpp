// Trains a residual network of 20, 32 or 56 layers on Fashion-MNIST or CIFAR-10.
#include <cinttypes>
#include <cstdio>
#include <exception>
#include <string>

#include <CLI/CLI.hpp>

#include <wengert/models/resnet.hpp>
#include <wengert/tools/image_grid.hpp>
#include <wengert/wengert.hpp>

#include "../common/checksum.hpp"
#include "../common/evaluate.hpp"
#include "../common/time_table.hpp"
#include "../common/training_log.hpp"
#include "images.hpp"

namespace wg = wengert;
using example::Phase;

namespace {

constexpr wg::Index test_batch = 250;

struct ResNetRun : example::RunOptions {
  std::string data = example::fashion_mnist_folder, cifar;  // folders
  int layers = 20;
  double weight_decay = 5e-4, smoothing = 0.1, warmup = 0.15;
  wg::Index limit = 0;
  std::string grid = "resnet_images.png";
  bool exact = false, plain = false, summary = false;

  ResNetRun() {
    epochs = 4;
    lr = 0.1;
    csv = "resnet.csv";
    plot = "resnet.png";
  }
  void add_to(CLI::App& app) {
    app.add_option("--data", data, "folder of Fashion-MNIST's four IDX files, plain or .gz")
        ->check(path())
        ->capture_default_str();
    app.add_option("--cifar", cifar, "folder of CIFAR-10's binary version, to train on that")->check(path());
    app.add_option("--model", layers, "layers of the network: 20, 32 or 56")
        ->check(CLI::IsMember({20, 32, 56}).description(""))
        ->capture_default_str();
    RunOptions::add_to(app);
    const auto share = [&](const char* name, double& value, const char* text) {
      app.add_option(name, value, text)->check(CLI::Range(0.0, 1.0).description(""))->capture_default_str();
    };
    share("--weight-decay", weight_decay, "adds this share of each weight to its gradient");
    share("--smoothing", smoothing, "share of a label spread over all classes");
    share("--warmup", warmup, "share of the steps in which the learning rate rises");
    app.add_option("--limit", limit, "batches an epoch, and of a test; 0 for all")
        ->check(CLI::Range(wg::Index{0}, wg::Index{1'000'000}).description(""))
        ->capture_default_str();
    app.add_option("--grid", grid, "picture of test images and their predictions; '' for none")
        ->check(path())
        ->capture_default_str();
    app.add_flag("--plain", plain, "no random crops and mirror images");
    app.add_flag("--exact", exact, "only the most accurate algorithms of convolution");
    app.add_flag("--summary", summary, "prints the table of layers, and ends");
  }
};

auto make_model(const ResNetRun& o, wg::Index channels, wg::Generator& gen) {
  const wg::models::SmallResNetOptions options{.channels = channels};
  return o.layers == 20   ? wg::models::resnet20<float>(gen, options)
         : o.layers == 32 ? wg::models::resnet32<float>(gen, options)
                          : wg::models::resnet56<float>(gen, options);
}

int print_summary(const ResNetRun& o) {
  const bool colour = !o.cifar.empty();
  wg::Generator gen(o.seed);
  auto model = make_model(o, colour ? 3 : 1, gen);
  std::fputs(
      model.summary(colour ? wg::zeros<float>({1, 32, 32, 3}) : wg::zeros<float>({1, 28, 28, 1})).c_str(),
      stdout);
  return example::output_is_written("resnet") ? 0 : 1;
}

/// Draws the first test images with what the model takes them for. False when that failed.
bool draw_grid(auto& model, const example::ImageSet& images, const ResNetRun& o,
               const example::TrainingLog& log) {
  if (o.grid.empty() || (!o.plot.empty() && !wg::tools::have_gnuplot())) return true;  // the log has told why
  constexpr wg::Index most = 48;
  const auto [x, y] = images.test.range(0, std::min(most, images.test.size()));
  const wg::NoGrad no_grad;
  model.eval();
  const wg::Tensor<std::int64_t> predicted =
      argmax(model(wg::data::normalize<float>(x, images.statistics)), 1);
  model.train();
  const wg::Index right = sum(wg::cast<wg::Index>(predicted == y)).item();
  const std::string fault = wg::tools::image_grid_png(
      o.grid, x, predicted, y, images.classes,
      {.title = images.name + ", ResNet-" + std::to_string(o.layers) + ": " + std::to_string(right) + " of " +
                std::to_string(y.size()) + " right"});
  if (!fault.empty())
    log.complain("no picture of test images: " + fault);
  else
    std::printf("test images: %s\n", o.grid.c_str());
  return fault.empty();
}

int run(const ResNetRun& o) {
  wg::set_num_threads(o.threads);
  wg::set_exact_convolutions(o.exact);
  if (o.summary) return print_summary(o);
  const example::ImageSet images =
      o.cifar.empty() ? example::load_fashion_images(o.data) : example::load_cifar_images(o.cifar);
  const auto input = [&](const auto& x) { return wg::data::normalize<float>(x, images.statistics); };

  wg::data::Loader loader(images.train, {.batch = o.batch, .drop_last = true, .seed = o.seed});
  const wg::Index batches = o.limit > 0 ? std::min(o.limit, loader.batches()) : loader.batches();
  if (batches == 0)
    wg::fail<wg::ValueError>("--batch", "there are fewer images than a batch holds; images are ",
                             images.train.size(), ", batch is ", o.batch, "; expected --batch <= images");
  const wg::Index tested =
      o.limit > 0 ? std::min(o.limit * test_batch, images.test.size()) : images.test.size();
  const auto test_part = images.test.range(0, tested);
  const example::ByteImages test(test_part.x, test_part.y);

  wg::Generator gen(o.seed);
  auto model = make_model(o, images.train.x().dim(3), gen);
  wg::Generator cuts = gen.split(0);  // of the crops and mirror images
  wg::optim::Sgd<float> opt(model.parameters(),
                            {.lr = o.lr, .momentum = 0.9, .weight_decay = o.weight_decay, .nesterov = true});
  wg::GradStore grads(model.parameters());
  const wg::Index steps = o.epochs * batches;
  const auto rise = std::min(static_cast<wg::Index>(o.warmup * static_cast<double>(steps)), steps - 1);
  const wg::optim::CosineSchedule schedule(
      {.lr = o.lr, .steps = steps, .warmup = {.steps = rise, .start = 0.05}});
  if (!o.quiet)
    std::printf(
        "ResNet-%d, %lld parameters; %s, %d threads%s\n%s: %lld images to train on, %lld to test on\n\n",
        o.layers, static_cast<long long>(model.parameter_count()), wg::simd_name(), o.threads,
        o.exact ? ", exact convolutions" : "", images.name.c_str(), static_cast<long long>(batches * o.batch),
        static_cast<long long>(tested));

  const wg::data::AugmentOptions cut{.padding = o.plain ? 0 : images.padding, .flip = !o.plain};
  example::TrainingLog log("resnet", o, batches * o.batch, "images");
  example::TimeTable times;
  while (log.begin_epoch()) {
    times.start();
    wg::Index left = batches;
    for (const auto& [pixels, y] : loader) {
      const wg::Tensor<float> x = wg::data::augment<float>(pixels, cut, images.statistics, cuts);
      times.lap(Phase::data);
      const wg::Tensor<float> loss = wg::cross_entropy(model(x), y, {.label_smoothing = o.smoothing});
      times.lap(Phase::forward);
      wg::backward(loss, grads);
      times.lap(Phase::backward);
      opt.set_lr(schedule(log.steps()));
      opt.step(grads);
      grads.zero();
      times.lap(Phase::optimizer);
      if (!log.step(loss.item(), x.dim(0), opt.lr()) || --left == 0) break;
      times.lap(Phase::rest);
    }
    log.end_epoch(example::evaluate(model, test, test_batch, input));
    times.lap(Phase::rest);
  }

  if (!o.quiet) std::printf("\n%s\n", times.text(log.steps()).c_str());
  std::printf("checksum of the weights: %016" PRIx64 "\n", example::checksum(model.state()));
  const bool drawn = draw_grid(model, images, o, log);
  const int code = log.finish();
  return code == 0 && !drawn ? 1 : code;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{
      "Trains a residual network on Fashion-MNIST, or on CIFAR-10, with SGD, random crops and mirror "
      "images."};
  ResNetRun options;
  options.add_to(app);
  CLI11_PARSE(app, argc, argv);
  try {
    return run(options);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "resnet: %s\n", e.what());
    return 1;
  }
}
