// Every operator, from its test row: time of forward, of backward, and their ratio.
//
//   bench_operators [--quick] [--threads=N] [--benchmark_filter=REGEX] [other Google Benchmark flags]
// --quick: a smoke test, not a measurement.
//
// Float, in the shapes of the row's bench(). Forward includes recording; backward includes every gradient
// that the row asks for. Both are medians over the iterations of one loop, so that they saw the same machine.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "cases/operands.hpp"

namespace {

using cases::Any;
using cases::Anys;
using cases::Case;
using wengert::Tensor;
using Clock = std::chrono::steady_clock;

double nanoseconds(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double, std::nano>(to - from).count();
}
double median(std::vector<double>& v) {
  if (v.empty()) return 0;
  const auto middle = v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2);
  std::nth_element(v.begin(), middle, v.end());
  return *middle;
}

struct Result {
  const Case* row;
  double forward, backward;
};
std::vector<Result> results;

std::string shapes_of(const Case& c) {
  std::string s;
  for (const cases::Shape& shape : c.bench) {
    if (!s.empty()) s += ' ';
    s += shape.str();
  }
  return s;
}

void run_row(benchmark::State& state, const Case& c) {
  const Anys x = cases::operands<float>(c, cases::values_for(c, c.bench));
  Tensor<float> dy;
  if (c.differentiable) {
    const wengert::NoGrad no_grad;
    dy = cases::tensor_of<float>(cases::seed_for(cases::to_array(c.in_float(x)).shape),
                                 cases::Layout::contiguous);
  }
  wengert::GradStore grads;
  std::vector<double> forward, backward;
  for (int warm_up = 0; warm_up < 3; ++warm_up) {
    const Any y = c.in_float(x);
    if (c.differentiable) wengert::backward(std::get<Tensor<float>>(y), dy, grads);
  }
  for ([[maybe_unused]] auto unused : state) {
    grads.zero();
    const auto start = Clock::now();
    const Any y = c.in_float(x);
    const auto middle = Clock::now();
    if (c.differentiable) wengert::backward(std::get<Tensor<float>>(y), dy, grads);
    const auto end = Clock::now();
    forward.push_back(nanoseconds(start, middle));
    backward.push_back(nanoseconds(middle, end));
    state.SetIterationTime(nanoseconds(start, end) * 1e-9);
  }
  const Result r{&c, median(forward), c.differentiable ? median(backward) : 0};
  state.counters["forward_ns"] = r.forward;
  if (c.differentiable) {
    state.counters["backward_ns"] = r.backward;
    state.counters["ratio"] = r.backward / r.forward;
  }
  // Google Benchmark calls again with more iterations: the last call counts.
  if (!results.empty() && results.back().row == &c) results.pop_back();
  results.push_back(r);
}

void print_table() {
  std::printf("\n%-34s %14s %14s %7s  %s\n", "operator", "forward us", "backward us", "ratio", "shapes");
  for (const Result& r : results) {
    if (r.row->differentiable)
      std::printf("%-34s %14.2f %14.2f %7.2f  %s\n", r.row->name.c_str(), r.forward / 1e3, r.backward / 1e3,
                  r.backward / r.forward, shapes_of(*r.row).c_str());
    else
      std::printf("%-34s %14.2f %14s %7s  %s\n", r.row->name.c_str(), r.forward / 1e3, "-", "-",
                  shapes_of(*r.row).c_str());
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<char*> arguments;
  static char quick[] = "--benchmark_min_time=0.0001";
  for (int i = 0; i < argc; ++i) {
    if (std::strcmp(argv[i], "--quick") == 0)
      arguments.push_back(quick);
    else if (std::strncmp(argv[i], "--threads=", 10) == 0)
      wengert::set_num_threads(std::atoi(argv[i] + 10));
    else
      arguments.push_back(argv[i]);
  }
  int count = static_cast<int>(arguments.size());
  benchmark::Initialize(&count, arguments.data());
  if (benchmark::ReportUnrecognizedArguments(count, arguments.data())) return 1;
  for (const Case* c : cases::all_cases()) {
    if (c->bench.empty() || c->name.rfind("toy_", 0) == 0) continue;
    benchmark::RegisterBenchmark(c->name.c_str(), [c](benchmark::State& s) { run_row(s, *c); })
        ->UseManualTime()
        ->Unit(benchmark::kMicrosecond);
  }
  benchmark::RunSpecifiedBenchmarks();
  print_table();
  return 0;
}
