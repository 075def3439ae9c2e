// The libtorch side of the benchmarks, behind an interface without a torch header (those take 30 s to
// compile).
#pragma once

#include <memory>
#include <string>

#include "../common/cases.hpp"
#include "../common/peer.hpp"

namespace bench {

/// libtorch's contestant for a case, or null where it has none.
std::unique_ptr<Peer> make_torch(const Case& work);

/// Single operators and matrix products; called by make_torch.
std::unique_ptr<Peer> make_torch_operator(const Case& work);

/// ResNets, in libtorch's own layout or channels last; null for other cases. The former is called by
/// make_torch.
std::unique_ptr<Peer> make_torch_resnet(const Case& work, bool channels_last);

/// Number of threads of libtorch and the BLAS below it. Call it once, before any contestant is made.
void torch_set_threads(int count);

/// Version, instruction set and BLAS in use, for the head of a result table.
std::string torch_description();

}  // namespace bench
