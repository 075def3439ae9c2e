// Rows of pools with sliding windows. The reference visits every tap of every window in plain doubles.
#include <cmath>

#include <wengert/ops/pool.hpp>

#include "cases/case.hpp"

namespace cases {
namespace {

struct Sliding {
  std::vector<Index> kernel, stride, padding, dilation;
  bool ceil_mode = false, count_include_pad = true;
};

/// How many windows PyTorch counts along an axis.
Index windows(Index in, Index kernel, Index stride, Index padding, Index dilation, bool ceil_mode) {
  Index n = 0;
  for (Index first = -padding;; first += stride) {
    const Index last = first + (kernel - 1) * dilation;
    const bool fits = last < in + padding;
    // In ceil_mode one window may stick out, unless the one before it already touched the end, or it begins
    // beyond the image and the padding before it.
    const bool sticks_out = ceil_mode && !fits && last - stride < in + padding - 1 && first < in;
    if (!fits && !sticks_out) return n;
    ++n;
    if (!fits) return n;
  }
}

/// `fold(values, divisor)` of the pixels in each window; divisor counts the padding too.
template <class Fold>
Array slide(const Array& x, const Sliding& s, Fold fold) {
  const int axes = x.rank() - 2;
  const auto at = [](const std::vector<Index>& v, int i) { return v[static_cast<std::size_t>(i)]; };
  Shape shape = x.shape, kernel;
  for (int i = 0; i < axes; ++i) {
    shape[i + 1] = windows(x.dim(i + 1), at(s.kernel, i), at(s.stride, i), at(s.padding, i),
                           at(s.dilation, i), s.ceil_mode);
    kernel.push_back(at(s.kernel, i));
  }
  Array y(shape);
  for_each_index(shape, [&](const Shape& to) {
    std::vector<double> values;
    double padded = 0;
    for_each_index(kernel, [&](const Shape& tap) {
      Shape from = to;
      bool inside = true, in_padding = true;
      for (int i = 0; i < axes; ++i) {
        const Index p = to[i + 1] * at(s.stride, i) - at(s.padding, i) + tap[i] * at(s.dilation, i);
        inside &= p >= 0 && p < x.dim(i + 1);
        in_padding &= p < x.dim(i + 1) + at(s.padding, i);
        from[i + 1] = p;
      }
      if (inside) values.push_back(x(from));
      padded += in_padding;
    });
    y(to) = fold(values, padded);
  });
  return y;
}

double largest(const std::vector<double>& values, double = 0) {
  double m = -HUGE_VAL;
  for (const double v : values) m = v > m || std::isnan(v) ? v : m;
  return m;
}

auto max_of(const Sliding& s) {
  return [s](const Array& x) { return slide(x, s, largest); };
}
auto mean_of(const Sliding& s) {
  return [s](const Array& x) {
    return slide(x, s, [&](const std::vector<double>& values, double padded) {
      double sum = 0;
      for (const double v : values) sum += v;
      return sum / (s.count_include_pad ? padded : static_cast<double>(values.size()));
    });
  };
}

constexpr double inf = HUGE_VAL, nan = NAN;

const Rows max_pool_rows([] {
  row(
      "max_pool2d", [](const auto& x) { return max_pool2d(x, {.kernel = 2}); }, real({2, 4, 6, 3}).distinct())
      .reference(max_of({{2, 2}, {2, 2}, {0, 0}, {1, 1}}))
      .sizes(
          [](Index n) {
            return Shapes{{2, 4, 2, n}};
          },
          0)
      // The first of ties takes the gradient; -inf may win; the last NaN wins over everything.
      .point({Array({1, 2, 2, 1}, {3, 3, 3, 3})}, Array({1, 1, 1, 1}, {3}),
             {Array({1, 2, 2, 1}, {1, 0, 0, 0})})
      .point({Array({1, 2, 2, 1}, {1, 5, 5, 5})}, Array({1, 1, 1, 1}, {5}),
             {Array({1, 2, 2, 1}, {0, 1, 0, 0})})
      .point({Array({1, 2, 2, 1}, {-inf, -inf, -inf, -inf})}, Array({1, 1, 1, 1}, {-inf}),
             {Array({1, 2, 2, 1}, {1, 0, 0, 0})})
      .point({Array({1, 2, 2, 1}, {nan, inf, nan, 1})}, Array({1, 1, 1, 1}, {nan}),
             {Array({1, 2, 2, 1}, {0, 0, 1, 0})})
      .fault<wengert::ShapeError>({{4, 4, 3}},
                                  "max_pool2d: wrong rank; x is (4, 4, 3); expected (N, H, W, C)")
      .fault<wengert::ShapeError>(
          {{2, 0, 4, 3}}, "max_pool2d: the image has no pixels; x is (2, 0, 4, 3); expected at least one")
      .fault<wengert::ShapeError>(
          {{2, 4, 1, 3}},
          "max_pool2d: the window is larger than the padded image; x is (2, 4, 1, 3), "
          "kernel is 2, padding is 0, dilation is 1; expected at most 1 pixels along "
          "axis 2, not 2")
      .bench({{8, 56, 56, 64}});
  row(
      "max_pool2d/overlapping",
      [](const auto& x) {
        return max_pool2d(x, {.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}});
      },
      real({2, 5, 6, 4}).distinct())
      .reference(max_of({{3, 3}, {2, 2}, {1, 1}, {1, 1}}))
      .sizes(
          [](Index n) {
            return Shapes{{1, 3, 4, n}};
          },
          0)
      .point({Array({1, 1, 1, 1}, {-4})}, Array({1, 1, 1, 1}, {-4}), {Array({1, 1, 1, 1}, {1})})
      .bench({{8, 56, 56, 64}});
  row(
      "max_pool2d/stride1",
      [](const auto& x) { return max_pool2d(x, {.kernel = 3, .stride = 1, .padding = 1}); },
      real({2, 4, 5, 2}).distinct())
      .reference(max_of({{3, 3}, {1, 1}, {1, 1}, {1, 1}}))
      .sizes(
          [](Index n) {
            return Shapes{{1, 3, n, 2}};
          },
          1)
      .bench({{4, 28, 28, 64}});
  row(
      "max_pool2d/dilated",
      [](const auto& x) {
        return max_pool2d(x, {.kernel = {2, 3}, .stride = {1, 2}, .padding = {1, 1}, .dilation = {2, 3}});
      },
      real({2, 5, 9, 3}).distinct())
      .reference(max_of({{2, 3}, {1, 2}, {1, 1}, {2, 3}}))
      .sizes(
          [](Index n) {
            return Shapes{{1, 4, 8, n}};
          },
          0)
      .bench({{4, 30, 31, 33}});
  row(
      "max_pool2d/ceil",
      [](const auto& x) {
        return max_pool2d(x, {.kernel = {3, 2}, .stride = {2, 3}, .ceil_mode = true});
      },
      real({2, 6, 7, 3}).distinct())
      .reference(max_of({{3, 2}, {2, 3}, {0, 0}, {1, 1}, true}))
      .sizes(
          [](Index n) {
            return Shapes{{1, n + 2, n + 3, 2}};
          },
          1)
      .bench({{4, 30, 31, 17}});
  row(
      "max_pool2d/wide",  // more taps than a byte counts
      [](const auto& x) {
        return max_pool2d(x, {.kernel = {17, 18}, .stride = {4, 5}, .padding = {8, 9}});
      },
      real({1, 9, 11, 3}).distinct())
      .reference(max_of({{17, 18}, {4, 5}, {8, 9}, {1, 1}}))
      .sizes(
          [](Index n) {
            return Shapes{{1, 3, 4, n}};
          },
          0)
      .bench({{2, 40, 40, 17}});
  row(
      "max_pool1d", [](const auto& x) { return max_pool1d(x, {.kernel = 3, .stride = 2, .padding = 1}); },
      real({2, 7, 4}).distinct())
      .reference(max_of({{3}, {2}, {1}, {1}}))
      .sizes(
          [](Index n) {
            return Shapes{{2, n, 5}};
          },
          1)
      .fault<wengert::ShapeError>({{4, 4}}, "max_pool1d: wrong rank; x is (4, 4); expected (N, W, C)")
      .bench({{4, 2000, 20}});
  row(
      "max_pool1d/unpadded_kernel_larger",
      [](const auto& x) { return max_pool1d(x, {.kernel = 9, .stride = 1, .padding = 4}); },
      real({2, 3, 4}).distinct())
      .reference(max_of({{9}, {1}, {4}, {1}}))
      .sizes(
          [](Index n) {
            return Shapes{{2, n, 3}};
          },
          1)
      .bench({{4, 500, 8}});
  row(
      "max_pool3d",
      [](const auto& x) {
        return max_pool3d(x, {.kernel = {2, 3, 2}, .stride = {1, 2, 2}, .padding = {1, 1, 0}});
      },
      real({2, 3, 4, 5, 3}).distinct())
      .reference(max_of({{2, 3, 2}, {1, 2, 2}, {1, 1, 0}, {1, 1, 1}}))
      .sizes(
          [](Index n) {
            return Shapes{{1, 2, 3, 4, n}};
          },
          0)
      .fault<wengert::ShapeError>({{2, 3, 4, 4}},
                                  "max_pool3d: wrong rank; x is (2, 3, 4, 4); expected (N, D, H, W, C)")
      .bench({{2, 8, 14, 14, 32}});
});

const Rows avg_pool_rows([] {
  row(
      "avg_pool2d", [](const auto& x) { return avg_pool2d(x, {.kernel = 2}); }, real({2, 4, 6, 3}))
      .reference(mean_of({{2, 2}, {2, 2}, {0, 0}, {1, 1}}))
      .sizes(
          [](Index n) {
            return Shapes{{2, 4, 2, n}};
          },
          0)
      .point({Array({1, 2, 2, 1}, {1, 2, 3, 6})}, Array({1, 1, 1, 1}, {3}),
             {Array({1, 2, 2, 1}, {0.25, 0.25, 0.25, 0.25})})
      .point({Array({1, 2, 4, 1}, {1, 2, nan, 0, 3, 6, 0, 0})}, Array({1, 1, 2, 1}, {3, nan}),
             {Array({1, 2, 4, 1}, 0.25)})
      .fault<wengert::ShapeError>({{4, 4, 3}},
                                  "avg_pool2d: wrong rank; x is (4, 4, 3); expected (N, H, W, C)")
      .fault<wengert::ShapeError>(
          {{2, 4, 0, 3}}, "avg_pool2d: the image has no pixels; x is (2, 4, 0, 3); expected at least one")
      .bench({{8, 56, 56, 64}});
  row(
      "avg_pool2d/padded",
      [](const auto& x) {
        return avg_pool2d(x, {.kernel = 3, .stride = 2, .padding = 1, .ceil_mode = true});
      },
      real({2, 4, 6, 3}))
      .reference(mean_of({{3, 3}, {2, 2}, {1, 1}, {1, 1}, true}))
      .sizes(
          [](Index n) {
            return Shapes{{1, n, n + 1, 2}};
          },
          1)
      .bench({{8, 57, 56, 64}});
  row(
      "avg_pool2d/pixels_alone",
      [](const auto& x) {
        return avg_pool2d(x, {.kernel = {3, 2},
                              .stride = {2, 3},
                              .padding = {1, 1},
                              .ceil_mode = true,
                              .count_include_pad = false});
      },
      real({2, 4, 6, 3}))
      .reference(mean_of({{3, 2}, {2, 3}, {1, 1}, {1, 1}, true, false}))
      .sizes(
          [](Index n) {
            return Shapes{{1, 4, 3, n}};
          },
          0)
      .bench({{8, 57, 56, 33}});
  row(
      "avg_pool2d/stride1",
      [](const auto& x) {
        return avg_pool2d(x, {.kernel = {3, 5}, .stride = 1, .padding = {1, 2}});
      },
      real({2, 4, 6, 3}))
      .reference(mean_of({{3, 5}, {1, 1}, {1, 2}, {1, 1}}))
      .sizes(
          [](Index n) {
            return Shapes{{1, 4, 3, n}};
          },
          0)
      .bench({{4, 28, 28, 17}});
  row(
      "avg_pool1d", [](const auto& x) { return avg_pool1d(x, {.kernel = 3, .stride = 2, .padding = 1}); },
      real({2, 7, 4}))
      .reference(mean_of({{3}, {2}, {1}, {1}}))
      .sizes(
          [](Index n) {
            return Shapes{{2, n, 5}};
          },
          1)
      .bench({{4, 2000, 20}});
  row(
      "avg_pool1d/long", [](const auto& x) { return avg_pool1d(x, {.kernel = 600, .stride = 100}); },
      real({2, 701, 3}))
      .reference(mean_of({{600}, {100}, {0}, {1}}))
      .bench({{2, 5000, 20}});
  row(
      "avg_pool3d",
      [](const auto& x) {
        return avg_pool3d(
            x, {.kernel = {2, 3, 2}, .stride = {1, 2, 2}, .padding = {1, 1, 0}, .ceil_mode = true});
      },
      real({2, 3, 4, 5, 3}))
      .reference(mean_of({{2, 3, 2}, {1, 2, 2}, {1, 1, 0}, {1, 1, 1}, true}))
      .sizes(
          [](Index n) {
            return Shapes{{1, 2, 3, 4, n}};
          },
          0)
      .bench({{2, 8, 14, 14, 32}});
});

}  // namespace
}  // namespace cases
