// The unit that is built for the compiler's baseline, and links one that is built for this machine.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <wengert/data/idx.hpp>
#include <wengert/wengert.hpp>

#include "native.hpp"

namespace wg = wengert;

namespace {

/// The gradient of sum(x * x) at (1, -2, 3), which is 2 x.
bool differentiates() {
  wg::Tensor<float> x({3}, {1, -2, 3});
  x.requires_grad(true);
  wg::GradStore grads;
  wg::backward(wg::sum(x * x), grads);
  return grads[x].to_vector() == std::vector<float>{2, -4, 6};
}

/// A file of one byte, through zlib.
bool reads_idx() {
  const std::string path = "consumer.idx";
  std::ofstream(path, std::ios::binary).write("\0\0\x08\x01\0\0\0\x01\x2a", 9);
  const auto values = wg::data::read_idx(path);
  std::filesystem::remove(path);
  return values.values<std::uint8_t>()[0] == 42;
}

}  // namespace

int main() {
  std::printf("wengert %d.%d.%d, this unit: %s, the other: %s\n", WENGERT_VERSION_MAJOR,
              WENGERT_VERSION_MINOR, WENGERT_VERSION_PATCH, wg::simd_name(), native_simd_name());
  const bool here = differentiates(), there = native_differentiates(), idx = reads_idx();
  if (!here) std::puts("wrong gradient in the baseline unit");
  if (!there) std::puts("wrong gradient in the native unit");
  if (!idx) std::puts("wrong value from the IDX file");
  return here && there && idx ? 0 : 1;
}
