// What a training program tells while it runs: progress, a line an epoch, a CSV file, a picture, and the exit
// code. Writing fails loudly, and never stops the training.
#pragma once

#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <wengert/tools/plot.hpp>
#include <wengert/tools/progress.hpp>

#include "csv_log.hpp"
#include "interrupt.hpp"
#include "options.hpp"
#include "output.hpp"

namespace example {

/// Mean loss and share of right answers on a test set.
struct Score {
  double loss = 0, accuracy = 0;
};

class TrainingLog {
 public:
  /// `samples` an epoch, called `units`; `best` is the accuracy that nothing can beat, where it is known.
  TrainingLog(std::string program, const RunOptions& options, std::int64_t samples, std::string units,
              std::optional<double> best = {})
      : program_(std::move(program)),
        units_(std::move(units)),
        options_(options),
        samples_(samples),
        best_(best),
        csv_(options.csv, "epoch,step,lr,train_loss,test_loss,test_accuracy,seconds") {
    const std::int64_t steps = (samples + options.batch - 1) / options.batch;
    every_ = steps > rows_an_epoch ? steps / rows_an_epoch : 1;
    report_csv();
    if (!options_.plot.empty() && !wengert::tools::have_gnuplot()) {
      complain(
          "there will be no picture: gnuplot is not installed (Debian and Ubuntu: apt install gnuplot-nox)");
      options_.plot.clear();
    }
  }

  /// False when all epochs are done, or training should stop.
  bool begin_epoch() {
    if (epoch_ == options_.epochs || stopped()) return false;
    ++epoch_;
    seen_ = epoch_count_ = 0;
    epoch_sum_ = 0;
    const std::string title = "epoch " + std::to_string(epoch_) + "/" + std::to_string(options_.epochs);
    if (!options_.quiet) progress_.emplace(title, samples_, units_);
    return true;
  }

  /// Notes a step. False when training should stop: on Ctrl-C, or when the loss is no number.
  bool step(double loss, std::int64_t samples, double lr) {
    // What remains of an epoch joins its last row: the mean over a few steps would be noise.
    if (count_ >= every_ && samples_ - seen_ >= every_ * options_.batch) row({});
    ++step_;
    ++count_;
    ++epoch_count_;
    lr_ = lr;
    sum_ += loss;
    epoch_sum_ += loss;
    seen_ += samples;
    if (progress_) {
      char note[32];
      std::snprintf(note, sizeof note, "loss %.4f", loss);
      progress_->update(seen_, note);
    }
    diverged_ = !std::isfinite(loss);
    return !stopped();
  }

  void end_epoch(Score test) {
    test.loss = unsigned_nan(test.loss);
    progress_.reset();
    char line[160];
    std::snprintf(line, sizeof line,
                  "epoch %lld/%lld%s  train loss %.4f  test loss %.4f  test accuracy %.2f %%  %s",
                  static_cast<long long>(epoch_), static_cast<long long>(options_.epochs),
                  stopped() ? " (cut short)" : "", mean(epoch_sum_, epoch_count_), test.loss,
                  100 * test.accuracy, wengert::tools::duration_text(seconds()).c_str());
    row(test);
    report_csv();
    std::puts(line);
    std::fflush(stdout);
  }

  bool stopped() const { return diverged_ || Interrupt::signal() != 0; }
  std::int64_t steps() const { return step_; }

  /// Closes the log, draws the picture, and returns the program's exit code.
  int finish() {
    csv_.close();
    report_csv();
    if (diverged_) {
      char text[96];
      std::snprintf(text, sizeof text, "the loss is no number at step %lld; try a smaller --lr than %g",
                    static_cast<long long>(step_), options_.lr);
      complain(text);
    }
    if (csv_.is_sound() && !csv_.path().empty()) std::printf("log: %s\n", csv_.path().c_str());
    const bool drawn = draw();
    const bool said = output_is_written(program_);
    if (Interrupt::signal() != 0) {
      complain("stopped by a signal; the figures above are of what had been trained by then");
      return 128 + Interrupt::signal();
    }
    return diverged_ || !csv_.is_sound() || !drawn || !said ? 1 : 0;
  }

  void complain(const std::string& what) const {
    std::fprintf(stderr, "%s: %s\n", program_.c_str(), what.c_str());
  }

 private:
  static constexpr std::int64_t rows_an_epoch = 50;

  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

  static double mean(double sum, std::int64_t n) {
    return unsigned_nan(n == 0 ? NAN : sum / static_cast<double>(n));
  }
  static double unsigned_nan(double v) { return std::isnan(v) ? NAN : v; }  // "-nan" would tell nothing more

  /// The mean training loss since the last row, and what is known of the test set.
  void row(const std::optional<Score>& test) {
    const double train = mean(sum_, count_);
    char cells[192];
    int n = std::snprintf(cells, sizeof cells, "%lld,%lld,%.6g,%.6g,", static_cast<long long>(epoch_),
                          static_cast<long long>(step_), lr_, train);
    const auto left = sizeof cells - static_cast<std::size_t>(n);
    if (test)
      std::snprintf(cells + n, left, "%.6g,%.6g,%.3f", test->loss, test->accuracy, seconds());
    else
      std::snprintf(cells + n, left, ",,%.3f", seconds());
    csv_.row(cells);
    const auto x = static_cast<double>(step_);
    if (count_ > 0) add(train_loss_, x, train);
    if (test) {
      add(test_loss_, x, test->loss);
      add(test_accuracy_, x, 100 * test->accuracy);
    }
    sum_ = 0;
    count_ = 0;
  }
  static void add(wengert::tools::Curve& curve, double x, double y) {
    curve.x.push_back(x);
    curve.y.push_back(y);
  }

  /// Says once what a failed log lost.
  void report_csv() {
    if (csv_.is_sound()) {
      safe_step_ = step_;
      return;
    }
    if (std::exchange(csv_reported_, true)) return;
    complain(csv_.fault() + (step_ == 0 ? "; this run goes on without a log. Choose another file with --csv"
                                        : "; rows after step " + std::to_string(safe_step_) +
                                              " are lost, training goes on"));
  }

  bool draw() {
    if (options_.plot.empty()) return true;
    std::vector<wengert::tools::Panel> panels{{"loss", "step", "loss", {train_loss_, test_loss_}},
                                              {"accuracy", "step", "test accuracy, %", {test_accuracy_}}};
    if (best_) {
      const auto last = static_cast<double>(step_);
      panels[1].curves.push_back({"best attainable", {0, last}, {100 * *best_, 100 * *best_}});
    }
    const std::string fault = wengert::tools::plot_png(options_.plot, panels);
    if (!fault.empty())
      complain("no picture: " + fault);
    else
      std::printf("picture: %s\n", options_.plot.c_str());
    return fault.empty();
  }

  std::string program_, units_;
  RunOptions options_;
  std::int64_t samples_, every_ = 1;
  std::optional<double> best_;
  Interrupt interrupt_;
  std::optional<wengert::tools::Progress> progress_;
  CsvLog csv_;
  bool csv_reported_ = false, diverged_ = false;
  std::int64_t epoch_ = 0, step_ = 0, seen_ = 0, count_ = 0, epoch_count_ = 0, safe_step_ = 0;
  double sum_ = 0, epoch_sum_ = 0, lr_ = 0;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  wengert::tools::Curve train_loss_{"training", {}, {}}, test_loss_{"test", {}, {}},
      test_accuracy_{"test", {}, {}};
};

}  // namespace example
