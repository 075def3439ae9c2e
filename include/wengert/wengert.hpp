// Everything, with one include, but for what needs another library or is rarely wanted: core/eigen.hpp,
// data/idx.hpp and data/mnist.hpp (zlib), data/cifar.hpp, data/augment.hpp, tools/plot.hpp,
// tools/image_grid.hpp. Every header also stands alone.
#pragma once

#include <wengert/base/random.hpp>
#include <wengert/check/gradcheck.hpp>
#include <wengert/core/backward.hpp>
#include <wengert/core/checkpoint.hpp>
#include <wengert/core/custom.hpp>
#include <wengert/data/dataset.hpp>
#include <wengert/nn/nn.hpp>
#include <wengert/ops/activation.hpp>
#include <wengert/ops/arg.hpp>
#include <wengert/ops/arithmetic.hpp>
#include <wengert/ops/cast.hpp>
#include <wengert/ops/conv.hpp>
#include <wengert/ops/conv_transpose.hpp>
#include <wengert/ops/create.hpp>
#include <wengert/ops/create_random.hpp>
#include <wengert/ops/dropout.hpp>
#include <wengert/ops/embedding.hpp>
#include <wengert/ops/fold.hpp>
#include <wengert/ops/functions.hpp>
#include <wengert/ops/image_layout.hpp>
#include <wengert/ops/index.hpp>
#include <wengert/ops/join.hpp>
#include <wengert/ops/linear.hpp>
#include <wengert/ops/losses.hpp>
#include <wengert/ops/map.hpp>
#include <wengert/ops/matmul.hpp>
#include <wengert/ops/norm.hpp>
#include <wengert/ops/pad.hpp>
#include <wengert/ops/pixel_shuffle.hpp>
#include <wengert/ops/pool.hpp>
#include <wengert/ops/pool_adaptive.hpp>
#include <wengert/ops/reduce.hpp>
#include <wengert/ops/select.hpp>
#include <wengert/ops/softmax.hpp>
#include <wengert/ops/upsample.hpp>
#include <wengert/ops/view.hpp>
#include <wengert/ops/view_expand.hpp>
#include <wengert/ops/view_slice.hpp>
#include <wengert/optim/optim.hpp>
#include <wengert/tools/print.hpp>
#include <wengert/tools/print_tape.hpp>
#include <wengert/tools/progress.hpp>
