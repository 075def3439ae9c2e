// What libtorch, whose channels come first and whose weights are (out, in / groups, taps), makes of the rows
// of convolutions.
#pragma once

#include "oracle/image_oracles.hpp"

namespace oracle {

/// PyTorch's arguments, numbers for each spatial axis; empty lists are its defaults.
struct ConvArguments {
  Numbers stride = {}, padding = {}, dilation = {};
  bool relu = false;
  Numbers ends = {};  // padding that PyTorch's convolution cannot express: before and after, last axis first
};

inline Numbers or_all(const Numbers& given, std::int64_t axes, std::int64_t otherwise) {
  return given.empty() ? Numbers(static_cast<std::size_t>(axes), otherwise) : given;
}

/// (taps, rows, columns) to (columns, rows, taps).
inline torch::Tensor torch_weight(const torch::Tensor& w) { return w.movedim({-1, -2}, {0, 1}); }

/// In as many groups as fit the channels that w reads.
inline Function convolved(const ConvArguments& a = {}) {
  return [a](const Inputs& x) {
    const std::int64_t axes = x[0].dim() - 2;
    torch::Tensor image = channels_first(x[0]);
    if (!a.ends.empty()) image = torch::constant_pad_nd(image, a.ends);
    const torch::Tensor y =
        torch::convolution(image, torch_weight(x[1]), x.size() > 2 ? x[2] : torch::Tensor(),
                           or_all(a.stride, axes, 1), or_all(a.padding, axes, 0), or_all(a.dilation, axes, 1),
                           false, or_all({}, axes, 0), x[0].size(-1) / x[1].size(-2));
    return channels_last(a.relu ? torch::relu(y) : y);
  };
}

/// With a number of groups that depends on the channels.
inline Function transposed(const ConvArguments& a, const Numbers& output_padding,
                           std::function<std::int64_t(std::int64_t)> groups) {
  return [=](const Inputs& x) {
    const std::int64_t axes = x[0].dim() - 2;
    return channels_last(torch::convolution(channels_first(x[0]), torch_weight(x[1]),
                                            x.size() > 2 ? x[2] : torch::Tensor(), or_all(a.stride, axes, 1),
                                            or_all(a.padding, axes, 0), or_all(a.dilation, axes, 1), true,
                                            or_all(output_padding, axes, 0), groups(x[0].size(-1))));
  };
}
inline Function transposed(const ConvArguments& a = {}, const Numbers& output_padding = {},
                           std::int64_t groups = 1) {
  return transposed(a, output_padding, [groups](std::int64_t) { return groups; });
}

inline void add_conv_rows(std::map<std::string, Function>& all) {
  const std::map<std::string, Function> rows = {
      {"conv2d", convolved({.padding = {1, 1}})},
      {"conv2d/no_bias", convolved()},
      {"conv2d/batch", convolved({.stride = {2, 2}, .padding = {1, 1}})},
      {"conv2d/strided", convolved({.stride = {2, 3}, .padding = {1, 0}})},
      {"conv2d/stem", convolved({.stride = {2, 2}, .padding = {3, 3}})},
      {"conv2d/holes", convolved({.stride = {4, 3}, .padding = {0, 1}})},
      {"conv2d/same",  // taps 4 x 3 with dilation 1, 2: three rows and four columns of zeros
       [](const Inputs& x) {
         const auto options =
             torch::nn::functional::Conv2dFuncOptions().bias(x[2]).padding(torch::kSame).dilation({1, 2});
         return channels_last(
             torch::nn::functional::conv2d(channels_first(x[0]), torch_weight(x[1]), options));
       }},
      {"conv2d/same_strided",  // 5 rows to 3 in steps of 2, 7 columns to 3 in steps of 3
       convolved({.stride = {2, 3}, .ends = {1, 2, 1, 1}})},
      {"conv2d/valid", convolved({.stride = {2, 2}})},
      {"conv2d/dilated", convolved({.stride = {1, 2}, .padding = {2, 1}, .dilation = {2, 3}})},
      {"conv2d/kernel_larger", convolved({.padding = {2, 4}})},
      {"conv2d/one_pixel", convolved({.padding = {1, 1}})},
      {"conv2d/pointwise", convolved()},
      {"conv2d/pointwise_strided", convolved({.stride = {2, 2}})},
      {"conv2d/winograd", convolved({.padding = {1, 1}})},
      {"conv2d/groups", convolved({.padding = {1, 1}})},
      {"conv2d/many_groups", convolved({.stride = {1, 2}, .padding = {1, 0}})},
      {"conv2d/depthwise", convolved({.padding = {1, 1}})},
      {"conv2d/depthwise_strided", convolved({.stride = {2, 2}, .padding = {3, 3}, .dilation = {1, 2}})},
      {"conv2d/depthwise_multiplied", convolved({.ends = {0, 1, 1, 1}})},
      {"conv2d/three_groups", convolved()},
      {"conv2d_relu", convolved({.stride = {2, 2}, .padding = {1, 1}, .relu = true})},
      {"conv2d_relu/pointwise", convolved({.relu = true})},
      {"conv2d_relu/depthwise", convolved({.padding = {1, 1}, .relu = true})},
      {"conv1d", convolved({.padding = {2}})},
      {"conv1d/strided", convolved({.stride = {3}, .padding = {1}, .dilation = {2}})},
      {"conv1d/same",
       [](const Inputs& x) {
         const auto options = torch::nn::functional::Conv1dFuncOptions().bias(x[2]).padding(torch::kSame);
         return channels_last(
             torch::nn::functional::conv1d(channels_first(x[0]), torch_weight(x[1]), options));
       }},
      {"conv1d/groups", convolved({.stride = {2}})},
      {"conv1d/depthwise", convolved({.padding = {1}})},
      {"conv1d/batch", convolved()},
      {"conv1d_relu", convolved({.stride = {2}, .padding = {1}, .relu = true})},
      {"conv3d", convolved({.padding = {1, 1, 1}})},
      {"conv3d/mixed", convolved({.stride = {1, 2, 3}, .padding = {1, 0, 2}, .dilation = {2, 1, 2}})},
      {"conv3d/same", convolved({.stride = {2, 1, 2}, .ends = {0, 1, 0, 1, 0, 1}})},
      {"conv3d/groups", convolved({.padding = {1, 0, 1}})},
      {"conv3d/depthwise", convolved({.stride = {2, 2, 2}, .padding = {1, 1, 1}})},
      {"conv3d/batch", convolved()},
      {"conv3d_relu", convolved({.padding = {0, 1, 1}, .relu = true})},
      {"conv_transpose2d", transposed({.stride = {2, 2}, .padding = {1, 1}}, {1, 1})},
      {"conv_transpose2d/no_bias", transposed()},
      {"conv_transpose2d/same_size", transposed({.padding = {1, 1}})},
      {"conv_transpose2d/doubling", transposed({.stride = {2, 2}})},
      {"conv_transpose2d/holes", transposed({.stride = {4, 3}, .padding = {0, 1}}, {3, 0})},
      {"conv_transpose2d/dilated",
       transposed({.stride = {1, 2}, .padding = {2, 3}, .dilation = {2, 3}}, {0, 2})},
      {"conv_transpose2d/batch", transposed({.stride = {3, 1}})},
      {"conv_transpose2d/shifted", transposed({.padding = {1, 0}, .dilation = {3, 3}}, {2, 0})},
      {"conv_transpose2d/pointwise", transposed()},
      {"conv_transpose2d/winograd", transposed({.padding = {1, 1}})},
      {"conv_transpose2d/groups", transposed({.stride = {2, 2}, .padding = {1, 1}}, {}, 2)},
      {"conv_transpose2d/depthwise",
       transposed({.stride = {2, 2}, .padding = {1, 1}}, {1, 1}, [](std::int64_t c) { return c; })},
      {"conv_transpose2d/many_groups",
       transposed({.padding = {1, 0}}, {}, [](std::int64_t c) { return c / 2; })},
      {"conv_transpose1d", transposed({.stride = {3}, .padding = {1}}, {2})},
      {"conv_transpose1d/cut", transposed({.padding = {3}})},
      {"conv_transpose3d", transposed({.stride = {1, 2, 2}, .padding = {1, 1, 1}}, {0, 1, 0})},
      {"conv_transpose3d/groups", transposed({.stride = {2, 2, 2}, .dilation = {1, 2, 1}}, {}, 2)},
  };
  all.insert(rows.begin(), rows.end());
}

}  // namespace oracle
