#include "models_wengert.hpp"

namespace bench {

std::unique_ptr<Peer> make_wengert(const Case&) { return nullptr; }

void wengert_set_threads(int) {}

std::string wengert_description() { return "wengert"; }

}  // namespace bench
