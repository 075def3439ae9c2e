// What turns batches of images into inputs of a network: normalisation by channel, and for training random
// crops and mirror images, all in one pass. Floor: data.
#pragma once

#include <cmath>
#include <vector>

#include <wengert/base/random.hpp>
#include <wengert/core/tape.hpp>
#include <wengert/core/tensor.hpp>
#include <wengert/kernels/parallel.hpp>

namespace wengert::inline WENGERT_ISA::data {

/// Mean and standard deviation of each channel, in the scale 0..1 for images of bytes. Empty: bytes become
/// 0..1, other pixels stay as they are.
struct Normalization {
  std::vector<double> mean, std;
};

/// What `augment` does to each image.
struct AugmentOptions {
  Index padding = 0;  ///< black pixels on every side, before a crop of the old size at a random place
  bool flip = false;  ///< mirror left and right with probability 1/2
};

namespace detail {

/// Pixels are read in the scale 0..1 when they are bytes.
template <Scalar X>
inline constexpr double pixel_scale = std::same_as<X, Byte> ? 255 : 1;

template <Scalar X>
void check_images(std::string_view op, const Tensor<X>& images) {
  if (images.rank() != 4)
    fail<ShapeError>(op, "the rank does not fit; images are ", images.shape(), "; expected (N, H, W, C)");
  if (images.requires_grad() && grad_enabled())
    fail<TapeError>(op, "images ask for a gradient, which is not recorded; images are ", images.shape(),
                    "; expected constants; pass their detach()");
}

inline void check_normalization(std::string_view op, const Shape& images, const Normalization& n) {
  if (n.mean.empty() && n.std.empty()) return;
  const auto channels = static_cast<std::size_t>(images[3]);
  if (n.mean.size() != channels || n.std.size() != channels)
    fail<ShapeError>(op, "numbers of channels differ; images are ", images, ", normalization has ",
                     n.mean.size(), " means and ", n.std.size(), " deviations; expected ", channels,
                     " of both");
  for (std::size_t c = 0; c < channels; ++c)
    if (!std::isfinite(n.mean[c]) || !(n.std[c] > 0) || !std::isfinite(n.std[c]))
      fail<ValueError>(op, "channel ", c, " cannot be normalized; mean is ", n.mean[c], ", deviation is ",
                       n.std[c], "; expected finite numbers and a deviation > 0");
}

/// Where an image is cut out of the padded one, and whether it is mirrored.
struct Cut {
  Index down, right;
  bool flipped;
};

/// y[h, w] = (x[h + down - padding, w + right - padding] - mean) * factor of its channel, mirrored when
/// flipped; 0 stands for x outside.
template <class X, class T>
void cut_image(const X* x, Index height, Index width, Index c, Index padding, Cut cut, const T* mean,
               const T* factor, T* y) {
  for (Index h = 0; h < height; ++h) {
    const Index from_h = h + cut.down - padding;
    const bool outside = from_h < 0 || from_h >= height;
    for (Index w = 0; w < width; ++w, y += c) {
      const Index from_w = (cut.flipped ? width - 1 - w : w) + cut.right - padding;
      if (outside || from_w < 0 || from_w >= width) {
        for (Index k = 0; k < c; ++k) y[k] = (T(0) - mean[k]) * factor[k];
      } else {
        const X* const pixel = x + (from_h * width + from_w) * c;
        for (Index k = 0; k < c; ++k) y[k] = (static_cast<T>(pixel[k]) - mean[k]) * factor[k];
      }
    }
  }
}

/// `cut_of(image)` says how each image is cut.
template <class T, class X, class F>
Tensor<T> cut_images(const Tensor<X>& images, const Normalization& n, Index padding, F cut_of) {
  const Tensor<X> x = images.packed();
  Tensor<T> y(images.shape());
  const Shape s = images.shape();
  const Index image = s[1] * s[2] * s[3], channels = s[3];
  const Scratch<T> constants(2 * channels);
  T* const mean = constants.data();
  T* const factor = mean + channels;
  for (Index c = 0; c < channels; ++c) {
    const auto at = static_cast<std::size_t>(c);
    mean[c] = static_cast<T>(n.mean.empty() ? 0 : n.mean[at] * pixel_scale<X>);
    factor[c] = static_cast<T>(1 / ((n.std.empty() ? 1 : n.std[at]) * pixel_scale<X>));
  }
  constexpr Index grain = 8192;  // elements; several us of work
  kernels::parallel_for(s[0], std::max<Index>(1, grain / std::max<Index>(1, image)),
                        [=, from = x.data(), to = y.fresh_data()](Index begin, Index end) {
                          for (Index i = begin; i < end; ++i)
                            cut_image(from + i * image, s[1], s[2], channels, padding, cut_of(i), mean,
                                      factor, to + i * image);
                        });
  return y;
}

}  // namespace detail

/// Mean and standard deviation (divided by the number, not by one less) of each channel of images
/// (N, H, W, C), in double, in an order that does not depend on the number of threads. Bytes count as 0..1.
/// Throws ShapeError for other ranks, and ValueError when there is no pixel.
template <Scalar X>
Normalization channel_statistics(const Tensor<X>& images) {
  detail::check_images("channel_statistics", images);
  const Shape s = images.shape();
  const Index channels = s[3], pixels = s[1] * s[2];
  if (s[0] * pixels == 0)
    fail<ValueError>("channel_statistics", "there is no pixel; images are ", s, "; expected at least one");
  const Tensor<X> x = images.packed();
  const Scratch<double> sums(s[0] * channels);  // of each image
  Normalization n{std::vector<double>(static_cast<std::size_t>(channels)), {}};
  const auto average = [&](const double* center, int power) {
    kernels::parallel_for(s[0], 8, [=, from = x.data(), to = sums.data()](Index begin, Index end) {
      for (Index i = begin; i < end; ++i)
        for (Index c = 0; c < channels; ++c) {
          double sum = 0;
          for (Index p = 0; p < pixels; ++p) {
            const double d = static_cast<double>(from[(i * pixels + p) * channels + c]) - center[c];
            sum += power == 1 ? d : d * d;
          }
          to[i * channels + c] = sum;
        }
    });
    std::vector<double> out(static_cast<std::size_t>(channels));
    for (Index i = 0; i < s[0]; ++i)
      for (Index c = 0; c < channels; ++c) out[static_cast<std::size_t>(c)] += sums[i * channels + c];
    for (double& v : out) v /= static_cast<double>(s[0] * pixels);
    return out;
  };
  n.mean = average(n.mean.data(), 1);
  n.std = average(n.mean.data(), 2);
  for (std::size_t c = 0; c < n.mean.size(); ++c) {
    n.mean[c] /= detail::pixel_scale<X>;
    n.std[c] = std::sqrt(n.std[c]) / detail::pixel_scale<X>;
  }
  return n;
}

/// Images (N, H, W, C), of bytes or numbers, as inputs of a network: y = (x - mean) / std of their channel,
/// where bytes count as 0..1. Not recorded. Throws ShapeError for other ranks or numbers of channels,
/// ValueError for a deviation that is not > 0, TapeError for images that ask for a gradient.
template <Field T, Scalar X>
Tensor<T> normalize(const Tensor<X>& images, const Normalization& normalization = {}) {
  detail::check_images("normalize", images);
  detail::check_normalization("normalize", images.shape(), normalization);
  return detail::cut_images<T>(images, normalization, 0, [](Index) { return detail::Cut{0, 0, false}; });
}

/// As `normalize`, after each image was padded with black, cut at a random place and mirrored half the time:
///   for (auto [x, y] : loader) net(augment<float>(x, {.padding = 4, .flip = true}, statistics, generator));
/// What happens to image i follows from the generator's seed, its counter and i alone: the same at any number
/// of threads; four words are drawn for each image. Each place is equally likely to 2^-32 of its
/// probability. Asks for no memory in a steady state. Throws as `normalize`, and ValueError unless padding
/// >= 0.
template <Field T, Scalar X>
Tensor<T> augment(const Tensor<X>& images, const AugmentOptions& options, const Normalization& normalization,
                  Generator& generator) {
  detail::check_images("augment", images);
  detail::check_normalization("augment", images.shape(), normalization);
  constexpr Index most = 1 << 30;
  if (options.padding < 0 || options.padding > most)
    fail<ValueError>("augment", "padding is ", options.padding, "; expected 0..", most);
  const Index n = images.shape()[0], padding = options.padding;
  const Scratch<detail::Cut> cuts(n);
  generator.fill<4>(static_cast<std::size_t>(n),
                    [&](const std::uint32_t* words, std::size_t at, std::size_t count) {
                      const auto places = static_cast<std::uint64_t>(2 * padding + 1);
                      for (std::size_t i = 0; i < count; ++i, words += 4)
                        cuts[static_cast<Index>(at + i)] = {static_cast<Index>(words[0] * places >> 32),
                                                            static_cast<Index>(words[1] * places >> 32),
                                                            options.flip && words[2] >> 31 != 0};
                    });
  return detail::cut_images<T>(images, normalization, padding,
                               [cuts = cuts.data()](Index i) { return cuts[i]; });
}

}  // namespace wengert::inline WENGERT_ISA::data
