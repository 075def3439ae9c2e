// What the comparisons with oneDNN share: operands, clocks, threads of both sides.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <dlfcn.h>
#include <vector>

#include <wengert/kernels/parallel.hpp>

#include "../common/data.hpp"

namespace onednn_peer {

using Values = wengert::Scratch<float>;  // aligned as tensors are

/// n values in [-1, 1).
inline Values values(wengert::Index n, std::uint64_t seed) {
  Values v(n);
  const std::vector<float> from = bench::uniform(n, -1, 1, seed);
  std::copy(from.begin(), from.end(), v.data());
  return v;
}

inline double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

inline double median(std::vector<double> v) {
  std::nth_element(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2), v.end());
  return v[v.size() / 2];
}

/// Threads of both sides. oneDNN brings an OpenMP runtime; a program need not link to it.
inline void set_threads(int threads) {
  wengert::set_num_threads(threads);
  if (void* set = dlsym(RTLD_DEFAULT, "omp_set_num_threads")) reinterpret_cast<void (*)(int)>(set)(threads);
}

}  // namespace onednn_peer
