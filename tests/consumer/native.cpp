#include "native.hpp"

#include <vector>

#include <wengert/wengert.hpp>

namespace wg = wengert;

const char* native_simd_name() { return wg::simd_name(); }

bool native_differentiates() {
  wg::Tensor<float> x({5}, {1, -2, 3, 0, 5});
  x.requires_grad(true);
  wg::GradStore grads;
  wg::backward(wg::sum(x * x), grads);
  return grads[x].to_vector() == std::vector<float>{2, -4, 6, 0, 10};
}
