// What libtorch, whose channels come first, makes of the rows of image operators.
#pragma once

#include <functional>
#include <map>
#include <string>

#include <torch/torch.h>

namespace oracle {

using Inputs = std::vector<torch::Tensor>;
using Function = std::function<torch::Tensor(const Inputs&)>;

inline torch::Tensor channels_first(const torch::Tensor& x) { return x.movedim(-1, 1); }
inline torch::Tensor channels_last(const torch::Tensor& x) { return x.movedim(1, -1); }

/// `f` of images with channels first, on images with channels last.
template <class F>
Function on_images(F f) {
  return [f](const Inputs& x) { return channels_last(f(channels_first(x[0]))); };
}

inline Function resized(torch::nn::functional::InterpolateFuncOptions options) {
  return on_images(
      [options](const torch::Tensor& x) { return torch::nn::functional::interpolate(x, options); });
}

using Numbers = std::vector<std::int64_t>;
/// Columns from PyTorch's (N, [C, taps], L) to (N, L, [taps, C]).
inline Function unfolded(const torch::ExpandingArray<2>& kernel, const torch::ExpandingArray<2>& stride,
                         const torch::ExpandingArray<2>& padding, const torch::ExpandingArray<2>& dilation) {
  return [=](const Inputs& x) {
    const torch::Tensor y = torch::im2col(channels_first(x[0]), kernel, dilation, padding, stride);
    const std::int64_t n = y.size(0), c = x[0].size(-1), windows = y.size(2);
    return y.view({n, c, -1, windows}).permute({0, 3, 2, 1}).reshape({n, windows, -1});
  };
}
inline Function folded(const Numbers& size, const torch::ExpandingArray<2>& kernel,
                       const torch::ExpandingArray<2>& stride, const torch::ExpandingArray<2>& padding,
                       const torch::ExpandingArray<2>& dilation) {
  return [=](const Inputs& x) {
    const std::int64_t taps = (*kernel)[0] * (*kernel)[1], n = x[0].size(0), windows = x[0].size(1);
    const torch::Tensor columns =
        x[0].view({n, windows, taps, -1}).permute({0, 3, 2, 1}).reshape({n, -1, windows});
    return channels_last(torch::col2im(columns, size, kernel, dilation, padding, stride));
  };
}

inline void add_image_rows(std::map<std::string, Function>& all) {
  using Options = torch::nn::functional::InterpolateFuncOptions;
  const auto nearest = [](Options o) { return resized(o.mode(torch::kNearest)); };
  const auto linear = [](auto mode, Options o, bool aligned = false) {
    return resized(o.mode(mode).align_corners(aligned));
  };
  const auto size = [](Numbers s) { return Options().size(std::move(s)); };
  const auto scale = [](std::vector<double> s) {
    return Options().scale_factor(std::move(s)).recompute_scale_factor(false);
  };
  const std::map<std::string, Function> rows = {
      {"pad",
       [](const Inputs& x) {
         return torch::constant_pad_nd(x[0], {0, 0, 0, 3, 1, 2}, 0.5);
       }},
      {"pad/one",
       [](const Inputs& x) {
         return torch::constant_pad_nd(x[0], {0, 0, 1, 1, 1, 1});
       }},
      {"pad/every_axis",
       [](const Inputs& x) {
         return torch::constant_pad_nd(x[0], {2, 1, 0, 0, 1, 0});
       }},
      {"pad/reflect", on_images([](const auto& x) {
         return torch::reflection_pad2d(x, {1, 3, 2, 1});
       })},
      {"pad/reflect_line", on_images([](const auto& x) {
         return torch::reflection_pad1d(x, {4, 4});
       })},
      {"pad/replicate", on_images([](const auto& x) {
         return torch::replication_pad2d(x, {4, 3, 2, 1});
       })},
      {"pad/replicate_volume", on_images([](const auto& x) {
         return torch::replication_pad3d(x, {1, 1, 1, 1, 1, 1});
       })},
      {"pixel_shuffle", on_images([](const auto& x) { return torch::pixel_shuffle(x, 2); })},
      {"pixel_shuffle/four", on_images([](const auto& x) { return torch::pixel_shuffle(x, 4); })},
      {"pixel_unshuffle", on_images([](const auto& x) { return torch::pixel_unshuffle(x, 3); })},
      {"pixel_unshuffle/two", on_images([](const auto& x) { return torch::pixel_unshuffle(x, 2); })},
      {"nhwc_to_nchw",
       [](const Inputs& x) {
         return x[0].permute({0, 3, 1, 2});
       }},
      {"nchw_to_nhwc",
       [](const Inputs& x) {
         return x[0].permute({0, 2, 3, 1});
       }},
      {"max_pool2d", on_images([](const auto& x) { return torch::max_pool2d(x, 2); })},
      {"max_pool2d/overlapping", on_images([](const auto& x) { return torch::max_pool2d(x, 3, 2, 1); })},
      {"max_pool2d/stride1", on_images([](const auto& x) { return torch::max_pool2d(x, 3, 1, 1); })},
      {"max_pool2d/dilated", on_images([](const auto& x) {
         return torch::max_pool2d(x, {2, 3}, {1, 2}, {1, 1}, {2, 3});
       })},
      {"max_pool2d/ceil", on_images([](const auto& x) {
         return torch::max_pool2d(x, {3, 2}, {2, 3}, 0, 1, true);
       })},
      {"max_pool2d/wide", on_images([](const auto& x) {
         return torch::max_pool2d(x, {17, 18}, {4, 5}, {8, 9});
       })},
      {"max_pool1d", on_images([](const auto& x) { return torch::max_pool1d(x, 3, 2, 1); })},
      {"max_pool1d/unpadded_kernel_larger",
       on_images([](const auto& x) { return torch::max_pool1d(x, 9, 1, 4); })},
      {"max_pool3d", on_images([](const auto& x) {
         return torch::max_pool3d(x, {2, 3, 2}, {1, 2, 2}, {1, 1, 0});
       })},
      {"avg_pool2d", on_images([](const auto& x) { return torch::avg_pool2d(x, 2); })},
      {"avg_pool2d/padded", on_images([](const auto& x) { return torch::avg_pool2d(x, 3, 2, 1, true); })},
      {"avg_pool2d/pixels_alone", on_images([](const auto& x) {
         return torch::avg_pool2d(x, {3, 2}, {2, 3}, 1, true, false);
       })},
      {"avg_pool2d/stride1", on_images([](const auto& x) {
         return torch::avg_pool2d(x, {3, 5}, 1, {1, 2});
       })},
      {"avg_pool1d", on_images([](const auto& x) { return torch::avg_pool1d(x, 3, 2, 1); })},
      {"avg_pool1d/long", on_images([](const auto& x) { return torch::avg_pool1d(x, 600, 100); })},
      {"avg_pool3d", on_images([](const auto& x) {
         return torch::avg_pool3d(x, {2, 3, 2}, {1, 2, 2}, {1, 1, 0}, true);
       })},
      {"adaptive_avg_pool2d", on_images([](const auto& x) {
         return torch::adaptive_avg_pool2d(x, {3, 2});
       })},
      {"adaptive_avg_pool2d/one", on_images([](const auto& x) {
         return torch::adaptive_avg_pool2d(x, {1, 1});
       })},
      {"adaptive_avg_pool1d/enlarging",
       on_images([](const auto& x) { return torch::adaptive_avg_pool1d(x, 5); })},
      {"adaptive_max_pool2d", on_images([](const auto& x) {
         return std::get<0>(torch::adaptive_max_pool2d(x, {3, 2}));
       })},
      {"adaptive_max_pool1d/enlarging",
       on_images([](const auto& x) { return std::get<0>(torch::adaptive_max_pool1d(x, 5)); })},
      {"global_avg_pool",
       [](const Inputs& x) {
         return x[0].mean({1, 2});
       }},
      {"global_max_pool",
       [](const Inputs& x) {
         return x[0].amax({1, 2});
       }},
      {"upsample", nearest(scale({2, 2}))},
      {"upsample/nearest_size", nearest(size({5, 7}))},
      {"upsample/nearest_smaller", nearest(size({2, 3}))},
      {"upsample/nearest_line", nearest(scale({3}))},
      {"upsample/nearest_scale", nearest(scale({1.5, 2.5}))},
      {"upsample/bilinear", linear(torch::kBilinear, scale({2, 2}))},
      {"upsample/bilinear_scale", linear(torch::kBilinear, scale({1.5, 1.5}))},
      {"upsample/bilinear_size", linear(torch::kBilinear, size({5, 7}))},
      {"upsample/bilinear_smaller", linear(torch::kBilinear, size({2, 3}))},
      {"upsample/bilinear_aligned", linear(torch::kBilinear, size({5, 7}), true)},
      {"upsample/aligned_smaller", linear(torch::kBilinear, size({1, 3}), true)},
      {"upsample/linear", linear(torch::kLinear, size({8}))},
      {"upsample/trilinear", linear(torch::kTrilinear, size({3, 4, 5}))},
      {"upsample/trilinear_aligned", linear(torch::kTrilinear, size({3, 1, 5}), true)},
      {"unfold", unfolded(3, 1, 1, 1)},
      {"unfold/mixed", unfolded({2, 3}, {2, 1}, {1, 2}, {3, 2})},
      {"fold", folded({4, 3}, 3, 1, 1, 1)},
      {"fold/mixed", folded({5, 4}, {2, 3}, {2, 1}, {1, 2}, {3, 2})},
  };
  all.insert(rows.begin(), rows.end());
}

}  // namespace oracle
