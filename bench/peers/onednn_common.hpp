// What the comparisons with oneDNN share: operands, clocks, threads of both sides.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <dlfcn.h>
#include <vector>

#include <wengert/kernels/parallel.hpp>

namespace onednn_peer {

using Values = wengert::Scratch<float>;  // aligned as tensors are

/// n values in [-1, 1), by a small linear congruence.
inline Values values(wengert::Index n, std::uint32_t seed) {
  Values v(n);
  for (wengert::Index i = 0; i < n; ++i)
    v[i] = static_cast<float>((seed = seed * 1664525U + 1013904223U) >> 8) / 8388608.0F - 1.0F;
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
