// The cases of compare.cpp as Google Benchmark programs: its filters, repetitions and output formats, one
// contestant after the other. For ratios take compare, which interleaves them and tries every BLAS.
#include <cstdio>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <benchmark/benchmark.h>

#include "common/cases.hpp"
#include "common/contestants.hpp"
#include "common/environment.hpp"
#include "common/timing.hpp"

namespace {

// Steps from one initial state, few enough that a model does not fit its batch until gradients are denormal.
constexpr int kStepsBetweenResets = 200;

void run(benchmark::State& state, const bench::Case& work, const std::string& who, int threads) {
  const std::vector<bench::Contestant> all = bench::contestants(work, threads);
  bench::Peer* peer = nullptr;
  for (const bench::Contestant& contestant : all) {
    if (contestant.who == who) peer = contestant.peer.get();
  }
  if (peer == nullptr) {
    state.SkipWithError("this contestant has nothing for this case");
    return;
  }
  bench::StepTimes total;
  int steps = 0;
  for ([[maybe_unused]] auto unused : state) {
    if (steps++ % kStepsBetweenResets == 0) {
      peer->reset();
      for (int i = 0; i < bench::Plan{}.warm_up_steps; ++i) bench::run_step(*peer);
    }
    const bench::StepTimes t = bench::run_step(*peer);
    state.SetIterationTime(t.step);
    total.forward += t.forward;
    total.backward += t.backward;
    total.optimizer += t.optimizer;
    total.zero += t.zero;
  }
  const unsigned parts = peer->parts();
  const auto report = [&](unsigned part, const char* name, double seconds) {
    if ((parts & part) != 0) state.counters[name] = seconds / steps * 1e3;
  };
  report(bench::kForward, "forward_ms", total.forward);
  report(bench::kBackward, "backward_ms", total.backward);
  report(bench::kOptimize, "optimizer_ms", total.optimizer);
  report(bench::kZero, "zero_ms", total.zero);
  if ((parts & bench::kForward) != 0 && (parts & bench::kBackward) != 0) {
    state.counters["bwd/fwd"] = total.backward / total.forward;
  }
}

std::vector<std::string> names_for(const bench::Case& work) {
  std::vector<std::string> names = {"wengert"};
#ifdef WENGERT_BENCH_LIBTORCH
  names.emplace_back("libtorch");
#endif
#ifdef WENGERT_BENCH_ONEDNN
  if (work.work == "gemm") names.emplace_back("onednn");
#endif
  if (work.work == "adamw") names.emplace_back("copy");
  return names;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  benchmark::Initialize(&argc, argv);
  int threads = 1;
  std::string blas = "blis";
  bool child = false;
  CLI::App app{
      "Times training steps, operators and matrix products; takes Google Benchmark's flags as well."};
  app.add_option("--threads", threads, "Threads of every contestant")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  app.add_option("--blas", blas, "BLAS below libtorch: blis, openblas")
      ->check(CLI::IsMember({"blis", "openblas"}))
      ->capture_default_str();
  app.add_flag("--child", child)->group("");
  CLI11_PARSE(app, argc, argv);
  if (!child) {
    // Once more, in the environment that the peers need: malloc, threads and BLAS are settled at loading.
    arguments.emplace_back("--child");
    const auto print = [](const std::string& line) { std::printf("%s\n", line.c_str()); };
    return bench::run_self(arguments, bench::setups(threads, blas).front(), print);
  }
  bench::set_threads(threads);
  for (const bench::Case& work : bench::all_cases()) {
    for (const std::string& who : names_for(work)) {
      benchmark::RegisterBenchmark((work.name + "/" + who).c_str(), run, work, who, threads)
          ->UseManualTime()
          ->Unit(benchmark::kMillisecond);
    }
  }
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
