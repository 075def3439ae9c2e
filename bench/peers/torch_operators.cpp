// Single operators and matrix products in libtorch, forward and backward.
#include <functional>
#include <map>
#include <utility>

#include "torch_common.hpp"
#include "torch_models.hpp"

namespace bench {
namespace {

using torch::Tensor;
using Function = std::function<Tensor(const std::vector<Tensor>&)>;

// y = function(leaves), then backward with a fixed seed of y's shape.
class Operator final : public Peer {
 public:
  Operator(std::vector<Tensor> leaves, Function function)
      : leaves_(std::move(leaves)), function_(std::move(function)) {
    for (Tensor& leaf : leaves_) leaf.requires_grad_();
    torch::NoGradGuard no_grad;
    const Tensor y = function_(leaves_);
    dy_ = uniform_tensor(y.sizes(), -1, 1, 9);
  }
  unsigned parts() const override { return kForward | kBackward | kZero; }
  void forward() override { y_ = function_(leaves_); }
  void backward() override { y_.backward(dy_); }
  void zero() override {
    for (Tensor& leaf : leaves_) leaf.mutable_grad().reset();
  }
  double value() override { return y_.to(torch::kDouble).mean().item<double>(); }
  double gradient_norm() override { return norm_of_gradients(leaves_); }

 private:
  std::vector<Tensor> leaves_;
  Function function_;
  Tensor dy_, y_;
};

class Gemm final : public Peer {
 public:
  Gemm(std::int64_t m, std::int64_t k, std::int64_t n, const std::string& layout)
      : a_(layout == "TN" ? uniform_tensor({k, m}, -1, 1, 1).t() : uniform_tensor({m, k}, -1, 1, 1)),
        b_(layout == "NT" ? uniform_tensor({n, k}, -1, 1, 2).t() : uniform_tensor({k, n}, -1, 1, 2)),
        y_(torch::empty({m, n})) {}
  unsigned parts() const override { return kForward; }
  void forward() override {
    torch::NoGradGuard no_grad;
    torch::mm_out(y_, a_, b_);
  }
  double value() override { return y_.to(torch::kDouble).mean().item<double>(); }

 private:
  Tensor a_, b_, y_;
};

const std::map<std::string, Function>& unary_functions() {
  static const std::map<std::string, Function> functions = {
      {"relu", [](const auto& in) { return torch::relu(in[0]); }},
      {"abs", [](const auto& in) { return torch::abs(in[0]); }},
      {"square", [](const auto& in) { return torch::square(in[0]); }},
      {"sqrt", [](const auto& in) { return torch::sqrt(in[0]); }},
      {"exp", [](const auto& in) { return torch::exp(in[0]); }},
      {"log", [](const auto& in) { return torch::log(in[0]); }},
      {"tanh", [](const auto& in) { return torch::tanh(in[0]); }},
      {"sigmoid", [](const auto& in) { return torch::sigmoid(in[0]); }},
      {"gelu", [](const auto& in) { return torch::gelu(in[0]); }},
      {"silu", [](const auto& in) { return torch::silu(in[0]); }},
      {"softplus", [](const auto& in) { return torch::softplus(in[0]); }},
      {"sum", [](const auto& in) { return in[0].sum(-1); }},
      {"sum_rows", [](const auto& in) { return in[0].sum(0); }},
      {"sum_all", [](const auto& in) { return in[0].sum(); }},
      {"mean", [](const auto& in) { return in[0].mean(-1); }},
      {"var", [](const auto& in) { return in[0].var(-1, false, false); }},
      {"max", [](const auto& in) { return std::get<0>(in[0].max(-1)); }},
      {"logsumexp", [](const auto& in) { return in[0].logsumexp(-1); }},
      {"softmax", [](const auto& in) { return torch::softmax(in[0], -1); }},
      {"log_softmax", [](const auto& in) { return torch::log_softmax(in[0], -1); }},
  };
  return functions;
}

const std::map<std::string, Function>& binary_functions() {
  static const std::map<std::string, Function> functions = {
      {"add", [](const auto& in) { return in[0] + in[1]; }},
      {"mul", [](const auto& in) { return in[0] * in[1]; }},
      {"div", [](const auto& in) { return in[0] / in[1]; }},
      {"add_row", [](const auto& in) { return in[0] + in[1]; }},
      {"mul_column", [](const auto& in) { return in[0] * in[1]; }},
      {"mse", [](const auto& in) { return torch::mse_loss(in[0], in[1]); }},
  };
  return functions;
}

std::unique_ptr<Peer> make_normalisation(const Case& work) {
  const std::int64_t columns = work.size.back();
  std::vector<Tensor> leaves = {uniform_tensor(work.size, -2, 2, 1), uniform_tensor({columns}, 0.5f, 1.5f, 2),
                                uniform_tensor({columns}, -1, 1, 3)};
  if (work.detail == "layer_norm") {
    return std::make_unique<Operator>(std::move(leaves), [columns](const auto& in) {
      return torch::layer_norm(in[0], {columns}, in[1], in[2], 1e-5);
    });
  }
  return std::make_unique<Operator>(std::move(leaves), [](const auto& in) {
    const bool image = in[0].dim() == 4;
    const Tensor y = torch::batch_norm(image ? in[0].permute({0, 3, 1, 2}) : in[0], in[1], in[2], {}, {},
                                       true, 0.1, 1e-5, false);
    return image ? y.permute({0, 2, 3, 1}) : y;
  });
}

}  // namespace

std::unique_ptr<Peer> make_torch_operator(const Case& work) {
  const std::vector<std::int64_t>& size = work.size;
  if (work.work == "gemm") return std::make_unique<Gemm>(size[0], size[1], size[2], work.detail);
  if (work.work != "op") return nullptr;
  const std::string& name = work.detail;
  if (name == "matmul") {
    std::vector<Tensor> leaves = {uniform_tensor({size[0], size[1]}, -2, 2, 1),
                                  uniform_tensor({size[1], size[2]}, -2, 2, 2)};
    return std::make_unique<Operator>(std::move(leaves),
                                      [](const auto& in) { return torch::mm(in[0], in[1]); });
  }
  if (name == "layer_norm" || name == "batch_norm") return make_normalisation(work);
  if (name == "max_pool")
    return std::make_unique<Operator>(
        std::vector<Tensor>{uniform_tensor(size, -2, 2, 1)}, [](const auto& in) {
          return torch::max_pool2d(in[0].permute({0, 3, 1, 2}), 3, 2, 1).permute({0, 2, 3, 1});
        });
  if (name == "embedding") {
    const Tensor ids = tensor_of(indices(size[2], size[0], 3), {size[2]});
    return std::make_unique<Operator>(std::vector<Tensor>{uniform_tensor({size[0], size[1]}, -2, 2, 1)},
                                      [ids](const auto& in) { return torch::embedding(in[0], ids); });
  }
  if (name == "cross_entropy") {
    const Tensor labels = tensor_of(indices(size[0], size[1], 3), {size[0]});
    return std::make_unique<Operator>(
        std::vector<Tensor>{uniform_tensor({size[0], size[1]}, -2, 2, 1)},
        [labels](const auto& in) { return torch::cross_entropy_loss(in[0], labels); });
  }
  const Tensor x =
      name == "log" || name == "sqrt" ? uniform_tensor(size, 0.1f, 2, 1) : uniform_tensor(size, -2, 2, 1);
  if (name == "bce_with_logits") {
    const Tensor labels = tensor_of(indices(size[0] * size[1], 2, 3), size).to(torch::kFloat);
    return std::make_unique<Operator>(std::vector<Tensor>{x}, [labels](const auto& in) {
      return torch::binary_cross_entropy_with_logits(in[0], labels);
    });
  }
  if (const auto found = unary_functions().find(name); found != unary_functions().end()) {
    return std::make_unique<Operator>(std::vector<Tensor>{x}, found->second);
  }
  if (const auto found = binary_functions().find(name); found != binary_functions().end()) {
    const std::vector<std::int64_t> other = name == "add_row"      ? std::vector<std::int64_t>{size[1]}
                                            : name == "mul_column" ? std::vector<std::int64_t>{size[0], 1}
                                                                   : size;
    return std::make_unique<Operator>(std::vector<Tensor>{x, uniform_tensor(other, -2, 2, 2)}, found->second);
  }
  return nullptr;
}

}  // namespace bench
