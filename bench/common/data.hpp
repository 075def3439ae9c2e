// Numbers that every contestant starts from, so that all sides of a comparison do the same work on the same
// values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace bench {

/// SplitMix64: a small generator, the same on every platform.
class Generator {
 public:
  explicit Generator(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }

 private:
  std::uint64_t state_;
};

/// `count` floats, uniform in [low, high).
inline std::vector<float> uniform(std::int64_t count, float low, float high, std::uint64_t seed) {
  std::vector<float> values(static_cast<std::size_t>(count));
  Generator generator(seed);
  for (float& value : values) {
    const float unit = static_cast<float>(generator.next() >> 40) * 0x1p-24f;
    value = low + (high - low) * unit;
  }
  return values;
}

/// `count` integers, uniform in [0, bound).
inline std::vector<std::int64_t> indices(std::int64_t count, std::int64_t bound, std::uint64_t seed) {
  std::vector<std::int64_t> values(static_cast<std::size_t>(count));
  Generator generator(seed);
  for (std::int64_t& value : values) {
    value = static_cast<std::int64_t>((generator.next() >> 11) % static_cast<std::uint64_t>(bound));
  }
  return values;
}

/// A seed from a parameter's name (FNV-1a).
inline std::uint64_t seed_of(std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

}  // namespace bench
