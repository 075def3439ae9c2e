// Learning rate schedules at the points where their formulas can be told by hand.

#include <cmath>

#include <gtest/gtest.h>

#include <wengert/optim/schedule.hpp>

#include "support/errors.hpp"

using namespace wengert;
using namespace wengert::optim;

namespace {

TEST(ConstantSchedule, StaysAndWarmsUp) {
  const ConstantSchedule plain({.lr = 0.3});
  EXPECT_EQ(plain(0), 0.3);
  EXPECT_EQ(plain(1'000'000), 0.3);
  const ConstantSchedule warmed({.lr = 0.3, .warmup = {.steps = 4}});
  EXPECT_DOUBLE_EQ(warmed(0), 0.1);
  EXPECT_DOUBLE_EQ(warmed(1), 0.15);
  EXPECT_DOUBLE_EQ(warmed(2), 0.2);
  EXPECT_DOUBLE_EQ(warmed(4), 0.3);
  EXPECT_DOUBLE_EQ(warmed(5), 0.3);
  EXPECT_DOUBLE_EQ(ConstantSchedule({.lr = 2, .warmup = {.steps = 2, .start = 0}})(1), 1);
}

TEST(StepSchedule, DropsEverySoManySteps) {
  const StepSchedule s({.lr = 1, .every = 3, .gamma = 0.5});
  for (int i = 0; i < 12; ++i) EXPECT_DOUBLE_EQ(s(i), std::pow(0.5, i / 3)) << i;
  const StepSchedule warmed({.lr = 1, .every = 3, .gamma = 0.5, .warmup = {.steps = 2, .start = 0.5}});
  EXPECT_DOUBLE_EQ(warmed(0), 0.5);
  EXPECT_DOUBLE_EQ(warmed(1), 0.75);
  EXPECT_DOUBLE_EQ(warmed(2), 1);
  EXPECT_DOUBLE_EQ(warmed(4), 1);
  EXPECT_DOUBLE_EQ(warmed(5), 0.5);
}

TEST(CosineSchedule, FallsAlongHalfAWave) {
  const CosineSchedule s({.lr = 1, .steps = 100, .min_lr = 0.2});
  EXPECT_DOUBLE_EQ(s(0), 1);
  EXPECT_DOUBLE_EQ(s(50), 0.6);
  EXPECT_NEAR(s(25), 0.2 + 0.8 * (1 + std::sqrt(0.5)) / 2, 1e-15);
  EXPECT_DOUBLE_EQ(s(100), 0.2);
  EXPECT_DOUBLE_EQ(s(150), 0.2);
  const CosineSchedule warmed({.lr = 1, .steps = 110, .warmup = {.steps = 10, .start = 0}});
  EXPECT_DOUBLE_EQ(warmed(0), 0);
  EXPECT_DOUBLE_EQ(warmed(5), 0.5);
  EXPECT_DOUBLE_EQ(warmed(10), 1);
  EXPECT_DOUBLE_EQ(warmed(60), 0.5);
  EXPECT_DOUBLE_EQ(warmed(110), 0);
}

// OneCycleLR(max_lr=1, total_steps=10, pct_start=0.3): phases end at steps 2 and 9.
TEST(OneCycleSchedule, RisesAndFalls) {
  const OneCycleSchedule s({.max_lr = 1, .steps = 10});
  EXPECT_NEAR(s(0), 0.04, 1e-15);
  EXPECT_DOUBLE_EQ(s(1), 0.52);
  EXPECT_DOUBLE_EQ(s(2), 1);
  EXPECT_NEAR(s(9), 0.04e-4, 1e-18);
  EXPECT_DOUBLE_EQ(s(20), s(9));
  const double last = 4e-6;
  EXPECT_NEAR(s(5), last + (1 - last) * (1 + std::cos(std::acos(-1.0) * 3 / 7)) / 2, 1e-15);
  const OneCycleSchedule falls(
      {.max_lr = 1, .steps = 11, .rise = 0, .div_factor = 1, .final_div_factor = 1e300});
  EXPECT_GT(falls(0), falls(1));
  EXPECT_NEAR(falls(10), 0, 1e-15);
  const OneCycleSchedule rises({.max_lr = 1, .steps = 11, .rise = 1, .div_factor = 10});
  EXPECT_DOUBLE_EQ(rises(0), 0.1);
  EXPECT_DOUBLE_EQ(rises(5), 0.55);
  EXPECT_DOUBLE_EQ(rises(10), 1);
  const OneCycleSchedule warmed({.max_lr = 1, .steps = 14, .warmup = {.steps = 4, .start = 0}});
  EXPECT_DOUBLE_EQ(warmed(0), 0);
  EXPECT_NEAR(warmed(2), 0.02, 1e-15);
  EXPECT_NEAR(warmed(4), 0.04, 1e-15);
  EXPECT_DOUBLE_EQ(warmed(6), 1);
}

TEST(Schedules, RefuseWhatMakesNoSense) {
  EXPECT_EQ(message_of<ValueError>([] { ConstantSchedule({.lr = -1}); }),
            "constant_schedule: bad lr; got -1; expected a finite number >= 0");
  EXPECT_EQ(message_of<ValueError>([] { ConstantSchedule({.warmup = {.steps = -1}}); }),
            "constant_schedule: bad warmup.steps; got -1; expected warmup.steps >= 0");
  EXPECT_EQ(message_of<ValueError>([] { ConstantSchedule({.warmup = {.start = 2}}); }),
            "constant_schedule: bad warmup.start; got 2; expected 0 <= warmup.start <= 1");
  EXPECT_EQ(message_of<ValueError>([] { StepSchedule({.every = 0}); }),
            "step_schedule: bad every; got 0; expected every >= 1");
  EXPECT_EQ(message_of<ValueError>([] { StepSchedule({.gamma = -1}); }),
            "step_schedule: bad gamma; got -1; expected a finite number >= 0");
  EXPECT_EQ(message_of<ValueError>([] { CosineSchedule({.steps = 5, .warmup = {.steps = 5}}); }),
            "cosine_schedule: too few steps; steps is 5, warmup.steps is 5; expected steps > warmup.steps");
  EXPECT_EQ(message_of<ValueError>([] { CosineSchedule({.lr = 1, .steps = 5, .min_lr = 2}); }),
            "cosine_schedule: bad min_lr; min_lr is 2, lr is 1; expected 0 <= min_lr <= lr");
  EXPECT_EQ(
      message_of<ValueError>([] { OneCycleSchedule({.steps = 1}); }),
      "one_cycle_schedule: too few steps; steps is 1, warmup.steps is 0; expected steps >= warmup.steps + 2");
  EXPECT_EQ(message_of<ValueError>([] { OneCycleSchedule({.steps = 9, .rise = 1.5}); }),
            "one_cycle_schedule: bad rise; got 1.5; expected 0 <= rise <= 1");
  EXPECT_EQ(message_of<ValueError>([] { OneCycleSchedule({.steps = 9, .div_factor = 0}); }),
            "one_cycle_schedule: bad div_factor; got 0; expected a finite number > 0");
  EXPECT_EQ(message_of<ValueError>([] { OneCycleSchedule({.steps = 9, .final_div_factor = 0}); }),
            "one_cycle_schedule: bad final_div_factor; got 0; expected a finite number > 0");
}

}  // namespace
