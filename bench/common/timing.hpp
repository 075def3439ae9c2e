// Interleaved timing: contestants take turns in chunks of steps, so that a drifting machine hurts all of them
// alike.
#pragma once

#include <vector>

#include "peer.hpp"

namespace bench {

/// How long and how often to measure.
struct Plan {
  int rounds = 7;               ///< turns each contestant gets
  int min_steps = 5;            ///< timed steps in a turn, at least
  int max_steps = 200;          ///< and at most: few enough that training does not fade into denormals
  double chunk_seconds = 0.08;  ///< a turn is as many steps as fit in this
  double settle_seconds = 0.5;  ///< at most, before a turn: until the others' worker threads are asleep
  int warm_up_steps = 3;        ///< untimed steps that begin a turn: they wake threads and fill caches

  /// One short turn each: proves that everything runs, measures nothing.
  static Plan quick();
};

/// What one contestant took: medians over all timed steps of all its turns, and what proves equal work.
struct Measurement {
  std::string who;
  unsigned parts = 0;
  StepTimes times;
  double heap_allocations = 0;  ///< a steady-state step, or -1 where the counter does not exist
  double value = 0;             ///< after the same number of steps from the same state
  double gradient_norm = 0;
};

double median(std::vector<double> values);

/// One step, each part timed.
StepTimes run_step(Peer& peer);

/// Lets the contestants take turns and returns a measurement for each, in their order.
std::vector<Measurement> measure(const std::vector<Contestant>& contestants, const Plan& plan);

}  // namespace bench
