// Rows of unfold and fold.
#include <wengert/ops/fold.hpp>

#include "cases/case.hpp"

namespace cases {
namespace {

using wengert::FoldOptions;
using wengert::ShapeError;

/// One spatial axis of the windows.
struct Axis {
  Index kernel, stride, padding, dilation;
  Index out(Index in) const { return (in + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1; }
  Index at(Index o, Index tap) const { return o * stride - padding + tap * dilation; }
};
using Axes = std::vector<Axis>;

/// Calls `f(patch element, image element)` for every pair of indices that unfold and fold connect.
template <class F>
void for_pairs(const Shape& image, const Axes& axes, F f) {
  const int n = static_cast<int>(axes.size());
  Shape positions, taps;
  for (int i = 0; i < n; ++i) {
    positions.push_back(axes[static_cast<std::size_t>(i)].out(image[i + 1]));
    taps.push_back(axes[static_cast<std::size_t>(i)].kernel);
  }
  const Array windows(positions), kernels(taps);
  for (Index b = 0; b < image[0]; ++b)
    for_each_index(positions, [&](const Shape& o) {
      for_each_index(taps, [&](const Shape& t) {
        Shape pixel{b};
        bool inside = true;
        for (int i = 0; i < n; ++i) {
          const Index at = axes[static_cast<std::size_t>(i)].at(o[i], t[i]);
          inside = inside && at >= 0 && at < image[i + 1];
          pixel.push_back(at);
        }
        pixel.push_back(0);
        if (!inside) return;
        for (Index c = 0; c < image.back(); ++c) {
          pixel[n + 1] = c;
          f(Shape{b, windows.position(o), kernels.position(t) * image.back() + c}, pixel);
        }
      });
    });
}
Array unfolded(const Array& x, const Axes& axes) {
  Index windows = 1, columns = x.dim(-1);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    windows *= axes[i].out(x.dim(static_cast<int>(i) + 1));
    columns *= axes[i].kernel;
  }
  Array y({x.dim(0), windows, columns});
  for_pairs(x.shape, axes, [&](const Shape& patch, const Shape& pixel) { y(patch) = x(pixel); });
  return y;
}
Array folded(const Array& x, const Shape& size, const Axes& axes) {
  Index columns = 1;
  for (const Axis& a : axes) columns *= a.kernel;
  Shape shape{x.dim(0)};
  for (const Index s : size) shape.push_back(s);
  shape.push_back(x.dim(2) / columns);
  Array y(shape);
  for_pairs(shape, axes, [&](const Shape& patch, const Shape& pixel) { y(pixel) += x(patch); });
  return y;
}

const Axes three{{3, 1, 1, 1}, {3, 1, 1, 1}};
const FoldOptions three_options{.kernel = 3, .padding = 1};
const Axes mixed{{2, 2, 1, 3}, {3, 1, 2, 2}};
const FoldOptions mixed_options{.kernel = {2, 3}, .stride = {2, 1}, .padding = {1, 2}, .dilation = {3, 2}};
const Axes line{{4, 3, 2, 1}};
const FoldOptions line_options{.kernel = 4, .stride = 3, .padding = 2};
const Axes volume{{2, 1, 0, 1}, {2, 2, 1, 1}, {3, 1, 1, 1}};
const FoldOptions volume_options{.kernel = {2, 2, 3}, .stride = {1, 2, 1}, .padding = {0, 1, 1}};

const Rows unfold_rows([] {
  row(
      "unfold", [](const auto& x) { return wengert::unfold(x, three_options); }, real({2, 4, 3, 3}))
      .reference([](const Array& x) { return unfolded(x, three); })
      .resizable(0)
      .fault<ShapeError>({{3, 4}},
                         "unfold: the rank does not fit; x is (3, 4); expected images (N, W, C), "
                         "(N, H, W, C) or (N, D, H, W, C)")
      .fault<ShapeError>({{1, 3, 0, 1}},
                         "unfold: the window does not fit spatial axis 1; the image is (1, 3, 0, 1), kernel "
                         "is 3, padding is 1, dilation is 1; expected size + 2 * padding >= 3")
      .bench({{8, 32, 32, 32}});
  row(
      "unfold/mixed", [](const auto& x) { return wengert::unfold(x, mixed_options); }, real({2, 5, 4, 3}))
      .reference([](const Array& x) { return unfolded(x, mixed); })
      .resizable()
      .bench({{8, 32, 32, 32}});
  row(
      "unfold/line", [](const auto& x) { return wengert::unfold(x, line_options); }, real({2, 9, 3}))
      .reference([](const Array& x) { return unfolded(x, line); })
      .resizable()
      .bench({{8, 1024, 32}});
  row(
      "unfold/volume", [](const auto& x) { return wengert::unfold(x, volume_options); },
      real({2, 3, 3, 2, 2}))
      .reference([](const Array& x) { return unfolded(x, volume); })
      .resizable()
      .bench({{2, 8, 16, 16, 16}});
  row(
      "fold",
      [](const auto& x) {
        return wengert::fold(x, {4, 3}, three_options);
      },
      real({2, 12, 27}))
      .reference([](const Array& x) {
        return folded(x, {4, 3}, three);
      })
      .sizes(
          [](Index n) {
            return Shapes{{2, 12, 9 * n}};
          },
          0)
      .fault<ShapeError>(
          {{2, 12, 10}},
          "fold: the patches do not fit; x is (2, 12, 10), size is (4, 3), kernel is 3, stride "
          "is 1, padding is 1, dilation is 1; expected 12 patches of a multiple of 9 columns")
      .fault<ShapeError>({{2, 11, 9}},
                         "fold: the patches do not fit; x is (2, 11, 9), size is (4, 3), kernel is 3, stride "
                         "is 1, padding is 1, dilation is 1; expected 12 patches of a multiple of 9 columns")
      .fault<ShapeError>({{12, 9}},
                         "fold: the rank does not fit; x is (12, 9); expected patches (N, L, kernel * C)")
      .bench({{64, 12, 576}});
  row(
      "fold/mixed",
      [](const auto& x) {
        return wengert::fold(x, {5, 4}, mixed_options);
      },
      real({2, 8, 18}))
      .reference([](const Array& x) {
        return folded(x, {5, 4}, mixed);
      })
      .sizes([](Index n) {
        return Shapes{{2, 8, 6 * n}};
      })
      .bench({{64, 8, 384}});
  row(
      "fold/line", [](const auto& x) { return wengert::fold(x, {9}, line_options); }, real({2, 4, 12}))
      .reference([](const Array& x) { return folded(x, {9}, line); })
      .sizes([](Index n) {
        return Shapes{{2, 4, 4 * n}};
      })
      .bench({{64, 4, 512}});
  row(
      "fold/volume",
      [](const auto& x) {
        return wengert::fold(x, {3, 3, 2}, volume_options);
      },
      real({2, 8, 24}))
      .reference([](const Array& x) {
        return folded(x, {3, 3, 2}, volume);
      })
      .sizes([](Index n) {
        return Shapes{{2, 8, 12 * n}};
      })
      .bench({{64, 8, 384}});
});

}  // namespace
}  // namespace cases
