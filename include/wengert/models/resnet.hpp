// Residual networks: ResNet-18, 34 and 50 for large images, ResNet-20, 32 and 56 for small ones. wengert.hpp
// does not include them. Floor: models.
#pragma once

#include <initializer_list>

#include <wengert/nn/conv.hpp>
#include <wengert/nn/linear.hpp>
#include <wengert/nn/norm.hpp>
#include <wengert/nn/pool.hpp>
#include <wengert/nn/sequential.hpp>
#include <wengert/ops/pad.hpp>
#include <wengert/ops/view_slice.hpp>

namespace wengert::inline WENGERT_ISA::models {

/// How a block's input reaches its end where the number of channels or the size of the image changes.
enum class Shortcut : std::uint8_t {
  projection,  ///< through a convolution 1x1 and batch norm: torchvision's, the paper's option B
  padded       ///< every second pixel, with channels of zeros on both sides: option A, without parameters
};

namespace detail {

/// A convolution k x k without bias, weights normal with variance 2 / (k * k * out) as torchvision's.
template <Field T>
nn::Conv2d<T> convolution(Index in, Index out, Index kernel, Index stride, Generator& generator) {
  nn::Conv2d<T> conv(in, out, kernel, generator, {.stride = stride, .padding = kernel / 2, .bias = false});
  nn::init::kaiming_normal(conv.weight, generator, {.mode = nn::init::Fan::out});
  return conv;
}

/// The shortcut of a block from `in` to `out` channels.
template <Field T>
class BlockShortcut {
 public:
  using Projection = nn::Sequential<nn::Conv2d<T>, nn::BatchNorm2d<T>>;

  BlockShortcut(Index in, Index out, Index stride, Shortcut kind) : in_(in), out_(out), stride_(stride) {
    changes_ = stride != 1 || in != out;
    projects_ = changes_ && kind == Shortcut::projection;
    if (changes_ && !projects_ && in > out)
      fail<ValueError>("resnet", "a padded shortcut cannot drop channels; in is ", in, ", out is ", out,
                       "; expected in <= out");
  }
  std::optional<Projection> projection(Generator& generator) const {
    if (!projects_) return std::nullopt;
    return Projection{convolution<T>(in_, out_, 1, stride_, generator), nn::BatchNorm2d<T>(out_)};
  }
  Tensor<T> operator()(const Tensor<T>& x, std::optional<Projection>& projection) const {
    if (!changes_) return x;
    if (projection) return (*projection)(x);
    const Index more = out_ - in_;
    const Tensor<T> fewer = slice(slice(x, 1, 0, axis_end, stride_), 2, 0, axis_end, stride_);
    return pad(fewer, {{0, 0}, {0, 0}, {0, 0}, {more / 2, more - more / 2}});
  }

 private:
  Index in_, out_, stride_;
  bool changes_, projects_;
};

}  // namespace detail

/// Two convolutions 3x3: y = relu(bn2(conv2(relu(bn1(conv1(x))))) + shortcut(x)). x is (N, H, W, in), y is
/// (N, ceil(H / stride), ceil(W / stride), width). The first convolution has the stride. Three records where
/// the shortcut is x itself, as each norm takes in the relu, and the second the sum.
template <Field T>
class BasicBlock : public nn::Module<BasicBlock<T>, T> {
 public:
  static constexpr Index expansion = 1;  ///< channels of y, in widths

  BasicBlock(Index in, Index width, Index stride, Shortcut shortcut, Generator& generator)
      : shortcut_(in, width, stride, shortcut),
        conv1(detail::convolution<T>(in, width, 3, stride, generator)),
        bn1(width),
        conv2(detail::convolution<T>(width, width, 3, 1, generator)),
        bn2(width),
        downsample(shortcut_.projection(generator)) {}

  Tensor<T> operator()(const Tensor<T>& x) {
    const Tensor<T> inner = conv2(bn1.relu(conv1(x)));
    const Tensor<T> y = bn2.add_relu(inner, shortcut_(x, downsample));
    return this->noted(y);
  }
  void members(auto& list) {
    list("conv1", conv1, "bn1", bn1, "conv2", conv2, "bn2", bn2, "downsample", downsample);
  }

 private:
  detail::BlockShortcut<T> shortcut_;

 public:
  nn::Conv2d<T> conv1;
  nn::BatchNorm2d<T> bn1;
  nn::Conv2d<T> conv2;
  nn::BatchNorm2d<T> bn2;
  std::optional<typename detail::BlockShortcut<T>::Projection> downsample;
};

/// Convolutions 1x1, 3x3 and 1x1, the last to four times `width` channels; else as BasicBlock. The stride is
/// that of the convolution 3x3, as in torchvision (the paper's is at the first).
template <Field T>
class Bottleneck : public nn::Module<Bottleneck<T>, T> {
 public:
  static constexpr Index expansion = 4;  ///< channels of y, in widths

  Bottleneck(Index in, Index width, Index stride, Shortcut shortcut, Generator& generator)
      : shortcut_(in, width * expansion, stride, shortcut),
        conv1(detail::convolution<T>(in, width, 1, 1, generator)),
        bn1(width),
        conv2(detail::convolution<T>(width, width, 3, stride, generator)),
        bn2(width),
        conv3(detail::convolution<T>(width, width * expansion, 1, 1, generator)),
        bn3(width * expansion),
        downsample(shortcut_.projection(generator)) {}

  Tensor<T> operator()(const Tensor<T>& x) {
    const Tensor<T> inner = conv3(bn2.relu(conv2(bn1.relu(conv1(x)))));
    const Tensor<T> y = bn3.add_relu(inner, shortcut_(x, downsample));
    return this->noted(y);
  }
  void members(auto& list) {
    list("conv1", conv1, "bn1", bn1, "conv2", conv2, "bn2", bn2, "conv3", conv3, "bn3", bn3, "downsample",
         downsample);
  }

 private:
  detail::BlockShortcut<T> shortcut_;

 public:
  nn::Conv2d<T> conv1;
  nn::BatchNorm2d<T> bn1;
  nn::Conv2d<T> conv2;
  nn::BatchNorm2d<T> bn2;
  nn::Conv2d<T> conv3;
  nn::BatchNorm2d<T> bn3;
  std::optional<typename detail::BlockShortcut<T>::Projection> downsample;
};

/// What a residual network consists of, between its first convolution and its last layer.
struct ResNetPlan {
  std::vector<Index> blocks;  ///< of each stage; each but the first halves the image
  Index width = 64;           ///< of the first stage's blocks; doubled by each stage after it
  bool large_images = true;   ///< convolution 7x7/2 and max pool 3x3/2 in front; else convolution 3x3
  Shortcut shortcut = Shortcut::projection;
  Index channels = 3;  ///< of the images
  Index classes = 1000;
};

/// A residual network of BasicBlock<T> or Bottleneck<T>, images (N, H, W, channels) to logits (N, classes):
/// first convolution, batch norm and relu, stages of blocks, mean over all pixels, linear layer. Names are
/// torchvision's: "conv1.weight", "layer2.0.downsample.0.weight", "fc.bias". Convolutions begin normal with
/// variance 2 / (fan out), norms as 1 and 0, fc as nn::Linear. Throws ValueError on a stage without blocks.
template <class Block>
class ResNet : public nn::Module<ResNet<Block>, typename Block::value_type> {
  using T = typename Block::value_type;

 public:
  ResNet(const ResNetPlan& plan, Generator& generator)
      : conv1(plan.large_images ? detail::convolution<T>(plan.channels, plan.width, 7, 2, generator)
                                : detail::convolution<T>(plan.channels, plan.width, 3, 1, generator)),
        bn1(plan.width),
        layers(stages(plan, generator)),
        fc((plan.width << (plan.blocks.size() - 1)) * Block::expansion, plan.classes, generator) {
    if (plan.large_images) maxpool.emplace(MaxPoolOptions{.kernel = 3, .stride = 2, .padding = 1});
  }

  Tensor<T> operator()(const Tensor<T>& x) {
    Tensor<T> y = bn1.relu(conv1(x));
    if (maxpool) y = (*maxpool)(y);
    for (std::vector<Block>& layer : layers)
      for (Block& block : layer) y = block(y);
    y = fc(avgpool(y));
    return this->noted(y);
  }

  void members(auto& list) {
    list("conv1", conv1, "bn1", bn1, "maxpool", maxpool);
    for (std::size_t i = 0; i < layers.size(); ++i) list("layer" + std::to_string(i + 1), layers[i]);
    list("avgpool", avgpool, "fc", fc);
  }

  nn::Conv2d<T> conv1;
  nn::BatchNorm2d<T> bn1;
  std::optional<nn::MaxPool2d> maxpool;
  std::vector<std::vector<Block>> layers;  ///< layers[0] is "layer1"
  nn::GlobalAvgPool avgpool;
  nn::Linear<T> fc;

 private:
  static std::vector<std::vector<Block>> stages(const ResNetPlan& plan, Generator& generator) {
    if (plan.blocks.empty()) fail<ValueError>("resnet", "no stages; expected at least one number of blocks");
    std::vector<std::vector<Block>> out;
    Index in = plan.width, width = plan.width;
    for (const Index blocks : plan.blocks) {
      if (blocks < 1)
        fail<ValueError>("resnet", "stage ", out.size() + 1, " has ", blocks, " blocks; expected at least 1");
      std::vector<Block>& stage = out.emplace_back();
      stage.reserve(static_cast<std::size_t>(blocks));
      for (Index i = 0; i < blocks; ++i) {
        const Index stride = i == 0 && out.size() > 1 ? 2 : 1;
        stage.emplace_back(in, width, stride, plan.shortcut, generator);
        in = width * Block::expansion;
      }
      width *= 2;
    }
    return out;
  }
};

/// Of the networks for large images.
struct ResNetOptions {
  Index classes = 1000;
  Index channels = 3;  ///< of the images
};

namespace detail {

template <class Block>
ResNet<Block> large_resnet(std::initializer_list<Index> blocks, const ResNetOptions& o,
                           Generator& generator) {
  return ResNet<Block>({.blocks = blocks, .channels = o.channels, .classes = o.classes}, generator);
}

}  // namespace detail

/// torchvision's resnet18: 11 689 512 parameters with 1000 classes. The weights are drawn here, not trained.
template <Field T>
ResNet<BasicBlock<T>> resnet18(Generator& generator, const ResNetOptions& options = {}) {
  return detail::large_resnet<BasicBlock<T>>({2, 2, 2, 2}, options, generator);
}
/// torchvision's resnet34: 21 797 672 parameters with 1000 classes.
template <Field T>
ResNet<BasicBlock<T>> resnet34(Generator& generator, const ResNetOptions& options = {}) {
  return detail::large_resnet<BasicBlock<T>>({3, 4, 6, 3}, options, generator);
}
/// torchvision's resnet50: 25 557 032 parameters with 1000 classes.
template <Field T>
ResNet<Bottleneck<T>> resnet50(Generator& generator, const ResNetOptions& options = {}) {
  return detail::large_resnet<Bottleneck<T>>({3, 4, 6, 3}, options, generator);
}

/// Of the networks for small images.
struct SmallResNetOptions {
  Index classes = 10;
  Index channels = 3;  ///< of the images
  Shortcut shortcut = Shortcut::padded;
};

namespace detail {

template <Field T>
ResNet<BasicBlock<T>> small_resnet(Index blocks, const SmallResNetOptions& o, Generator& generator) {
  return ResNet<BasicBlock<T>>({.blocks = {blocks, blocks, blocks},
                                .width = 16,
                                .large_images = false,
                                .shortcut = o.shortcut,
                                .channels = o.channels,
                                .classes = o.classes},
                               generator);
}

}  // namespace detail

/// He et al.'s network of 20 layers for images of 32x32 or 28x28 pixels: three stages of three blocks with
/// 16, 32 and 64 channels. 269 722 parameters with 10 classes and colour (the paper's 0.27 million), 2752
/// more with projections, 288 fewer with one channel.
template <Field T>
ResNet<BasicBlock<T>> resnet20(Generator& generator, const SmallResNetOptions& options = {}) {
  return detail::small_resnet<T>(3, options, generator);
}
/// The same of 32 layers: five blocks a stage, 464 154 parameters.
template <Field T>
ResNet<BasicBlock<T>> resnet32(Generator& generator, const SmallResNetOptions& options = {}) {
  return detail::small_resnet<T>(5, options, generator);
}
/// The same of 56 layers: nine blocks a stage, 853 018 parameters.
template <Field T>
ResNet<BasicBlock<T>> resnet56(Generator& generator, const SmallResNetOptions& options = {}) {
  return detail::small_resnet<T>(9, options, generator);
}

}  // namespace wengert::inline WENGERT_ISA::models
