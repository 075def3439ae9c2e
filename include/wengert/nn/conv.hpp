// Convolutions and transposed convolutions as modules. Floor: nn.
#pragma once

#include <optional>

#include <wengert/nn/init.hpp>
#include <wengert/nn/module.hpp>
#include <wengert/ops/conv.hpp>
#include <wengert/ops/conv_transpose.hpp>

namespace wengert::inline WENGERT_ISA::nn {

/// Of nn::Conv1d, nn::Conv2d and nn::Conv3d: those of `wengert::conv2d`, and whether there is a bias.
struct ConvOptions {
  PerAxis stride = 1;
  Padding padding = 0;
  PerAxis dilation = 1;
  Index groups = 1;
  bool bias = true;
};
/// Of nn::ConvTranspose1d, nn::ConvTranspose2d and nn::ConvTranspose3d: those of `wengert::conv_transpose2d`,
/// and whether there is a bias.
struct ConvTransposeOptions {
  PerAxis stride = 1, padding = 0, output_padding = 0, dilation = 1;
  Index groups = 1;
  bool bias = true;
};

namespace detail {

/// Weight and bias begin uniform in +-1 / sqrt(fan in), drawn in that order: PyTorch's defaults.
template <class Derived, Field T>
class ConvBase : public Module<Derived, T> {
 public:
  void members(auto& list) { list("weight", weight, "bias", bias); }

  Parameter<T> weight;
  std::optional<Parameter<T>> bias;

 protected:
  ConvBase(std::string_view op, int axes, const PerAxis& kernel, Index rows, Index columns, Index out,
           bool has_bias, Generator& generator)
      : weight(Tensor<T>(weight_shape(op, axes, kernel, rows, columns))) {
    init::kaiming_uniform(weight, generator, {.slope = std::sqrt(5.0)});
    if (!has_bias) return;
    bias.emplace(Tensor<T>(Shape{out}));
    init::detail::uniform_of_std(*bias, generator,
                                 1 / std::sqrt(3.0 * static_cast<double>(init::fans(weight.shape()).in)));
  }

  /// Throws ValueError unless `groups` divides the channels.
  static void check_channels(std::string_view op, Index in, Index out, Index groups) {
    const auto check = [&](const char* what, Index channels) {
      if (channels < 1 || groups < 1 || channels % groups != 0)
        fail<ValueError>(op, "bad ", what, " channels; got ", channels, " in ", groups,
                         " groups; expected a positive multiple of the groups");
    };
    check("input", in);
    check("output", out);
  }

 private:
  static Shape weight_shape(std::string_view op, int axes, const PerAxis& kernel, Index rows, Index columns) {
    kernel.check(op, "kernel", axes, 1);
    Shape shape;
    for (int i = 0; i < axes; ++i) shape.push_back(kernel[i]);
    shape.push_back(rows);
    shape.push_back(columns);
    return checked<T>(op, shape);
  }
};

template <class Derived, Field T, int Axes>
class ConvModule : public ConvBase<Derived, T> {
 public:
  Tensor<T> operator()(const Tensor<T>& x) const { return apply<false>(x); }
  /// relu of the output, as one record.
  Tensor<T> with_relu(const Tensor<T>& x) const { return apply<true>(x); }

 protected:
  ConvModule(Index in, Index out, const PerAxis& kernel, Generator& generator, const ConvOptions& options)
      : ConvBase<Derived, T>(name, Axes, kernel,
                             (this->check_channels(name, in, out, options.groups), in / options.groups), out,
                             out, options.bias, generator),
        options_{options.stride, options.padding, options.dilation, options.groups} {}

 private:
  static constexpr std::string_view name = wengert::detail::conv_names[Axes - 1];

  template <bool Relu>
  Tensor<T> apply(const Tensor<T>& x) const {
    const Tensor<T>* const b = this->bias ? &*this->bias : nullptr;
    Tensor<T> y = wengert::detail::conv<Axes, Relu, T>(x, this->weight, b, options_);
    this->noted(y);
    return y;
  }

  wengert::ConvOptions options_;
};

template <class Derived, Field T, int Axes>
class ConvTransposeModule : public ConvBase<Derived, T> {
 public:
  Tensor<T> operator()(const Tensor<T>& x) const {
    const Tensor<T>* const b = this->bias ? &*this->bias : nullptr;
    Tensor<T> y = wengert::detail::conv_transpose<Axes, T>(x, this->weight, b, options_);
    this->noted(y);
    return y;
  }

 protected:
  ConvTransposeModule(Index in, Index out, const PerAxis& kernel, Generator& generator,
                      const ConvTransposeOptions& options)
      : ConvBase<Derived, T>(name, Axes, kernel,
                             (this->check_channels(name, in, out, options.groups), out / options.groups), in,
                             out, options.bias, generator),
        options_{options.stride, options.padding, options.output_padding, options.dilation, options.groups} {}

 private:
  static constexpr std::string_view name = wengert::detail::conv_transpose_names[Axes - 1];

  wengert::ConvTransposeOptions options_;
};

}  // namespace detail

/// Convolution of images (N, H, W, in) to (N, Ho, Wo, out) with a weight (kh, kw, in / groups, out) and a
/// bias (out): `nn::Conv2d<float>(3, 64, 7, generator, {.stride = 2, .padding = 3, .bias = false})`. Throws
/// ValueError on channels, groups or a kernel that make no sense, and as `wengert::conv2d`.
template <Field T>
class Conv2d : public detail::ConvModule<Conv2d<T>, T, 2> {
 public:
  Conv2d(Index in, Index out, const PerAxis& kernel, Generator& generator, const ConvOptions& options = {})
      : detail::ConvModule<Conv2d<T>, T, 2>(in, out, kernel, generator, options) {}
};
/// As Conv2d for sequences (N, W, in), with a weight (kw, in / groups, out).
template <Field T>
class Conv1d : public detail::ConvModule<Conv1d<T>, T, 1> {
 public:
  Conv1d(Index in, Index out, const PerAxis& kernel, Generator& generator, const ConvOptions& options = {})
      : detail::ConvModule<Conv1d<T>, T, 1>(in, out, kernel, generator, options) {}
};
/// As Conv2d for volumes (N, D, H, W, in), with a weight (kd, kh, kw, in / groups, out).
template <Field T>
class Conv3d : public detail::ConvModule<Conv3d<T>, T, 3> {
 public:
  Conv3d(Index in, Index out, const PerAxis& kernel, Generator& generator, const ConvOptions& options = {})
      : detail::ConvModule<Conv3d<T>, T, 3>(in, out, kernel, generator, options) {}
};

/// Transposed convolution of images (N, H, W, in) to (N, Ho, Wo, out) with a weight (kh, kw, out / groups,
/// in) and a bias (out). Throws ValueError on channels, groups or a kernel that make no sense, and as
/// `wengert::conv_transpose2d`.
template <Field T>
class ConvTranspose2d : public detail::ConvTransposeModule<ConvTranspose2d<T>, T, 2> {
 public:
  ConvTranspose2d(Index in, Index out, const PerAxis& kernel, Generator& generator,
                  const ConvTransposeOptions& options = {})
      : detail::ConvTransposeModule<ConvTranspose2d<T>, T, 2>(in, out, kernel, generator, options) {}
};
/// As ConvTranspose2d for sequences (N, W, in), with a weight (kw, out / groups, in).
template <Field T>
class ConvTranspose1d : public detail::ConvTransposeModule<ConvTranspose1d<T>, T, 1> {
 public:
  ConvTranspose1d(Index in, Index out, const PerAxis& kernel, Generator& generator,
                  const ConvTransposeOptions& options = {})
      : detail::ConvTransposeModule<ConvTranspose1d<T>, T, 1>(in, out, kernel, generator, options) {}
};
/// As ConvTranspose2d for volumes (N, D, H, W, in), with a weight (kd, kh, kw, out / groups, in).
template <Field T>
class ConvTranspose3d : public detail::ConvTransposeModule<ConvTranspose3d<T>, T, 3> {
 public:
  ConvTranspose3d(Index in, Index out, const PerAxis& kernel, Generator& generator,
                  const ConvTransposeOptions& options = {})
      : detail::ConvTransposeModule<ConvTranspose3d<T>, T, 3>(in, out, kernel, generator, options) {}
};

}  // namespace wengert::inline WENGERT_ISA::nn
