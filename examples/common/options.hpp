// The options that every training program here has, with checks that say what to do.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>

#include <CLI/CLI.hpp>

#include <wengert/kernels/parallel.hpp>

namespace example {

/// Each program sets its own defaults before it calls `add_to`.
struct RunOptions {
  std::int64_t epochs = 1;
  std::int64_t batch = 64;
  double lr = 1e-3;
  std::uint64_t seed = 1;
  int threads = wengert::num_threads();
  std::string csv, plot;
  bool quiet = false;

  void add_to(CLI::App& app) {
    app.get_formatter()->column_width(26);
    app.add_option("--epochs", epochs, "passes over the training data")
        ->check(from_one_to(1'000'000))
        ->capture_default_str();
    app.add_option("--batch", batch, "samples a step")->check(from_one_to(1'000'000))->capture_default_str();
    app.add_option("--lr", lr, "learning rate")->check(above_zero())->capture_default_str();
    app.add_option("--seed", seed, "of all random numbers")->check(no_minus())->capture_default_str();
    app.add_option("--threads", threads, "threads; the result does not depend on it")
        ->check(from_one_to(1024))
        ->capture_default_str();
    app.add_option("--csv", csv, "log of losses and accuracies; '' for none")
        ->check(path())
        ->capture_default_str();
    app.add_option("--plot", plot, "picture of them, drawn by gnuplot; '' for none")
        ->check(path())
        ->capture_default_str();
    app.add_flag("--quiet", quiet, "no progress and no tables, only results");
  }

  /// A path that is no option which came where a path was expected.
  static CLI::Validator path() {
    return CLI::Validator(
        [](std::string& text) -> std::string {
          return text.starts_with('-')
                     ? "got " + text + ", expected a path; write ./" + text + " for one of that name"
                     : std::string();
        },
        "");
  }

  /// A number without a minus, which an unsigned number would take for a huge one.
  static CLI::Validator no_minus() {
    return CLI::Validator(
        [](std::string& text) -> std::string {
          return text.starts_with('-') ? "got " + text + ", expected a whole number from 0" : std::string();
        },
        "");
  }

 private:
  static CLI::Validator from_one_to(std::int64_t last) {
    return CLI::Range(std::int64_t{1}, last).description("");
  }
  static CLI::Validator above_zero() {
    return CLI::Validator(
        [](std::string& text) -> std::string {
          double value = 0;
          if (CLI::detail::lexical_cast(text, value) && std::isfinite(value) && value > 0) return {};
          return "got " + text + ", expected a finite number above 0, such as 0.001";
        },
        "");
  }
};

}  // namespace example
