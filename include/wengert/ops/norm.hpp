// Normalisation: batch_norm and layer_norm. Floor: ops.
#pragma once

#include <wengert/ops/norm_batch.hpp>
#include <wengert/ops/norm_layer.hpp>
