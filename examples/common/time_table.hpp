// Where the time of a training run went.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

namespace example {

enum class Phase { data, forward, backward, optimizer, rest };

/// A stopwatch that charges the time since the last call to a phase.
class TimeTable {
 public:
  void start() { last_ = Clock::now(); }
  void lap(Phase phase) {
    const auto now = Clock::now();
    seconds_[static_cast<std::size_t>(phase)] += std::chrono::duration<double>(now - last_).count();
    last_ = now;
  }

  /// Seconds, share and milliseconds a step of each phase, and backward over forward.
  std::string text(std::int64_t steps) const {
    static constexpr const char* names[] = {"data", "forward", "backward", "optimizer", "tests and log"};
    double total = 0;
    for (const double s : seconds_) total += s;
    std::string out = "where the time went    seconds    share   ms a step\n";
    const auto row = [&](const char* name, double s) {
      char line[96];
      std::snprintf(line, sizeof line, "  %-19s %8.2f  %5.1f %%  %10.4f\n", name, s,
                    total > 0 ? 100 * s / total : 0.0,
                    steps > 0 ? 1e3 * s / static_cast<double>(steps) : 0.0);
      out += line;
    };
    for (std::size_t i = 0; i < seconds_.size(); ++i) row(names[i], seconds_[i]);
    row("total", total);
    const double forward = seconds_[1], backward = seconds_[2];
    char line[64];
    std::snprintf(line, sizeof line, "  backward / forward  %8.2f\n", forward > 0 ? backward / forward : 0.0);
    return out + line;
  }

 private:
  using Clock = std::chrono::steady_clock;
  std::array<double, 5> seconds_{};
  Clock::time_point last_ = Clock::now();
};

}  // namespace example
