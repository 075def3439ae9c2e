// This library's side of the single operators and matrix products.
#include <cmath>
#include <functional>
#include <map>
#include <utility>

#include <wengert/kernels/gemm.hpp>
#include <wengert/wengert.hpp>

#include "common/data.hpp"
#include "models_wengert.hpp"

namespace bench {

namespace {

namespace wg = wengert;
using wg::Shape;
using wg::Tensor;
using Leaves = std::vector<Tensor<float>>;
using Function = std::function<Tensor<float>(const Leaves&)>;

Tensor<float> uniform_tensor(const Shape& shape, float low, float high, std::uint64_t seed) {
  return Tensor<float>(shape, uniform(shape.size(), low, high, seed));
}

// y = function(leaves), then backward with a fixed seed of y's shape.
class Operator final : public Peer {
 public:
  Operator(Leaves leaves, Function function) : leaves_(std::move(leaves)), function_(std::move(function)) {
    for (Tensor<float>& leaf : leaves_) leaf.requires_grad(true);
    dy_ = wg::no_grad([&] { return uniform_tensor(function_(leaves_).shape(), -1, 1, 9); });
  }
  unsigned parts() const override { return kForward | kBackward | kZero; }
  void forward() override { y_ = function_(leaves_); }
  void backward() override { wg::backward(y_, dy_, grads_); }
  void zero() override { grads_.zero(); }
  double value() override { return static_cast<double>(wg::mean(wg::cast<double>(y_.detach())).item()); }
  double gradient_norm() override {
    double sum = 0;
    for (const Tensor<float>& leaf : leaves_)
      for (const float g : grads_[leaf].span()) sum += static_cast<double>(g) * static_cast<double>(g);
    return std::sqrt(sum);
  }

 private:
  Leaves leaves_;
  Function function_;
  Tensor<float> dy_, y_;
  wg::GradStore grads_;
};

class Gemm final : public Peer {
 public:
  Gemm(std::int64_t m, std::int64_t k, std::int64_t n, const std::string& layout)
      : m_(m),
        k_(k),
        n_(n),
        a_(uniform_tensor({m, k}, -1, 1, 1)),
        b_(uniform_tensor({k, n}, -1, 1, 2)),
        y_({m, n}) {
    a_view_ = layout == "TN" ? View{a_.data(), 1, m} : View{a_.data(), k, 1};
    b_view_ = layout == "NT" ? View{b_.data(), 1, k} : View{b_.data(), n, 1};
  }
  unsigned parts() const override { return kForward; }
  void forward() override {
    wg::kernels::gemm<float>(m_, n_, k_, a_view_, b_view_, y_.mutable_data(), n_, false);
  }
  double value() override { return static_cast<double>(wg::mean(wg::cast<double>(y_)).item()); }

 private:
  using View = wg::kernels::MatrixView<float>;
  wg::Index m_, k_, n_;
  Tensor<float> a_, b_, y_;
  View a_view_{}, b_view_{};
};

const std::map<std::string, Function>& functions() {
  static const std::map<std::string, Function> all = {
      {"relu", [](const Leaves& in) { return relu(in[0]); }},
      {"abs", [](const Leaves& in) { return abs(in[0]); }},
      {"square", [](const Leaves& in) { return square(in[0]); }},
      {"sqrt", [](const Leaves& in) { return sqrt(in[0]); }},
      {"exp", [](const Leaves& in) { return exp(in[0]); }},
      {"log", [](const Leaves& in) { return log(in[0]); }},
      {"tanh", [](const Leaves& in) { return tanh(in[0]); }},
      {"sigmoid", [](const Leaves& in) { return sigmoid(in[0]); }},
      {"gelu", [](const Leaves& in) { return gelu(in[0]); }},
      {"silu", [](const Leaves& in) { return silu(in[0]); }},
      {"softplus", [](const Leaves& in) { return softplus(in[0]); }},
      {"sum", [](const Leaves& in) { return sum(in[0], -1); }},
      {"sum_rows", [](const Leaves& in) { return sum(in[0], 0); }},
      {"sum_all", [](const Leaves& in) { return sum(in[0]); }},
      {"mean", [](const Leaves& in) { return mean(in[0], -1); }},
      {"var", [](const Leaves& in) { return var(in[0], -1, {.correction = 0}); }},
      {"max", [](const Leaves& in) { return max(in[0], -1); }},
      {"logsumexp", [](const Leaves& in) { return logsumexp(in[0], -1); }},
      {"softmax", [](const Leaves& in) { return softmax(in[0], -1); }},
      {"log_softmax", [](const Leaves& in) { return log_softmax(in[0], -1); }},
      {"add", [](const Leaves& in) { return in[0] + in[1]; }},
      {"mul", [](const Leaves& in) { return in[0] * in[1]; }},
      {"div", [](const Leaves& in) { return in[0] / in[1]; }},
      {"add_row", [](const Leaves& in) { return in[0] + in[1]; }},
      {"mul_column", [](const Leaves& in) { return in[0] * in[1]; }},
      {"mse", [](const Leaves& in) { return mse_loss(in[0], in[1]); }},
      {"matmul", [](const Leaves& in) { return matmul(in[0], in[1]); }},
      {"max_pool",
       [](const Leaves& in) { return max_pool2d(in[0], {.kernel = 3, .stride = 2, .padding = 1}); }},
      {"batch_norm", [](const Leaves& in) { return batch_norm(in[0], &in[1], &in[2], nullptr, nullptr); }},
  };
  return all;
}

}  // namespace

std::unique_ptr<Peer> make_wengert_operator(const Case& work) {
  const std::vector<std::int64_t>& size = work.size;
  if (work.work == "gemm") return std::make_unique<Gemm>(size[0], size[1], size[2], work.detail);
  if (work.work != "op") return nullptr;
  const std::string& name = work.detail;
  const auto uniform_of = [&](const Shape& shape, std::uint64_t seed) {
    return uniform_tensor(shape, -2, 2, seed);
  };
  const Shape shape(
      std::span<const wg::Index>(size.data(), name == "embedding" || name == "matmul" ? 2 : size.size()));
  const auto made = [](Leaves leaves, Function f) {
    return std::make_unique<Operator>(std::move(leaves), std::move(f));
  };
  if (name == "matmul")
    return made({uniform_of(shape, 1), uniform_of({size[1], size[2]}, 2)}, functions().at(name));
  if (name == "layer_norm" || name == "batch_norm") {
    Leaves leaves{uniform_of(shape, 1), uniform_tensor({size.back()}, 0.5f, 1.5f, 2),
                  uniform_tensor({size.back()}, -1, 1, 3)};
    if (name == "batch_norm") return made(std::move(leaves), functions().at(name));
    return made(std::move(leaves),
                [n = size[1]](const Leaves& in) { return layer_norm(in[0], {n}, in[1], in[2]); });
  }
  if (name == "embedding") {
    const Tensor<std::int64_t> ids({size[2]}, indices(size[2], size[0], 3));
    return made({uniform_of(shape, 1)}, [ids](const Leaves& in) { return embedding(in[0], ids); });
  }
  if (name == "cross_entropy") {
    const Tensor<std::int64_t> labels({size[0]}, indices(size[0], size[1], 3));
    return made({uniform_of(shape, 1)}, [labels](const Leaves& in) { return cross_entropy(in[0], labels); });
  }
  const Tensor<float> x =
      name == "log" || name == "sqrt" ? uniform_tensor(shape, 0.1f, 2, 1) : uniform_of(shape, 1);
  if (name == "bce_with_logits") {
    const auto labels = wg::cast<float>(Tensor<std::int64_t>(shape, indices(shape.size(), 2, 3)));
    return made({x}, [labels](const Leaves& in) { return bce_with_logits(in[0], labels); });
  }
  const auto found = functions().find(name);
  if (found == functions().end()) return nullptr;
  Leaves leaves{x};
  if (name == "add" || name == "mul" || name == "div" || name == "mse")
    leaves.push_back(uniform_of(shape, 2));
  if (name == "add_row") leaves.push_back(uniform_of({size[1]}, 2));
  if (name == "mul_column") leaves.push_back(uniform_of({size[0], 1}, 2));
  return made(std::move(leaves), found->second);
}

}  // namespace bench
