// Normalisation as modules. Floor: nn.
#pragma once

#include <optional>

#include <wengert/nn/module.hpp>
#include <wengert/ops/create.hpp>
#include <wengert/ops/norm.hpp>

namespace wengert::inline WENGERT_ISA::nn {

namespace detail {

template <class M>
const auto* present(const std::optional<M>& m) {
  return m ? &*m : nullptr;
}

}  // namespace detail

struct BatchNormOptions {
  double eps = 1e-5;
  double momentum = 0.1;  ///< share of the batch in the running statistics
  bool affine = true;     ///< with weight and bias
};

/// Batch normalisation of (N, C) or (N, L, C) over all axes but the last, which holds the channels. In
/// training by the batch's statistics, which also move running_mean and running_var; in evaluation by those.
/// Weight begins as ones, bias as zeros. Throws ShapeError for another rank or number of channels, ValueError
/// on one value per channel when training, or on options out of range.
template <Field T>
class BatchNorm1d : public Module<BatchNorm1d<T>, T> {
 public:
  explicit BatchNorm1d(Index channels, BatchNormOptions options = {})
      : running_mean(zeros<T>({channels})), running_var(ones<T>({channels})), options_(options) {
    if (!(options.eps >= 0) || !(options.momentum >= 0 && options.momentum <= 1))
      fail<ValueError>("batch_norm_1d", "bad options; eps is ", options.eps, ", momentum is ",
                       options.momentum, "; expected eps >= 0 and 0 <= momentum <= 1");
    if (!options.affine) return;
    weight.emplace(ones<T>({channels}));
    bias.emplace(zeros<T>({channels}));
  }

  Tensor<T> operator()(const Tensor<T>& x) {
    if (x.rank() != 2 && x.rank() != 3)
      fail<ShapeError>("batch_norm_1d", "wrong rank; x is ", x.shape(), "; expected (N, C) or (N, L, C)");
    Tensor<T> y =
        batch_norm(x, detail::present(weight), detail::present(bias), &running_mean, &running_var,
                   {.training = this->training(), .momentum = options_.momentum, .eps = options_.eps});
    this->noted(y);
    return y;
  }

  void members(auto& list) {
    list("weight", weight, "bias", bias, "running_mean", running_mean, "running_var", running_var);
  }

  std::optional<Parameter<T>> weight, bias;
  Buffer<T> running_mean, running_var;

 private:
  BatchNormOptions options_;
};

struct LayerNormOptions {
  double eps = 1e-5;
  bool affine = true;  ///< with weight and bias
};

/// Layer normalisation over the last axes, whose shape is given: `LayerNorm<float> norm({128})`. Weight
/// begins as ones, bias as zeros, of that shape. Throws ValueError unless eps >= 0, and as
/// `wengert::layer_norm`.
template <Field T>
class LayerNorm : public Module<LayerNorm<T>, T> {
 public:
  explicit LayerNorm(const Shape& normalized, LayerNormOptions options = {})
      : normalized_(normalized), options_(options) {
    if (!(options.eps >= 0))
      fail<ValueError>("layer_norm", "bad eps; got ", options.eps, "; expected eps >= 0");
    if (!options.affine) return;
    weight.emplace(ones<T>(normalized));
    bias.emplace(zeros<T>(normalized));
  }

  Tensor<T> operator()(const Tensor<T>& x) const {
    Tensor<T> y =
        layer_norm(x, normalized_, detail::present(weight), detail::present(bias), {.eps = options_.eps});
    this->noted(y);
    return y;
  }

  void members(auto& list) { list("weight", weight, "bias", bias); }

  std::optional<Parameter<T>> weight, bias;

 private:
  Shape normalized_;
  LayerNormOptions options_;
};

}  // namespace wengert::inline WENGERT_ISA::nn
