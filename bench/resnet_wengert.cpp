// This library's side of the residual networks.
#include <cmath>
#include <optional>

#include <wengert/models/resnet.hpp>
#include <wengert/wengert.hpp>

#include "common/data.hpp"
#include "models_wengert.hpp"

namespace bench {
namespace {

namespace wg = wengert;
using wg::Tensor;
using Net = wg::models::ResNet<wg::models::BasicBlock<float>>;

Tensor<float> uniform_tensor(const wg::Shape& shape, float low, float high, std::uint64_t seed) {
  return Tensor<float>(shape, uniform(shape.size(), low, high, seed));
}

class ResNet final : public Peer {
 public:
  explicit ResNet(const Case& work)
      : trains_(work.work == "resnet20"),
        net_(trains_ ? wg::models::resnet20<float>(gen_, {.channels = work.size[2]})
                     : wg::models::resnet18<float>(gen_, {.channels = work.size[2]})),
        x_(uniform_tensor({work.size[0], work.size[1], work.size[1], work.size[2]}, -1, 1, 1)),
        labels_({work.size[0]}, indices(work.size[0], trains_ ? 10 : 1000, 2)) {
    reset();
  }
  unsigned parts() const override { return kForward | kBackward | kZero | (trains_ ? kOptimize : 0U); }
  void reset() override {
    for (auto& [name, p] : net_.named_parameters()) {
      Tensor<float> parameter = p;
      const wg::Shape& shape = parameter.shape();
      const float bound = shape.rank() == 4
                              ? std::sqrt(6.0f / static_cast<float>(shape[0] * shape[1] * shape[2]))
                              : 1 / std::sqrt(static_cast<float>(shape.back()));
      if (shape.rank() > 1)
        parameter.copy_from(uniform_tensor(shape, -bound, bound, seed_of(name)));
      else
        parameter.fill(name.find("weight") != std::string::npos ? 1.0f : 0.0f);
    }
    for (auto& [name, b] : net_.named_buffers()) {
      Tensor<float> buffer = b;
      buffer.fill(name.find("var") != std::string::npos ? 1.0f : 0.0f);
    }
    grads_.zero();
    if (trains_)
      optimizer_.emplace(
          net_.parameters(),
          wg::optim::SgdOptions{.lr = double{resnet_model::kRate}, .momentum = 0.9, .weight_decay = 1e-4});
  }
  void forward() override {
    const Tensor<float> y = net_(x_);
    loss_ = x_.dim(0) == 1 ? wg::sum(y) : wg::cross_entropy(y, labels_);
  }
  void backward() override { wg::backward(loss_, grads_); }
  void optimize() override { optimizer_->step(grads_); }
  void zero() override { grads_.zero(); }
  double value() override { return static_cast<double>(loss_.item()); }
  double gradient_norm() override {
    double sum = 0;
    for (const Tensor<float>& parameter : net_.parameters())
      for (const float g : grads_[parameter].span()) sum += static_cast<double>(g) * static_cast<double>(g);
    return std::sqrt(sum);
  }

 private:
  bool trains_;
  wg::Generator gen_{0};
  Net net_;
  Tensor<float> x_, loss_;
  Tensor<std::int64_t> labels_;
  wg::GradStore grads_;
  std::optional<wg::optim::Sgd<float>> optimizer_;
};

}  // namespace

std::unique_ptr<Peer> make_wengert_resnet(const Case& work) {
  if (work.work != "resnet18" && work.work != "resnet20") return nullptr;
  return std::make_unique<ResNet>(work);
}

}  // namespace bench
