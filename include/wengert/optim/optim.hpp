// All optimizers, clipping and schedules. Floor: optim.
#pragma once

#include <wengert/optim/adam.hpp>
#include <wengert/optim/clip.hpp>
#include <wengert/optim/schedule.hpp>
#include <wengert/optim/sgd.hpp>
