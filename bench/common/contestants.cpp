#include "contestants.hpp"

#include <utility>

#include "../models_wengert.hpp"
#include "../peers/copy.hpp"

#ifdef WENGERT_BENCH_LIBTORCH
#include "../peers/torch_models.hpp"
#endif
#ifdef WENGERT_BENCH_ONEDNN
#include "../peers/onednn_gemm.hpp"
#endif

namespace bench {

void set_threads(int threads) {
  wengert_set_threads(threads);
#ifdef WENGERT_BENCH_LIBTORCH
  torch_set_threads(threads);
#endif
}

std::vector<Contestant> contestants(const Case& work, int threads) {
  std::vector<Contestant> found;
  const auto add = [&found](const char* who, std::unique_ptr<Peer> peer) {
    if (peer) found.push_back({who, std::move(peer)});
  };
  add("wengert", make_wengert(work));
#ifdef WENGERT_BENCH_LIBTORCH
  add("libtorch", make_torch(work));
  add("libtorch-nhwc", make_torch_resnet(work, true));
#endif
#ifdef WENGERT_BENCH_ONEDNN
  add("onednn", make_onednn(work));
#endif
  add("copy", make_copy(work, threads));
  return found;
}

std::string describe_contestants() {
  std::string text = wengert_description();
#ifdef WENGERT_BENCH_LIBTORCH
  text += "; " + torch_description();
#endif
#ifdef WENGERT_BENCH_ONEDNN
  text += "; " + onednn_description();
#endif
  return text;
}

bool has_libtorch() {
#ifdef WENGERT_BENCH_LIBTORCH
  return true;
#else
  return false;
#endif
}

}  // namespace bench
