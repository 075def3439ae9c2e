// Who takes part in a case, as far as this program was built with them.
#pragma once

#include <string>
#include <vector>

#include "cases.hpp"
#include "peer.hpp"

namespace bench {

/// Sets every contestant's number of threads. Call it once, first.
void set_threads(int threads);

/// Ours first, then the peers that have something to offer for this case.
std::vector<Contestant> contestants(const Case& work, int threads);

/// Versions and instruction sets of all sides.
std::string describe_contestants();

/// Whether the program was built with a peer whose speed depends on the BLAS.
bool has_libtorch();

}  // namespace bench
