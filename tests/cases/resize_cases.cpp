// Rows of upsample.
#include <cmath>

#include <wengert/ops/upsample.hpp>

#include "cases/case.hpp"

namespace cases {
namespace {

using wengert::ShapeError;
using wengert::UpsampleMode;

/// Output position o of an axis as a position in x.
using Place = double (*)(Index o, double in, double out);
double centred(Index o, double in, double out) {
  return std::max(0.0, (static_cast<double>(o) + 0.5) * in / out - 0.5);
}
double aligned(Index o, double in, double out) {
  return out > 1 ? static_cast<double>(o) * (in - 1) / (out - 1) : 0;
}

/// x with spatial axis after spatial axis interpolated at `place`, to `size`.
Array interpolated(Array x, const Shape& size, Place place) {
  for (int axis = 1; axis <= size.rank(); ++axis) {
    Shape shape = x.shape;
    shape[axis] = size[axis - 1];
    Array y(shape);
    for_each_index(shape, [&](Shape at) {
      const double p = place(at[axis], static_cast<double>(x.dim(axis)), static_cast<double>(size[axis - 1]));
      double& to = y(at);
      for (at[axis] = 0; at[axis] < x.dim(axis); ++at[axis]) {
        const double i = static_cast<double>(at[axis]);
        const bool beyond = at[axis] + 1 == x.dim(axis) && p > i;
        to += x(at) * (beyond ? 1 : std::max(0.0, 1 - std::abs(p - i)));
      }
    });
    x = y;
  }
  return x;
}
/// x at pixel floor(o * in / out) of every spatial axis.
Array nearest(const Array& x, const Shape& size) {
  Shape shape = x.shape;
  for (int i = 0; i < size.rank(); ++i) shape[i + 1] = size[i];
  Array y(shape);
  for_each_index(shape, [&](const Shape& at) {
    Shape from = at;
    for (int i = 1; i <= size.rank(); ++i) from[i] = at[i] * x.dim(i) / size[i - 1];
    y(at) = x(from);
  });
  return y;
}
/// As PyTorch does, a scale that was given is used as it is, not as the ratio of the rounded sizes.
double by_one_and_a_half(Index o, double, double) {
  return std::max(0.0, (static_cast<double>(o) + 0.5) / 1.5 - 0.5);
}
/// The spatial axes times `scale`.
Shape scaled(const Array& x, Index scale) {
  Shape size;
  for (int i = 1; i + 1 < x.rank(); ++i) size.push_back(x.dim(i) * scale);
  return size;
}

const Rows upsample_rows([] {
  row(
      "upsample", [](const auto& x) { return wengert::upsample(x, {.scale = 2}); }, real({2, 3, 2, 3}))
      .reference([](const Array& x) { return nearest(x, scaled(x, 2)); })
      .resizable(0)
      .fault<ShapeError>({{3, 4}},
                         "upsample: the rank does not fit; x is (3, 4); expected images (N, W, C), "
                         "(N, H, W, C) or (N, D, H, W, C)")
      .bench({{16, 16, 16, 64}});
  row(
      "upsample/nearest_size",
      [](const auto& x) {
        return wengert::upsample(x, {.size = {5, 7}});
      },
      real({2, 3, 4, 3}))
      .reference([](const Array& x) {
        return nearest(x, {5, 7});
      })
      .resizable()
      .fault<ShapeError>({{2, 3, 0, 1}},
                         "upsample: spatial axis 1 has no pixels; x is (2, 3, 0, 1); expected a size >= 1")
      .bench({{16, 3, 4, 512}});
  row(
      "upsample/nearest_smaller",
      [](const auto& x) {
        return wengert::upsample(x, {.size = {2, 3}});
      },
      real({2, 5, 7, 3}))
      .reference([](const Array& x) {
        return nearest(x, {2, 3});
      })
      .bench({{16, 32, 32, 64}});
  row(
      "upsample/nearest_line", [](const auto& x) { return wengert::upsample(x, {.scale = 3}); },
      real({2, 5, 1}))
      .reference([](const Array& x) { return nearest(x, scaled(x, 3)); })
      .bench({{16, 2048, 1}});
  row(
      "upsample/nearest_scale",
      [](const auto& x) {
        return wengert::upsample(x, {.scale = {1.5, 2.5}});
      },
      real({2, 3, 5, 2}))
      .reference([](const Array& x) {
        Array y({x.dim(0), x.dim(1) * 3 / 2, x.dim(2) * 5 / 2, x.dim(3)});
        for_each_index(y.shape, [&](const Shape& at) {
          y(at) = x({at[0], at[1] * 2 / 3, at[2] * 2 / 5, at[3]});
        });
        return y;
      })
      .bench({{16, 17, 15, 64}});
  row(
      "upsample/bilinear_scale",
      [](const auto& x) { return wengert::upsample(x, {.scale = 1.5, .mode = UpsampleMode::linear}); },
      real({2, 3, 5, 2}))
      .reference([](const Array& x) {
        return interpolated(x, {x.dim(1) * 3 / 2, x.dim(2) * 3 / 2}, by_one_and_a_half);
      })
      .bench({{16, 17, 15, 64}});
  row(
      "upsample/bilinear",
      [](const auto& x) { return wengert::upsample(x, {.scale = 2, .mode = UpsampleMode::linear}); },
      real({2, 3, 2, 3}))
      .reference([](const Array& x) { return interpolated(x, scaled(x, 2), centred); })
      .resizable(0)
      .bench({{16, 16, 16, 64}});
  row(
      "upsample/bilinear_size",
      [](const auto& x) {
        return wengert::upsample(x, {.size = {5, 7}, .mode = UpsampleMode::linear});
      },
      real({2, 3, 4, 3}))
      .reference([](const Array& x) {
        return interpolated(x, {5, 7}, centred);
      })
      .resizable()
      .bench({{16, 3, 4, 512}});
  row(
      "upsample/bilinear_smaller",
      [](const auto& x) {
        return wengert::upsample(x, {.size = {2, 3}, .mode = UpsampleMode::linear});
      },
      real({2, 7, 8, 3}))
      .reference([](const Array& x) {
        return interpolated(x, {2, 3}, centred);
      })
      .bench({{16, 32, 32, 64}});
  row(
      "upsample/bilinear_aligned",
      [](const auto& x) {
        return wengert::upsample(x, {.size = {5, 7}, .mode = UpsampleMode::linear, .align_corners = true});
      },
      real({2, 3, 4, 3}))
      .reference([](const Array& x) {
        return interpolated(x, {5, 7}, aligned);
      })
      .resizable()
      .bench({{16, 3, 4, 512}});
  row(
      "upsample/aligned_smaller",
      [](const auto& x) {
        return wengert::upsample(x, {.size = {1, 3}, .mode = UpsampleMode::linear, .align_corners = true});
      },
      real({2, 4, 7, 3}))
      .reference([](const Array& x) {
        return interpolated(x, {1, 3}, aligned);
      })
      .bench({{16, 32, 32, 64}});
  row(
      "upsample/linear",
      [](const auto& x) { return wengert::upsample(x, {.size = 8, .mode = UpsampleMode::linear}); },
      real({2, 5, 3}))
      .reference([](const Array& x) { return interpolated(x, {8}, centred); })
      .resizable()
      .bench({{64, 5, 1024}});
  row(
      "upsample/trilinear",
      [](const auto& x) {
        return wengert::upsample(x, {.size = {3, 4, 5}, .mode = UpsampleMode::linear});
      },
      real({2, 2, 3, 2, 3}))
      .reference([](const Array& x) {
        return interpolated(x, {3, 4, 5}, centred);
      })
      .bench({{16, 2, 2, 2, 512}});
  row(
      "upsample/trilinear_aligned",
      [](const auto& x) {
        return wengert::upsample(x, {.size = {3, 1, 5}, .mode = UpsampleMode::linear, .align_corners = true});
      },
      real({1, 2, 3, 2, 2}))
      .reference([](const Array& x) {
        return interpolated(x, {3, 1, 5}, aligned);
      })
      .bench({{16, 2, 2, 2, 512}});
});

}  // namespace
}  // namespace cases
