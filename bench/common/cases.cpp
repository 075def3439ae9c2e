// The list of cases, and the exact arithmetic of each: the text a contestant is written from.
#include "cases.hpp"

#include <utility>

namespace bench {
namespace {

Case model(const std::string& name, std::int64_t batch, double ratio) {
  Case result;
  result.name = name + "/" + std::to_string(batch);
  result.work = name;
  result.size = {batch};
  result.targets = {{"libtorch", "step", ratio}, {"self", "backward", 2.0}};
  result.no_heap = true;
  result.varies_with_blas = true;
  result.varies_with_isa = true;
  return result;
}

// seed {batch}: the network of the candle report, with its sigmoid before a loss that takes logits.
// - ids = indices(B * 10, 100, 1) as (B, 10); labels = indices(B, 2, 2) as floats (B, 1)
// - embedding (100, 32) = uniform(-1, 1, 11); view (B * 2, 160)
// - linear (160 in, 128 out) = uniform(+-1/sqrt(160), 12), no bias; batch norm over B * 2 rows; tanh
// - view (B, 256); linear (256, 128) = uniform(+-1/sqrt(256), 13), no bias; batch norm over B rows; tanh
// - linear (128, 1) = uniform(+-1/sqrt(128), 14), bias 0; sigmoid; mean binary cross-entropy from logits
// - batch norm: training mode with running statistics, eps 1e-5, momentum 0.1, gamma 1, beta 0
// - AdamW, lr 0.01, betas 0.9 and 0.999, eps 1e-8, weight decay 0.01; 53 889 + 32 * 100 parameters
Case seed(std::int64_t batch, double ratio) { return model("seed", batch, ratio); }

// mlp {batch}: 784-256-128-10, relu, mean softmax cross-entropy from logits.
// - x = uniform(0, 1, 1) as (B, 784); labels = indices(B, 10, 2)
// - weights (in, out) = uniform(+-1/sqrt(in), 11 12 13), biases uniform(+-1/sqrt(in), 21 22 23)
// - Adam, lr 1e-3, betas 0.9 and 0.999, eps 1e-8, no weight decay
Case mlp(std::int64_t batch, double ratio) { return model("mlp", batch, ratio); }

// resnet18 {batch, side, channels}: torchvision's ResNet-18 with 1000 classes, batch norm in training mode.
// - x = uniform(-1, 1, 1) as (B, side, side, channels); labels = indices(B, 1000, 2)
// - convolutions (kh, kw, in, out) = uniform(+-sqrt(6 / fan in), seed_of(name)); fc.weight (out, in) =
//   uniform(+-1/sqrt(in), seed_of(name)); batch norm weights 1; every bias 0
// - loss: the sum of all outputs for one image, else mean cross-entropy; no optimizer
// resnet20 {batch, side, channels}: the ResNet-20 of the CIFAR-10 paper, shortcuts of zero-padded channels,
// 10 classes. The same weights and loss; SGD, lr 0.05, momentum 0.9, weight decay 1e-4. "libtorch" runs in
// its own layout, "libtorch-nhwc" with channels last.
Case resnet(const std::string& name, std::int64_t batch, std::int64_t side, std::int64_t channels,
            double ratio) {
  Case result = model(name, batch, ratio);
  result.size = {batch, side, channels};
  result.name = name + "/" + std::to_string(side) + "x" + std::to_string(side) + "x" +
                std::to_string(channels) + "/" + std::to_string(batch);
  result.targets.insert(result.targets.begin() + 1, {"libtorch-nhwc", "step", ratio});
  result.varies_with_blas = false;
  return result;
}

// chain {n}: 1000 operators on vectors of n elements. Times are of the whole chain: 1 us is 1 ns an operator.
// - x = uniform(-0.01, 0.01, 1); w = uniform(0.999, 1.001, 2); b = uniform(-0.01, 0.01, 3); all are leaves
// - 250 times: y = y * w; y = tanh(y); y = y + b; y = y - b. The slopes are near 1, so there are no
// denormals.
// - backward with a seed of ones
Case chain(std::int64_t count) {
  Case result;
  result.name = "chain/" + std::to_string(count);
  result.work = "chain";
  result.size = {count};
  result.targets = {{"libtorch", "forward", 1.0 / 30}, {"libtorch", "backward", 1.0 / 30}};
  result.no_heap = true;
  return result;
}

// adamw {n}: one parameter of n elements = uniform(-1, 1, 1), gradient uniform(-1, 1, 2), lr 1e-3, decay
// 0.01. The contestant "copy" moves the same 28 bytes a parameter (14 read, 14 written) and nothing else.
Case adamw(std::int64_t count) {
  Case result;
  result.name = "adamw/16M";
  result.work = "adamw";
  result.size = {count};
  result.targets = {{"copy", "step", 1.0 / 0.80}};
  result.no_heap = true;
  return result;
}

// op: y = f(x, ...), then backward with the seed dy = uniform(-1, 1, 9) in the shape of y.
// - x = uniform(-2, 2, 1), or uniform(0.1, 2, 1) for log and sqrt; the second input uniform(-2, 2, 2)
// - add_row's second input is (1024), mul_column's is (1024, 1); every float input is a leaf
// - bce_with_logits has labels = indices(1024 * 1024, 2, 3) as floats, not a leaf
// - var is the biased one; mse and the losses are means
Case op(const std::string& name, std::vector<std::int64_t> size) {
  Case result;
  result.name = "op/" + name;
  char separator = '/';
  for (const std::int64_t extent : size) {
    result.name += separator + std::to_string(extent);
    separator = 'x';
  }
  result.work = "op";
  result.detail = name;
  result.size = std::move(size);
  result.varies_with_isa = true;
  return result;
}

// op matmul {M, K, N}: (M, K) x (K, N), backward to both.
Case matmul(std::int64_t m, std::int64_t k, std::int64_t n) {
  Case result = op("matmul", {m, k, n});
  result.targets = {{"self", "backward", 2.0}};
  result.varies_with_blas = true;
  result.varies_with_isa = false;
  return result;
}

// gemm {M, K, N}: forward only, into memory that exists; a = uniform(-1, 1, 1), b = uniform(-1, 1, 2).
// - NN: a (M, K), b (K, N). NT: b is stored as (N, K). TN: a is stored as (K, M).
// - The target is one geometric mean over all of them.
Case gemm(std::int64_t m, std::int64_t k, std::int64_t n, const std::string& layout) {
  Case result;
  result.name =
      "gemm/" + std::to_string(m) + "x" + std::to_string(k) + "x" + std::to_string(n) + "/" + layout;
  result.work = "gemm";
  result.detail = layout;
  result.size = {m, k, n};
  return result;
}

constexpr std::int64_t kProducts[][3] = {{64, 784, 256},     {256, 784, 256}, {32, 160, 128}, {512, 512, 512},
                                         {1024, 1024, 1024}, {3136, 576, 64}, {49, 4608, 512}};

}  // namespace

std::vector<Case> all_cases() {
  std::vector<Case> cases = {seed(32, 0.25), seed(128, 0.40), seed(1024, 0.45), mlp(64, 0.60),
                             mlp(256, 0.75), chain(1),        chain(16),        adamw(std::int64_t{1} << 24)};
  cases.push_back(resnet("resnet18", 1, 224, 3, 0.70));
  cases.push_back(resnet("resnet18", 8, 224, 3, 0.55));
  cases.push_back(resnet("resnet20", 64, 28, 1, 0.55));
  cases.push_back(resnet("resnet20", 64, 32, 3, 0.55));
  for (const auto& p : kProducts) cases.push_back(matmul(p[0], p[1], p[2]));
  for (const auto& p : kProducts) {
    for (const char* layout : {"NN", "NT", "TN"}) cases.push_back(gemm(p[0], p[1], p[2], layout));
  }
  for (const char* name :
       {"relu", "abs", "square", "sqrt", "exp", "log", "tanh", "sigmoid", "gelu", "silu", "softplus", "add",
        "mul", "div", "add_row", "mul_column", "bce_with_logits", "mse"}) {
    cases.push_back(op(name, {1024, 1024}));
  }
  // Reductions go over the last axis, "sum_rows" over the first, "sum_all" over both.
  for (const char* name :
       {"sum", "sum_rows", "sum_all", "mean", "var", "max", "logsumexp", "softmax", "log_softmax"}) {
    cases.push_back(op(name, {1024, 1024}));
  }
  cases.push_back(op("cross_entropy", {128, 1000}));  // labels = indices(128, 1000, 3)
  cases.push_back(op("layer_norm", {4096, 512}));     // gamma uniform(0.5, 1.5, 2), beta uniform(-1, 1, 3)
  cases.push_back(op("batch_norm", {4096, 512}));     // the same; training mode, without running statistics
  for (Case work : {op("max_pool", {32, 112, 112, 64}), op("batch_norm", {32, 56, 56, 64}),
                    op("batch_norm", {32, 32, 32, 16})}) {  // channels last on both sides
    work.targets = {{"libtorch", "forward", 0.5}, {"libtorch", "backward", 0.5}};
    cases.push_back(std::move(work));
  }
  cases.push_back(op("embedding", {50000, 128, 4096}));  // ids = indices(4096, 50000, 3)
  return cases;
}

}  // namespace bench
