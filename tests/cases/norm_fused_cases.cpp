// Rows of the fused batch normalisations, of group_norm and of instance_norm. References are plain double
// loops.
#include <cmath>

#include <wengert/ops/arithmetic.hpp>
#include <wengert/ops/norm.hpp>

#include "cases/case.hpp"

namespace cases {
namespace {

using wengert::Index;

/// x normalised over the elements that share a key, times weight plus bias of its channel.
template <class Key>
Array normalised(const Array& x, const Array& w, const Array& b, double eps, Key key) {
  Array y(x.shape);
  const Index c = x.dim(-1);
  for (Index k = 0; k < x.size(); ++k) {
    double n = 0, mean = 0, var = 0;
    for (Index i = 0; i < x.size(); ++i)
      if (key(i) == key(k)) n += 1, mean += x[i];
    mean /= n;
    for (Index i = 0; i < x.size(); ++i)
      if (key(i) == key(k)) var += (x[i] - mean) * (x[i] - mean);
    y[k] = (x[k] - mean) / std::sqrt(var / n + eps) * w[k % c] + b[k % c];
  }
  return y;
}
Array by_channel(const Array& x, const Array& w, const Array& b, double eps) {
  return normalised(x, w, b, eps, [c = x.dim(-1)](Index k) { return k % c; });
}
Array by_group(const Array& x, const Array& w, const Array& b, Index groups, double eps) {
  const Index c = x.dim(-1), sample = x.dim(0) == 0 ? 1 : x.size() / x.dim(0);
  return normalised(x, w, b, eps, [=](Index k) { return k / sample * groups + k % c / (c / groups); });
}

Array relu_of(Array y) {
  for (Index k = 0; k < y.size(); ++k) y[k] = y[k] > 0 ? y[k] : 0;
  return y;
}
Array sum_of(Array y, const Array& r) {
  for (Index k = 0; k < y.size(); ++k) y[k] += r[k];
  return y;
}

Array ones(const Array& x) { return Array({x.dim(-1)}, 1); }
Array zeros(const Array& x) { return Array({x.dim(-1)}, 0); }

template <class T>
Tensor<T> every(Index n, double value) {
  Tensor<T> t(Shape{n});
  t.fill(static_cast<T>(value));
  return t;
}

const auto images = [](Index n) { return Shapes{{2, 2, 3, n}, {n}, {n}}; };
const auto images_and_residual = [](Index n) { return Shapes{{2, 2, 3, n}, {2, 2, 3, n}, {n}, {n}}; };
const Shapes large{{8, 28, 28, 64}, {64}, {64}}, large_residual{{8, 28, 28, 64}, {8, 28, 28, 64}, {64}, {64}};

const Rows batch_norm_relu_rows([] {
  row(
      "batch_norm_relu",
      [](const auto& x, const auto& w, const auto& b) {
        return batch_norm_relu(x, &w, &b, nullptr, nullptr);
      },
      real({2, 3, 2, 5}), real({5}), real({5}))
      .reference(
          [](const Array& x, const Array& w, const Array& b) { return relu_of(by_channel(x, w, b, 1e-5)); })
      .sizes(images, 0)
      // Normalised x is 0 and y is bias: 0 stops dy, 0.5 lets it through to bias alone.
      .point({Array({2, 2}, {3, 3, 3, 3}), Array({2}, {2, 2}), Array({2}, {0, 0.5})},
             Array({2, 2}, {0, 0.5, 0, 0.5}), {Array({2, 2}, 0), Array({2}, 0), Array({2}, {0, 2})})
      .fault<wengert::ShapeError>(
          {{4}, {4}, {4}}, "batch_norm_relu: rank is too low; x is (4); expected (batch, ..., channels)")
      .fault<wengert::ShapeError>(
          {{3, 4}, {3}, {4}},
          "batch_norm_relu: weight does not fit; x is (3, 4), weight is (3); expected (4)")
      .fault<wengert::ValueError>({{1, 1, 1, 4}, {4}, {4}},
                                  "batch_norm_relu: a single value per channel has no variance; x is (1, 1, "
                                  "1, 4); expected more than "
                                  "one value per channel when training")
      .bench(large);
  row(
      "batch_norm_relu/plain",
      [](const auto& x) { return batch_norm_relu(x, nullptr, nullptr, nullptr, nullptr); }, real({2, 4, 3}))
      .reference([](const Array& x) { return relu_of(by_channel(x, ones(x), zeros(x), 1e-5)); })
      .bench({{8, 28, 28, 64}});
  row(
      "batch_norm_relu/eval",
      []<class T>(const Tensor<T>& x, const Tensor<T>& w, const Tensor<T>& b) {
        Tensor<T> mean = every<T>(x.shape().back(), 0.25), var = every<T>(x.shape().back(), 0.5);
        return batch_norm_relu(x, w, b, mean, var, {.training = false, .eps = 0.5});
      },
      real({3, 1, 1, 4}), real({4}), real({4}))
      .reference([](const Array& x, const Array& w, const Array& b) {
        Array y(x.shape);
        const Index c = x.dim(-1);
        for (Index k = 0; k < y.size(); ++k) y[k] = (x[k] - 0.25) * w[k % c] + b[k % c];
        return relu_of(y);
      })
      .sizes(images, 0)
      .bench(large);
});

const Rows batch_norm_add_relu_rows([] {
  row(
      "batch_norm_add_relu",
      [](const auto& x, const auto& r, const auto& w, const auto& b) {
        return batch_norm_add_relu(x, r, &w, &b, nullptr, nullptr);
      },
      real({2, 3, 2, 5}), real({2, 3, 2, 5}), real({5}), real({5}))
      .reference([](const Array& x, const Array& r, const Array& w, const Array& b) {
        return relu_of(sum_of(by_channel(x, w, b, 1e-5), r));
      })
      .sizes(images_and_residual, 0)
      .point({Array({2, 2}, 3), Array({2, 2}, {0, 1, -2, 0}), Array({2}, 2), Array({2}, {0, 0.5})},
             Array({2, 2}, {0, 1.5, 0, 0.5}),
             {Array({2, 2}, 0), Array({2, 2}, {0, 1, 0, 1}), Array({2}, 0), Array({2}, {0, 2})})
      .fault<wengert::ShapeError>(
          {{2, 3, 4}, {3, 4}, {4}, {4}},
          "batch_norm_add_relu: residual does not fit; x is (2, 3, 4), residual is (3, "
          "4); expected (2, 3, 4)")
      .fault<wengert::ShapeError>(
          {{3, 4}, {3, 4}, {4}, {3}},
          "batch_norm_add_relu: bias does not fit; x is (3, 4), bias is (3); expected (4)")
      .bench(large_residual);
  row(
      "batch_norm_add_relu/itself",
      [](const auto& x, const auto& w, const auto& b) {
        return batch_norm_add_relu(x, x, &w, &b, nullptr, nullptr);
      },
      real({4, 3}), real({3}), real({3}))
      .reference([](const Array& x, const Array& w, const Array& b) {
        return relu_of(sum_of(by_channel(x, w, b, 1e-5), x));
      })
      .bench(large);
  row(
      "batch_norm_add_relu/constant_residual",
      [](const auto& x, const auto& r) {
        return batch_norm_add_relu(x, r, nullptr, nullptr, nullptr, nullptr);
      },
      real({4, 3}), real({4, 3}).constant())
      .reference([](const Array& x, const Array& r) {
        return relu_of(sum_of(by_channel(x, ones(x), zeros(x), 1e-5), r));
      })
      .bench({{8, 28, 28, 64}, {8, 28, 28, 64}});
  row(
      "batch_norm_add_relu/eval_residual",
      []<class T>(const Tensor<T>& x, const Tensor<T>& r) {
        Tensor<T> mean = every<T>(x.shape().back(), 0.25), var = every<T>(x.shape().back(), 0.5);
        return batch_norm_add_relu(x, r, nullptr, nullptr, &mean, &var, {.training = false, .eps = 0.5});
      },
      real({4, 3}).constant(), real({4, 3}))
      .reference([](const Array& x, const Array& r) {
        Array y(x.shape);
        for (Index k = 0; k < y.size(); ++k) y[k] = x[k] - 0.25 + r[k];
        return relu_of(y);
      })
      .bench({{8, 28, 28, 64}, {8, 28, 28, 64}});
  row(
      "batch_norm_add_relu/eval",
      []<class T>(const Tensor<T>& x, const Tensor<T>& r, const Tensor<T>& w, const Tensor<T>& b) {
        Tensor<T> mean = every<T>(x.shape().back(), 0.25), var = every<T>(x.shape().back(), 0.5);
        return batch_norm_add_relu(x, r, w, b, mean, var, {.training = false, .eps = 0.5});
      },
      real({3, 1, 1, 4}), real({3, 1, 1, 4}), real({4}), real({4}))
      .reference([](const Array& x, const Array& r, const Array& w, const Array& b) {
        Array y(x.shape);
        const Index c = x.dim(-1);
        for (Index k = 0; k < y.size(); ++k) y[k] = (x[k] - 0.25) * w[k % c] + b[k % c] + r[k];
        return relu_of(y);
      })
      .sizes(images_and_residual, 0)
      .bench(large_residual);
  row(
      "batch_norm_add_relu/twice",  // the residual already has a gradient when the first record's turn comes
      [](const auto& x, const auto& w, const auto& b) {
        const auto r = x * x;
        const auto first = batch_norm_add_relu(x, r, &w, &b, nullptr, nullptr);
        return batch_norm_add_relu(first, r, &w, &b, nullptr, nullptr);
      },
      real({2, 3, 3}), real({3}), real({3}))
      .reference([](const Array& x, const Array& w, const Array& b) {
        Array r = x;
        for (Index k = 0; k < r.size(); ++k) r[k] *= x[k];
        const Array first = relu_of(sum_of(by_channel(x, w, b, 1e-5), r));
        return relu_of(sum_of(by_channel(first, w, b, 1e-5), r));
      })
      .bench(large);
});

template <Index Groups>
const auto grouped = [](const auto& x, const auto& w, const auto& b) { return group_norm(x, Groups, w, b); };
template <Index Groups>
const auto grouped_reference =
    [](const Array& x, const Array& w, const Array& b) { return by_group(x, w, b, Groups, 1e-5); };

const Rows group_norm_rows([] {
  row("group_norm", grouped<2>, real({3, 2, 3, 6}), real({6}), real({6}))
      .reference(grouped_reference<2>)
      .sizes(
          [](Index n) {
            return Shapes{{2, 2, 3, 2 * n}, {2 * n}, {2 * n}};
          },
          0)
      .point({Array({1, 1, 4}, {7, 7, -2, -2}), Array({4}, {1, 2, 3, 4}), Array({4}, {0.5, 1, 2, 3})},
             Array({1, 1, 4}, {0.5, 1, 2, 3}), {std::nullopt, Array({4}, 0), Array({4}, 1)})
      .fault<wengert::ShapeError>({{4}, {4}, {4}},
                                  "group_norm: rank is too low; x is (4); expected (batch, ..., channels)")
      .fault<wengert::ShapeError>({{2, 5}, {5}, {5}},
                                  "group_norm: groups do not divide the channels; x is (2, 5), groups is 2; "
                                  "expected x.dim(-1) to be a "
                                  "multiple of groups")
      .fault<wengert::ShapeError>({{2, 4}, {2}, {4}},
                                  "group_norm: weight does not fit; x is (2, 4), weight is (2); expected (4)")
      .fault<wengert::ShapeError>({{2, 4}, {4}, {2, 2}},
                                  "group_norm: bias does not fit; x is (2, 4), bias is (2, 2); expected (4)")
      .bench(large);
  row("group_norm/one", grouped<1>, real({2, 3, 7}), real({7}), real({7}))
      .reference(grouped_reference<1>)
      .sizes(images, 0)
      .bench(large);
  row("group_norm/three", grouped<3>, real({2, 2, 2, 9}), real({9}), real({9}))
      .reference(grouped_reference<3>)
      .bench({{1, 56, 56, 96}, {96}, {96}});
  row("group_norm/flat", grouped<2>, real({5, 6}), real({6}), real({6}))
      .reference(grouped_reference<2>)
      .bench({{512, 64}, {64}, {64}});
  row(
      "group_norm/plain", [](const auto& x) { return group_norm(x, 2, {.eps = 1e-2}); }, real({2, 3, 4}))
      .reference([](const Array& x) { return by_group(x, ones(x), zeros(x), 2, 1e-2); })
      .bench({{8, 28, 28, 64}});
  row(
      "instance_norm", [](const auto& x, const auto& w, const auto& b) { return instance_norm(x, w, b); },
      real({2, 3, 2, 5}), real({5}), real({5}))
      .reference(
          [](const Array& x, const Array& w, const Array& b) { return by_group(x, w, b, x.dim(-1), 1e-5); })
      .sizes(images, 0)
      .fault<wengert::ShapeError>(
          {{2, 3}, {3}, {3}},
          "instance_norm: rank is too low; x is (2, 3); expected (batch, ..., channels) with an axis between")
      .fault<wengert::ShapeError>(
          {{2, 3, 4}, {3}, {4}},
          "instance_norm: weight does not fit; x is (2, 3, 4), weight is (3); expected (4)")
      .fault<wengert::ValueError>({{2, 1, 1, 4}, {4}, {4}},
                                  "instance_norm: a single value per channel has no variance; x is (2, 1, 1, "
                                  "4); expected more than one "
                                  "value per channel of a sample")
      .bench(large);
  row(
      "instance_norm/plain", [](const auto& x) { return instance_norm(x, {.eps = 1e-2}); }, real({2, 3, 4}))
      .reference([](const Array& x) { return by_group(x, ones(x), zeros(x), x.dim(-1), 1e-2); })
      .bench({{8, 28, 28, 64}});
});

}  // namespace
}  // namespace cases
