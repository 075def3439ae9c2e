// Ctrl-C as a question that a loop can ask.
#pragma once

#include <csignal>

namespace example {

/// While it lives, the first SIGINT or SIGTERM only sets a flag; a second one ends the program at once.
class Interrupt {
 public:
  Interrupt() {
    std::signal(SIGINT, note);
    std::signal(SIGTERM, note);
  }
  ~Interrupt() {
    std::signal(SIGINT, SIG_DFL);
    std::signal(SIGTERM, SIG_DFL);
  }
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  /// The signal that came, or 0.
  static int signal() { return signal_; }

 private:
  static void note(int signal) {
    signal_ = signal;
    std::signal(signal, SIG_DFL);
  }
  static inline volatile std::sig_atomic_t signal_ = 0;
};

}  // namespace example
