// A progress line for programs that train: bar, rate, time left, and what the caller adds. Floor: tools.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <string_view>
#include <unistd.h>

#include <wengert/base/scalar.hpp>

namespace wengert::inline WENGERT_ISA::tools {

/// "12.3 s", "4 min 05 s", "2 h 07 min".
inline std::string duration_text(double seconds) {
  char text[64];
  if (seconds < 60) {
    std::snprintf(text, sizeof text, "%.1f s", seconds);
  } else if (seconds < 3600) {
    std::snprintf(text, sizeof text, "%d min %02d s", static_cast<int>(seconds / 60),
                  static_cast<int>(seconds) % 60);
  } else {
    std::snprintf(text, sizeof text, "%d h %02d min", static_cast<int>(seconds / 3600),
                  static_cast<int>(seconds / 60) % 60);
  }
  return text;
}

/// Shows how far a loop is, on stderr: on a terminal one line that is redrawn ten times a second, elsewhere a
/// line at each tenth of the way. `units` names what is counted, as in "samples".
class Progress {
 public:
  Progress(std::string_view title, Index total, std::string_view units)
      : title_(title),
        units_(units),
        total_(std::max<Index>(total, 1)),
        terminal_(::isatty(STDERR_FILENO) == 1) {}
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() {
    if (terminal_ && drawn_) std::fputc('\n', stderr);
  }

  /// `done` of the total are done; `note` is shown behind the rate, as in "loss 0.412".
  void update(Index done, std::string_view note = {}) {
    const auto now = Clock::now();
    const bool last = done >= total_;
    if (terminal_ ? !last && now - shown_ < std::chrono::milliseconds(100)
                  : !last && done * 10 / total_ == tenth_)
      return;
    shown_ = now;
    tenth_ = done * 10 / total_;
    draw(done, std::chrono::duration<double>(now - start_).count(), note);
  }

 private:
  using Clock = std::chrono::steady_clock;

  void draw(Index done, double seconds, std::string_view note) {
    const double rate = seconds > 0 ? static_cast<double>(done) / seconds : 0;
    const double left = rate > 0 ? static_cast<double>(total_ - done) / rate : 0;
    constexpr Index width = 24;
    const Index filled = std::min(width, done * width / total_);
    std::string line = terminal_ ? "\r" : "";
    line += title_ + " [" + std::string(static_cast<std::size_t>(filled), '#') +
            std::string(static_cast<std::size_t>(width - filled), '.') + "]";
    char numbers[96];
    std::snprintf(numbers, sizeof numbers, " %3d %%  %.0f ", static_cast<int>(done * 100 / total_), rate);
    line += numbers + units_ + "/s  " +
            (done >= total_ ? "in " + duration_text(seconds) : "ETA " + duration_text(left));
    if (!note.empty()) line.append("  ").append(note);
    line += terminal_ ? "\x1b[K" : "\n";
    std::fputs(line.c_str(), stderr);
    std::fflush(stderr);
    drawn_ = true;
  }

  std::string title_, units_;
  Index total_;
  bool terminal_;
  bool drawn_ = false;
  Index tenth_ = -1;
  Clock::time_point start_ = Clock::now(), shown_{};
};

}  // namespace wengert::inline WENGERT_ISA::tools
