// This library's side of the comparisons, behind the interface that all contestants share.
#pragma once

#include <memory>
#include <string>

#include "common/cases.hpp"
#include "common/peer.hpp"

namespace bench {

/// Our contestant for a case, or null where there is none.
std::unique_ptr<Peer> make_wengert(const Case& work);

/// The single operators and matrix products among them.
std::unique_ptr<Peer> make_wengert_operator(const Case& work);

/// The residual networks.
std::unique_ptr<Peer> make_wengert_resnet(const Case& work);

void wengert_set_threads(int count);

/// Version and instruction set.
std::string wengert_description();

}  // namespace bench
