// Convolutions side by side with oneDNN, pass by pass: the same operands, interleaved runs, medians. oneDNN
// runs in the format it likes best (weights and images reordered in advance) and in NHWC; the faster one
// counts.
//   --threads N   threads on both sides (default 1)
//   --filter S    only layers whose name contains S
//   --exact       without Winograd F(4x4)
//   --quick       a smoke run: few repetitions, small layers
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

#include <wengert/kernels/conv.hpp>

#include "onednn_common.hpp"

namespace wg = wengert;
using dnnl::memory;
using onednn_peer::median;
using onednn_peer::seconds;
using onednn_peer::Values;
using onednn_peer::values;
using wg::Index;

namespace {

struct Layer {
  const char* name;
  Index batch, size, channels, out_channels, kernel, stride, groups = 1;
};

const std::vector<Layer> layers = {
    {"resnet18 b8 stem", 8, 224, 3, 64, 7, 2},         {"resnet18 b8 64", 8, 56, 64, 64, 3, 1},
    {"resnet18 b8 64-128/2", 8, 56, 64, 128, 3, 2},    {"resnet18 b8 128", 8, 28, 128, 128, 3, 1},
    {"resnet18 b8 128-256/2", 8, 28, 128, 256, 3, 2},  {"resnet18 b8 256", 8, 14, 256, 256, 3, 1},
    {"resnet18 b8 256-512/2", 8, 14, 256, 512, 3, 2},  {"resnet18 b8 512", 8, 7, 512, 512, 3, 1},
    {"resnet18 b8 1x1/2", 8, 56, 64, 128, 1, 2},       {"resnet50 b8 1x1", 8, 56, 64, 256, 1, 1},
    {"resnet50 b8 1x1 deep", 8, 14, 1024, 256, 1, 1},  {"resnet18 b1 stem", 1, 224, 3, 64, 7, 2},
    {"resnet18 b1 64", 1, 56, 64, 64, 3, 1},           {"resnet18 b1 64-128/2", 1, 56, 64, 128, 3, 2},
    {"resnet18 b1 128", 1, 28, 128, 128, 3, 1},        {"resnet18 b1 128-256/2", 1, 28, 128, 256, 3, 2},
    {"resnet18 b1 256", 1, 14, 256, 256, 3, 1},        {"resnet18 b1 256-512/2", 1, 14, 256, 512, 3, 2},
    {"resnet18 b1 512", 1, 7, 512, 512, 3, 1},         {"resnet20 b64 first", 64, 32, 3, 16, 3, 1},
    {"resnet20 b64 16", 64, 32, 16, 16, 3, 1},         {"resnet20 b64 16-32/2", 64, 32, 16, 32, 3, 2},
    {"resnet20 b64 32", 64, 16, 32, 32, 3, 1},         {"resnet20 b64 32-64/2", 64, 16, 32, 64, 3, 2},
    {"resnet20 b64 64", 64, 8, 64, 64, 3, 1},          {"depthwise b8 128", 8, 28, 128, 128, 3, 1, 128},
    {"groups b8 128 by 4", 8, 28, 128, 128, 3, 1, 32}, {"lenet b64 6-16", 64, 14, 6, 16, 5, 1},
};

wg::kernels::ConvShape shape_of(const Layer& l) {
  wg::kernels::ConvShape s;
  s.window.batch = l.batch;
  s.window.channels = l.channels;
  s.out_channels = l.out_channels;
  s.groups = l.groups;
  const Index before = (l.kernel - 1) / 2, out = (l.size + 2 * before - l.kernel) / l.stride + 1;
  s.window.axis[1] = s.window.axis[2] = {l.size, out, l.kernel, l.stride, before, 1};
  return s;
}

using Pass = wg::kernels::ConvPass;

/// One pass in oneDNN, in NHWC or in the format it asks for.
class Theirs {
 public:
  Theirs(const Layer& l, Pass pass, bool nhwc, const float* x, const float* w, const float* y)
      : stream_(engine_) {
    const Index before = (l.kernel - 1) / 2, out = (l.size + 2 * before - l.kernel) / l.stride + 1;
    const Index after = (out - 1) * l.stride + l.kernel - l.size - before;
    const memory::dims xs{l.batch, l.channels, l.size, l.size}, ys{l.batch, l.out_channels, out, out};
    const Index g = l.groups, cg = l.channels / g, kg = l.out_channels / g;
    const memory::dims ws =
        g == 1 ? memory::dims{kg, cg, l.kernel, l.kernel} : memory::dims{g, kg, cg, l.kernel, l.kernel};
    // Our weights: (kh, kw, C / groups, K).
    const Index k = l.out_channels;
    const memory::dims wt = g == 1 ? memory::dims{1, k, l.kernel * cg * k, cg * k}
                                   : memory::dims{kg, 1, k, l.kernel * cg * k, cg * k};
    using Tag = memory::format_tag;
    const auto f32 = memory::data_type::f32;
    const Tag image = nhwc ? Tag::nhwc : Tag::any;
    const memory::desc x_md(xs, f32, image), y_md(ys, f32, image), w_md(ws, f32, Tag::any);
    const memory::dims stride{l.stride, l.stride}, low{before, before}, high{after, after};
    const auto algorithm = dnnl::algorithm::convolution_auto;
    const dnnl::convolution_forward::primitive_desc forward(
        {dnnl::prop_kind::forward_training, algorithm, x_md, w_md, y_md, stride, low, high}, engine_);
    const memory::desc plain_x(xs, f32, Tag::nhwc), plain_y(ys, f32, Tag::nhwc), plain_w(ws, f32, wt);
    const auto in = [&](const memory::desc& md, const memory::desc& plain, const float* data) {
      memory from(plain, engine_, const_cast<float*>(data)), to(md, engine_);
      dnnl::reorder(from, to).execute(stream_, from, to);
      stream_.wait();
      return to;
    };
    const auto finish = [&](auto pd, dnnl::primitive p, memory::desc result, memory::desc plain, int what) {
      (void)pd;
      primitive_ = p;
      result_ = memory(result, engine_);
      plain_ = plain;
      arguments_[what] = result_;
    };
    if (pass == Pass::forward) {
      arguments_[DNNL_ARG_SRC] = in(forward.src_desc(), plain_x, x);
      arguments_[DNNL_ARG_WEIGHTS] = in(forward.weights_desc(), plain_w, w);
      finish(forward, dnnl::convolution_forward(forward), forward.dst_desc(), plain_y, DNNL_ARG_DST);
    } else if (pass == Pass::data) {
      const dnnl::convolution_backward_data::primitive_desc pd(
          {algorithm == dnnl::algorithm::convolution_auto ? dnnl::algorithm::convolution_direct : algorithm,
           x_md, w_md, y_md, stride, low, high},
          engine_, forward);
      arguments_[DNNL_ARG_DIFF_DST] = in(pd.diff_dst_desc(), plain_y, y);
      arguments_[DNNL_ARG_WEIGHTS] = in(pd.weights_desc(), plain_w, w);
      finish(pd, dnnl::convolution_backward_data(pd), pd.diff_src_desc(), plain_x, DNNL_ARG_DIFF_SRC);
    } else {
      const dnnl::convolution_backward_weights::primitive_desc pd(
          {dnnl::algorithm::convolution_direct, x_md, w_md, y_md, stride, low, high}, engine_, forward);
      arguments_[DNNL_ARG_SRC] = in(pd.src_desc(), plain_x, x);
      arguments_[DNNL_ARG_DIFF_DST] = in(pd.diff_dst_desc(), plain_y, y);
      finish(pd, dnnl::convolution_backward_weights(pd), pd.diff_weights_desc(), plain_w,
             DNNL_ARG_DIFF_WEIGHTS);
    }
  }

  void run() {
    primitive_.execute(stream_, arguments_);
    stream_.wait();
  }
  /// The result in our layout.
  void result(float* out) {
    memory to(plain_, engine_, out);
    dnnl::reorder(result_, to).execute(stream_, result_, to);
    stream_.wait();
  }

 private:
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_;
  dnnl::primitive primitive_;
  memory result_;
  memory::desc plain_;
  std::unordered_map<int, memory> arguments_;
};

struct Options {
  int threads = 1;
  bool quick = false, exact = false;
  std::string filter;
};

struct Result {
  double ours, best, nhwc, error;
};

Result compare(const Layer& l, Pass pass, const Options& options) {
  const wg::kernels::ConvShape s = shape_of(l);
  const Values x = values(s.input_size(), 1), w = values(s.weight_size(), 2), y = values(s.output_size(), 3);
  const Index size = pass == Pass::forward ? s.output_size()
                     : pass == Pass::data  ? s.input_size()
                                           : s.weight_size();
  const Values mine(size), other(size);
  const auto ours = [&] {
    if (pass == Pass::forward)
      wg::kernels::conv_forward<float>(s, x.data(), w.data(), nullptr, wg::kernels::Activation::none,
                                       mine.data(), options.exact);
    else if (pass == Pass::data)
      wg::kernels::conv_backward_data<float>(s, y.data(), w.data(), mine.data(), false, options.exact);
    else
      wg::kernels::conv_backward_weights<float>(s, x.data(), y.data(), mine.data(), false, options.exact);
  };
  Theirs any(l, pass, false, x.data(), w.data(), y.data()), nhwc(l, pass, true, x.data(), w.data(), y.data());
  ours();
  any.run();
  nhwc.run();
  any.result(other.data());
  double largest = 0, error = 0;
  for (Index i = 0; i < size; ++i) {
    largest = std::max(largest, std::fabs(double(other[i])));
    error = std::max(error, std::fabs(double(other[i]) - double(mine[i])));
  }
  if (!(error <= 1e-4 * largest)) {
    std::fprintf(stderr, "onednn_conv: results differ by %g of %g in %s\n", error, largest, l.name);
    std::exit(1);
  }
  const bool pause = options.threads > 1;  // the side that just ran still spins, and must fall asleep
  std::vector<double> times[3];
  const double once = [&] {
    const double begin = seconds();
    ours();
    return seconds() - begin;
  }();
  const int inner = std::max(1, static_cast<int>((pause ? 0.004 : 0.001) / once));
  const int samples = options.quick ? 1 : std::clamp(static_cast<int>(0.6 / (3 * inner * once)), 5, 25);
  const auto sample = [&](auto work, std::vector<double>& into) {
    if (pause) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    const double awake = seconds();
    do work();
    while (pause && seconds() - awake < 0.01);  // processors that slept are slow to come back
    const double begin = seconds();
    for (int i = 0; i < inner; ++i) work();
    into.push_back((seconds() - begin) / inner);
  };
  for (int i = 0; i < samples; ++i) {
    sample(ours, times[0]);
    sample([&] { any.run(); }, times[1]);
    sample([&] { nhwc.run(); }, times[2]);
  }
  const double nhwc_time = median(times[2]);
  return {median(times[0]), std::min(median(times[1]), nhwc_time), nhwc_time, error / largest};
}

int usage() {
  std::fprintf(stderr, "usage: onednn_conv [--threads N] [--filter NAME] [--exact] [--quick]\n");
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string a = argv[i];
    if (a == "--quick")
      options.quick = true;
    else if (a == "--exact")
      options.exact = true;
    else if (a == "--filter" && i + 1 < argc)
      options.filter = argv[++i];
    else if (a == "--threads" && i + 1 < argc && std::atoi(argv[i + 1]) > 0)
      options.threads = std::atoi(argv[++i]);
    else
      return usage();
  }
  onednn_peer::set_threads(options.threads);

  double sum = 0;
  int count = 0;
  std::printf("float32, NHWC, %d thread(s), %s; times in ms; ratio below 1: ours is faster\n",
              options.threads, wg::simd_name());
  std::printf("%-24s %-8s %-16s %9s %8s %8s %8s %6s %8s\n", "layer", "pass", "algorithm", "GFLOP/s", "ours",
              "oneDNN", "its NHWC", "ratio", "error");
  for (const Layer& l : layers) {
    if (std::string(l.name).find(options.filter) == std::string::npos) continue;
    const wg::kernels::ConvShape s = shape_of(l);
    const double flop = 2 * double(s.products()) * double(s.output_size());
    if (options.quick && flop > 2e8) continue;
    const char* names[] = {"forward", "data", "weights"};
    for (const Pass pass : {Pass::forward, Pass::data, Pass::weights}) {
      const Result r = compare(l, pass, options);
      const std::string algorithm(name_of(wg::kernels::conv_algorithm<float>(s, pass, options.exact)));
      std::printf("%-24s %-8s %-16s %9.1f %8.3f %8.3f %8.3f %6.2f %8.1e\n", l.name,
                  names[static_cast<int>(pass)], algorithm.c_str(), flop / r.ours * 1e-9, 1e3 * r.ours,
                  1e3 * r.best, 1e3 * r.nhwc, r.ours / r.best, r.error);
      std::fflush(stdout);
      sum += std::log(r.ours / r.best);
      ++count;
    }
  }
  if (count > 0) std::printf("geometric mean of ratios: %.3f\n", std::exp(sum / count));
}
