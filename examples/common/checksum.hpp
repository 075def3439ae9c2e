// One number that tells whether two runs ended with the same bits.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include <wengert/nn/named_tensor.hpp>

namespace example {

/// FNV-1a over the bytes of all tensors, in order.
template <class T>
std::uint64_t checksum(const std::vector<wengert::NamedTensor<T>>& tensors) {
  std::uint64_t hash = 0xCBF29CE484222325u;
  for (const auto& named : tensors)
    for (const T value : named.tensor.to_vector()) {
      unsigned char bytes[sizeof(T)];
      std::memcpy(bytes, &value, sizeof(T));
      for (const unsigned char b : bytes) hash = (hash ^ b) * 0x100000001B3u;
    }
  return hash;
}

}  // namespace example
