// Learning rate schedules: objects that map a step to a rate, `opt.set_lr(schedule(step))`. They keep no
// count, so a run can go on anywhere. Formulas are PyTorch's. Floor: optim.
#pragma once

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string_view>

#include <wengert/base/error.hpp>
#include <wengert/base/scalar.hpp>

namespace wengert::inline WENGERT_ISA::optim {

/// A rise in a straight line before a schedule begins: from start * rate to rate in `steps` steps, where rate
/// is the schedule's first. The schedule's own step 0 comes when the rise ends.
struct Warmup {
  Index steps = 0;
  double start = 1.0 / 3;  ///< share of the rate at step 0
};

namespace detail {

class WarmedSchedule {
 protected:
  WarmedSchedule(std::string_view op, double lr, const Warmup& warmup) : warmup_(warmup) {
    if (!(lr >= 0) || !std::isfinite(lr))
      fail<ValueError>(op, "bad lr; got ", lr, "; expected a finite number >= 0");
    if (warmup.steps < 0)
      fail<ValueError>(op, "bad warmup.steps; got ", warmup.steps, "; expected warmup.steps >= 0");
    if (!(warmup.start >= 0 && warmup.start <= 1))
      fail<ValueError>(op, "bad warmup.start; got ", warmup.start, "; expected 0 <= warmup.start <= 1");
  }

  /// The rate of `schedule(step)`, which counts from the end of the rise.
  template <class F>
  double warmed(Index step, F schedule) const {
    if (step < 0) step = 0;
    if (step >= warmup_.steps) return schedule(step - warmup_.steps);
    const double share = static_cast<double>(step) / static_cast<double>(warmup_.steps);
    return schedule(Index{0}) * (warmup_.start + (1 - warmup_.start) * share);
  }

  /// The steps that remain of a run of `steps` when the rise has ended. Throws ValueError when none do.
  static Index after_warmup(std::string_view op, Index steps, const Warmup& warmup) {
    if (steps <= warmup.steps)
      fail<ValueError>(op, "too few steps; steps is ", steps, ", warmup.steps is ", warmup.steps,
                       "; expected steps > warmup.steps");
    return steps - warmup.steps;
  }

  Warmup warmup_;
};

/// From `from` at t = 0 to `to` at t = 1, along half a wave of the cosine.
inline double cosine_between(double from, double to, double t) {
  return to + (from - to) * (1 + std::cos(std::numbers::pi * t)) / 2;
}

}  // namespace detail

struct ConstantOptions {
  double lr = 1e-3;
  Warmup warmup{};
};

/// The same rate at every step. Throws ValueError unless lr >= 0 and the warm-up is sound, as all schedules.
class ConstantSchedule : detail::WarmedSchedule {
 public:
  explicit ConstantSchedule(const ConstantOptions& o)
      : WarmedSchedule("constant_schedule", o.lr, o.warmup), lr_(o.lr) {}
  double operator()(Index step) const {
    return warmed(step, [this](Index) { return lr_; });
  }

 private:
  double lr_;
};

struct StepOptions {
  double lr = 1e-3;
  Index every = 1;     ///< steps between two drops
  double gamma = 0.1;  ///< factor of a drop
  Warmup warmup{};
};

/// lr * gamma^floor(step / every). Throws ValueError unless every >= 1 and gamma >= 0.
class StepSchedule : detail::WarmedSchedule {
 public:
  explicit StepSchedule(const StepOptions& o) : WarmedSchedule("step_schedule", o.lr, o.warmup), o_(o) {
    if (o.every < 1) fail<ValueError>("step_schedule", "bad every; got ", o.every, "; expected every >= 1");
    if (!(o.gamma >= 0) || !std::isfinite(o.gamma))
      fail<ValueError>("step_schedule", "bad gamma; got ", o.gamma, "; expected a finite number >= 0");
  }
  double operator()(Index step) const {
    return warmed(step,
                  [this](Index t) { return o_.lr * std::pow(o_.gamma, static_cast<double>(t / o_.every)); });
  }

 private:
  StepOptions o_;
};

struct CosineOptions {
  double lr = 1e-3;
  Index steps = 1;    ///< of the whole run, the warm-up among them
  double min_lr = 0;  ///< reached at `steps`, and kept after it
  Warmup warmup{};
};

/// Falls from lr to min_lr along half a wave: min_lr + (lr - min_lr) * (1 + cos(pi * t / n)) / 2 at step t of
/// the n that follow the warm-up. Throws ValueError unless steps > warmup.steps and 0 <= min_lr <= lr.
class CosineSchedule : detail::WarmedSchedule {
 public:
  explicit CosineSchedule(const CosineOptions& o)
      : WarmedSchedule("cosine_schedule", o.lr, o.warmup),
        o_(o),
        length_(after_warmup("cosine_schedule", o.steps, o.warmup)) {
    if (!(o.min_lr >= 0 && o.min_lr <= o.lr))
      fail<ValueError>("cosine_schedule", "bad min_lr; min_lr is ", o.min_lr, ", lr is ", o.lr,
                       "; expected 0 <= min_lr <= lr");
  }
  double operator()(Index step) const {
    return warmed(step, [this](Index t) {
      if (t >= length_) return o_.min_lr;
      return detail::cosine_between(o_.lr, o_.min_lr, static_cast<double>(t) / static_cast<double>(length_));
    });
  }

 private:
  CosineOptions o_;
  Index length_;
};

struct OneCycleOptions {
  double max_lr = 1e-3;
  Index steps = 2;                ///< of the whole run, the warm-up among them
  double rise = 0.3;              ///< share of the cycle in which the rate rises (PyTorch's pct_start)
  double div_factor = 25;         ///< max_lr / first rate
  double final_div_factor = 1e4;  ///< first rate / last rate
  Warmup warmup{};
};

/// Rises from max_lr / div_factor to max_lr and falls far below, both along half a wave: PyTorch's OneCycleLR
/// with two phases. Of n steps after the warm-up the peak is step rise * n - 1 and the end step n - 1; later
/// steps keep its rate. Throws ValueError unless n >= 2, 0 <= rise <= 1 and both factors are > 0.
class OneCycleSchedule : detail::WarmedSchedule {
 public:
  explicit OneCycleSchedule(const OneCycleOptions& o)
      : WarmedSchedule(name, o.max_lr, o.warmup),
        o_(o),
        end_(static_cast<double>(after_warmup(name, o.steps, o.warmup) - 1)),
        peak_(o.rise * (end_ + 1) - 1) {
    if (end_ < 1)
      fail<ValueError>(name, "too few steps; steps is ", o.steps, ", warmup.steps is ", o.warmup.steps,
                       "; expected steps >= warmup.steps + 2");
    if (!(o.rise >= 0 && o.rise <= 1))
      fail<ValueError>(name, "bad rise; got ", o.rise, "; expected 0 <= rise <= 1");
    if (!(o.div_factor > 0) || !std::isfinite(o.div_factor))
      fail<ValueError>(name, "bad div_factor; got ", o.div_factor, "; expected a finite number > 0");
    if (!(o.final_div_factor > 0) || !std::isfinite(o.final_div_factor))
      fail<ValueError>(name, "bad final_div_factor; got ", o.final_div_factor,
                       "; expected a finite number > 0");
  }
  double operator()(Index step) const {
    return warmed(step, [this](Index i) {
      const double first = o_.max_lr / o_.div_factor, last = first / o_.final_div_factor;
      const double t = std::min(static_cast<double>(i), end_);
      if (t <= peak_ && peak_ > 0) return detail::cosine_between(first, o_.max_lr, t / peak_);
      return peak_ < end_ ? detail::cosine_between(o_.max_lr, last, (t - peak_) / (end_ - peak_)) : o_.max_lr;
    });
  }

 private:
  static constexpr std::string_view name = "one_cycle_schedule";
  OneCycleOptions o_;
  double end_, peak_;
};

}  // namespace wengert::inline WENGERT_ISA::optim
