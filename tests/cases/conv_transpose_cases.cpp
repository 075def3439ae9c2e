// Rows of transposed convolutions. The reference lets every input pixel add its window to the output.
#include <wengert/ops/conv_transpose.hpp>

#include "cases/case.hpp"
#include "cases/conv_reference.hpp"

namespace cases {
namespace {

auto adjoint_with_bias(const Taps& s, Index groups = 1) {
  return [=](const Array& x, const Array& w, const Array& b) { return conv_transposed(x, w, &b, groups, s); };
}
auto adjoint_without_bias(const Taps& s, Index groups = 1) {
  return [=](const Array& x, const Array& w) { return conv_transposed(x, w, nullptr, groups, s); };
}
/// Numbers of two axes, with as much padding at both ends.
Taps taps(std::vector<Index> stride, const std::vector<Index>& padding, std::vector<Index> dilation = {1, 1},
          std::vector<Index> extra = {0, 0}) {
  return {std::move(stride), padding, padding, std::move(dilation), std::move(extra)};
}

const Rows plain_rows([] {
  row(
      "conv_transpose2d",
      [](const auto& x, const auto& w, const auto& b) {
        return conv_transpose2d(x, w, b, {.stride = 2, .padding = 1, .output_padding = 1});
      },
      real({2, 3, 4, 3}), real({3, 3, 4, 3}, -1, 1), real({4}))
      .reference(adjoint_with_bias(taps({2, 2}, {1, 1}, {1, 1}, {1, 1})))
      .sizes([](Index n) {
        return Shapes{{1, 2, 3, n}, {3, 3, n, n}, {n}};
      })
      .point({Array({1, 1, 2, 1}, {1, 2}), Array({3, 3, 1, 1}, {0, 0, 0, 1, 10, 100, 5, 50, 500}),
              Array({1}, {0.5})},
             Array({1, 2, 4, 1}, {10.5, 102.5, 20.5, 200.5, 50.5, 510.5, 100.5, 1000.5}),
             {Array({1, 1, 2, 1}, {660, 666}), Array({3, 3, 1, 1}, {0, 0, 0, 2, 3, 3, 2, 3, 3}),
              Array({1}, {8})})
      .fault<wengert::ShapeError>({{3, 4, 3}, {3, 3, 4, 3}, {4}},
                                  "conv_transpose2d: wrong rank; x is (3, 4, 3), w is (3, 3, 4, 3); expected "
                                  "x of (N, H, W, C)")
      .fault<wengert::ShapeError>({{2, 3, 4, 3}, {3, 4, 3}, {4}},
                                  "conv_transpose2d: wrong rank; x is (2, 3, 4, 3), w is (3, 4, 3); expected "
                                  "w of (kh, kw, out / groups, in)")
      .fault<wengert::ShapeError>({{2, 3, 4, 3}, {3, 3, 0, 3}, {0}},
                                  "conv_transpose2d: no channels or no taps; x is (2, 3, 4, 3), w is (3, 3, "
                                  "0, 3); expected at least one of each")
      .fault<wengert::ShapeError>({{2, 3, 4, 3}, {3, 3, 3, 4}, {3}},
                                  "conv_transpose2d: channels differ; x is (2, 3, 4, 3), w is (3, 3, 3, 4), "
                                  "groups is 1; expected w.dim(3) == 3")
      .fault<wengert::ShapeError>({{2, 3, 4, 3}, {3, 3, 4, 3}, {3}},
                                  "conv_transpose2d: bias does not fit; x is (2, 3, 4, 3), w is (3, 3, 4, "
                                  "3), b is (3); expected (4)")
      .fault<wengert::ShapeError>({{2, 0, 4, 3}, {3, 3, 4, 3}, {4}},
                                  "conv_transpose2d: the output would be empty; x is (2, 0, 4, 3), w is (3, "
                                  "3, 4, 3), padding is 1; expected at least one pixel along axis 1")
      .bench({{2, 28, 28, 64}, {3, 3, 32, 64}, {32}});
  row(
      "conv_transpose2d/no_bias", [](const auto& x, const auto& w) { return conv_transpose2d(x, w); },
      real({2, 3, 4, 3}), real({2, 3, 5, 3}, -1, 1))
      .reference(adjoint_without_bias(taps({1, 1}, {0, 0})))
      .sizes([](Index n) {
        return Shapes{{2, 2, 3, 7}, {2, 2, n, 7}};
      })
      .point({Array({1, 1, 2, 1}, {1, 2}), Array({1, 2, 2, 1}, {1, 10, 100, 1000})},
             Array({1, 1, 3, 2}, {1, 10, 102, 1020, 200, 2000}),
             {Array({1, 1, 2, 1}, {1111, 1111}), Array({1, 2, 2, 1}, {3, 3, 3, 3})})
      .bench({{2, 28, 28, 33}, {2, 3, 65, 33}});
  row(
      "conv_transpose2d/same_size",  // the adjoint of a 3 x 3 layer
      [](const auto& x, const auto& w, const auto& b) { return conv_transpose2d(x, w, b, {.padding = 1}); },
      real({2, 3, 4, 3}), real({3, 3, 2, 3}, -1, 1), real({2}))
      .reference(adjoint_with_bias(taps({1, 1}, {1, 1})))
      .sizes([](Index n) {
        return Shapes{{1, 3, n, 2}, {3, 3, 3, 2}, {3}};
      })
      .bench({{2, 56, 56, 64}, {3, 3, 64, 64}, {64}});
  row(
      "conv_transpose2d/doubling",
      [](const auto& x, const auto& w, const auto& b) { return conv_transpose2d(x, w, b, {.stride = 2}); },
      real({2, 3, 4, 3}), real({2, 2, 4, 3}, -1, 1), real({4}))
      .reference(adjoint_with_bias(taps({2, 2}, {0, 0})))
      .sizes([](Index n) {
        return Shapes{{1, 3, 2, 9}, {2, 2, n, 9}, {n}};
      })
      .bench({{2, 28, 28, 64}, {2, 2, 32, 64}, {32}});
  row(
      "conv_transpose2d/holes",  // outputs that no input reaches hold the bias
      [](const auto& x, const auto& w, const auto& b) {
        return conv_transpose2d(x, w, b, {.stride = {4, 3}, .padding = {0, 1}, .output_padding = {3, 0}});
      },
      real({2, 3, 3, 2}), real({2, 1, 3, 2}, -1, 1), real({3}))
      .reference(adjoint_with_bias(taps({4, 3}, {0, 1}, {1, 1}, {3, 0})))
      .sizes([](Index n) {
        return Shapes{{1, 2, n + 1, 2}, {2, 1, 3, 2}, {3}};
      })
      .point({Array({1, 1, 2, 1}, {3, 4}), Array({1, 1, 1, 1}, {2}), Array({1}, {7})},
             Array({1, 4, 2, 1}, {7, 7, 7, 7, 7, 7, 7, 7}))
      .bench({{2, 14, 15, 33}, {2, 1, 17, 33}, {17}});
  row(
      "conv_transpose2d/dilated",
      [](const auto& x, const auto& w, const auto& b) {
        return conv_transpose2d(
            x, w, b, {.stride = {1, 2}, .padding = {2, 3}, .output_padding = {0, 2}, .dilation = {2, 3}});
      },
      real({2, 3, 4, 3}), real({3, 2, 4, 3}, -1, 1), real({4}))
      .reference(adjoint_with_bias(taps({1, 2}, {2, 3}, {2, 3}, {0, 2})))
      .sizes([](Index n) {
        return Shapes{{1, 2, 3, n}, {3, 2, 3, n}, {3}};
      })
      .bench({{2, 28, 29, 32}, {3, 2, 32, 32}, {32}});
  row(
      "conv_transpose2d/batch",
      [](const auto& x, const auto& w, const auto& b) {
        return conv_transpose2d(x, w, b, {.stride = {3, 1}});
      },
      real({2, 2, 3, 2}), real({2, 3, 3, 2}, -1, 1), real({3}))
      .reference(adjoint_with_bias(taps({3, 1}, {0, 0})))
      .sizes(
          [](Index n) {
            return Shapes{{n, 2, 1, 2}, {2, 3, 3, 2}, {3}};
          },
          0)
      .bench({{9, 14, 14, 32}, {2, 3, 17, 32}, {17}});
  row(
      "conv_transpose2d/shifted",  // one tap and as many pixels out as in, and yet no plain product
      [](const auto& x, const auto& w, const auto& b) {
        return conv_transpose2d(x, w, b, {.padding = {1, 0}, .output_padding = {2, 0}, .dilation = 3});
      },
      real({2, 3, 4, 3}), real({1, 1, 5, 3}, -1, 1), real({5}))
      .reference(adjoint_with_bias(taps({1, 1}, {1, 0}, {3, 3}, {2, 0})))
      .sizes([](Index n) {
        return Shapes{{1, 2, 3, n}, {1, 1, 36 - n, n}, {36 - n}};
      })
      .point({Array({1, 3, 1, 1}, {3, 4, 5}), Array({1, 1, 1, 1}, {2}), Array({1}, {7})},
             Array({1, 3, 1, 1}, {15, 17, 7}))
      .bench({{2, 28, 29, 33}, {1, 1, 17, 33}, {17}});
  row(
      "conv_transpose2d/pointwise",
      [](const auto& x, const auto& w, const auto& b) { return conv_transpose2d(x, w, b); },
      real({2, 3, 4, 3}), real({1, 1, 5, 3}, -1, 1), real({5}))
      .reference(adjoint_with_bias(taps({1, 1}, {0, 0})))
      .sizes([](Index n) {
        return Shapes{{1, 2, 3, n}, {1, 1, 36 - n, n}, {36 - n}};
      })
      .bench({{2, 28, 28, 128}, {1, 1, 64, 128}, {64}});
  row(
      "conv_transpose2d/winograd",
      [](const auto& x, const auto& w, const auto& b) { return conv_transpose2d(x, w, b, {.padding = 1}); },
      real({2, 22, 23, 18}), real({3, 3, 17, 18}, -0.5, 0.5), real({17}))
      .reference(adjoint_with_bias(taps({1, 1}, {1, 1})))
      .tolerance(4e-5, 1e-11)  // F(4x4): 1e-5 of the largest result
      .bench({{2, 28, 27, 128}, {3, 3, 128, 128}, {128}});
});

const Rows grouped_rows([] {
  row(
      "conv_transpose2d/groups",
      [](const auto& x, const auto& w, const auto& b) {
        return conv_transpose2d(x, w, b, {.stride = 2, .padding = 1, .groups = 2});
      },
      real({2, 3, 4, 6}), real({3, 3, 2, 6}, -1, 1), real({4}))
      .reference(adjoint_with_bias(taps({2, 2}, {1, 1}), 2))
      .sizes([](Index n) {
        return Shapes{{1, 2, 3, 2 * n}, {3, 3, 4, 2 * n}, {8}};
      })
      .fault<wengert::ShapeError>({{2, 3, 4, 5}, {3, 3, 2, 5}, {4}},
                                  "conv_transpose2d: groups do not divide the channels; x is (2, 3, 4, 5), w "
                                  "is (3, 3, 2, 5), groups is 2; expected a divisor of 5")
      .fault<wengert::ShapeError>({{2, 3, 4, 6}, {3, 3, 2, 6}, {2}},
                                  "conv_transpose2d: bias does not fit; x is (2, 3, 4, 6), w is (3, 3, 2, "
                                  "6), b is (2); expected (4)")
      .bench({{2, 28, 28, 64}, {3, 3, 32, 64}, {64}});
  row(
      "conv_transpose2d/depthwise",
      [](const auto& x, const auto& w, const auto& b) {
        return conv_transpose2d(x, w, b,
                                {.stride = 2, .padding = 1, .output_padding = 1, .groups = x.dim(-1)});
      },
      real({2, 3, 4, 3}), real({3, 4, 1, 3}, -1, 1), real({3}))
      .reference([](const Array& x, const Array& w, const Array& b) {
        return conv_transposed(x, w, &b, x.dim(-1), taps({2, 2}, {1, 1}, {1, 1}, {1, 1}));
      })
      .sizes([](Index n) {
        return Shapes{{2, 2, 3, n}, {3, 4, 1, n}, {n}};
      })
      .bench({{2, 28, 28, 65}, {3, 4, 1, 65}, {65}});
  row(
      "conv_transpose2d/many_groups",  // two inputs to three outputs each
      [](const auto& x, const auto& w) {
        return conv_transpose2d(x, w, {.padding = {1, 0}, .groups = x.dim(-1) / 2});
      },
      real({2, 3, 4, 6}), real({3, 2, 3, 6}, -1, 1))
      .reference([](const Array& x, const Array& w) {
        return conv_transposed(x, w, nullptr, x.dim(-1) / 2, taps({1, 1}, {1, 0}));
      })
      .sizes([](Index n) {
        return Shapes{{1, 2, 3, 2 * n}, {3, 2, 3, 2 * n}};
      })
      .bench({{2, 28, 28, 64}, {3, 2, 3, 64}});
});

const Rows other_axes_rows([] {
  row(
      "conv_transpose1d",
      [](const auto& x, const auto& w, const auto& b) {
        return conv_transpose1d(x, w, b, {.stride = 3, .padding = 1, .output_padding = 2});
      },
      real({2, 5, 3}), real({4, 5, 3}, -1, 1), real({5}))
      .reference(adjoint_with_bias({{3}, {1}, {1}, {1}, {2}}))
      .sizes([](Index n) {
        return Shapes{{2, n, 3}, {4, 5, 3}, {5}};
      })
      .fault<wengert::ShapeError>({{5, 3}, {4, 5, 3}, {5}},
                                  "conv_transpose1d: wrong rank; x is (5, 3), w is (4, 5, 3); expected x of "
                                  "(N, W, C)")
      .fault<wengert::ShapeError>({{2, 5, 3}, {4, 3}, {5}},
                                  "conv_transpose1d: wrong rank; x is (2, 5, 3), w is (4, 3); expected w of "
                                  "(kw, out / groups, in)")
      .bench({{8, 250, 64}, {4, 33, 64}, {33}});
  row(
      "conv_transpose1d/cut",  // padding cuts all that the last taps give
      [](const auto& x, const auto& w) { return conv_transpose1d(x, w, {.padding = 3}); }, real({2, 6, 3}),
      real({3, 4, 3}, -1, 1))
      .reference(adjoint_without_bias({{1}, {3}, {3}, {1}, {0}}))
      .fault<wengert::ShapeError>({{2, 4, 3}, {3, 4, 3}},
                                  "conv_transpose1d: the output would be empty; x is (2, 4, 3), w is (3, 4, "
                                  "3), padding is 3; expected at least one pixel along axis 1")
      .bench({{8, 250, 33}, {3, 32, 33}});
  row(
      "conv_transpose3d",
      [](const auto& x, const auto& w, const auto& b) {
        return conv_transpose3d(x, w, b, {.stride = {1, 2, 2}, .padding = 1, .output_padding = {0, 1, 0}});
      },
      real({2, 3, 2, 3, 3}), real({2, 3, 3, 4, 3}, -1, 1), real({4}))
      .reference(adjoint_with_bias({{1, 2, 2}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {0, 1, 0}}))
      .sizes([](Index n) {
        return Shapes{{1, 2, 2, 2, n}, {2, 3, 3, 3, n}, {3}};
      })
      .fault<wengert::ShapeError>({{2, 3, 3, 3}, {2, 3, 3, 4, 3}, {4}},
                                  "conv_transpose3d: wrong rank; x is (2, 3, 3, 3), w is (2, 3, 3, 4, 3); "
                                  "expected x of (N, D, H, W, C)")
      .fault<wengert::ShapeError>({{2, 3, 2, 3, 3}, {3, 3, 4, 3}, {4}},
                                  "conv_transpose3d: wrong rank; x is (2, 3, 2, 3, 3), w is (3, 3, 4, 3); "
                                  "expected w of (kd, kh, kw, out / groups, in)")
      .bench({{1, 8, 14, 14, 32}, {2, 3, 3, 16, 32}, {16}});
  row(
      "conv_transpose3d/groups",
      [](const auto& x, const auto& w) {
        return conv_transpose3d(x, w, {.stride = 2, .dilation = {1, 2, 1}, .groups = 2});
      },
      real({2, 2, 1, 2, 4}), real({2, 2, 3, 3, 4}, -1, 1))
      .reference(adjoint_without_bias({{2, 2, 2}, {0, 0, 0}, {0, 0, 0}, {1, 2, 1}, {0, 0, 0}}, 2))
      .bench({{1, 4, 14, 14, 32}, {2, 2, 3, 16, 32}});
});

}  // namespace
}  // namespace cases
