// A progress line for programs that train: bar, rate, time left, and what the caller adds. Floor: tools.
#pragma once

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <string>
#include <string_view>
#include <unistd.h>

#include <sys/ioctl.h>

#include <wengert/base/scalar.hpp>

namespace wengert::inline WENGERT_ISA::tools {

/// "12.3 s", "4 min 05 s", "2 h 07 min".
inline std::string duration_text(double seconds) {
  char text[64];
  const auto whole = static_cast<long long>(std::clamp(seconds, 0.0, 1e15));
  if (seconds < 59.95) {
    std::snprintf(text, sizeof text, "%.1f s", seconds);
  } else if (whole < 3600) {
    std::snprintf(text, sizeof text, "%lld min %02lld s", whole / 60, whole % 60);
  } else {
    std::snprintf(text, sizeof text, "%lld h %02lld min", whole / 3600, whole / 60 % 60);
  }
  return text;
}

/// "epoch 1/3 [######..................]  25 %  1200 images/s  ETA 37.5 s  loss 0.412": what Progress shows
/// when `done` of `total` took `seconds`.
inline std::string progress_text(std::string_view title, std::string_view units, Index done, Index total,
                                 double seconds, std::string_view note = {}) {
  constexpr Index width = 24;
  total = std::max<Index>(total, 1);
  const double share = std::clamp(static_cast<double>(done) / static_cast<double>(total), 0.0, 1.0);
  const double rate = seconds > 0 ? static_cast<double>(done) / seconds : 0;
  const auto filled = static_cast<std::size_t>(share * width);
  std::string line(title);
  line.append(" [").append(filled, '#').append(width - filled, '.').append("]");
  char numbers[64];
  std::snprintf(numbers, sizeof numbers, " %3d %%  %.*f ", static_cast<int>(share * 100), rate < 10 ? 1 : 0,
                rate);
  line.append(numbers).append(units).append("/s");
  if (done >= total)
    line.append("  in ").append(duration_text(seconds));
  else if (rate > 0)
    line.append("  ETA ").append(duration_text(static_cast<double>(total - done) / rate));
  if (!note.empty()) line.append("  ").append(note);
  return line;
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
    const double now = seconds();
    const bool last = done >= total_;
    if (!last && (terminal_ ? now - shown_ < 0.1 : done * 10 / total_ == tenth_)) return;
    shown_ = now;
    tenth_ = done * 10 / total_;
    draw(done, now - start_, note);
  }

 private:
  /// Of a clock that never jumps. Not std::chrono: its headers would be a hundredth of a program's compile
  /// time.
  static double seconds() noexcept {
    std::timespec t{};
    ::clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
  }

  void draw(Index done, double seconds, std::string_view note) {
    std::string line = progress_text(title_, units_, done, total_, seconds, note);
    if (terminal_) {  // a line that wraps could not be redrawn
      struct winsize size {};
      const bool known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
      if (known && line.size() >= size.ws_col) line.resize(size.ws_col - 1u);
      line = "\r" + line + "\x1b[K";
    } else {
      line += '\n';
    }
    std::fputs(line.c_str(), stderr);
    std::fflush(stderr);
    drawn_ = true;
  }

  std::string title_, units_;
  Index total_;
  bool terminal_;
  bool drawn_ = false;
  Index tenth_ = -1;
  double start_ = seconds(), shown_ = 0;
};

}  // namespace wengert::inline WENGERT_ISA::tools
