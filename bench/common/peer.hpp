// The interface that every contestant of a benchmark implements: this library, libtorch, oneDNN, a plain
// copy. It names no library, so a contestant's heavy headers stay in its own translation unit.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace bench {

/// Parts of a training step, as bits: a contestant tells which of them it has.
enum Parts : unsigned { kForward = 1, kBackward = 2, kOptimize = 4, kZero = 8 };

/// Seconds spent in each part of one step.
struct StepTimes {
  double forward = 0;
  double backward = 0;
  double optimizer = 0;
  double zero = 0;
  double step =
      0;  ///< of the whole step: when this is a median, it is the median of sums, not the sum of medians
};

/// One side of a comparison: does the work of one case, a part at a time.
class Peer {
 public:
  Peer() = default;
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;
  virtual ~Peer() = default;

  virtual unsigned parts() const = 0;
  /// Restores initial weights and optimizer state, so that every chunk of steps does the same arithmetic.
  /// Without it a model fits its one batch, gradients fade into denormals, and these are what gets timed.
  virtual void reset() {}
  virtual void forward() {}
  virtual void backward() {}
  virtual void optimize() {}
  virtual void zero() {}

  /// The mean of the last forward's output (a model's loss): equal on all sides, or they do not do the same
  /// work.
  virtual double value() { return 0; }
  /// Euclidean norm of all leaf gradients after backward, with the same purpose.
  virtual double gradient_norm() { return 0; }
};

/// A contestant and the name it has in the tables.
struct Contestant {
  std::string who;
  std::unique_ptr<Peer> peer;
};

}  // namespace bench
