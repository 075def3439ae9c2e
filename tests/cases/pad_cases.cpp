// Rows of pad, and of the operators that only move elements of images: pixel shuffling and layouts.
#include <wengert/ops/image_layout.hpp>
#include <wengert/ops/pad.hpp>
#include <wengert/ops/pixel_shuffle.hpp>

#include "cases/case.hpp"

namespace cases {
namespace {

using wengert::PadMode;
using wengert::ShapeError;

/// y at an index is x at the index less `before`; outside, what `outside` makes of position and size of an
/// axis, or `value` where it is not given.
Array padded(const Array& x, const Shape& before, const Shape& after, double value,
             Index (*outside)(Index, Index) = nullptr) {
  Shape shape = x.shape;
  for (int i = 0; i < shape.rank(); ++i) shape[i] += before[i] + after[i];
  Array y(shape, value);
  for_each_index(shape, [&](const Shape& at) {
    Shape from = at;
    for (int i = 0; i < shape.rank(); ++i) {
      from[i] -= before[i];
      if (from[i] >= 0 && from[i] < x.dim(i)) continue;
      if (outside == nullptr) return;
      from[i] = outside(from[i], x.dim(i));
    }
    y(at) = x(from);
  });
  return y;
}
Index mirrored(Index i, Index n) { return i < 0 ? -i : 2 * n - 2 - i; }
Index held(Index i, Index n) { return i < 0 ? 0 : n - 1; }

const Rows pad_rows([] {
  row(
      "pad",
      [](const auto& x) {
        return wengert::pad(x, {{1, 2}, {0, 3}}, {.value = 0.5});
      },
      real({2, 3, 2, 3}))
      .reference([](const Array& x) {
        return padded(x, {0, 1, 0, 0}, {0, 2, 3, 0}, 0.5);
      })
      .resizable(0)
      .fault<ShapeError>({{2, 3, 4}},
                         "pad: number of widths does not fit; x is (2, 3, 4), widths are ((1, 2), (0, 3)); "
                         "expected a pair for each axis, or for each but the first and the last")
      .bench({{32, 32, 32, 64}});
  row(
      "pad/one", [](const auto& x) { return wengert::pad(x, 1); }, real({2, 3, 2, 3}))
      .reference([](const Array& x) {
        return padded(x, {0, 1, 1, 0}, {0, 1, 1, 0}, 0);
      })
      .resizable(0)
      .fault<ShapeError>({{3, 4}},
                         "pad: number of widths does not fit; x is (3, 4), widths are 1; expected a pair "
                         "for each axis, or for each but the first and the last")
      .bench({{32, 32, 32, 3}});
  row(
      "pad/every_axis",
      [](const auto& x) {
        return wengert::pad(x, {{1, 0}, {0, 0}, {2, 1}});
      },
      real({2, 3, 4}))
      .reference([](const Array& x) {
        return padded(x, {1, 0, 2}, {0, 0, 1}, 0);
      })
      .resizable(0)
      .bench({{64, 64, 256}});
  row(
      "pad/reflect",
      [](const auto& x) {
        return wengert::pad(x, {{2, 1}, {1, 3}}, {.mode = PadMode::reflect});
      },
      real({2, 3, 4, 3}))
      .reference([](const Array& x) {
        return padded(x, {0, 2, 1, 0}, {0, 1, 3, 0}, 0, mirrored);
      })
      .resizable(0)
      .fault<ShapeError>({{2, 3, 3, 1}},
                         "pad: a width is too large to reflect axis 2; x is (2, 3, 3, 1), widths are "
                         "((2, 1), (1, 3)); expected widths < 3")
      .bench({{32, 32, 32, 64}});
  row(
      "pad/reflect_line",
      [](const auto& x) {
        return wengert::pad(x, {{4, 4}}, {.mode = PadMode::reflect});
      },
      real({2, 5, 1}))
      .reference([](const Array& x) {
        return padded(x, {0, 4, 0}, {0, 4, 0}, 0, mirrored);
      })
      .bench({{64, 4096, 1}});
  row(
      "pad/replicate",
      [](const auto& x) {
        return wengert::pad(x, {{2, 1}, {4, 3}}, {.mode = PadMode::replicate});
      },
      real({2, 1, 2, 3}))
      .reference([](const Array& x) {
        return padded(x, {0, 2, 4, 0}, {0, 1, 3, 0}, 0, held);
      })
      .resizable(0)
      .fault<ShapeError>({{2, 3, 0, 1}},
                         "pad: axis 2 has no element to replicate; x is (2, 3, 0, 1), widths are "
                         "((2, 1), (4, 3)); expected a size >= 1")
      .bench({{32, 32, 32, 64}});
  row(
      "pad/replicate_volume", [](const auto& x) { return wengert::pad(x, 1, {.mode = PadMode::replicate}); },
      real({1, 2, 1, 3, 2}))
      .reference([](const Array& x) {
        return padded(x, {0, 1, 1, 1, 0}, {0, 1, 1, 1, 0}, 0, held);
      })
      .resizable()
      .bench({{2, 16, 32, 32, 16}});
});

const Rows pixel_shuffle_rows([] {
  row(
      "pixel_shuffle", [](const auto& x) { return wengert::pixel_shuffle(x, 2); }, real({2, 3, 2, 12}))
      .reference([](const Array& x) {
        Array y({x.dim(0), 2 * x.dim(1), 2 * x.dim(2), x.dim(3) / 4});
        for_each_index(y.shape, [&](const Shape& at) {
          y(at) = x({at[0], at[1] / 2, at[2] / 2, 4 * at[3] + 2 * (at[1] % 2) + at[2] % 2});
        });
        return y;
      })
      .sizes(
          [](Index n) {
            return Shapes{{2, 1, 2, 4 * n}};
          },
          0)
      .fault<ShapeError>({{1, 2, 2, 6}},
                         "pixel_shuffle: the channels do not divide; x is (1, 2, 2, 6), factor is 2; "
                         "expected a multiple of 4 channels")
      .fault<ShapeError>({{2, 2, 4}},
                         "pixel_shuffle: the rank does not fit; x is (2, 2, 4); expected images "
                         "(N, H, W, C)")
      .bench({{8, 32, 32, 256}});
  row(
      "pixel_shuffle/four", [](const auto& x) { return wengert::pixel_shuffle(x, 4); }, real({2, 1, 2, 48}))
      .reference([](const Array& x) {
        Array y({x.dim(0), 4 * x.dim(1), 4 * x.dim(2), x.dim(3) / 16});
        for_each_index(y.shape, [&](const Shape& at) {
          y(at) = x({at[0], at[1] / 4, at[2] / 4, 16 * at[3] + 4 * (at[1] % 4) + at[2] % 4});
        });
        return y;
      })
      .bench({{8, 16, 16, 512}});
  row(
      "pixel_unshuffle/two", [](const auto& x) { return wengert::pixel_unshuffle(x, 2); }, real({2, 2, 4, 3}))
      .reference([](const Array& x) {
        Array y({x.dim(0), x.dim(1) / 2, x.dim(2) / 2, 4 * x.dim(3)});
        for_each_index(y.shape, [&](const Shape& at) {
          y(at) = x({at[0], 2 * at[1] + at[3] % 4 / 2, 2 * at[2] + at[3] % 2, at[3] / 4});
        });
        return y;
      })
      .resizable(0)
      .bench({{8, 64, 64, 64}});
  row(
      "pixel_unshuffle", [](const auto& x) { return wengert::pixel_unshuffle(x, 3); }, real({2, 3, 6, 2}))
      .reference([](const Array& x) {
        Array y({x.dim(0), x.dim(1) / 3, x.dim(2) / 3, 9 * x.dim(3)});
        for_each_index(y.shape, [&](const Shape& at) {
          y(at) = x({at[0], 3 * at[1] + at[3] % 9 / 3, 3 * at[2] + at[3] % 3, at[3] / 9});
        });
        return y;
      })
      .resizable(0)
      .fault<ShapeError>({{1, 3, 4, 1}},
                         "pixel_unshuffle: the pixels do not divide; x is (1, 3, 4, 1), factor is 3; "
                         "expected multiples of 3 as height and width")
      .bench({{8, 48, 48, 64}});
});

Array reordered(const Array& x, const Shape& order) {
  Shape shape = x.shape;
  for (int i = 0; i < order.rank(); ++i) shape[i] = x.shape[static_cast<int>(order[i])];
  Array y(shape);
  for_each_index(shape, [&](const Shape& at) {
    Shape from = at;
    for (int i = 0; i < order.rank(); ++i) from[static_cast<int>(order[i])] = at[i];
    y(at) = x(from);
  });
  return y;
}

const Rows layout_rows([] {
  row(
      "nhwc_to_nchw", [](const auto& x) { return wengert::nhwc_to_nchw(x); }, real({2, 3, 4, 5}))
      .reference([](const Array& x) {
        return reordered(x, {0, 3, 1, 2});
      })
      .resizable(0)
      .fault<ShapeError>({{3, 4}},
                         "nhwc_to_nchw: the rank does not fit; x is (3, 4); expected (N, ..., C) with one "
                         "to three spatial axes")
      .bench({{16, 32, 32, 64}});
  row(
      "nchw_to_nhwc", [](const auto& x) { return wengert::nchw_to_nhwc(x); }, real({2, 3, 4, 5}))
      .reference([](const Array& x) {
        return reordered(x, {0, 2, 3, 1});
      })
      .resizable(0)
      .bench({{16, 64, 32, 32}});
  row(
      "nhwc_to_nchw/line", [](const auto& x) { return wengert::nhwc_to_nchw(x); }, real({2, 3, 5}))
      .reference([](const Array& x) {
        return reordered(x, {0, 2, 1});
      })
      .bench({{16, 1024, 64}});
  row(
      "nchw_to_nhwc/volume", [](const auto& x) { return wengert::nchw_to_nhwc(x); }, real({2, 3, 2, 3, 4}))
      .reference([](const Array& x) {
        return reordered(x, {0, 2, 3, 4, 1});
      })
      .bench({{2, 16, 8, 32, 32}});
  row(
      "conv_weight_from_torch", [](const auto& w) { return wengert::conv_weight_from_torch(w); },
      real({5, 2, 3, 4}))
      .reference([](const Array& w) {
        return reordered(w, {2, 3, 1, 0});
      })
      .resizable(0)
      .fault<ShapeError>({{3, 4}},
                         "conv_weight_from_torch: the rank does not fit; w is (3, 4); expected "
                         "(out, in / groups, ...) with one to three spatial axes")
      .bench({{256, 256, 3, 3}});
  row(
      "conv_weight_to_torch", [](const auto& w) { return wengert::conv_weight_to_torch(w); },
      real({3, 4, 2, 5}))
      .reference([](const Array& w) {
        return reordered(w, {3, 2, 0, 1});
      })
      .resizable(0)
      .bench({{3, 3, 256, 256}});
});

}  // namespace
}  // namespace cases
