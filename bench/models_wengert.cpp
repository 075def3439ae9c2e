// This library's side of every case, written as a user would write it.
#include "models_wengert.hpp"

#include <cmath>
#include <functional>
#include <map>
#include <utility>

#include <wengert/wengert.hpp>

#include "common/data.hpp"

namespace bench {

namespace {

namespace wg = wengert;
using wg::Shape;
using wg::Tensor;

Tensor<float> uniform_tensor(const Shape& shape, float low, float high, std::uint64_t seed) {
  return Tensor<float>(shape, uniform(shape.size(), low, high, seed));
}

double norm_of_gradients(wg::GradStore& grads, const std::vector<Tensor<float>>& leaves) {
  double sum = 0;
  for (const Tensor<float>& leaf : leaves)
    for (const float g : grads[leaf].span()) sum += static_cast<double>(g) * g;
  return std::sqrt(sum);
}

/// Weights of the common data are (in, out); the layer keeps (out, in).
void fill(wg::nn::Linear<float>& layer, std::uint64_t weight_seed, std::uint64_t bias_seed = 0) {
  const wg::Index out = layer.weight.dim(0), in = layer.weight.dim(1);
  const float bound = 1 / std::sqrt(static_cast<float>(in));
  const Tensor<float> weight = uniform_tensor({in, out}, -bound, bound, weight_seed);
  layer.weight.copy_from(transpose(weight));
  if (!layer.bias) return;
  layer.bias->fill(0);
  if (bias_seed != 0) layer.bias->copy_from(uniform_tensor({out}, -bound, bound, bias_seed));
}

struct SeedNet : wg::nn::Module<SeedNet> {
  wg::Generator gen{0};
  wg::nn::Embedding<float> embedding{seed_model::kVocabulary, seed_model::kWidth, gen};
  wg::nn::Linear<float> linear1{seed_model::kGroup, seed_model::kHidden, gen, {.bias = false}};
  wg::nn::BatchNorm1d<float> norm1{seed_model::kHidden};
  wg::nn::Linear<float> linear2{
      seed_model::kPositions * seed_model::kHidden, seed_model::kHidden, gen, {.bias = false}};
  wg::nn::BatchNorm1d<float> norm2{seed_model::kHidden};
  wg::nn::Linear<float> linear3{seed_model::kHidden, 1, gen};
  void members(auto& list) {
    list("embedding", embedding, "linear1", linear1, "norm1", norm1, "linear2", linear2, "norm2", norm2,
         "linear3", linear3);
  }

  void reset() {
    embedding.weight.copy_from(uniform_tensor(embedding.weight.shape(), -1, 1, 11));
    fill(linear1, 12);
    fill(linear2, 13);
    fill(linear3, 14);
    for (wg::nn::BatchNorm1d<float>* norm : {&norm1, &norm2}) {
      norm->weight->fill(1);
      norm->bias->fill(0);
      norm->running_mean.fill(0);
      norm->running_var.fill(1);
    }
  }

  Tensor<float> operator()(const Tensor<std::int64_t>& ids) {
    Tensor<float> x = reshape(embedding(ids), {-1, seed_model::kGroup});  // (B * 2, 160)
    x = tanh(norm1(linear1(x)));
    x = reshape(x, {-1, seed_model::kPositions * seed_model::kHidden});  // (B, 256)
    x = tanh(norm2(linear2(x)));
    return sigmoid(linear3(x));
  }
};

struct MlpNet : wg::nn::Module<MlpNet> {
  wg::Generator gen{0};
  wg::nn::Linear<float> linear1{mlp_model::kInput, mlp_model::kHidden1, gen};
  wg::nn::Linear<float> linear2{mlp_model::kHidden1, mlp_model::kHidden2, gen};
  wg::nn::Linear<float> linear3{mlp_model::kHidden2, mlp_model::kClasses, gen};
  void members(auto& list) { list("linear1", linear1, "linear2", linear2, "linear3", linear3); }

  void reset() {
    fill(linear1, 11, 21);
    fill(linear2, 12, 22);
    fill(linear3, 13, 23);
  }

  Tensor<float> operator()(const Tensor<float>& x) {
    return linear3(linear2.with_relu(linear1.with_relu(x)));
  }
};

/// What the two models share.
template <class Net, class Optimizer, class Options>
class Training : public Peer {
 public:
  explicit Training(Options options) : options_(options) { reset(); }
  unsigned parts() const override { return kForward | kBackward | kOptimize | kZero; }
  void reset() final {
    net_.reset();
    grads_.zero();
    optimizer_ = std::make_unique<Optimizer>(net_.parameters(), options_);
  }
  void backward() override { wg::backward(loss_, grads_); }
  void optimize() override { optimizer_->step(grads_); }
  void zero() override { grads_.zero(); }
  double value() override { return static_cast<double>(loss_.item()); }
  double gradient_norm() override { return norm_of_gradients(grads_, net_.parameters()); }

 protected:
  Net net_;
  Tensor<float> loss_;

 private:
  Options options_;
  wg::GradStore grads_;
  std::unique_ptr<Optimizer> optimizer_;
};

class Seed final : public Training<SeedNet, wg::optim::AdamW<float>, wg::optim::AdamWOptions> {
 public:
  explicit Seed(std::int64_t batch)
      : Training({.lr = static_cast<double>(seed_model::kRate)}),
        ids_({batch, seed_model::kTokens}, indices(batch * seed_model::kTokens, seed_model::kVocabulary, 1)),
        labels_(wg::cast<float>(Tensor<std::int64_t>({batch, 1}, indices(batch, 2, 2)))) {}
  void forward() override { loss_ = wg::bce_with_logits(net_(ids_), labels_); }

 private:
  Tensor<std::int64_t> ids_;
  Tensor<float> labels_;
};

class Mlp final : public Training<MlpNet, wg::optim::Adam<float>, wg::optim::AdamOptions> {
 public:
  explicit Mlp(std::int64_t batch)
      : Training({.lr = static_cast<double>(mlp_model::kRate)}),
        x_(uniform_tensor({batch, mlp_model::kInput}, 0, 1, 1)),
        labels_({batch}, indices(batch, mlp_model::kClasses, 2)) {}
  void forward() override { loss_ = wg::cross_entropy(net_(x_), labels_); }

 private:
  Tensor<float> x_;
  Tensor<std::int64_t> labels_;
};

class Chain final : public Peer {
 public:
  explicit Chain(std::int64_t count)
      : leaves_{uniform_tensor({count}, -0.01f, 0.01f, 1), uniform_tensor({count}, 0.999f, 1.001f, 2),
                uniform_tensor({count}, -0.01f, 0.01f, 3)},
        ones_(wg::ones<float>({count})) {
    for (Tensor<float>& leaf : leaves_) leaf.requires_grad(true);
  }
  unsigned parts() const override { return kForward | kBackward | kZero; }
  void forward() override {
    const auto& [x, w, b] = std::tie(leaves_[0], leaves_[1], leaves_[2]);
    y_ = x;
    for (std::int64_t i = 0; i < kChainOperators / 4; ++i) {
      y_ = y_ * w;
      y_ = tanh(y_);
      y_ = y_ + b;
      y_ = y_ - b;
    }
  }
  void backward() override { wg::backward(y_, ones_, grads_); }
  void zero() override { grads_.zero(); }
  double value() override { return static_cast<double>(mean(y_.detach()).item()); }
  double gradient_norm() override { return norm_of_gradients(grads_, leaves_); }

 private:
  std::vector<Tensor<float>> leaves_;
  Tensor<float> ones_, y_;
  wg::GradStore grads_;
};

class AdamWOnly final : public Peer {
 public:
  explicit AdamWOnly(std::int64_t count)
      : initial_(uniform_tensor({count}, -1, 1, 1)), parameter_(clone(initial_)) {
    parameter_.requires_grad(true);
    wg::backward(parameter_, uniform_tensor({count}, -1, 1, 2), grads_);
    reset();
  }
  unsigned parts() const override { return kOptimize; }
  void reset() override {
    optimizer_ = nullptr;  // gives its state back before the next one asks for the same
    optimizer_ = std::make_unique<wg::optim::AdamW<float>>(std::vector<Tensor<float>>{parameter_},
                                                           wg::optim::AdamWOptions{.lr = 1e-3});
    parameter_.copy_from(initial_);
  }
  void optimize() override { optimizer_->step(grads_); }
  double value() override { return static_cast<double>(mean(parameter_.detach()).item()); }
  double gradient_norm() override { return norm_of_gradients(grads_, {parameter_}); }

 private:
  Tensor<float> initial_, parameter_;
  wg::GradStore grads_;
  std::unique_ptr<wg::optim::AdamW<float>> optimizer_;
};

}  // namespace

std::unique_ptr<Peer> make_wengert(const Case& work) {
  if (work.work == "seed") return std::make_unique<Seed>(work.size[0]);
  if (work.work == "mlp") return std::make_unique<Mlp>(work.size[0]);
  if (work.work == "chain") return std::make_unique<Chain>(work.size[0]);
  if (work.work == "adamw") return std::make_unique<AdamWOnly>(work.size[0]);
  if (auto resnet = make_wengert_resnet(work)) return resnet;
  return make_wengert_operator(work);
}

void wengert_set_threads(int count) { wg::set_num_threads(count); }

std::string wengert_description() {
  return "wengert " + std::to_string(WENGERT_VERSION_MAJOR) + "." + std::to_string(WENGERT_VERSION_MINOR) +
         "." + std::to_string(WENGERT_VERSION_PATCH) + " (" + wg::simd_name() + ")";
}

}  // namespace bench
