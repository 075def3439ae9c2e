// oneDNN's matrix product, the yardstick of ours.
#pragma once

#include <memory>
#include <string>

#include "../common/cases.hpp"
#include "../common/peer.hpp"

namespace bench {

/// For a "gemm" case: a matmul primitive made in advance, so that only its execution is timed; null for other
/// cases.
std::unique_ptr<Peer> make_onednn(const Case& work);

/// Version and instruction set.
std::string onednn_description();

}  // namespace bench
