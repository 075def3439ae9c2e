// ResNets in libtorch, as a user of its C++ frontend would write them: in its own layout, and channels last.
#include <utility>

#include "torch_common.hpp"
#include "torch_models.hpp"

namespace bench {
namespace {

namespace nn = torch::nn;

nn::Conv2d conv(std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t stride) {
  return nn::Conv2d(nn::Conv2dOptions(in, out, kernel).stride(stride).padding(kernel / 2).bias(false));
}

struct BlockImpl : nn::Module {
  nn::Conv2d conv1, conv2;
  nn::BatchNorm2d bn1, bn2;
  nn::Sequential downsample{nullptr};
  bool pad_channels = false;
  std::int64_t stride;

  BlockImpl(std::int64_t in, std::int64_t out, std::int64_t stride_, bool projects)
      : conv1(conv(in, out, 3, stride_)), conv2(conv(out, out, 3, 1)), bn1(out), bn2(out), stride(stride_) {
    register_module("conv1", conv1);
    register_module("bn1", bn1);
    register_module("conv2", conv2);
    register_module("bn2", bn2);
    if (stride == 1 && in == out) return;
    if (projects)
      downsample =
          register_module("downsample", nn::Sequential(conv(in, out, 1, stride), nn::BatchNorm2d(out)));
    else
      pad_channels = true;
  }

  torch::Tensor forward(const torch::Tensor& x) {
    torch::Tensor shortcut = x;
    if (!downsample.is_empty()) shortcut = downsample->forward(x);
    if (pad_channels) {  // every second pixel, and channels of zeros
      using torch::indexing::None;
      using torch::indexing::Slice;
      const std::int64_t more = conv1->options.out_channels() - conv1->options.in_channels();
      shortcut = x.index({Slice(), Slice(), Slice(None, None, stride), Slice(None, None, stride)});
      shortcut = torch::constant_pad_nd(shortcut, {0, 0, 0, 0, more / 2, more - more / 2});
    }
    const torch::Tensor y = torch::relu(bn1(conv1(x)));
    return torch::relu(bn2(conv2(y)) + shortcut);
  }
};
TORCH_MODULE(Block);

struct NetImpl : nn::Module {
  nn::Conv2d conv1;
  nn::BatchNorm2d bn1;
  std::vector<nn::Sequential> layers;
  nn::Linear fc;
  bool large;

  NetImpl(bool large_, std::int64_t in, std::int64_t width, std::int64_t stages, std::int64_t blocks,
          std::int64_t classes)
      : conv1(large_ ? conv(in, width, 7, 2) : conv(in, width, 3, 1)),
        bn1(width),
        fc(width << (stages - 1), classes),
        large(large_) {
    register_module("conv1", conv1);
    register_module("bn1", bn1);
    std::int64_t from = width;
    for (std::int64_t i = 0; i < stages; ++i) {
      nn::Sequential layer;
      const std::int64_t to = width << i;
      for (std::int64_t k = 0; k < blocks; ++k)
        layer->push_back(Block(k == 0 ? from : to, to, k == 0 && i > 0 ? 2 : 1, large));
      layers.push_back(register_module("layer" + std::to_string(i + 1), layer));
      from = to;
    }
    register_module("fc", fc);
  }

  // Every weight from its name, so that all contestants begin alike; theirs is (out, in, kh, kw), the common
  // data (kh, kw, in, out).
  void reset() {
    torch::NoGradGuard no_grad;
    for (auto& parameter : named_parameters()) {
      torch::Tensor& p = parameter.value();
      if (p.dim() == 4) {
        const float bound = std::sqrt(6.0f / static_cast<float>(p.size(1) * p.size(2) * p.size(3)));
        p.copy_(uniform_tensor({p.size(2), p.size(3), p.size(1), p.size(0)}, -bound, bound,
                               seed_of(parameter.key()))
                    .permute({3, 2, 0, 1}));
      } else if (p.dim() == 2) {
        const float bound = 1 / std::sqrt(static_cast<float>(p.size(1)));
        p.copy_(uniform_tensor(p.sizes(), -bound, bound, seed_of(parameter.key())));
      } else {
        p.fill_(parameter.key().find("weight") != std::string::npos ? 1 : 0);
      }
    }
    for (auto& buffer : named_buffers())
      buffer.value().fill_(buffer.key().find("var") != std::string::npos ? 1 : 0);
  }

  torch::Tensor forward(torch::Tensor x) {
    x = torch::relu(bn1(conv1(x)));
    if (large) x = torch::max_pool2d(x, 3, 2, 1);
    for (nn::Sequential& layer : layers) x = layer->forward(x);
    return fc(x.mean({2, 3}));
  }
};
TORCH_MODULE(Net);

class ResNet final : public Peer {
 public:
  ResNet(const Case& work, bool channels_last)
      : large_(work.work == "resnet18"),
        trains_(!large_),
        net_(large_, work.size[2], large_ ? 64 : 16, large_ ? 4 : 3, large_ ? 2 : 3, large_ ? 1000 : 10),
        labels_(tensor_of(indices(work.size[0], large_ ? 1000 : 10, 2), {work.size[0]})) {
    const std::int64_t n = work.size[0], side = work.size[1], c = work.size[2];
    x_ = uniform_tensor({n, side, side, c}, -1, 1, 1).permute({0, 3, 1, 2});
    x_ = x_.contiguous(channels_last ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous);
    if (channels_last)
      for (torch::Tensor& p : net_->parameters())
        if (p.dim() == 4) p.set_data(p.data().contiguous(at::MemoryFormat::ChannelsLast));
    reset();
  }
  unsigned parts() const override { return kForward | kBackward | kZero | (trains_ ? kOptimize : 0U); }
  void reset() override {
    net_->reset();
    net_->zero_grad(true);
    if (trains_)
      optimizer_ = std::make_unique<torch::optim::SGD>(
          net_->parameters(), torch::optim::SGDOptions(resnet_model::kRate).momentum(0.9).weight_decay(1e-4));
  }
  void forward() override {
    const torch::Tensor y = net_(x_);
    loss_ = x_.size(0) == 1 ? y.sum() : torch::cross_entropy_loss(y, labels_);
  }
  void backward() override { loss_.backward(); }
  void optimize() override { optimizer_->step(); }
  void zero() override { net_->zero_grad(true); }
  double value() override { return loss_.item<double>(); }
  double gradient_norm() override { return norm_of_gradients(net_->parameters()); }

 private:
  bool large_, trains_;
  Net net_;
  torch::Tensor x_, labels_, loss_;
  std::unique_ptr<torch::optim::SGD> optimizer_;
};

}  // namespace

std::unique_ptr<Peer> make_torch_resnet(const Case& work, bool channels_last) {
  if (work.work != "resnet18" && work.work != "resnet20") return nullptr;
  return std::make_unique<ResNet>(work, channels_last);
}

}  // namespace bench
