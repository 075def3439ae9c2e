#include "onednn_gemm.hpp"

#include <cstddef>
#include <dnnl.hpp>
#include <unordered_map>
#include <vector>

#include "../common/data.hpp"

namespace bench {
namespace {

using dnnl::memory;

const dnnl::engine& engine() {
  static const dnnl::engine cpu(dnnl::engine::kind::cpu, 0);
  return cpu;
}

class Gemm final : public Peer {
 public:
  Gemm(std::int64_t m, std::int64_t k, std::int64_t n, const std::string& layout)
      : a_(uniform(m * k, -1, 1, 1)),
        b_(uniform(k * n, -1, 1, 2)),
        y_(static_cast<std::size_t>(m * n)),
        stream_(engine()) {
    using Tag = memory::format_tag;
    const memory::desc a({m, k}, memory::data_type::f32, layout == "TN" ? Tag::ba : Tag::ab);
    const memory::desc b({k, n}, memory::data_type::f32, layout == "NT" ? Tag::ba : Tag::ab);
    const memory::desc y({m, n}, memory::data_type::f32, Tag::ab);
    product_ = dnnl::matmul({{a, b, y}, engine()});
    arguments_ = {{DNNL_ARG_SRC, memory(a, engine(), a_.data())},
                  {DNNL_ARG_WEIGHTS, memory(b, engine(), b_.data())},
                  {DNNL_ARG_DST, memory(y, engine(), y_.data())}};
  }
  unsigned parts() const override { return kForward; }
  void forward() override {
    product_.execute(stream_, arguments_);
    stream_.wait();
  }
  double value() override {
    double sum = 0;
    for (const float v : y_) sum += double(v);
    return sum / double(y_.size());
  }

 private:
  std::vector<float> a_, b_, y_;
  dnnl::stream stream_;
  dnnl::matmul product_;
  std::unordered_map<int, memory> arguments_;
};

}  // namespace

std::unique_ptr<Peer> make_onednn(const Case& work) {
  if (work.work != "gemm") return nullptr;
  return std::make_unique<Gemm>(work.size[0], work.size[1], work.size[2], work.detail);
}

std::string onednn_description() {
  const dnnl_version_t* const v = dnnl_version();
  const auto isa = dnnl::get_effective_cpu_isa();
  const bool wide = static_cast<unsigned>(isa) >= static_cast<unsigned>(dnnl::cpu_isa::avx512_core);
  return "oneDNN " + std::to_string(v->major) + "." + std::to_string(v->minor) + "." +
         std::to_string(v->patch) + (wide ? " (AVX-512)" : "");
}

}  // namespace bench
