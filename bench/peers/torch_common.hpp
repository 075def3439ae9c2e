// What the torch translation units share: tensors from the common data, and the checks of equal work.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include <torch/torch.h>

#include "../common/data.hpp"
#include "../common/peer.hpp"

namespace bench {

inline torch::Tensor tensor_of(const std::vector<float>& values, at::IntArrayRef shape) {
  return torch::tensor(values).reshape(shape).contiguous();
}

inline torch::Tensor tensor_of(const std::vector<std::int64_t>& values, at::IntArrayRef shape) {
  return torch::tensor(values, torch::kLong).reshape(shape).contiguous();
}

inline torch::Tensor uniform_tensor(at::IntArrayRef shape, float low, float high, std::uint64_t seed) {
  return tensor_of(uniform(c10::multiply_integers(shape), low, high, seed), shape);
}

inline double norm_of_gradients(const std::vector<torch::Tensor>& leaves) {
  double sum = 0;
  for (const torch::Tensor& leaf : leaves) {
    if (leaf.grad().defined()) sum += leaf.grad().to(torch::kDouble).square().sum().item<double>();
  }
  return std::sqrt(sum);
}

}  // namespace bench
