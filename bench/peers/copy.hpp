// The yardstick of a memory-bound optimizer: a copy that moves as many bytes, and nothing else.
#pragma once

#include <memory>

#include "../common/cases.hpp"
#include "../common/peer.hpp"

namespace bench {

/// For an "adamw" case: reads 14 and writes 14 bytes a parameter on `threads` threads; null for every other
/// case.
std::unique_ptr<Peer> make_copy(const Case& work, int threads);

}  // namespace bench
