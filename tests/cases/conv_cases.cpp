// Rows of convolutions.
#include <wengert/ops/conv.hpp>

#include "cases/case.hpp"
#include "cases/conv_reference.hpp"

namespace cases {
namespace {

using Numbers = std::vector<Index>;

Taps taps(Numbers stride, const Numbers& padding, Numbers dilation) {
  return {std::move(stride), padding, padding, std::move(dilation)};
}
auto same(Numbers stride, Numbers dilation) {
  return [=](const Array& x, const Array& w, const Array& b) {
    return convolved(x, w, &b, same_padding(x, w, stride, dilation));
  };
}

/// Groups of as many channels as w reads.
template <class T>
Index groups_of(const Tensor<T>& x, const Tensor<T>& w) {
  return x.dim(-1) / w.dim(-2);
}

constexpr double nan = NAN;

const Rows conv2d_rows([] {
  row(
      "conv2d", [](const auto& x, const auto& w, const auto& b) { return conv2d(x, w, b, {.padding = 1}); },
      real({2, 4, 5, 3}), real({3, 3, 3, 4}, -1, 1), real({4}))
      .reference(with_bias(taps({1, 1}, {1, 1}, {1, 1})))
      .sizes([](Index n) {
        return Shapes{{1, 3, 4, n}, {3, 3, n, n}, {n}};
      })
      // The middle tap alone sees the one pixel. A NaN is in the windows of its neighbours alone.
      .point({Array({1, 1, 1, 1}, {3}), Array({3, 3, 1, 1}, {1, 2, 3, 4, 5, 6, 7, 8, 9}), Array({1}, {10})},
             Array({1, 1, 1, 1}, {25}),
             {Array({1, 1, 1, 1}, {5}), Array({3, 3, 1, 1}, {0, 0, 0, 0, 3, 0, 0, 0, 0}), Array({1}, {1})})
      .point({Array({1, 1, 4, 1}, {1, 2, 3, nan}), Array({1, 3, 1, 1}, {1, 10, 100}), Array({1}, {0})},
             Array({1, 3, 4, 1}, {0, 0, 0, 0, 210, 321, nan, nan, 0, 0, 0, 0}),
             {Array({1, 1, 4, 1}, {11, 111, 111, 110}), Array({1, 3, 1, 1}, {6, nan, nan}), Array({1}, {12})})
      .fault<wengert::ShapeError>({{4, 5, 3}, {3, 3, 3, 4}, {4}},
                                  "conv2d: wrong rank; x is (4, 5, 3), w is (3, 3, 3, 4); expected x of (N, "
                                  "H, W, C)")
      .fault<wengert::ShapeError>({{2, 4, 5, 3}, {3, 3, 4}, {4}},
                                  "conv2d: wrong rank; x is (2, 4, 5, 3), w is (3, 3, 4); expected w of (kh, "
                                  "kw, in / groups, out)")
      .fault<wengert::ShapeError>({{2, 4, 5, 0}, {3, 3, 0, 4}, {4}},
                                  "conv2d: no channels or no taps; x is (2, 4, 5, 0), w is (3, 3, 0, 4); "
                                  "expected at least one of each")
      .fault<wengert::ShapeError>({{2, 4, 5, 3}, {3, 0, 3, 4}, {4}},
                                  "conv2d: no channels or no taps; x is (2, 4, 5, 3), w is (3, 0, 3, 4); "
                                  "expected at least one of each")
      .fault<wengert::ShapeError>({{2, 4, 5, 3}, {3, 3, 2, 4}, {4}},
                                  "conv2d: channels differ; x is (2, 4, 5, 3), w is (3, 3, 2, 4), groups is "
                                  "1; expected w.dim(2) == 3")
      .fault<wengert::ShapeError>({{2, 4, 5, 3}, {3, 3, 3, 4}, {3}},
                                  "conv2d: bias does not fit; x is (2, 4, 5, 3), w is (3, 3, 3, 4), b is "
                                  "(3); expected (4)")
      .fault<wengert::ShapeError>({{2, 4, 5, 3}, {3, 3, 3, 4}, {1, 4}},
                                  "conv2d: bias does not fit; x is (2, 4, 5, 3), w is (3, 3, 3, 4), b is "
                                  "(1, 4); expected (4)")
      .fault<wengert::ShapeError>({{2, 4, 5, 3}, {3, 8, 3, 4}, {4}},
                                  "conv2d: the kernel is larger than the padded input; x is (2, 4, 5, 3), w "
                                  "is (3, 8, 3, 4), padding is 1, dilation is 1; expected at most 7 pixels "
                                  "from the first tap to the last along axis 2")
      .bench({{4, 56, 56, 64}, {3, 3, 64, 64}, {64}});
  row(
      "conv2d/no_bias", [](const auto& x, const auto& w) { return conv2d(x, w); }, real({2, 4, 6, 3}),
      real({2, 3, 3, 5}, -1, 1))
      .reference(without_bias(taps({1, 1}, {0, 0}, {1, 1})))
      .sizes([](Index n) {
        return Shapes{{2, 3, 2, 7}, {2, 2, 7, n}};
      })
      .point({Array({1, 1, 3, 2}, {1, 2, 3, 4, 5, 6}), Array({1, 2, 2, 1}, {1, 10, 100, 1000})},
             Array({1, 1, 2, 1}, {4321, 6543}),
             {Array({1, 1, 3, 2}, {1, 10, 101, 1010, 100, 1000}), Array({1, 2, 2, 1}, {4, 6, 8, 10})})
      .fault<wengert::ShapeError>({{2, 1, 6, 3}, {2, 3, 3, 5}},
                                  "conv2d: the kernel is larger than the padded input; x is (2, 1, 6, 3), w "
                                  "is (2, 3, 3, 5), padding is 0, dilation is 1; expected at most 1 pixels "
                                  "from the first tap to the last along axis 1")
      .bench({{2, 28, 28, 33}, {2, 3, 33, 65}});
  row(
      "conv2d/batch",
      [](const auto& x, const auto& w, const auto& b) {
        return conv2d(x, w, b, {.stride = 2, .padding = 1});
      },
      real({2, 3, 4, 2}), real({2, 3, 2, 3}, -1, 1), real({3}))
      .reference(with_bias(taps({2, 2}, {1, 1}, {1, 1})))
      .sizes(
          [](Index n) {
            return Shapes{{n, 3, 4, 2}, {2, 3, 2, 3}, {3}};
          },
          0)
      .bench({{9, 14, 14, 32}, {2, 3, 32, 17}, {17}});
  row(
      "conv2d/strided",  // 7 and 8 are no multiples of the stride
      [](const auto& x, const auto& w, const auto& b) {
        return conv2d(x, w, b, {.stride = {2, 3}, .padding = {1, 0}});
      },
      real({2, 7, 8, 3}), real({3, 3, 3, 4}, -1, 1), real({4}))
      .reference(with_bias(taps({2, 3}, {1, 0}, {1, 1})))
      .sizes([](Index n) {
        return Shapes{{1, 4, 5, n}, {3, 3, n, 9}, {9}};
      })
      .bench({{2, 56, 57, 64}, {3, 3, 64, 128}, {128}});
  row(
      "conv2d/stem", [](const auto& x, const auto& w) { return conv2d(x, w, {.stride = 2, .padding = 3}); },
      real({1, 7, 8, 3}), real({7, 7, 3, 5}, -1, 1))
      .reference(without_bias(taps({2, 2}, {3, 3}, {1, 1})))
      .bench({{1, 112, 112, 3}, {7, 7, 3, 64}});
  row(
      "conv2d/holes",  // between the windows
      [](const auto& x, const auto& w, const auto& b) {
        return conv2d(x, w, b, {.stride = {4, 3}, .padding = {0, 1}});
      },
      real({2, 7, 9, 2}), real({2, 1, 2, 3}, -1, 1), real({3}))
      .reference(with_bias(taps({4, 3}, {0, 1}, {1, 1})))
      .sizes([](Index n) {
        return Shapes{{1, 2 + n % 7, n, 2}, {2, 1, 2, 3}, {3}};
      })
      .bench({{4, 57, 58, 17}, {2, 1, 17, 33}, {33}});
  row(
      "conv2d/same",
      [](const auto& x, const auto& w, const auto& b) {
        return conv2d(x, w, b, {.padding = "same", .dilation = {1, 2}});
      },
      real({2, 4, 5, 3}), real({4, 3, 3, 4}, -1, 1), real({4}))
      .reference(same({1, 1}, {1, 2}))
      .sizes([](Index n) {
        return Shapes{{1, 3, n, 2}, {4, 3, 2, 3}, {3}};
      })
      .bench({{2, 28, 29, 32}, {4, 3, 32, 32}, {32}});
  row(
      "conv2d/same_strided",
      [](const auto& x, const auto& w, const auto& b) {
        return conv2d(x, w, b, {.stride = {2, 3}, .padding = "same"});
      },
      real({2, 5, 7, 3}), real({3, 4, 3, 4}, -1, 1), real({4}))
      .reference(same({2, 3}, {1, 1}))
      .sizes([](Index n) {
        return Shapes{{1, n, n + 1, 2}, {3, 4, 2, 3}, {3}};
      })
      .bench({{2, 29, 31, 32}, {3, 4, 32, 33}, {33}});
  row(
      "conv2d/valid",
      [](const auto& x, const auto& w, const auto& b) {
        return conv2d(x, w, b, {.stride = 2, .padding = "valid"});
      },
      real({2, 5, 6, 3}), real({3, 2, 3, 4}, -1, 1), real({4}))
      .reference(with_bias(taps({2, 2}, {0, 0}, {1, 1})))
      .sizes([](Index n) {
        return Shapes{{1, n + 2, 3, 2}, {3, 2, 2, 3}, {3}};
      })
      .bench({{2, 28, 29, 32}, {3, 2, 32, 64}, {64}});
  row(
      "conv2d/dilated",
      [](const auto& x, const auto& w, const auto& b) {
        return conv2d(x, w, b, {.stride = {1, 2}, .padding = {2, 1}, .dilation = {2, 3}});
      },
      real({2, 5, 8, 3}), real({3, 3, 3, 4}, -1, 1), real({4}))
      .reference(with_bias(taps({1, 2}, {2, 1}, {2, 3})))
      .sizes([](Index n) {
        return Shapes{{1, 3, 6, n}, {3, 3, n, n + 1}, {n + 1}};
      })
      .bench({{2, 28, 30, 32}, {3, 3, 32, 32}, {32}});
  row(
      "conv2d/kernel_larger",  // than the input, and padding larger than the kernel
      [](const auto& x, const auto& w, const auto& b) {
        return conv2d(x, w, b, {.padding = {2, 4}});
      },
      real({2, 2, 1, 3}), real({5, 3, 3, 4}, -1, 1), real({4}))
      .reference(with_bias(taps({1, 1}, {2, 4}, {1, 1})))
      .sizes([](Index n) {
        return Shapes{{1, 1, n, 2}, {4, 3, 2, 3}, {3}};
      })
      .bench({{64, 3, 3, 32}, {5, 3, 32, 32}, {32}});
  row(
      "conv2d/one_pixel",
      [](const auto& x, const auto& w, const auto& b) { return conv2d(x, w, b, {.padding = 1}); },
      real({3, 1, 1, 5}), real({3, 3, 5, 4}, -1, 1), real({4}))
      .reference(with_bias(taps({1, 1}, {1, 1}, {1, 1})))
      .sizes([](Index n) {
        return Shapes{{2, 1, 1, n}, {3, 3, n, 3}, {3}};
      })
      .bench({{64, 1, 1, 65}, {3, 3, 65, 33}, {33}});
  row(
      "conv2d/pointwise", [](const auto& x, const auto& w, const auto& b) { return conv2d(x, w, b); },
      real({2, 3, 4, 3}), real({1, 1, 3, 5}, -1, 1), real({5}))
      .reference(with_bias(taps({1, 1}, {0, 0}, {1, 1})))
      .sizes([](Index n) {
        return Shapes{{1, 2, 3, n}, {1, 1, n, 36 - n}, {36 - n}};
      })
      .bench({{4, 28, 28, 128}, {1, 1, 128, 64}, {64}});
  row(
      "conv2d/pointwise_strided", [](const auto& x, const auto& w) { return conv2d(x, w, {.stride = 2}); },
      real({2, 5, 4, 3}), real({1, 1, 3, 5}, -1, 1))
      .reference(without_bias(taps({2, 2}, {0, 0}, {1, 1})))
      .sizes([](Index n) {
        return Shapes{{1, 3, n, 3}, {1, 1, 3, 9}};
      })
      .bench({{4, 28, 28, 64}, {1, 1, 64, 128}});
  row(
      "conv2d/winograd",  // large enough for F(4 x 4)
      [](const auto& x, const auto& w, const auto& b) { return conv2d(x, w, b, {.padding = 1}); },
      real({2, 22, 23, 17}), real({3, 3, 17, 18}, -0.5, 0.5), real({18}))
      .reference(with_bias(taps({1, 1}, {1, 1}, {1, 1})))
      .tolerance(4e-5, 1e-11)  // F(4x4): 1e-5 of the largest result
      .bench({{2, 28, 27, 128}, {3, 3, 128, 128}, {128}});
});

const Rows grouped_rows([] {
  row(
      "conv2d/groups",
      [](const auto& x, const auto& w, const auto& b) {
        return conv2d(x, w, b, {.padding = 1, .groups = groups_of(x, w)});
      },
      real({2, 4, 5, 6}), real({3, 3, 3, 4}, -1, 1), real({4}))
      .reference(with_bias(taps({1, 1}, {1, 1}, {1, 1})))
      .sizes([](Index n) {
        return Shapes{{1, 3, 4, 2 * n}, {3, 3, n, 6}, {6}};
      })
      .bench({{2, 28, 28, 64}, {3, 3, 32, 128}, {128}});
  row(
      "conv2d/many_groups",
      [](const auto& x, const auto& w, const auto& b) {
        return conv2d(x, w, b, {.stride = {1, 2}, .padding = {1, 0}, .groups = groups_of(x, w)});
      },
      real({2, 4, 5, 6}), real({3, 2, 2, 9}, -1, 1), real({9}))
      .reference(with_bias(taps({1, 2}, {1, 0}, {1, 1})))
      .sizes([](Index n) {
        return Shapes{{1, 3, 4, 2 * n}, {3, 2, 2, 3 * n}, {3 * n}};
      })
      .bench({{2, 28, 28, 128}, {3, 2, 4, 128}, {128}});
  row(
      "conv2d/depthwise",
      [](const auto& x, const auto& w, const auto& b) {
        return conv2d(x, w, b, {.padding = 1, .groups = x.dim(-1)});
      },
      real({2, 4, 5, 3}), real({3, 3, 1, 3}, -1, 1), real({3}))
      .reference(with_bias(taps({1, 1}, {1, 1}, {1, 1})))
      .sizes([](Index n) {
        return Shapes{{2, 3, 4, n}, {3, 3, 1, n}, {n}};
      })
      .bench({{4, 56, 56, 65}, {3, 3, 1, 65}, {65}});
  row(
      "conv2d/depthwise_strided",
      [](const auto& x, const auto& w) {
        return conv2d(x, w, {.stride = 2, .padding = 3, .dilation = {1, 2}, .groups = x.dim(-1)});
      },
      real({2, 5, 6, 3}), real({5, 3, 1, 3}, -1, 1))
      .reference(without_bias(taps({2, 2}, {3, 3}, {1, 2})))
      .sizes([](Index n) {
        return Shapes{{1, n, n + 1, 2}, {5, 3, 1, 2}};
      })
      .bench({{4, 28, 29, 96}, {5, 3, 1, 96}});
  row(
      "conv2d/depthwise_multiplied",  // two outputs for each input channel
      [](const auto& x, const auto& w, const auto& b) {
        return conv2d(x, w, b, {.padding = "same", .groups = x.dim(-1)});
      },
      real({2, 4, 5, 3}), real({3, 2, 1, 6}, -1, 1), real({6}))
      .reference(same({1, 1}, {1, 1}))
      .sizes([](Index n) {
        return Shapes{{1, 3, 4, n}, {3, 2, 1, 2 * n}, {2 * n}};
      })
      .bench({{2, 28, 28, 33}, {3, 2, 1, 66}, {66}});
  row(
      "conv2d/three_groups", [](const auto& x, const auto& w) { return conv2d(x, w, {.groups = 3}); },
      real({1, 3, 3, 6}), real({2, 2, 2, 3}, -1, 1))
      .reference(without_bias(taps({1, 1}, {0, 0}, {1, 1})))
      .fault<wengert::ShapeError>({{1, 3, 3, 7}, {2, 2, 2, 3}},
                                  "conv2d: groups do not divide the channels; x is (1, 3, 3, 7), w is (2, 2, "
                                  "2, 3), groups is 3; expected a divisor of 7 and of 3")
      .fault<wengert::ShapeError>({{1, 3, 3, 6}, {2, 2, 2, 4}},
                                  "conv2d: groups do not divide the channels; x is (1, 3, 3, 6), w is (2, 2, "
                                  "2, 4), groups is 3; expected a divisor of 6 and of 4")
      .fault<wengert::ShapeError>({{1, 3, 3, 6}, {2, 2, 6, 3}},
                                  "conv2d: channels differ; x is (1, 3, 3, 6), w is (2, 2, 6, 3), groups is "
                                  "3; expected w.dim(2) == 2")
      .bench({{2, 28, 28, 96}, {2, 2, 32, 48}});
});

// Biases keep the sums away from 0, where relu has its kink.
const Rows relu_rows([] {
  row(
      "conv2d_relu",
      [](const auto& x, const auto& w, const auto& b) {
        return conv2d_relu(x, w, b, {.stride = 2, .padding = 1});
      },
      real({2, 4, 5, 3}, 0.1, 0.5), real({3, 3, 3, 4}, 0.01, 0.1), real({4}).values({3, -5, 2, -4}))
      .reference(rectified(taps({2, 2}, {1, 1}, {1, 1})))
      .sizes([](Index n) {
        return Shapes{{1, 3, 3, 2}, {3, 3, 2, n}, {n}};
      })
      .point({Array({1, 1, 1, 1}, {2}), Array({1, 1, 1, 3}, {1, 0, -1}), Array({3}, {1, 0, 1})},
             Array({1, 2, 2, 3}, {1, 0, 1, 1, 0, 1, 1, 0, 1, 1, 0, 1}))
      .fault<wengert::ShapeError>({{2, 4, 5, 3}, {3, 3, 2, 4}, {4}},
                                  "conv2d_relu: channels differ; x is (2, 4, 5, 3), w is (3, 3, 2, 4), "
                                  "groups is 1; expected w.dim(2) == 3")
      .bench({{2, 56, 56, 64}, {3, 3, 64, 64}, {64}});
  row(
      "conv2d_relu/pointwise",
      [](const auto& x, const auto& w, const auto& b) { return conv2d_relu(x, w, b); },
      real({2, 3, 4, 3}, 0.1, 0.5), real({1, 1, 3, 5}, 0.1, 0.5), real({5}).values({3, -5, 2, -4, 1}))
      .reference(rectified(taps({1, 1}, {0, 0}, {1, 1})))
      .point({Array({1, 1, 1, 1}, {2}), Array({1, 1, 1, 3}, {1, 0, -1}), Array({3}, {1, 0, 1})},
             Array({1, 1, 1, 3}, {3, 0, 0}),
             {Array({1, 1, 1, 1}, {1}), Array({1, 1, 1, 3}, {2, 0, 0}), Array({3}, {1, 0, 0})})
      .point({Array({1, 1, 2, 1}, {nan, -2}), Array({1, 1, 1, 1}, {1}), Array({1}, {0})},
             Array({1, 1, 2, 1}, {nan, 0}))
      .bench({{4, 28, 28, 64}, {1, 1, 64, 128}, {128}});
  row(
      "conv2d_relu/depthwise",
      [](const auto& x, const auto& w, const auto& b) {
        return conv2d_relu(x, w, b, {.padding = "same", .groups = x.dim(-1)});
      },
      real({2, 3, 4, 4}, 0.1, 0.5), real({3, 3, 1, 4}, 0.1, 0.3), real({4}).values({3, -5, 2, -4}))
      .reference([](const Array& x, const Array& w, const Array& b) {
        return rectified(same_padding(x, w, {1, 1}, {1, 1}))(x, w, b);
      })
      .bench({{4, 28, 28, 64}, {3, 3, 1, 64}, {64}});
});

}  // namespace
}  // namespace cases
