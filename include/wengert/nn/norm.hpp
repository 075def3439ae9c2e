// Normalisation as modules. Floor: nn.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <string_view>

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

namespace detail {

inline void check_rank(std::string_view module, const Shape& x, std::initializer_list<int> ranks,
                       std::string_view expected) {
  if (std::find(ranks.begin(), ranks.end(), x.rank()) == ranks.end())
    fail<ShapeError>(module, "wrong rank; x is ", x, "; expected ", expected);
}
inline void check_eps(std::string_view module, double eps) {
  if (!(eps >= 0)) fail<ValueError>(module, "bad eps; got ", eps, "; expected eps >= 0");
}

}  // namespace detail

/// What the batch normalisations share; `Derived` names itself, the ranks it takes and how they read.
template <class Derived, Field T>
class BatchNorm : public Module<Derived, T> {
 public:
  explicit BatchNorm(Index channels, BatchNormOptions options = {})
      : running_mean(zeros<T>(detail::checked<T>(Derived::name, {channels}))),
        running_var(ones<T>({channels})),
        options_(options) {
    if (!(options.eps >= 0) || !(options.momentum >= 0 && options.momentum <= 1))
      fail<ValueError>(Derived::name, "bad options; eps is ", options.eps, ", momentum is ", options.momentum,
                       "; expected eps >= 0 and 0 <= momentum <= 1");
    if (!options.affine) return;
    weight.emplace(ones<T>({channels}));
    bias.emplace(zeros<T>({channels}));
  }

  /// y = batch_norm(x).
  Tensor<T> operator()(const Tensor<T>& x) {
    check(x);
    const Tensor<T> y =
        batch_norm(x, detail::present(weight), detail::present(bias), &running_mean, &running_var, options());
    return this->noted(y);
  }
  /// y = relu(batch_norm(x)) as one record, see `wengert::batch_norm_relu`.
  Tensor<T> relu(const Tensor<T>& x) {
    check(x);
    const Tensor<T> y = batch_norm_relu(x, detail::present(weight), detail::present(bias), &running_mean,
                                        &running_var, options());
    return this->noted(y);
  }
  /// y = relu(batch_norm(x) + residual) as one record, see `wengert::batch_norm_add_relu`.
  Tensor<T> add_relu(const Tensor<T>& x, const Tensor<T>& residual) {
    check(x);
    const Tensor<T> y = batch_norm_add_relu(x, residual, detail::present(weight), detail::present(bias),
                                            &running_mean, &running_var, options());
    return this->noted(y);
  }

  void members(auto& list) {
    list("weight", weight, "bias", bias, "running_mean", running_mean, "running_var", running_var);
  }

  std::optional<Parameter<T>> weight, bias;
  Buffer<T> running_mean, running_var;

 private:
  static void check(const Tensor<T>& x) {
    detail::check_rank(Derived::name, x.shape(), Derived::ranks, Derived::layout);
  }
  wengert::BatchNormOptions options() const {
    return {.training = this->training(), .momentum = options_.momentum, .eps = options_.eps};
  }

  BatchNormOptions options_;
};

/// Batch normalisation of (N, C) or (N, L, C) over all axes but the last, which holds the channels. In
/// training by the batch's statistics, which also move running_mean and running_var; in evaluation by those.
/// Weight begins as ones, bias as zeros. Throws ShapeError for another rank or number of channels, ValueError
/// on one value per channel when training, or on options out of range.
template <Field T>
class BatchNorm1d : public BatchNorm<BatchNorm1d<T>, T> {
 public:
  static constexpr std::string_view name = "batch_norm_1d", layout = "(N, C) or (N, L, C)";
  static constexpr std::initializer_list<int> ranks = {2, 3};
  using BatchNorm<BatchNorm1d<T>, T>::BatchNorm;
};

/// Batch normalisation of images, (N, H, W, C), over all axes but the last; else as BatchNorm1d. What follows
/// it in a residual network comes in the same pass: `norm.relu(x)` and `norm.add_relu(x, residual)`.
template <Field T>
class BatchNorm2d : public BatchNorm<BatchNorm2d<T>, T> {
 public:
  static constexpr std::string_view name = "batch_norm_2d", layout = "(N, H, W, C)";
  static constexpr std::initializer_list<int> ranks = {4};
  using BatchNorm<BatchNorm2d<T>, T>::BatchNorm;
};

/// Batch normalisation of volumes, (N, D, H, W, C), over all axes but the last; else as BatchNorm2d.
template <Field T>
class BatchNorm3d : public BatchNorm<BatchNorm3d<T>, T> {
 public:
  static constexpr std::string_view name = "batch_norm_3d", layout = "(N, D, H, W, C)";
  static constexpr std::initializer_list<int> ranks = {5};
  using BatchNorm<BatchNorm3d<T>, T>::BatchNorm;
};

struct GroupNormOptions {
  double eps = 1e-5;
  bool affine = true;  ///< with weight and bias
};

/// Group normalisation of (N, ..., C): `GroupNorm<float> norm(32, 256)` for 32 groups of 256 channels. The
/// same in training and evaluation. Weight begins as ones, bias as zeros, of (C). Throws ShapeError where
/// groups do not divide the channels or x has other channels, ValueError unless groups >= 1 and eps >= 0.
template <Field T>
class GroupNorm : public Module<GroupNorm<T>, T> {
 public:
  GroupNorm(Index groups, Index channels, GroupNormOptions options = {})
      : groups_(groups), channels_(channels), options_(options) {
    detail::check_eps("group_norm", options.eps);
    detail::checked<T>("group_norm", {channels});
    if (groups < 1) fail<ValueError>("group_norm", "groups is ", groups, "; expected groups >= 1");
    if (channels % groups != 0)
      fail<ShapeError>("group_norm", "groups do not divide the channels; channels is ", channels,
                       ", groups is ", groups, "; expected a multiple of groups");
    if (!options.affine) return;
    weight.emplace(ones<T>({channels}));
    bias.emplace(zeros<T>({channels}));
  }

  Tensor<T> operator()(const Tensor<T>& x) const {
    if (x.rank() >= 2 && x.shape().back() != channels_)
      fail<ShapeError>("group_norm", "wrong number of channels; x is ", x.shape(), "; expected ", channels_,
                       " in the last axis");
    const Tensor<T> y =
        group_norm(x, groups_, detail::present(weight), detail::present(bias), {.eps = options_.eps});
    return this->noted(y);
  }

  void members(auto& list) { list("weight", weight, "bias", bias); }

  std::optional<Parameter<T>> weight, bias;

 private:
  Index groups_, channels_;
  GroupNormOptions options_;
};

struct InstanceNormOptions {
  double eps = 1e-5;
  bool affine = false;  ///< with weight and bias
};

/// Instance normalisation of images, (N, H, W, C): each channel of each sample over H and W, in training and
/// evaluation alike; no running statistics. Without weight and bias unless `affine`, as in PyTorch. Throws
/// ShapeError for another rank or number of channels, ValueError for images of one pixel or unless eps >= 0.
template <Field T>
class InstanceNorm2d : public Module<InstanceNorm2d<T>, T> {
 public:
  explicit InstanceNorm2d(Index channels, InstanceNormOptions options = {})
      : channels_(channels), options_(options) {
    detail::check_eps("instance_norm_2d", options.eps);
    detail::checked<T>("instance_norm_2d", {channels});
    if (!options.affine) return;
    weight.emplace(ones<T>({channels}));
    bias.emplace(zeros<T>({channels}));
  }

  Tensor<T> operator()(const Tensor<T>& x) const {
    detail::check_rank("instance_norm_2d", x.shape(), {4}, "(N, H, W, C)");
    if (x.shape().back() != channels_)
      fail<ShapeError>("instance_norm_2d", "wrong number of channels; x is ", x.shape(), "; expected ",
                       channels_, " in the last axis");
    const Tensor<T> y =
        instance_norm(x, detail::present(weight), detail::present(bias), {.eps = options_.eps});
    return this->noted(y);
  }

  void members(auto& list) { list("weight", weight, "bias", bias); }

  std::optional<Parameter<T>> weight, bias;

 private:
  Index channels_;
  InstanceNormOptions options_;
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
    detail::check_eps("layer_norm", options.eps);
    detail::checked<T>("layer_norm", normalized);
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
