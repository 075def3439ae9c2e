// Normalisation: batch_norm and its fused forms, layer_norm, group_norm, instance_norm. Floor: ops.
#pragma once

#include <wengert/ops/norm_batch.hpp>
#include <wengert/ops/norm_group.hpp>
#include <wengert/ops/norm_layer.hpp>
