// Models, the chain of tiny operators and AdamW in libtorch, as a user of its C++ frontend would write them.
#include "torch_models.hpp"

#include <cstdlib>
#include <dlfcn.h>
#include <string_view>
#include <utility>

#include <ATen/Config.h>
#include <ATen/Version.h>

#include "torch_common.hpp"

namespace bench {
namespace {

namespace nn = torch::nn;

// torch keeps a linear layer's weight as (out, in), the common data is (in, out).
nn::Linear linear(std::int64_t in, std::int64_t out, bool bias) {
  return nn::Linear(nn::LinearOptions(in, out).bias(bias));
}

float bound_of(std::int64_t fan_in) { return 1.0f / std::sqrt(static_cast<float>(fan_in)); }

void fill(nn::Linear& layer, std::uint64_t weight_seed, std::uint64_t bias_seed = 0) {
  torch::NoGradGuard no_grad;
  const std::int64_t in = layer->options.in_features();
  const std::int64_t out = layer->options.out_features();
  const float bound = bound_of(in);
  layer->weight.copy_(uniform_tensor({in, out}, -bound, bound, weight_seed).t());
  if (layer->options.bias()) {
    layer->bias.zero_();
    if (bias_seed != 0) layer->bias.copy_(uniform_tensor({out}, -bound, bound, bias_seed));
  }
}

struct SeedNetImpl : nn::Module {
  nn::Embedding embedding{nn::EmbeddingOptions(seed_model::kVocabulary, seed_model::kWidth)};
  nn::Linear linear1 = linear(seed_model::kGroup, seed_model::kHidden, false);
  nn::BatchNorm1d norm1{seed_model::kHidden};
  nn::Linear linear2 = linear(seed_model::kPositions * seed_model::kHidden, seed_model::kHidden, false);
  nn::BatchNorm1d norm2{seed_model::kHidden};
  nn::Linear linear3 = linear(seed_model::kHidden, 1, true);

  SeedNetImpl() {
    register_module("embedding", embedding);
    register_module("linear1", linear1);
    register_module("norm1", norm1);
    register_module("linear2", linear2);
    register_module("norm2", norm2);
    register_module("linear3", linear3);
  }

  void reset() {
    torch::NoGradGuard no_grad;
    embedding->weight.copy_(uniform_tensor({seed_model::kVocabulary, seed_model::kWidth}, -1, 1, 11));
    fill(linear1, 12);
    fill(linear2, 13);
    fill(linear3, 14);
    for (nn::BatchNorm1d norm : {norm1, norm2}) {
      norm->reset_running_stats();
      norm->reset_parameters();
    }
  }

  torch::Tensor forward(const torch::Tensor& ids) {
    torch::Tensor x = embedding(ids).view({-1, seed_model::kGroup});  // (B * 2, 160)
    x = torch::tanh(norm1(linear1(x)));
    x = x.view({-1, seed_model::kPositions * seed_model::kHidden});  // (B, 256)
    x = torch::tanh(norm2(linear2(x)));
    return torch::sigmoid(linear3(x));
  }
};
TORCH_MODULE(SeedNet);

struct MlpNetImpl : nn::Module {
  nn::Linear linear1 = linear(mlp_model::kInput, mlp_model::kHidden1, true);
  nn::Linear linear2 = linear(mlp_model::kHidden1, mlp_model::kHidden2, true);
  nn::Linear linear3 = linear(mlp_model::kHidden2, mlp_model::kClasses, true);

  MlpNetImpl() {
    register_module("linear1", linear1);
    register_module("linear2", linear2);
    register_module("linear3", linear3);
  }

  void reset() {
    fill(linear1, 11, 21);
    fill(linear2, 12, 22);
    fill(linear3, 13, 23);
  }

  torch::Tensor forward(const torch::Tensor& x) {
    return linear3(torch::relu(linear2(torch::relu(linear1(x)))));
  }
};
TORCH_MODULE(MlpNet);

// What the two models share. `zero` drops the gradients instead of filling them with zeros: measured faster,
// because backward then hands over its buffers instead of adding to old ones.
template <class Net, class Optimizer, class Options>
class Training : public Peer {
 public:
  explicit Training(Options options) : options_(std::move(options)) { reset(); }
  unsigned parts() const override { return kForward | kBackward | kOptimize | kZero; }
  void reset() final {
    net_->reset();
    net_->zero_grad(true);
    optimizer_ = std::make_unique<Optimizer>(net_->parameters(), options_);
  }
  void backward() override { loss_.backward(); }
  void optimize() override { optimizer_->step(); }
  void zero() override { net_->zero_grad(true); }
  double value() override { return loss_.template item<double>(); }
  double gradient_norm() override { return norm_of_gradients(net_->parameters()); }

 protected:
  Net net_;
  torch::Tensor loss_;

 private:
  Options options_;
  std::unique_ptr<Optimizer> optimizer_;
};

class Seed final : public Training<SeedNet, torch::optim::AdamW, torch::optim::AdamWOptions> {
 public:
  explicit Seed(std::int64_t batch)
      : Training(torch::optim::AdamWOptions(seed_model::kRate)),
        ids_(tensor_of(indices(batch * seed_model::kTokens, seed_model::kVocabulary, 1),
                       {batch, seed_model::kTokens})),
        labels_(tensor_of(indices(batch, 2, 2), {batch, 1}).to(torch::kFloat)) {}
  void forward() override { loss_ = torch::binary_cross_entropy_with_logits(net_(ids_), labels_); }

 private:
  torch::Tensor ids_;
  torch::Tensor labels_;
};

class Mlp final : public Training<MlpNet, torch::optim::Adam, torch::optim::AdamOptions> {
 public:
  explicit Mlp(std::int64_t batch)
      : Training(torch::optim::AdamOptions(mlp_model::kRate)),
        x_(uniform_tensor({batch, mlp_model::kInput}, 0, 1, 1)),
        labels_(tensor_of(indices(batch, mlp_model::kClasses, 2), {batch})) {}
  void forward() override { loss_ = torch::cross_entropy_loss(net_(x_), labels_); }

 private:
  torch::Tensor x_;
  torch::Tensor labels_;
};

class Chain final : public Peer {
 public:
  explicit Chain(std::int64_t count)
      : x_(uniform_tensor({count}, -0.01f, 0.01f, 1).requires_grad_()),
        w_(uniform_tensor({count}, 0.999f, 1.001f, 2).requires_grad_()),
        b_(uniform_tensor({count}, -0.01f, 0.01f, 3).requires_grad_()),
        ones_(torch::ones({count})) {}
  unsigned parts() const override { return kForward | kBackward | kZero; }
  void forward() override {
    y_ = x_;
    for (std::int64_t i = 0; i < kChainOperators / 4; ++i) {
      y_ = y_ * w_;
      y_ = torch::tanh(y_);
      y_ = y_ + b_;
      y_ = y_ - b_;
    }
  }
  void backward() override { y_.backward(ones_); }
  void zero() override {
    for (torch::Tensor* leaf : {&x_, &w_, &b_}) leaf->mutable_grad().reset();
  }
  double value() override { return y_.to(torch::kDouble).mean().item<double>(); }
  double gradient_norm() override { return norm_of_gradients({x_, w_, b_}); }

 private:
  torch::Tensor x_, w_, b_, ones_, y_;
};

class AdamWOnly final : public Peer {
 public:
  explicit AdamWOnly(std::int64_t count)
      : initial_(uniform_tensor({count}, -1, 1, 1)), parameter_(initial_.clone().requires_grad_()) {
    parameter_.mutable_grad() = uniform_tensor({count}, -1, 1, 2);
    reset();
  }
  unsigned parts() const override { return kOptimize; }
  void reset() override {
    optimizer_ = nullptr;  // gives its state back before the next one asks for the same
    optimizer_ = std::make_unique<torch::optim::AdamW>(std::vector<torch::Tensor>{parameter_},
                                                       torch::optim::AdamWOptions(1e-3));
    torch::NoGradGuard no_grad;
    parameter_.copy_(initial_);
  }
  void optimize() override { optimizer_->step(); }
  double value() override { return parameter_.detach().to(torch::kDouble).mean().item<double>(); }
  double gradient_norm() override { return norm_of_gradients({parameter_}); }

 private:
  torch::Tensor initial_, parameter_;
  std::unique_ptr<torch::optim::AdamW> optimizer_;
};

// "AVX2", "AVX512", ...: the instruction set of ATen's own loops, which only its configuration text tells.
std::string aten_instruction_set() {
  static constexpr std::string_view kKey = "CPU capability usage: ";
  const std::string text = at::show_config();
  const std::size_t at = text.find(kKey);
  if (at == std::string::npos) return "unknown";
  const std::size_t begin = at + kKey.size();
  return text.substr(begin, text.find('\n', begin) - begin);
}

// The shared library that serves sgemm_, and which kernels it has chosen or was told to use.
std::string blas_in_use() {
  void* const symbol = dlsym(RTLD_DEFAULT, "sgemm_");
  Dl_info info{};
  if (symbol == nullptr || dladdr(symbol, &info) == 0) return "unknown BLAS";
  const std::string file = info.dli_fname;
  std::string name = file.find("openblas") != std::string::npos ? "OpenBLAS"
                     : file.find("blis") != std::string::npos   ? "BLIS"
                                                                : file;
  if (void* const config = dlsym(RTLD_DEFAULT, "openblas_get_corename");
      config != nullptr && name == "OpenBLAS") {
    name += std::string(" ") + reinterpret_cast<const char* (*)()>(config)();
  }
  if (const char* const kernels = std::getenv("BLIS_ARCH_TYPE"); kernels != nullptr && name == "BLIS") {
    name += std::string(" with BLIS_ARCH_TYPE=") + kernels;
  }
  return name;
}

}  // namespace

std::unique_ptr<Peer> make_torch(const Case& work) {
  if (work.work == "seed") return std::make_unique<Seed>(work.size[0]);
  if (work.work == "mlp") return std::make_unique<Mlp>(work.size[0]);
  if (work.work == "chain") return std::make_unique<Chain>(work.size[0]);
  if (work.work == "adamw") return std::make_unique<AdamWOnly>(work.size[0]);
  if (auto resnet = make_torch_resnet(work, false)) return resnet;
  return make_torch_operator(work);
}

void torch_set_threads(int count) { torch::set_num_threads(count); }

std::string torch_description() {
  return "libtorch " TORCH_VERSION " (ATen " + aten_instruction_set() + ", " + blas_in_use() + ")";
}

}  // namespace bench
