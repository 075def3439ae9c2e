// The gradient of a ResNet-18 at one image: what the first costs, what the tenth costs, and the memory.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <vector>

#include <CLI/CLI.hpp>
#include <sys/resource.h>

#include <wengert/models/resnet.hpp>
#include <wengert/wengert.hpp>

#include "common/options.hpp"
#include "common/output.hpp"

namespace wg = wengert;

namespace {

using Clock = std::chrono::steady_clock;

double milliseconds(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double, std::milli>(to - from).count();
}

/// The most memory that the process has held so far.
double peak_mib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;  // Linux counts in KiB
}

struct Cost {
  double forward = 0, backward = 0;  // ms
  double both() const { return forward + backward; }
};

Cost gradient_of_sum(auto& model, const wg::Tensor<float>& image, wg::GradStore& grads) {
  grads.zero();
  const auto start = Clock::now();
  const wg::Tensor<float> loss = sum(model(image));
  const auto middle = Clock::now();
  wg::backward(loss, grads);
  return {milliseconds(start, middle), milliseconds(middle, Clock::now())};
}

void row(const char* name, const Cost& c) {
  std::printf("%-14s %10.1f %10.1f %10.1f\n", name, c.forward, c.backward, c.both());
}

void run(wg::Index side, std::uint64_t seed) {
  constexpr int times = 10;
  constexpr double wanted = 1.5;  // first / tenth, at most
  wg::Generator gen(seed);
  const auto start = Clock::now();
  auto model = wg::models::resnet18<float>(gen);
  const wg::Tensor<float> image = wg::normal<float>({1, side, side, 3}, gen);
  wg::GradStore grads(model.parameters());
  std::printf("ResNet-18, %lld parameters, made in %.0f ms; image %s\n",
              static_cast<long long>(model.parameter_count()), milliseconds(start, Clock::now()),
              image.shape().str().c_str());
  std::printf("%s, %d threads%s\n\n", wg::simd_name(), wg::num_threads(),
              wg::exact_convolutions() ? ", exact convolutions" : "");
  const double before = peak_mib();

  std::vector<Cost> costs;
  for (int i = 0; i < times; ++i) costs.push_back(gradient_of_sum(model, image, grads));
  std::printf("ms                forward   backward       both\n");
  row("gradient 1", costs.front());
  row("gradient 10", costs.back());
  std::vector<Cost> later(costs.begin() + 1, costs.end());
  std::sort(later.begin(), later.end(), [](const Cost& a, const Cost& b) { return a.both() < b.both(); });
  row("median of 2-10", later[later.size() / 2]);

  const double ratio = costs.front().both() / costs.back().both();
  std::printf("\nfirst / tenth: %.2f, %s 1.5; tenth backward / forward: %.2f\n", ratio,
              ratio <= wanted ? "at most" : "ABOVE", costs.back().backward / costs.back().forward);
  std::printf("peak memory: %.0f MiB, of which %.0f MiB before the first gradient\n", peak_mib(), before);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Takes the gradient of sum(model(image)) ten times, for a ResNet-18 with random weights."};
  wg::Index side = 224;
  std::uint64_t seed = 1;
  int threads = wg::num_threads();
  bool exact = false;
  app.add_option("--side", side, "height and width of the image")
      ->check(CLI::Range(wg::Index{33}, wg::Index{2048}).description(""))  // batch norm needs two pixels
      ->capture_default_str();
  app.add_option("--threads", threads, "threads; the result does not depend on it")
      ->check(CLI::Range(1, 1024).description(""))
      ->capture_default_str();
  app.add_option("--seed", seed, "of weights and image")
      ->check(example::RunOptions::no_minus())
      ->capture_default_str();
  app.add_flag("--exact", exact, "only the most accurate algorithms of convolution");
  CLI11_PARSE(app, argc, argv);
  try {
    wg::set_num_threads(threads);
    wg::set_exact_convolutions(exact);
    run(side, seed);
    return example::output_is_written("resnet18_gradient") ? 0 : 1;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "resnet18_gradient: %s\n", e.what());
    return 1;
  }
}
