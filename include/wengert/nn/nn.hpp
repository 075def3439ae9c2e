// All modules and initialisers. Floor: nn.
#pragma once

#include <wengert/nn/activation.hpp>
#include <wengert/nn/conv.hpp>
#include <wengert/nn/dropout.hpp>
#include <wengert/nn/embedding.hpp>
#include <wengert/nn/init.hpp>
#include <wengert/nn/linear.hpp>
#include <wengert/nn/module.hpp>
#include <wengert/nn/norm.hpp>
#include <wengert/nn/pool.hpp>
#include <wengert/nn/sequential.hpp>
#include <wengert/nn/upsample.hpp>
