// The fully connected layer as a module. Floor: nn.
#pragma once

#include <optional>

#include <wengert/nn/init.hpp>
#include <wengert/nn/module.hpp>
#include <wengert/ops/linear.hpp>

namespace wengert::inline WENGERT_ISA::nn {

struct LinearOptions {
  bool bias = true;
};

/// y = x weight^T + bias: x is (..., in), y is (..., out). Weight (out, in) and bias (out) begin uniform in
/// +-1 / sqrt(in), PyTorch's default, drawn from the generator in that order. Throws ShapeError when in or
/// out is negative, and as `wengert::linear`.
template <Field T>
class Linear : public Module<Linear<T>, T> {
 public:
  [[gnu::cold]] Linear(Index in, Index out, Generator& generator, LinearOptions options = {})
      : weight(Tensor<T>(detail::checked<T>("linear", {out, in}))) {
    init::kaiming_uniform(weight, generator, {.slope = std::sqrt(5.0)});
    if (!options.bias) return;
    bias.emplace(Tensor<T>(Shape{out}));
    init::detail::uniform_of_std(*bias, generator,
                                 in == 0 ? 0 : 1 / std::sqrt(3.0 * static_cast<double>(in)));
  }

  Tensor<T> operator()(const Tensor<T>& x) const {
    Tensor<T> y = bias ? linear(x, weight, *bias) : linear(x, weight);
    this->noted(y);
    return y;
  }
  /// relu of the output, as one record.
  Tensor<T> with_relu(const Tensor<T>& x) const {
    Tensor<T> y = bias ? linear_relu(x, weight, *bias) : linear_relu(x, weight);
    this->noted(y);
    return y;
  }

  void members(auto& list) { list("weight", weight, "bias", bias); }

  Parameter<T> weight;
  std::optional<Parameter<T>> bias;
};

}  // namespace wengert::inline WENGERT_ISA::nn
