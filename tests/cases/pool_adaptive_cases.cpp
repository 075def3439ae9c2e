// Rows of pools to a given size and over whole images.
#include <cmath>

#include <wengert/ops/pool_adaptive.hpp>

#include "cases/case.hpp"

namespace cases {
namespace {

/// `fold(values)` of the pixels between floor(o in / n) and ceil((o + 1) in / n) along each axis.
template <class Fold>
auto adaptive(std::vector<Index> size, Fold fold) {
  return [size, fold](const Array& x) {
    Shape shape = x.shape;
    for (std::size_t i = 0; i < size.size(); ++i) shape[static_cast<int>(i) + 1] = size[i];
    Array y(shape);
    for_each_index(shape, [&](const Shape& to) {
      std::vector<double> values;
      for_each_index(x.shape, [&](const Shape& from) {
        bool inside = from[0] == to[0] && from[from.rank() - 1] == to[to.rank() - 1];
        for (int i = 1; i < to.rank() - 1; ++i) {
          const double scale = static_cast<double>(x.dim(i)) / static_cast<double>(shape[i]);
          const double p = static_cast<double>(from[i]), o = static_cast<double>(to[i]);
          inside &= p >= std::floor(o * scale + 1e-9) && p < std::ceil((o + 1) * scale - 1e-9);
        }
        if (inside) values.push_back(x(from));
      });
      y(to) = fold(values);
    });
    return y;
  };
}

double largest(const std::vector<double>& values) {
  double m = -HUGE_VAL;
  for (const double v : values) m = v > m || std::isnan(v) ? v : m;
  return m;
}
double mean_value(const std::vector<double>& values) {
  double sum = 0;
  for (const double v : values) sum += v;
  return sum / static_cast<double>(values.size());
}

/// `fold(values)` of all pixels of an image.
template <class Fold>
auto global(Fold fold) {
  return [fold](const Array& x) {
    Array y({x.dim(0), x.dim(-1)});
    const Index pixels = y.size() == 0 ? 0 : x.size() / y.size();
    for (Index n = 0; n < x.dim(0); ++n)
      for (Index c = 0; c < x.dim(-1); ++c) {
        std::vector<double> values;
        for (Index p = 0; p < pixels; ++p) values.push_back(x[(n * pixels + p) * x.dim(-1) + c]);
        y({n, c}) = fold(values);
      }
    return y;
  };
}

const Rows adaptive_rows([] {
  row(
      "adaptive_avg_pool2d",
      [](const auto& x) {
        return adaptive_avg_pool2d(x, {3, 2});
      },
      real({2, 7, 5, 3}))
      .reference(adaptive({3, 2}, mean_value))
      .sizes(
          [](Index n) {
            return Shapes{{1, 4, 3, n}};
          },
          0)
      .fault<wengert::ShapeError>({{4, 4, 3}},
                                  "adaptive_avg_pool2d: wrong rank; x is (4, 4, 3); expected (N, H, W, C)")
      .fault<wengert::ShapeError>(
          {{2, 4, 0, 3}},
          "adaptive_avg_pool2d: the image has no pixels; x is (2, 4, 0, 3); expected at least one")
      .bench({{8, 30, 31, 64}});
  row(
      "adaptive_avg_pool2d/one", [](const auto& x) { return adaptive_avg_pool2d(x, 1); }, real({2, 3, 4, 3}))
      .reference(adaptive({1, 1}, mean_value))
      .sizes(
          [](Index n) {
            return Shapes{{1, n, 3, 2}};
          },
          1)
      .bench({{8, 7, 7, 512}});
  row(
      "adaptive_avg_pool1d/enlarging", [](const auto& x) { return adaptive_avg_pool1d(x, 5); },
      real({2, 3, 4}))
      .reference(adaptive({5}, mean_value))
      .sizes(
          [](Index n) {
            return Shapes{{2, n, 3}};
          },
          1)
      .bench({{8, 1000, 20}});
  row(
      "adaptive_max_pool2d",
      [](const auto& x) {
        return adaptive_max_pool2d(x, {3, 2});
      },
      real({2, 7, 5, 3}).distinct())
      .reference(adaptive({3, 2}, largest))
      .sizes(
          [](Index n) {
            return Shapes{{1, 4, 3, n}};
          },
          0)
      .fault<wengert::ShapeError>({{4, 4, 3}},
                                  "adaptive_max_pool2d: wrong rank; x is (4, 4, 3); expected (N, H, W, C)")
      .bench({{8, 30, 31, 64}});
  row(
      "adaptive_max_pool1d/enlarging", [](const auto& x) { return adaptive_max_pool1d(x, 5); },
      real({2, 3, 4}).distinct())
      .reference(adaptive({5}, largest))
      .sizes(
          [](Index n) {
            return Shapes{{2, n, 3}};
          },
          1)
      .bench({{8, 2000, 20}});
  row(
      "global_avg_pool", [](const auto& x) { return global_avg_pool(x); }, real({2, 3, 4, 3}))
      .reference(global(mean_value))
      .sizes(
          [](Index n) {
            return Shapes{{2, 3, n}};
          },
          0)
      .fault<wengert::ShapeError>(
          {{4, 3}},
          "global_avg_pool: wrong rank; x is (4, 3); expected (N, ..., C) with spatial axes between")
      .fault<wengert::ShapeError>(
          {{4, 2, 0, 3}},
          "global_avg_pool: the image has no pixels; x is (4, 2, 0, 3); expected at least one")
      .bench({{8, 7, 7, 512}});
  row(
      "global_max_pool", [](const auto& x) { return global_max_pool(x); }, real({2, 3, 4, 3}).distinct())
      .reference(global(largest))
      .sizes(
          [](Index n) {
            return Shapes{{2, 3, n}};
          },
          0)
      .fault<wengert::ShapeError>(
          {{4, 3}},
          "global_max_pool: wrong rank; x is (4, 3); expected (N, ..., C) with spatial axes between")
      .fault<wengert::ShapeError>(
          {{4, 0, 3}}, "global_max_pool: the image has no pixels; x is (4, 0, 3); expected at least one")
      .bench({{8, 7, 7, 512}});
});

}  // namespace
}  // namespace cases
