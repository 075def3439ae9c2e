#include "timing.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <thread>
#include <time.h>

#include "heap_counter.hpp"

namespace bench {
namespace {

using Clock = std::chrono::steady_clock;

double seconds(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

struct Samples {
  std::vector<double> forward, backward, optimizer, zero, step;
};

StepTimes timed_step(Peer& peer, unsigned parts) {
  const auto t0 = Clock::now();
  if ((parts & kForward) != 0) peer.forward();
  const auto t1 = Clock::now();
  if ((parts & kBackward) != 0) peer.backward();
  const auto t2 = Clock::now();
  if ((parts & kOptimize) != 0) peer.optimize();
  const auto t3 = Clock::now();
  if ((parts & kZero) != 0) peer.zero();
  const auto t4 = Clock::now();
  return {seconds(t0, t1), seconds(t1, t2), seconds(t2, t3), seconds(t3, t4), seconds(t0, t4)};
}

double processor_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return double(time.tv_sec) + 1e-9 * double(time.tv_nsec);
}

// Worker threads spin for a while after their last work (5 ms in libgomp, more than 80 ms in OpenBLAS), and
// on few cores whoever runs next would pay for that. So sleep until the process uses no processor time any
// more.
void let_threads_rest(double at_most) {
  constexpr double kNap = 0.005;
  constexpr double kIdleShare = 0.1;
  for (double waited = 0; waited < at_most; waited += kNap) {
    const double before = processor_seconds();
    std::this_thread::sleep_for(std::chrono::duration<double>(kNap));
    if (processor_seconds() - before < kIdleShare * kNap) return;
  }
}

// As many steps as fill a chunk, judged by the fastest of a few.
int steps_in_chunk(Peer& peer, const Plan& plan) {
  double fastest = 1e30;
  double total = 0;
  for (int i = 0; i < plan.warm_up_steps + 2; ++i) {
    const double step = timed_step(peer, peer.parts()).step;
    fastest = std::min(fastest, step);
    total += step;
    if (total > plan.chunk_seconds && i > 0) break;
  }
  const double fitting = plan.chunk_seconds / std::max(fastest, 1e-9);
  return static_cast<int>(std::clamp(fitting, double(plan.min_steps), double(plan.max_steps)));
}

void take_turn(Peer& peer, const Plan& plan, int steps, Samples& samples) {
  let_threads_rest(plan.settle_seconds);
  peer.reset();
  const unsigned parts = peer.parts();
  for (int i = 0; i < plan.warm_up_steps; ++i) timed_step(peer, parts);
  for (int i = 0; i < steps; ++i) {
    const StepTimes t = timed_step(peer, parts);
    samples.forward.push_back(t.forward);
    samples.backward.push_back(t.backward);
    samples.optimizer.push_back(t.optimizer);
    samples.zero.push_back(t.zero);
    samples.step.push_back(t.step);
  }
}

// Two steps from the initial state, then forward and backward once more: deep enough to see a wrong
// optimizer, short enough that rounding has not grown. The heap is counted over the steps that follow.
void verify(Peer& peer, Measurement& result) {
  constexpr int kSteps = 2;
  constexpr int kCountedSteps = 5;
  const unsigned parts = peer.parts();
  peer.reset();
  for (int i = 0; i < kSteps; ++i) timed_step(peer, parts);
  if ((parts & kForward) != 0) peer.forward();
  if ((parts & kBackward) != 0) peer.backward();
  result.value = peer.value();
  result.gradient_norm = peer.gradient_norm();
  if ((parts & kZero) != 0) peer.zero();

  for (int i = 0; i < kSteps; ++i) timed_step(peer, parts);
  const long long before = heap_allocations();
  for (int i = 0; i < kCountedSteps; ++i) timed_step(peer, parts);
  result.heap_allocations = before < 0 ? -1.0 : double(heap_allocations() - before) / kCountedSteps;
}

}  // namespace

StepTimes run_step(Peer& peer) { return timed_step(peer, peer.parts()); }

Plan Plan::quick() {
  Plan plan;
  plan.rounds = 1;
  plan.min_steps = 2;
  plan.max_steps = 2;
  plan.chunk_seconds = 0;
  plan.settle_seconds = 0;
  plan.warm_up_steps = 1;
  return plan;
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

std::vector<Measurement> measure(const std::vector<Contestant>& contestants, const Plan& plan) {
  std::vector<int> steps;
  for (const Contestant& contestant : contestants) {
    contestant.peer->reset();
    steps.push_back(steps_in_chunk(*contestant.peer, plan));
  }
  std::vector<Samples> samples(contestants.size());
  for (int round = 0; round < plan.rounds; ++round) {
    for (std::size_t i = 0; i < contestants.size(); ++i)
      take_turn(*contestants[i].peer, plan, steps[i], samples[i]);
  }
  std::vector<Measurement> results;
  for (std::size_t i = 0; i < contestants.size(); ++i) {
    Measurement result;
    result.who = contestants[i].who;
    result.parts = contestants[i].peer->parts();
    result.times = {median(samples[i].forward), median(samples[i].backward), median(samples[i].optimizer),
                    median(samples[i].zero), median(samples[i].step)};
    verify(*contestants[i].peer, result);
    results.push_back(std::move(result));
  }
  return results;
}

}  // namespace bench
