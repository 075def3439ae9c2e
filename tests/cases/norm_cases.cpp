// Rows of batch_norm, layer_norm and dropout. References are plain double loops.
#include <cmath>

#include <wengert/ops/dropout.hpp>
#include <wengert/ops/norm.hpp>

#include "cases/case.hpp"

namespace cases {
namespace {

/// Biased mean and variance of the elements of x whose position k satisfies k % period == phase.
std::pair<double, double> moments(const Array& x, Index period, Index phase) {
  double mean = 0, var = 0, n = 0;
  for (Index k = phase; k < x.size(); k += period) mean += x[k], n += 1;
  mean /= n;
  for (Index k = phase; k < x.size(); k += period) var += (x[k] - mean) * (x[k] - mean);
  return {mean, var / n};
}

Array batch_norm_reference(const Array& x, const Array& w, const Array& b, double eps) {
  Array y(x.shape);
  const Index c = x.dim(-1);
  for (Index j = 0; j < c; ++j) {
    const auto [mean, var] = moments(x, c, j);
    for (Index k = j; k < x.size(); k += c) y[k] = (x[k] - mean) / std::sqrt(var + eps) * w[j] + b[j];
  }
  return y;
}

Array layer_norm_reference(const Array& x, const Array& w, const Array& b, double eps) {
  Array y(x.shape);
  const Index n = w.size();
  for (Index r = 0; n > 0 && r < x.size() / n; ++r) {
    Array line({n});
    for (Index i = 0; i < n; ++i) line[i] = x[r * n + i];
    const auto [mean, var] = moments(line, 1, 0);
    for (Index i = 0; i < n; ++i) y[r * n + i] = (line[i] - mean) / std::sqrt(var + eps) * w[i] + b[i];
  }
  return y;
}

template <class T>
Tensor<T> channels(Index n, double first, double step) {
  Tensor<T> t(Shape{n});
  for (Index i = 0; i < n; ++i) t.fresh_data()[i] = static_cast<T>(first + step * static_cast<double>(i % 5));
  return t;
}

const Rows batch_norm_rows([] {
  const auto train = [](const auto& x, const auto& w, const auto& b) {
    return batch_norm(x, &w, &b, nullptr, nullptr);
  };
  const auto reference = [](const Array& x, const Array& w, const Array& b) {
    return batch_norm_reference(x, w, b, 1e-5);
  };
  row("batch_norm", train, real({6, 4}), real({4}), real({4}))
      .reference(reference)
      .sizes(
          [](Index n) {
            return Shapes{{7, n}, {n}, {n}};
          },
          0)
      // x = -1, 1: mean 0, variance 1. With eps 1e-5 the slope of y is 1e-5 of 1, and cancels in the gradient
      // of x for a dy of equal elements.
      .point({Array({2, 1}, {-3, -3}), Array({1}, {2}), Array({1}, {0.5})}, Array({2, 1}, {0.5, 0.5}),
             {Array({2, 1}, {0, 0}), Array({1}, {0}), Array({1}, {2})})
      .fault<wengert::ShapeError>({{4}, {4}, {4}},
                                  "batch_norm: rank is too low; x is (4); expected (batch, ..., channels)")
      .fault<wengert::ShapeError>({{}, {4}, {4}},
                                  "batch_norm: rank is too low; x is (); expected (batch, ..., channels)")
      .fault<wengert::ShapeError>({{3, 4}, {3}, {4}},
                                  "batch_norm: weight does not fit; x is (3, 4), weight is (3); expected (4)")
      .fault<wengert::ShapeError>({{3, 4}, {4}, {1, 4}},
                                  "batch_norm: bias does not fit; x is (3, 4), bias is (1, 4); expected (4)")
      .fault<wengert::ValueError>(
          {{1, 4}, {4}, {4}},
          "batch_norm: a single value per channel has no variance; x is (1, 4); expected "
          "more than one value per channel when training")
      .bench({{64, 128}, {128}, {128}});
  row("batch_norm/images", train, real({2, 3, 2, 5}), real({5}), real({5}))
      .reference(reference)
      .sizes(
          [](Index n) {
            return Shapes{{2, n, 3, 2}, {2}, {2}};
          },
          1)
      .bench({{32, 56, 56, 64}, {64}, {64}});
  row(
      "batch_norm/plain", [](const auto& x) { return batch_norm(x, nullptr, nullptr, nullptr, nullptr); },
      real({2, 4, 3}))
      .reference([](const Array& x) {
        return batch_norm_reference(x, Array({x.dim(-1)}, 1), Array({x.dim(-1)}, 0), 1e-5);
      })
      .bench({{32, 64, 128}});
  row(
      "batch_norm/eval",
      []<class T>(const Tensor<T>& x, const Tensor<T>& w, const Tensor<T>& b) {
        Tensor<T> mean = channels<T>(x.shape().back(), -0.5, 0.25),
                  var = channels<T>(x.shape().back(), 0.5, 0.5);
        return batch_norm(x, w, b, mean, var, {.training = false, .eps = 1e-3});
      },
      real({5, 4}), real({4}), real({4}))
      .reference([](const Array& x, const Array& w, const Array& b) {
        Array y(x.shape);
        const Index c = x.dim(-1);
        for (Index k = 0; k < y.size(); ++k) {
          const double i = static_cast<double>(k % c % 5);
          y[k] = (x[k] - (-0.5 + 0.25 * i)) / std::sqrt(0.5 + 0.5 * i + 1e-3) * w[k % c] + b[k % c];
        }
        return y;
      })
      .sizes(
          [](Index n) {
            return Shapes{{3, n}, {n}, {n}};
          },
          0)
      .bench({{64, 128}, {128}, {128}});
});

const Rows layer_norm_rows([] {
  const auto reference = [](const Array& x, const Array& w, const Array& b) {
    return layer_norm_reference(x, w, b, 1e-5);
  };
  row(
      "layer_norm",
      [](const auto& x, const auto& w, const auto& b) { return layer_norm(x, w.shape(), w, b); },
      real({3, 5}), real({5}), real({5}))
      .reference(reference)
      // Two elements: the gradient is nearly 0, and what is left of it is lost in floats.
      .sizes(
          [](Index n) {
            return Shapes{{3, n}, {n}, {n}};
          },
          0)
      .point({Array({1, 3}, {7, 7, 7}), Array({3}, {2, 3, 4}), Array({3}, {0.5, 1, 2})},
             Array({1, 3}, {0.5, 1, 2}), {std::nullopt, Array({3}, {0, 0, 0}), Array({3}, {1, 1, 1})})
      .fault<wengert::ShapeError>(
          {{2, 3}, {4}, {4}},
          "layer_norm: normalized shape differs from the last axes of x; x is (2, 3), "
          "normalized shape is (4); expected x.shape() to end in it")
      .fault<wengert::ShapeError>({{3}, {2, 3}, {2, 3}},
                                  "layer_norm: normalized shape differs from the last axes of x; x is (3), "
                                  "normalized shape is (2, 3); expected x.shape() to end in it")
      .fault<wengert::ShapeError>({{2, 3}, {3}, {2}},
                                  "layer_norm: bias does not fit; x is (2, 3), bias is (2); expected (3)")
      .fault<wengert::ShapeError>(
          {{2, 3}, {}, {}},
          "layer_norm: normalized shape has no axes; x is (2, 3); expected at least the "
          "last axis of x")
      .bench({{4096, 512}, {512}, {512}});
  row(
      "layer_norm/two_axes",
      [](const auto& x, const auto& w, const auto& b) { return layer_norm(x, w.shape(), w, b); },
      real({3, 2, 5}), real({2, 5}), real({2, 5}))
      .reference(reference)
      .bench({{512, 8, 64}, {8, 64}, {8, 64}});
  row(
      "layer_norm/plain", [](const auto& x) { return layer_norm(x, Shape{x.shape().back()}, {.eps = 1e-2}); },
      real({2, 2, 5}))
      .reference([](const Array& x) {
        return layer_norm_reference(x, Array({x.dim(-1)}, 1), Array({x.dim(-1)}, 0), 1e-2);
      })
      .resizable(0)
      .bench({{1024, 128}});
});

// The generator's words, by its own scalar formula.
bool dropped(std::uint64_t seed, Index i, double p) {
  const std::uint64_t block = static_cast<std::uint64_t>(i / 64 * 16 + i % 16);
  const auto w =
      wengert::philox({static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32), 0, 0},
                      {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
  return w[static_cast<std::size_t>(i % 64 / 16)] * 0x1p-32 < p;
}

const Rows dropout_rows([] {
  constexpr std::uint64_t seed = 0x123456789ABCDEF;
  row(
      "dropout",
      [](const auto& x) {
        wengert::Generator generator(seed);
        return dropout(x, 0.25, generator);
      },
      real({5, 31}))
      .reference([](const Array& x) {
        Array y(x.shape);
        for (Index k = 0; k < y.size(); ++k) y[k] = dropped(seed, k, 0.25) ? 0 : x[k] / 0.75;
        return y;
      })
      .resizable(0)
      .bench({{1024, 1024}});
});

}  // namespace
}  // namespace cases
