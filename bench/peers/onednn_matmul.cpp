// Matrix products side by side with oneDNN: the same operands, one primitive created beforehand, interleaved
// runs, medians. Prints shape, layout, GFLOP/s of both and their ratio, with geometric means.
//   --threads N   threads on both sides (default 1)
//   --quick       a smoke run: few repetitions, the small shapes only
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dnnl.hpp>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include <wengert/kernels/gemm.hpp>
#include <wengert/kernels/parallel.hpp>

#include "onednn_common.hpp"

namespace wg = wengert;
using onednn_peer::median;
using onednn_peer::seconds;
using onednn_peer::Values;
using onednn_peer::values;
using wg::Index;

namespace {

struct Product {
  const char* name;
  Index m, k, n;
  std::string layouts;  // pairs such as "NN NT TN"
  bool listed;          // part of the headline geometric mean
};

const std::vector<Product> products = {
    {"listed", 64, 784, 256, "NN NT TN", true},        {"listed", 256, 784, 256, "NN NT TN", true},
    {"listed", 32, 160, 128, "NN NT TN", true},        {"listed", 512, 512, 512, "NN NT TN", true},
    {"listed", 1024, 1024, 1024, "NN NT TN", true},    {"listed", 3136, 576, 64, "NN NT TN", true},
    {"listed", 49, 4608, 512, "NN NT TN", true},       {"mlp 64 forward", 64, 784, 256, "NN NT", false},
    {"mlp 64 forward", 64, 256, 128, "NN NT", false},  {"mlp 64 forward", 64, 128, 10, "NN NT", false},
    {"mlp 64 dx", 64, 10, 128, "NN NT", false},        {"mlp 64 dx", 64, 128, 256, "NN NT", false},
    {"mlp 64 dw", 128, 64, 10, "TN", false},           {"mlp 64 dw", 256, 64, 128, "TN", false},
    {"mlp 64 dw", 784, 64, 256, "TN", false},          {"mlp 256 forward", 256, 256, 128, "NN NT", false},
    {"mlp 256 forward", 256, 128, 10, "NN NT", false}, {"mlp 256 dx", 256, 10, 128, "NN NT", false},
    {"mlp 256 dx", 256, 128, 256, "NN NT", false},     {"mlp 256 dw", 128, 256, 10, "TN", false},
    {"mlp 256 dw", 256, 256, 128, "TN", false},        {"mlp 256 dw", 784, 256, 256, "TN", false},
};

std::vector<Product> heroes_products() {
  std::vector<Product> all;
  for (Index b : {32, 128, 1024}) {
    const char* name = b == 32 ? "heroes 32" : b == 128 ? "heroes 128" : "heroes 1024";
    all.push_back({name, 2 * b, 160, 128, "NN NT", false});
    all.push_back({name, b, 256, 128, "NN NT", false});
    all.push_back({name, b, 128, 1, "NN", false});
    all.push_back({name, 2 * b, 128, 160, "NT", false});  // dx
    all.push_back({name, b, 128, 256, "NT", false});
    all.push_back({name, b, 1, 128, "NN", false});
    all.push_back({name, 160, 2 * b, 128, "TN", false});  // dw
    all.push_back({name, 256, b, 128, "TN", false});
    all.push_back({name, 128, b, 1, "TN", false});
  }
  return all;
}

struct Timing {
  double ours, theirs;  // us
};

Timing compare(const Product& s, char a_layout, char b_layout, int threads, double budget) {
  using Memory = dnnl::memory;
  const Values a = values(s.m * s.k, 1), b = values(s.k * s.n, 2);
  const Values c(s.m * s.n), d(s.m * s.n);
  const wg::kernels::MatrixView<float> a_view = a_layout == 'N'
                                                    ? wg::kernels::MatrixView<float>{a.data(), s.k, 1}
                                                    : wg::kernels::MatrixView<float>{a.data(), 1, s.m};
  const wg::kernels::MatrixView<float> b_view = b_layout == 'N'
                                                    ? wg::kernels::MatrixView<float>{b.data(), s.n, 1}
                                                    : wg::kernels::MatrixView<float>{b.data(), 1, s.k};
  const auto ours = [&] { wg::kernels::gemm<float>(s.m, s.n, s.k, a_view, b_view, c.data(), s.n, false); };

  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  const auto description = [](Index rows, Index cols, wg::kernels::MatrixView<float> v) {
    return Memory::desc({rows, cols}, Memory::data_type::f32, Memory::dims{v.row, v.col});
  };
  const auto a_desc = description(s.m, s.k, a_view), b_desc = description(s.k, s.n, b_view);
  const auto c_desc = description(s.m, s.n, {nullptr, s.n, 1});
  const dnnl::matmul::primitive_desc primitive_desc(dnnl::matmul::desc(a_desc, b_desc, c_desc), engine);
  const dnnl::matmul primitive(primitive_desc);
  const std::unordered_map<int, Memory> arguments = {{DNNL_ARG_SRC, Memory(a_desc, engine, a.data())},
                                                     {DNNL_ARG_WEIGHTS, Memory(b_desc, engine, b.data())},
                                                     {DNNL_ARG_DST, Memory(c_desc, engine, d.data())}};
  const auto theirs = [&] {
    primitive.execute(stream, arguments);
    stream.wait();
  };

  ours();
  theirs();
  for (Index i = 0; i < s.m * s.n; ++i)
    if (!(std::fabs(c[i] - d[i]) <= 1e-4F * static_cast<float>(s.k + 10))) {
      std::fprintf(stderr, "onednn_matmul: results differ at element %zu: ours %g, oneDNN %g\n", i,
                   double(c[i]), double(d[i]));
      std::exit(1);
    }

  const double start = seconds();
  for (int i = 0; i < 3; ++i) ours();
  const double once = std::max(1e6 * (seconds() - start) / 3, 0.05);
  // With several threads the side that just ran still spins: it must fall asleep before the other is
  // measured, and the first call after the pause only wakes the threads.
  const bool pause = threads > 1;
  const int inner =
      std::max(1, static_cast<int>((pause ? 2000 : 50) / once));  // a sample lasts at least 50 us or 2 ms
  const int samples = std::clamp(static_cast<int>(budget / (2 * once * inner)), 7, pause ? 21 : 301);
  const auto sample = [&](auto& work) {
    if (pause) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      work();
    }
    const double begin = seconds();
    for (int j = 0; j < inner; ++j) work();
    return 1e6 * (seconds() - begin) / inner;
  };
  std::vector<double> our_times, their_times;
  for (int i = 0; i < samples; ++i) {
    our_times.push_back(sample(ours));
    their_times.push_back(sample(theirs));
  }
  return {median(our_times), median(their_times)};
}

}  // namespace

int main(int argc, char** argv) {
  int threads = 1;
  bool quick = false;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--quick") == 0) {
      quick = true;
    } else if (std::strcmp(argv[i], "--threads") == 0 && i + 1 < argc && std::atoi(argv[i + 1]) > 0) {
      threads = std::atoi(argv[++i]);
    } else {
      std::fprintf(stderr, "usage: onednn_matmul [--threads N] [--quick]\n");
      return 2;
    }
  }
  onednn_peer::set_threads(threads);

  std::vector<Product> all = products;
  for (const Product& s : heroes_products()) all.push_back(s);
  double listed = 0, other = 0;
  int listed_count = 0, other_count = 0;
  std::printf("float32, row-major, %d thread(s), %s\n", threads, wg::simd_name());
  std::printf("%-16s %18s %6s %9s %9s %6s\n", "work", "MxKxN", "layout", "ours", "oneDNN", "ratio");
  for (const Product& s : all) {
    if (quick && s.m * s.n * s.k > 10'000'000) continue;
    for (std::size_t at = 0; at < s.layouts.size(); at += 3) {
      const Timing t = compare(s, s.layouts[at], s.layouts[at + 1], threads, quick ? 500.0 : 200'000.0);
      const double flop = 2e-3 * double(s.m * s.n * s.k);
      const std::string shape = std::to_string(s.m) + "x" + std::to_string(s.k) + "x" + std::to_string(s.n);
      std::printf("%-16s %18s %6s %9.1f %9.1f %6.2f\n", s.name, shape.c_str(),
                  s.layouts.substr(at, 2).c_str(), flop / t.ours, flop / t.theirs, t.theirs / t.ours);
      (s.listed ? listed : other) += std::log(t.theirs / t.ours);
      ++(s.listed ? listed_count : other_count);
    }
  }
  std::printf("geometric mean of ratios (above 1: ours is faster): listed %.3f, others %.3f\n",
              std::exp(listed / std::max(1, listed_count)), std::exp(other / std::max(1, other_count)));
}
