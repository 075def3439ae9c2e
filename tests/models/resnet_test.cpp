// Residual networks: torchvision's names, shapes and counts, written out by hand; what a shortcut does; the
// same bits at any number of threads; a steady step asks the heap for nothing.
#include <array>
#include <cmath>

#include <gtest/gtest.h>

#include <wengert/models/resnet.hpp>
#include <wengert/wengert.hpp>

#include "support/errors.hpp"
#include "support/heap_counter.hpp"

using namespace wengert;
using models::ResNetPlan;
using models::Shortcut;

namespace {

/// A layer of torchvision's list: convolutions (out, in, k), norms (channels), the last layer (out, in).
struct Layer {
  std::string name;
  std::vector<Index> shape;
};

/// Compares a model's whole state with a list of layers, in torchvision's order.
template <class Model>
void expect_layers(const Model& model, const std::vector<Layer>& layers) {
  std::vector<std::pair<std::string, Shape>> expected;
  for (const auto& [name, s] : layers) {
    if (s.size() == 3) {
      expected.emplace_back(name + ".weight", Shape{s[2], s[2], s[1], s[0]});
    } else if (s.size() == 2) {
      expected.emplace_back(name + ".weight", Shape{s[0], s[1]});
      expected.emplace_back(name + ".bias", Shape{s[0]});
    } else {
      for (const char* part : {".weight", ".bias", ".running_mean", ".running_var"})
        expected.emplace_back(name + part, Shape{s[0]});
    }
  }
  const auto state = model.state();
  ASSERT_EQ(state.size(), expected.size());
  for (std::size_t i = 0; i < state.size(); ++i) {
    EXPECT_EQ(state[i].name, expected[i].first);
    EXPECT_EQ(state[i].tensor.shape(), expected[i].second) << state[i].name;
  }
}

TEST(ResNet, Resnet18IsTorchvisions) {
  Generator gen(1);
  const auto model = models::resnet18<float>(gen);
  EXPECT_EQ(model.parameter_count(), 11'689'512);
  EXPECT_EQ(model.parameters().size(), 62u);
  expect_layers(model, {{"conv1", {64, 3, 7}},
                        {"bn1", {64}},
                        {"layer1.0.conv1", {64, 64, 3}},
                        {"layer1.0.bn1", {64}},
                        {"layer1.0.conv2", {64, 64, 3}},
                        {"layer1.0.bn2", {64}},
                        {"layer1.1.conv1", {64, 64, 3}},
                        {"layer1.1.bn1", {64}},
                        {"layer1.1.conv2", {64, 64, 3}},
                        {"layer1.1.bn2", {64}},
                        {"layer2.0.conv1", {128, 64, 3}},
                        {"layer2.0.bn1", {128}},
                        {"layer2.0.conv2", {128, 128, 3}},
                        {"layer2.0.bn2", {128}},
                        {"layer2.0.downsample.0", {128, 64, 1}},
                        {"layer2.0.downsample.1", {128}},
                        {"layer2.1.conv1", {128, 128, 3}},
                        {"layer2.1.bn1", {128}},
                        {"layer2.1.conv2", {128, 128, 3}},
                        {"layer2.1.bn2", {128}},
                        {"layer3.0.conv1", {256, 128, 3}},
                        {"layer3.0.bn1", {256}},
                        {"layer3.0.conv2", {256, 256, 3}},
                        {"layer3.0.bn2", {256}},
                        {"layer3.0.downsample.0", {256, 128, 1}},
                        {"layer3.0.downsample.1", {256}},
                        {"layer3.1.conv1", {256, 256, 3}},
                        {"layer3.1.bn1", {256}},
                        {"layer3.1.conv2", {256, 256, 3}},
                        {"layer3.1.bn2", {256}},
                        {"layer4.0.conv1", {512, 256, 3}},
                        {"layer4.0.bn1", {512}},
                        {"layer4.0.conv2", {512, 512, 3}},
                        {"layer4.0.bn2", {512}},
                        {"layer4.0.downsample.0", {512, 256, 1}},
                        {"layer4.0.downsample.1", {512}},
                        {"layer4.1.conv1", {512, 512, 3}},
                        {"layer4.1.bn1", {512}},
                        {"layer4.1.conv2", {512, 512, 3}},
                        {"layer4.1.bn2", {512}},
                        {"fc", {1000, 512}}});
}

TEST(ResNet, Resnet34And50HaveTorchvisionsCounts) {
  Generator gen(1);
  const auto resnet34 = models::resnet34<float>(gen);
  EXPECT_EQ(resnet34.parameter_count(), 21'797'672);
  EXPECT_EQ(resnet34.parameters().size(), 110u);
  const auto resnet50 = models::resnet50<float>(gen);
  EXPECT_EQ(resnet50.parameter_count(), 25'557'032);
  EXPECT_EQ(resnet50.parameters().size(), 161u);
}

TEST(ResNet, ABottleneckHasTorchvisionsLayers) {
  Generator gen(1);
  const models::ResNet<models::Bottleneck<float>> model({.blocks = {1, 2}, .width = 8, .classes = 5}, gen);
  expect_layers(model, {{"conv1", {8, 3, 7}},
                        {"bn1", {8}},
                        {"layer1.0.conv1", {8, 8, 1}},
                        {"layer1.0.bn1", {8}},
                        {"layer1.0.conv2", {8, 8, 3}},
                        {"layer1.0.bn2", {8}},
                        {"layer1.0.conv3", {32, 8, 1}},
                        {"layer1.0.bn3", {32}},
                        {"layer1.0.downsample.0", {32, 8, 1}},
                        {"layer1.0.downsample.1", {32}},
                        {"layer2.0.conv1", {16, 32, 1}},
                        {"layer2.0.bn1", {16}},
                        {"layer2.0.conv2", {16, 16, 3}},
                        {"layer2.0.bn2", {16}},
                        {"layer2.0.conv3", {64, 16, 1}},
                        {"layer2.0.bn3", {64}},
                        {"layer2.0.downsample.0", {64, 32, 1}},
                        {"layer2.0.downsample.1", {64}},
                        {"layer2.1.conv1", {16, 64, 1}},
                        {"layer2.1.bn1", {16}},
                        {"layer2.1.conv2", {16, 16, 3}},
                        {"layer2.1.bn2", {16}},
                        {"layer2.1.conv3", {64, 16, 1}},
                        {"layer2.1.bn3", {64}},
                        {"fc", {5, 64}}});
}

TEST(ResNet, SmallNetworksHaveThePapersCounts) {
  Generator gen(1);
  EXPECT_EQ(models::resnet20<float>(gen).parameter_count(), 269'722);
  EXPECT_EQ(models::resnet32<float>(gen).parameter_count(), 464'154);
  EXPECT_EQ(models::resnet56<float>(gen).parameter_count(), 853'018);
  EXPECT_EQ(models::resnet20<float>(gen, {.channels = 1}).parameter_count(), 269'722 - 2 * 9 * 16);
  EXPECT_EQ(models::resnet20<float>(gen, {.shortcut = Shortcut::projection}).parameter_count(),
            269'722 + 16 * 32 + 2 * 32 + 32 * 64 + 2 * 64);
  EXPECT_EQ(models::resnet20<float>(gen, {.classes = 100}).parameter_count(), 269'722 + 90 * 65);
}

TEST(ResNet, WeightsBeginAsTorchvisions) {
  Generator gen(3);
  auto model = models::resnet18<float>(gen);
  const auto moments = [](const Tensor<float>& w) {
    double sum = 0, squares = 0;
    for (const float v : w.to_vector()) {
      sum += v;
      squares += static_cast<double>(v) * v;
    }
    const auto n = static_cast<double>(w.size());
    return std::array{sum / n, squares / n};
  };
  const auto [mean, square] = moments(model.layers[2][0].conv1.weight);  // 128 to 256 channels
  EXPECT_NEAR(mean, 0, 3e-4);
  EXPECT_NEAR(square / (2.0 / (9 * 256)), 1, 0.01);  // by the fan out
  EXPECT_EQ(moments(*model.bn1.weight), (std::array{1.0, 1.0}));
  EXPECT_EQ(moments(*model.bn1.bias), (std::array{0.0, 0.0}));
  const auto [fc_mean, fc_square] = moments(model.fc.weight);
  EXPECT_NEAR(fc_square / (1.0 / (3 * 512)), 1, 0.01);  // uniform in +-1 / sqrt(512)
}

TEST(ResNet, OutputsAreLogits) {
  Generator gen(1);
  auto small = models::resnet20<float>(gen, {.channels = 1});
  EXPECT_EQ(small(zeros<float>({2, 28, 28, 1})).shape(), (Shape{2, 10}));
  EXPECT_EQ(small(zeros<float>({1, 9, 14, 1})).shape(), (Shape{1, 10}));  // odd sizes are rounded up
  EXPECT_EQ(small(zeros<float>({0, 28, 28, 1})).shape(), (Shape{0, 10}));
  auto large = models::resnet18<float>(gen, {.classes = 7});
  EXPECT_EQ(large(zeros<float>({1, 64, 33, 3})).shape(), (Shape{1, 7}));
}

TEST(ResNet, SummaryNamesTheLayersAndTheirOutputs) {
  Generator gen(1);
  models::ResNet<models::Bottleneck<float>> model({.blocks = {1, 1}, .width = 8, .classes = 5}, gen);
  const std::string text = model.summary(zeros<float>({1, 64, 64, 3}));
  for (const char* row :
       {"conv1                  Conv2d         (1, 32, 32, 8) ",
        "maxpool                MaxPool2d      (1, 16, 16, 8) ",
        "layer2.0               Bottleneck     (1, 8, 8, 64) ",
        "layer2.0.conv1         Conv2d         (1, 16, 16, 16) ",  // the stride
        "layer2.0.conv2         Conv2d         (1, 8, 8, 16) ",    // is at the 3x3
        "layer2.0.downsample.0  Conv2d         (1, 8, 8, 64) ",
        "avgpool                GlobalAvgPool  (1, 64) ", "fc                     Linear         (1, 5) ",
        "total                  ResNet         (1, 5) "})
    EXPECT_NE(text.find(row), std::string::npos) << row << "\nis not in\n" << text;
}

// A block whose last norm has weight 0 puts out relu(shortcut(x)).
TEST(ResNet, APaddedShortcutTakesEverySecondPixelAndAddsChannelsOfZeros) {
  Generator gen(1);
  models::BasicBlock<float> block(2, 5, 2, Shortcut::padded, gen);
  block.bn2.weight->fill(0);
  Tensor<float> x({1, 3, 4, 2});
  for (Index i = 0; i < x.size(); ++i)
    x.mutable_data()[i] = static_cast<float>(i + 1) * (i % 5 == 0 ? -1.0f : 1.0f);
  x.requires_grad(true);
  GradStore grads;
  const Tensor<float> y = block(x);
  ASSERT_EQ(y.shape(), (Shape{1, 2, 2, 5}));
  // Pixels (0, 0), (0, 2), (2, 0), (2, 2) begin at elements 0, 4, 16, 20; three more channels are 1 + 2.
  EXPECT_EQ(y.to_vector(),
            (std::vector<float>{0, 0, 2, 0, 0, 0, 5, 0, 0, 0, 0, 17, 18, 0, 0, 0, 0, 22, 0, 0}));
  backward(sum(y), grads);
  std::vector<float> dx(24, 0.0f);
  for (const std::size_t i : {1u, 4u, 16u, 17u, 21u}) dx[i] = 1;
  EXPECT_EQ(grads[x].to_vector(), dx);
}

TEST(ResNet, AnUnchangedShortcutIsTheInput) {
  Generator gen(1);
  models::Bottleneck<float> block(8, 2, 1, Shortcut::projection, gen);
  EXPECT_FALSE(block.downsample.has_value());
  block.bn3.weight->fill(0);
  const Tensor<float> x = normal<float>({2, 3, 3, 8}, gen);
  EXPECT_EQ(block(x).to_vector(), relu(x).to_vector());
}

TEST(ResNet, Faults) {
  Generator gen(1);
  using Small = models::ResNet<models::BasicBlock<float>>;
  const ResNetPlan nothing, gap{.blocks = {2, 0}};
  EXPECT_ERROR(Small(nothing, gen), ValueError, "resnet: no stages; expected at least one number of blocks");
  EXPECT_ERROR(Small(gap, gen), ValueError, "resnet: stage 2 has 0 blocks; expected at least 1");
  EXPECT_ERROR(models::BasicBlock<float>(8, 4, 1, Shortcut::padded, gen), ValueError,
               "resnet: a padded shortcut cannot drop channels; in is 8, out is 4; expected in <= out");
}

/// Steps of SGD on noise; returns all parameters and running statistics.
std::vector<float> trained(int threads, int steps) {
  set_num_threads(threads);
  Generator gen(7);
  auto model = models::resnet20<float>(gen, {.channels = 3});
  optim::Sgd<float> opt(model.parameters(), {.lr = 0.05, .momentum = 0.9, .weight_decay = 1e-4});
  GradStore grads;
  const auto x = normal<float>({6, 32, 32, 3}, gen);
  const auto y = randint<Index>({6}, gen, 0, 10);
  for (int i = 0; i < steps; ++i) {
    backward(cross_entropy(model(x), y), grads);
    opt.step(grads);
    grads.zero();
  }
  std::vector<float> out;
  for (const auto& t : model.state())
    for (const float v : t.tensor.to_vector()) out.push_back(v);
  return out;
}

TEST(ResNet, Resnet20TrainsToTheSameBitsAtAnyNumberOfThreads) {
  const std::vector<float> one = trained(1, 3);
  EXPECT_EQ(one, trained(2, 3));
  EXPECT_EQ(one, trained(3, 3));
}

/// The gradient of the last and of the first layer of a ResNet-18.
std::vector<float> gradient18(int threads) {
  set_num_threads(threads);
  Generator gen(5);
  auto model = models::resnet18<float>(gen, {.classes = 10});
  GradStore grads;
  backward(sum(model(normal<float>({2, 64, 64, 3}, gen))), grads);
  std::vector<float> out;
  for (const auto& p : model.parameters())
    for (const float v : grads[p].to_vector()) out.push_back(v);
  return out;
}

TEST(ResNet, Resnet18HasTheSameGradientAtAnyNumberOfThreads) {
  const std::vector<float> one = gradient18(1);
  EXPECT_EQ(one, gradient18(2));
  EXPECT_EQ(one, gradient18(3));
}

/// How often ten steps ask the heap, after three.
template <class Model>
std::size_t heap_requests(Model& model, const Tensor<float>& x, Index classes) {
  Generator gen(9);
  optim::Sgd<float> opt(model.parameters(),
                        {.lr = 1e-3, .momentum = 0.9, .weight_decay = 1e-4, .nesterov = true});
  GradStore grads;
  const auto y = randint<Index>({x.dim(0)}, gen, 0, classes);
  const auto step = [&] {
    const auto loss = cross_entropy(model(x), y, {.label_smoothing = 0.1});
    backward(loss, grads);
    opt.step(grads);
    grads.zero();
  };
  for (int i = 0; i < 3; ++i) step();
  return heap::requests_of([&] {
    for (int i = 0; i < 10; ++i) step();
  });
}

TEST(ResNet, ASteadyStepAsksTheHeapForNothing) {
  Generator gen(1);
  for (const int threads : {1, 2, 3}) {
    set_num_threads(threads);
    auto padded = models::resnet20<float>(gen, {.channels = 1});
    EXPECT_EQ(heap_requests(padded, normal<float>({4, 28, 28, 1}, gen), 10), 0u) << threads << " threads";
    auto large = models::resnet18<float>(gen, {.classes = 10});
    EXPECT_EQ(heap_requests(large, normal<float>({2, 64, 64, 3}, gen), 10), 0u) << threads << " threads";
    models::ResNet<models::Bottleneck<float>> deep({.blocks = {1, 2}, .width = 16, .classes = 10}, gen);
    EXPECT_EQ(heap_requests(deep, normal<float>({2, 64, 64, 3}, gen), 10), 0u) << threads << " threads";
  }
}

}  // namespace
