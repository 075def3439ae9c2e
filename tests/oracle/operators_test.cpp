// libtorch as the oracle of the operators' values and gradients: for each row that it has an equal of, in
// double.
#include <functional>
#include <map>

#include <torch/torch.h>

#include "cases/operands.hpp"
#include "cases/suites.hpp"
#include "oracle/conv_oracles.hpp"
#include "oracle/image_oracles.hpp"

namespace {

using cases::Array;
using torch::Tensor;
using Inputs = std::vector<Tensor>;
using Oracle = std::function<Tensor(const Inputs&)>;
using wengert::Index;
namespace F = torch::nn::functional;

Oracle unary(Tensor (*f)(const Tensor&)) {
  return [f](const Inputs& x) { return f(x[0]); };
}
Oracle binary(Tensor (*f)(const Tensor&, const Tensor&)) {
  return [f](const Inputs& x) { return f(x[0], x[1]); };
}

/// The five rows of a reduction: over everything, the last axis, the first, the middle one, two axes.
using Reduce = std::function<Tensor(const Tensor&, std::vector<std::int64_t>, bool)>;
void add_reduction(std::map<std::string, Oracle>& all, const std::string& name, const Reduce& f) {
  const auto row = [&](const std::string& kind, std::vector<std::int64_t> axes, bool keep) {
    all[name + "/" + kind] = [f, axes, keep](const Inputs& x) {
      std::vector<std::int64_t> over = axes;
      if (over.empty())
        for (std::int64_t a = 0; a < x[0].dim(); ++a) over.push_back(a);
      return f(x[0], over, keep);
    };
  };
  row("all", {}, false);
  row("last", {-1}, true);
  row("first", {0}, false);
  row("middle", {1}, false);
  row("alternating", {-1, 1}, true);
}

/// Channels, which are last here, to axis 1, where libtorch has them; and back.
Tensor second(const Tensor& x) { return x.movedim(-1, 1); }
Tensor last(const Tensor& x) { return x.movedim(1, -1); }

Tensor batch_norm(const Tensor& x, const Tensor& w, const Tensor& b) {
  return last(torch::batch_norm(second(x), w, b, {}, {}, true, 0.1, 1e-5, false));
}
Tensor group_norm(const Tensor& x, std::int64_t groups, const Tensor& w, const Tensor& b) {
  return last(torch::group_norm(second(x), groups, w, b, 1e-5));
}

std::map<std::string, Oracle> oracles() {
  std::map<std::string, Oracle> all = {
      {"add", [](const Inputs& x) { return x[0] + x[1]; }},
      {"add/row", [](const Inputs& x) { return x[0] + x[1]; }},
      {"add/column", [](const Inputs& x) { return x[0] + x[1]; }},
      {"sub", [](const Inputs& x) { return x[0] - x[1]; }},
      {"mul", [](const Inputs& x) { return x[0] * x[1]; }},
      {"mul/both_stretched", [](const Inputs& x) { return x[0] * x[1]; }},
      {"mul/middle", [](const Inputs& x) { return x[0] * x[1]; }},
      {"div", [](const Inputs& x) { return x[0] / x[1]; }},
      {"div/number_by", [](const Inputs& x) { return 3 / x[0]; }},
      {"neg", [](const Inputs& x) { return -x[0]; }},
      {"maximum", [](const Inputs& x) { return torch::maximum(x[0], x[1]); }},
      {"minimum", [](const Inputs& x) { return torch::minimum(x[0], x[1]); }},
      {"clamp", [](const Inputs& x) { return torch::clamp(x[0], -1, 0.5); }},
      {"where", [](const Inputs& x) { return torch::where(x[0] != 0, x[1], x[2]); }},
      {"exp", unary(torch::exp)},
      {"expm1", unary(torch::expm1)},
      {"log", unary(torch::log)},
      {"log1p", unary(torch::log1p)},
      {"sqrt", unary(torch::sqrt)},
      {"square", unary(torch::square)},
      {"abs", unary(torch::abs)},
      {"sin", unary(torch::sin)},
      {"cos", unary(torch::cos)},
      {"erf", unary(torch::erf)},
      {"tanh", unary(torch::tanh)},
      {"sigmoid", unary(torch::sigmoid)},
      {"relu", unary(torch::relu)},
      {"leaky_relu", [](const Inputs& x) { return torch::leaky_relu(x[0], 0.1); }},
      {"gelu", [](const Inputs& x) { return torch::gelu(x[0]); }},
      {"gelu/tanh", [](const Inputs& x) { return torch::gelu(x[0], "tanh"); }},
      {"silu", unary(torch::silu)},
      {"softplus", [](const Inputs& x) { return torch::softplus(x[0]); }},
      {"pow", [](const Inputs& x) { return torch::pow(x[0], x[1]); }},
      {"pow/number", [](const Inputs& x) { return torch::pow(x[0], 3); }},
      {"matmul", binary(torch::matmul)},
      {"matmul/inner", binary(torch::matmul)},
      {"matmul/dot", binary(torch::matmul)},
      {"matmul/vector_left", binary(torch::matmul)},
      {"matmul/vector_right", binary(torch::matmul)},
      {"matmul/vector_left_batch", binary(torch::matmul)},
      {"matmul/vector_right_batch", binary(torch::matmul)},
      {"matmul/batch", binary(torch::matmul)},
      {"matmul/shared_right", binary(torch::matmul)},
      {"matmul/shared_left", binary(torch::matmul)},
      {"matmul/broadcast", binary(torch::matmul)},
      {"linear", [](const Inputs& x) { return torch::linear(x[0], x[1], x[2]); }},
      {"linear/leading", [](const Inputs& x) { return torch::linear(x[0], x[1], x[2]); }},
      {"linear/no_bias", [](const Inputs& x) { return torch::linear(x[0], x[1]); }},
      {"linear_relu", [](const Inputs& x) { return torch::relu(torch::linear(x[0], x[1], x[2])); }},
      {"batch_norm",
       [](const Inputs& x) { return torch::batch_norm(x[0], x[1], x[2], {}, {}, true, 0.1, 1e-5, false); }},
      {"batch_norm/images", [](const Inputs& x) { return batch_norm(x[0], x[1], x[2]); }},
      {"batch_norm_relu", [](const Inputs& x) { return torch::relu(batch_norm(x[0], x[1], x[2])); }},
      {"batch_norm_relu/plain", [](const Inputs& x) { return torch::relu(batch_norm(x[0], {}, {})); }},
      {"batch_norm_add_relu",
       [](const Inputs& x) { return torch::relu(batch_norm(x[0], x[2], x[3]) + x[1]); }},
      {"batch_norm_add_relu/itself",
       [](const Inputs& x) { return torch::relu(batch_norm(x[0], x[1], x[2]) + x[0]); }},
      {"batch_norm_add_relu/constant_residual",
       [](const Inputs& x) { return torch::relu(batch_norm(x[0], {}, {}) + x[1]); }},
      {"group_norm", [](const Inputs& x) { return group_norm(x[0], 2, x[1], x[2]); }},
      {"group_norm/one", [](const Inputs& x) { return group_norm(x[0], 1, x[1], x[2]); }},
      {"group_norm/three", [](const Inputs& x) { return group_norm(x[0], 3, x[1], x[2]); }},
      {"group_norm/flat", [](const Inputs& x) { return group_norm(x[0], 2, x[1], x[2]); }},
      {"instance_norm",
       [](const Inputs& x) {
         return last(torch::instance_norm(second(x[0]), x[1], x[2], {}, {}, true, 0.1, 1e-5, false));
       }},
      {"layer_norm", [](const Inputs& x) { return torch::layer_norm(x[0], x[1].sizes(), x[1], x[2], 1e-5); }},
      {"layer_norm/two_axes",
       [](const Inputs& x) { return torch::layer_norm(x[0], x[1].sizes(), x[1], x[2], 1e-5); }},
      {"take_rows",
       [](const Inputs& x) { return torch::index_select(x[0], 0, x[1].to(torch::kLong).flatten()); }},
      {"embedding", [](const Inputs& x) { return torch::embedding(x[0], x[1].to(torch::kLong)); }},
      {"gather/axis0", [](const Inputs& x) { return torch::gather(x[0], 0, x[1].to(torch::kLong)); }},
      {"gather/last", [](const Inputs& x) { return torch::gather(x[0], -1, x[1].to(torch::kLong)); }},
      {"index_select/axis0",
       [](const Inputs& x) { return torch::index_select(x[0], 0, x[1].to(torch::kLong)); }},
      {"cross_entropy",
       [](const Inputs& x) { return torch::cross_entropy_loss(x[0], x[1].to(torch::kLong)); }},
      {"cross_entropy/smooth",
       [](const Inputs& x) {
         return F::cross_entropy(x[0], x[1].to(torch::kLong),
                                 F::CrossEntropyFuncOptions().label_smoothing(0.3));
       }},
      {"cross_entropy/probabilities", [](const Inputs& x) { return torch::cross_entropy_loss(x[0], x[1]); }},
      {"nll_loss", [](const Inputs& x) { return torch::nll_loss(x[0], x[1].to(torch::kLong)); }},
      {"bce_with_logits",
       [](const Inputs& x) { return torch::binary_cross_entropy_with_logits(x[0], x[1]); }},
      {"bce_with_logits/weighted",
       [](const Inputs& x) {
         return torch::binary_cross_entropy_with_logits(x[0], x[1], x[2], x[3], at::Reduction::None);
       }},
      {"mse_loss", [](const Inputs& x) { return torch::mse_loss(x[0], x[1]); }},
      {"mse_loss/sum", [](const Inputs& x) { return torch::mse_loss(x[0], x[1], at::Reduction::Sum); }},
      {"transpose", [](const Inputs& x) { return x[0].transpose(-1, -2); }},
      {"softmax/last", [](const Inputs& x) { return torch::softmax(x[0], -1); }},
      {"softmax/first", [](const Inputs& x) { return torch::softmax(x[0], 0); }},
      {"softmax/middle", [](const Inputs& x) { return torch::softmax(x[0], 1); }},
      {"log_softmax/last", [](const Inputs& x) { return torch::log_softmax(x[0], -1); }},
      {"log_softmax/first", [](const Inputs& x) { return torch::log_softmax(x[0], 0); }},
      {"log_softmax/middle", [](const Inputs& x) { return torch::log_softmax(x[0], 1); }},
  };
  oracle::add_image_rows(all);
  oracle::add_conv_rows(all);
  add_reduction(all, "sum", [](const Tensor& x, auto axes, bool keep) { return x.sum(axes, keep); });
  add_reduction(all, "mean", [](const Tensor& x, auto axes, bool keep) { return x.mean(axes, keep); });
  add_reduction(all, "logsumexp",
                [](const Tensor& x, auto axes, bool keep) { return x.logsumexp(axes, keep); });
  add_reduction(all, "var", [](const Tensor& x, auto axes, bool keep) { return x.var(axes, true, keep); });
  add_reduction(all, "std", [](const Tensor& x, auto axes, bool keep) { return x.std(axes, true, keep); });
  add_reduction(all, "max", [](const Tensor& x, auto axes, bool keep) { return x.amax(axes, keep); });
  add_reduction(all, "min", [](const Tensor& x, auto axes, bool keep) { return x.amin(axes, keep); });
  return all;
}

Tensor to_torch(const Array& x) {
  const std::vector<std::int64_t> shape(x.shape.begin(), x.shape.end());
  return torch::tensor(x.v, torch::kDouble).reshape(shape).clone();
}

Array from_torch(const Tensor& x) {
  const Tensor flat = x.detach().to(torch::kDouble).contiguous();
  Array y(wengert::Shape(std::span<const Index>(flat.sizes().data(), flat.sizes().size())));
  std::copy_n(flat.data_ptr<double>(), y.v.size(), y.v.begin());
  return y;
}

class OracleRows : public cases::RowTest {};

TEST_P(OracleRows, AgreeWithLibtorch) {
  const cases::Case& c = row();
  const Oracle oracle = oracles().at(c.name);
  for (const std::uint32_t seed : {1U, 2U, 3U}) {
    const cases::Arrays x = cases::values_for(c, seed);
    const cases::Outcome ours = cases::run<double>(c, cases::operands<double>(c, x));

    Inputs inputs;
    for (std::size_t i = 0; i < x.size(); ++i) {
      inputs.push_back(to_torch(x[i]));
      if (c.inputs[i].differentiable && c.inputs[i].kind == cases::Input::Kind::real)
        inputs[i].requires_grad_();
    }
    const Tensor y = oracle(inputs);
    const std::string value = cases::difference(ours.y, from_torch(y), 1e-11);
    ASSERT_TRUE(value.empty()) << c.name << ", value, " << value;
    if (!c.differentiable) continue;
    y.backward(to_torch(cases::seed_for(ours.y.shape)));
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (!inputs[i].requires_grad()) continue;
      ASSERT_TRUE(ours.dx[i].has_value()) << c.name << ", input " << i;
      const std::string slope = cases::difference(*ours.dx[i], from_torch(inputs[i].grad()), 1e-9);
      EXPECT_TRUE(slope.empty()) << c.name << ", gradient of input " << i << ", " << slope;
    }
  }
}

const std::map<std::string, Oracle> known = oracles();
CASES_SUITE(OracleRows, [](const cases::Case& c) { return oracles().count(c.name) == 1; });

TEST(Oracle, KnowsOnlyRowsThatExist) {
  std::map<std::string, bool> found;
  for (const cases::Case* c : cases::all_cases()) found[c->name] = true;
  for (const auto& [name, oracle] : known) EXPECT_TRUE(found.count(name) == 1) << name;
}

}  // namespace
