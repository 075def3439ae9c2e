// Rows of convolutions of sequences and volumes.
#include <wengert/ops/conv.hpp>

#include "cases/case.hpp"
#include "cases/conv_reference.hpp"

namespace cases {
namespace {

const Rows conv1d_rows([] {
  row(
      "conv1d", [](const auto& x, const auto& w, const auto& b) { return conv1d(x, w, b, {.padding = 2}); },
      real({2, 7, 3}), real({5, 3, 4}, -1, 1), real({4}))
      .reference(with_bias({{1}, {2}, {2}, {1}}))
      .sizes([](Index n) {
        return Shapes{{2, n, 3}, {5, 3, 4}, {4}};
      })
      .point({Array({1, 3, 1}, {1, 2, 3}), Array({5, 1, 1}, {1, 10, 100, 1000, 10000}), Array({1}, {5})},
             Array({1, 3, 1}, {32105, 3215, 326}),
             {Array({1, 3, 1}, {111, 1110, 11100}), Array({5, 1, 1}, {1, 3, 6, 5, 3}), Array({1}, {3})})
      .fault<wengert::ShapeError>({{7, 3}, {5, 3, 4}, {4}},
                                  "conv1d: wrong rank; x is (7, 3), w is (5, 3, 4); expected x of (N, W, C)")
      .fault<wengert::ShapeError>({{2, 7, 3}, {3, 4}, {4}},
                                  "conv1d: wrong rank; x is (2, 7, 3), w is (3, 4); expected w of (kw, in / "
                                  "groups, out)")
      .fault<wengert::ShapeError>({{2, 7, 3}, {5, 4, 3}, {3}},
                                  "conv1d: channels differ; x is (2, 7, 3), w is (5, 4, 3), groups is 1; "
                                  "expected w.dim(1) == 3")
      .bench({{8, 512, 64}, {5, 64, 64}, {64}});
  row(
      "conv1d/strided",
      [](const auto& x, const auto& w) { return conv1d(x, w, {.stride = 3, .padding = 1, .dilation = 2}); },
      real({2, 9, 4}), real({4, 4, 3}, -1, 1))
      .reference(without_bias({{3}, {1}, {1}, {2}}))
      .sizes([](Index n) {
        return Shapes{{1, 5 + n % 5, n}, {4, n, 3}};
      })
      .bench({{8, 500, 33}, {4, 33, 64}});
  row(
      "conv1d/same",  // an even kernel: one zero more at the end
      [](const auto& x, const auto& w, const auto& b) { return conv1d(x, w, b, {.padding = "same"}); },
      real({2, 5, 3}), real({4, 3, 4}, -1, 1), real({4}))
      .reference([](const Array& x, const Array& w, const Array& b) {
        return convolved(x, w, &b, same_padding(x, w, {1}, {1}));
      })
      .point({Array({1, 2, 1}, {1, 2}), Array({2, 1, 1}, {1, 10}), Array({1}, {0})},
             Array({1, 2, 1}, {21, 2}))
      .bench({{8, 501, 32}, {4, 32, 32}, {32}});
  row(
      "conv1d/groups",
      [](const auto& x, const auto& w, const auto& b) { return conv1d(x, w, b, {.stride = 2, .groups = 2}); },
      real({2, 6, 6}), real({3, 3, 4}, -1, 1), real({4}))
      .reference(with_bias({{2}, {0}, {0}, {1}}))
      .sizes([](Index n) {
        return Shapes{{1, 5, 2 * n}, {3, n, 2 * n}, {2 * n}};
      })
      .bench({{8, 500, 64}, {3, 32, 64}, {64}});
  row(
      "conv1d/depthwise",
      [](const auto& x, const auto& w) { return conv1d(x, w, {.padding = 1, .groups = x.dim(-1)}); },
      real({2, 6, 5}), real({4, 1, 5}, -1, 1))
      .reference(without_bias({{1}, {1}, {1}, {1}}))
      .sizes([](Index n) {
        return Shapes{{2, 4, n}, {4, 1, n}};
      })
      .bench({{8, 500, 65}, {4, 1, 65}});
  row(
      "conv1d/batch", [](const auto& x, const auto& w, const auto& b) { return conv1d(x, w, b); },
      real({2, 6, 5}), real({1, 5, 7}, -1, 1), real({7}))
      .reference(with_bias({{1}, {0}, {0}, {1}}))
      .sizes(
          [](Index n) {
            return Shapes{{n, 3, 5}, {1, 5, 7}, {7}};
          },
          0)
      .bench({{8, 500, 65}, {1, 65, 33}, {33}});
  row(
      "conv1d_relu",
      [](const auto& x, const auto& w, const auto& b) {
        return conv1d_relu(x, w, b, {.stride = 2, .padding = 1});
      },
      real({2, 6, 3}, 0.1, 0.5), real({3, 3, 4}, 0.1, 0.3), real({4}).values({3, -5, 2, -4}))
      .reference(rectified({{2}, {1}, {1}, {1}}))
      .bench({{8, 500, 64}, {3, 64, 64}, {64}});
});

const Rows conv3d_rows([] {
  row(
      "conv3d", [](const auto& x, const auto& w, const auto& b) { return conv3d(x, w, b, {.padding = 1}); },
      real({2, 2, 3, 4, 3}), real({3, 3, 3, 3, 4}, -0.5, 0.5), real({4}))
      .reference(with_bias({{1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}}))
      .sizes([](Index n) {
        return Shapes{{1, 2, 2, 3, n}, {3, 3, 3, n, 5}, {5}};
      })
      .fault<wengert::ShapeError>({{2, 3, 4, 3}, {3, 3, 3, 3, 4}, {4}},
                                  "conv3d: wrong rank; x is (2, 3, 4, 3), w is (3, 3, 3, 3, 4); expected x "
                                  "of (N, D, H, W, C)")
      .fault<wengert::ShapeError>({{2, 2, 3, 4, 3}, {3, 3, 3, 4}, {4}},
                                  "conv3d: wrong rank; x is (2, 2, 3, 4, 3), w is (3, 3, 3, 4); expected w "
                                  "of (kd, kh, kw, in / groups, out)")
      .fault<wengert::ShapeError>({{2, 0, 3, 4, 3}, {3, 3, 3, 3, 4}, {4}},
                                  "conv3d: the kernel is larger than the padded input; x is (2, 0, 3, 4, 3), "
                                  "w is (3, 3, 3, 3, 4), padding is 1, dilation is 1; expected at most 2 "
                                  "pixels from the first tap to the last along axis 1")
      .bench({{1, 8, 14, 14, 32}, {3, 3, 3, 32, 32}, {32}});
  row(
      "conv3d/mixed",
      [](const auto& x, const auto& w) {
        return conv3d(x, w, {.stride = {1, 2, 3}, .padding = {1, 0, 2}, .dilation = {2, 1, 2}});
      },
      real({2, 3, 4, 5, 3}), real({2, 3, 2, 3, 4}, -1, 1))
      .reference(without_bias({{1, 2, 3}, {1, 0, 2}, {1, 0, 2}, {2, 1, 2}}))
      .sizes([](Index n) {
        return Shapes{{1, 1 + n % 3, 3 + n % 4, n, 2}, {2, 3, 2, 2, 3}};
      })
      .bench({{1, 8, 14, 15, 17}, {2, 3, 2, 17, 33}});
  row(
      "conv3d/same",
      [](const auto& x, const auto& w, const auto& b) {
        return conv3d(x, w, b, {.stride = {2, 1, 2}, .padding = "same"});
      },
      real({1, 3, 3, 4, 2}), real({2, 2, 3, 2, 3}, -1, 1), real({3}))
      .reference([](const Array& x, const Array& w, const Array& b) {
        return convolved(x, w, &b, same_padding(x, w, {2, 1, 2}, {1, 1, 1}));
      })
      .bench({{1, 9, 14, 15, 16}, {2, 2, 3, 16, 16}, {16}});
  row(
      "conv3d/groups",
      [](const auto& x, const auto& w, const auto& b) {
        return conv3d(x, w, b, {.padding = {1, 0, 1}, .groups = 2});
      },
      real({2, 2, 2, 3, 4}), real({3, 2, 3, 2, 6}, -1, 1), real({6}))
      .reference(with_bias({{1, 1, 1}, {1, 0, 1}, {1, 0, 1}, {1, 1, 1}}))
      .sizes([](Index n) {
        return Shapes{{1, 2, 2, 2, 2 * n}, {3, 2, 3, n, 4}, {4}};
      })
      .bench({{1, 8, 14, 14, 32}, {3, 2, 3, 16, 32}, {32}});
  row(
      "conv3d/depthwise",
      [](const auto& x, const auto& w) {
        return conv3d(x, w, {.stride = 2, .padding = 1, .groups = x.dim(-1)});
      },
      real({2, 3, 4, 3, 3}), real({3, 3, 2, 1, 3}, -1, 1))
      .reference(without_bias({{2, 2, 2}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}}))
      .sizes([](Index n) {
        return Shapes{{1, 2, 3, 2, n}, {3, 3, 2, 1, n}};
      })
      .bench({{1, 8, 14, 14, 65}, {3, 3, 2, 1, 65}});
  row(
      "conv3d/batch", [](const auto& x, const auto& w, const auto& b) { return conv3d(x, w, b); },
      real({2, 2, 1, 3, 3}), real({1, 1, 1, 3, 2}, -1, 1), real({2}))
      .reference(with_bias({{1, 1, 1}, {0, 0, 0}, {0, 0, 0}, {1, 1, 1}}))
      .sizes(
          [](Index n) {
            return Shapes{{n, 1, 2, 2, 3}, {1, 1, 1, 3, 2}, {2}};
          },
          0)
      .bench({{4, 8, 14, 14, 33}, {1, 1, 1, 33, 17}, {17}});
  row(
      "conv3d_relu",
      [](const auto& x, const auto& w, const auto& b) {
        return conv3d_relu(x, w, b, {.padding = {0, 1, 1}});
      },
      real({2, 2, 2, 3, 3}, 0.1, 0.5), real({2, 3, 2, 3, 4}, 0.01, 0.1), real({4}).values({3, -5, 2, -4}))
      .reference(rectified({{1, 1, 1}, {0, 1, 1}, {0, 1, 1}, {1, 1, 1}}))
      .bench({{1, 8, 14, 14, 32}, {2, 3, 2, 32, 32}, {32}});
});

}  // namespace
}  // namespace cases
