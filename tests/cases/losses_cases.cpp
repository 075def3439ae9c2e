// Rows of the losses.
#include <cmath>
#include <limits>

#include <wengert/ops/losses.hpp>

#include "cases/case.hpp"

namespace cases {
namespace {

using wengert::Reduction;
using wengert::ShapeError;

constexpr double inf = std::numeric_limits<double>::infinity();

// How a reference joins losses: `total` is the divisor of a mean.
Array join(const Array& losses, Reduction how, double total) {
  if (how == Reduction::none) return losses;
  double s = 0;
  for (const double l : losses.v) s += l;
  if (how == Reduction::mean) s = total == 0 ? 0 : s / total;
  return Array(Shape(), {s});
}

Shape without_last(Shape s) {
  s.erase(s.rank() - 1);
  return s;
}

// Losses of the definition, one log-softmax at a time. `w` may be empty.
struct CrossEntropy {
  double smoothing = 0;
  double ignored = -100;
  Reduction how = Reduction::mean;
  std::vector<double> w = {};

  double weight(Index c) const { return w.empty() ? 1 : w[static_cast<std::size_t>(c)]; }
  static double log_p(const Array& x, Index row, Index c) {
    double s = 0;
    for (Index k = 0; k < x.dim(-1); ++k) s += std::exp(x[row * x.dim(-1) + k]);
    return x[row * x.dim(-1) + c] - std::log(s);
  }
  Array of_classes(const Array& x, const Array& t) const {
    Array l(t.shape);
    double total = 0;
    const double classes = static_cast<double>(x.dim(-1));
    for (Index r = 0; r < t.size(); ++r) {
      if (t[r] == ignored) continue;
      const Index target = static_cast<Index>(t[r]);
      total += weight(target);
      l[r] = -(1 - smoothing) * weight(target) * log_p(x, r, target);
      if (smoothing > 0)
        for (Index c = 0; c < x.dim(-1); ++c) l[r] -= smoothing / classes * weight(c) * log_p(x, r, c);
    }
    return join(l, how, total);
  }
  Array of_probabilities(const Array& x, const Array& t) const {
    Array l(without_last(x.shape));
    const double classes = static_cast<double>(x.dim(-1));
    for (Index r = 0; r < l.size(); ++r)
      for (Index c = 0; c < x.dim(-1); ++c) {
        const double q = (1 - smoothing) * t[r * x.dim(-1) + c] + smoothing / classes;
        l[r] -= weight(c) * q * log_p(x, r, c);
      }
    return join(l, how, static_cast<double>(l.size()));
  }
};

auto rows_of_classes(Index targets) {
  return [=](Index n) { return Shapes{{targets, n}, {targets}}; };
}

// Class weights of either element type.
template <class T>
Tensor<T> weights(const Tensor<T>& x) {
  Tensor<T> w({x.dim(-1)});
  for (Index c = 0; c < w.size(); ++c) w.fresh_data()[c] = T(1) + T(c) / T(4);
  return w;
}
std::vector<double> weights(Index classes) {
  std::vector<double> w;
  for (Index c = 0; c < classes; ++c) w.push_back(1 + static_cast<double>(c) / 4);
  return w;
}

const double p = 1 / (1 + std::exp(-1.0));

const Rows cross_entropy_rows([] {
  row(
      "cross_entropy", [](const auto& x, const auto& t) { return cross_entropy(x, t); }, real({6, 4}),
      indices({6}, 4))
      .reference([](const Array& x, const Array& t) { return CrossEntropy{}.of_classes(x, t); })
      .sizes(rows_of_classes(6), 4)
      .point({Array({2, 2}, {inf, 1, -inf, -inf}), Array({2}, -100)}, Array(Shape(), {0}), {Array({2, 2}, 0)})
      .fault<ShapeError>(
          {{3, 4}, {4}},
          "cross_entropy: shapes do not fit; x is (3, 4), targets are (4); expected targets of "
          "(3): one class for each row of x, classes last")
      .fault<ShapeError>({{}, {}},
                         "cross_entropy: x has no class axis; x is (); expected rank 1 or more, "
                         "classes last")
      .bench({{128, 1000}, {128}});
  row(
      "cross_entropy/none",
      [](const auto& x, const auto& t) { return cross_entropy(x, t, {.reduction = Reduction::none}); },
      real({2, 3, 5}), indices({2, 3}, 5))
      .reference([](const Array& x, const Array& t) {
        return CrossEntropy{.how = Reduction::none}.of_classes(x, t);
      })
      // A row of -inf, huge logits, a masked class, equal logits.
      .point({Array({4, 2}, {-inf, -inf, 1e4, 1e4 + 1, -inf, 5, 0, 0}), Array({4}, {0, 1, 1, 0})},
             Array({4}, {inf, -std::log(p), 0, std::log(2.0)}),
             {Array({4, 2}, {0, 0, 1 - p, p - 1, 0, 0, -0.5, 0.5})})
      .bench({{16, 16, 300}, {16, 16}});
  row(
      "cross_entropy/sum",
      [](const auto& x, const auto& t) {
        return cross_entropy(x, t, {.ignore_index = 1, .reduction = Reduction::sum});
      },
      real({6, 4}), indices({6}, 4).values({0, 1, 2, 3, 1, 2}))
      .reference([](const Array& x, const Array& t) {
        return CrossEntropy{.ignored = 1, .how = Reduction::sum}.of_classes(x, t);
      })
      .sizes(rows_of_classes(6), 4)
      .bench({{6, 1000}, {6}});
  row(
      "cross_entropy/smooth",
      [](const auto& x, const auto& t) { return cross_entropy(x, t, {.label_smoothing = 0.3}); },
      real({6, 4}), indices({6}, 4).values({0, -100, 2, 3, 1, 2}))
      .reference(
          [](const Array& x, const Array& t) { return CrossEntropy{.smoothing = 0.3}.of_classes(x, t); })
      .sizes(rows_of_classes(6), 4)
      .bench({{6, 1000}, {6}});
  row(
      "cross_entropy/weighted",
      [](const auto& x, const auto& t) {
        return cross_entropy(x, t, {.weight = weights(x), .label_smoothing = 0.3});
      },
      real({6, 4}), indices({6}, 4).values({0, -100, 2, 3, 1, 2}))
      .reference([](const Array& x, const Array& t) {
        return CrossEntropy{.smoothing = 0.3, .w = weights(x.dim(-1))}.of_classes(x, t);
      })
      .sizes(rows_of_classes(6), 4)
      .bench({{6, 1000}, {6}});
  row(
      "cross_entropy/probabilities", [](const auto& x, const auto& t) { return cross_entropy(x, t); },
      real({4, 5}), real({4, 5}, 0.1, 1))
      .reference([](const Array& x, const Array& t) { return CrossEntropy{}.of_probabilities(x, t); })
      .resizable()
      .bench({{128, 1000}, {128, 1000}});
  row(
      "cross_entropy/weighted probabilities",
      [](const auto& x, const auto& t) {
        return cross_entropy(x, t,
                             {.weight = weights(x), .label_smoothing = 0.3, .reduction = Reduction::none});
      },
      real({2, 3, 5}), real({2, 3, 5}, 0.1, 1))
      .reference([](const Array& x, const Array& t) {
        return CrossEntropy{.smoothing = 0.3, .how = Reduction::none, .w = weights(x.dim(-1))}
            .of_probabilities(x, t);
      })
      .resizable()
      .bench({{8, 16, 100}, {8, 16, 100}});
  row(
      "nll_loss", [](const auto& x, const auto& t) { return nll_loss(x, t); }, real({6, 4}),
      indices({6}, 4).values({0, -100, 2, 3, 1, 2}))
      .reference([](const Array& x, const Array& t) {
        double s = 0;
        for (const Index r : {0, 2, 3, 4, 5}) s -= x({r, static_cast<Index>(t[r])});
        return Array(Shape(), {s / 5});
      })
      .sizes(rows_of_classes(6), 4)
      .point({Array({2, 2}, {inf, 1, -inf, -inf}), Array({2}, -100)}, Array(Shape(), {0}), {Array({2, 2}, 0)})
      .bench({{128, 1000}, {128}})
      .fault<ShapeError>(
          {{3, 4}, {3, 4}},
          "nll_loss: shapes do not fit; x is (3, 4), targets are (3, 4); expected targets of (3): "
          "one class for each row of x, classes last");
  row(
      "nll_loss/weighted",
      [](const auto& x, const auto& t) {
        return nll_loss(x, t, {.weight = weights(x), .reduction = Reduction::none});
      },
      real({6, 4}), indices({6}, 4).values({0, -100, 2, 3, 1, 2}))
      .reference([](const Array& x, const Array& t) {
        Array y({6});
        for (const Index r : {0, 2, 3, 4, 5}) y[r] = -(1 + t[r] / 4) * x({r, static_cast<Index>(t[r])});
        return y;
      })
      .bench({{6, 1000}, {6}});
});

double softplus(double x) { return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); }

// Binary cross-entropy by its definition; p and w broadcast.
Array bce(const Array& x, const Array& t, const Array& w, const Array& p, Reduction how) {
  Array l(x.shape);
  for (Index k = 0; k < x.size(); ++k) {
    const Shape at = x.index(k);
    l[k] = w.stretched(at) * (p.stretched(at) * t[k] * softplus(-x[k]) + (1 - t[k]) * softplus(x[k]));
  }
  return join(l, how, static_cast<double>(x.size()));
}
const Array one(Shape(), {1});

const Rows elementwise_losses([] {
  row(
      "bce_with_logits", [](const auto& x, const auto& t) { return bce_with_logits(x, t); },
      real({3, 5}, -4, 4), real({3, 5}, 0, 1))
      .reference([](const Array& x, const Array& t) { return bce(x, t, one, one, Reduction::mean); })
      .resizable()
      .fault<ShapeError>(
          {{3, 4}, {3, 1}},
          "bce_with_logits: shapes differ; x is (3, 4), targets are (3, 1); expected equal shapes")
      .bench({{1024, 1024}, {1024, 1024}});
  row(
      "bce_with_logits/weighted",
      [](const auto& x, const auto& t, const auto& w, const auto& p) {
        return bce_with_logits(x, t, {.weight = w, .pos_weight = p, .reduction = Reduction::none});
      },
      real({3, 5}, -4, 4), real({3, 5}, 0, 1), real({3, 1}, 0.5, 2).constant(), real({5}, 0.5, 3).constant())
      .reference([](const Array& x, const Array& t, const Array& w, const Array& p) {
        return bce(x, t, w, p, Reduction::none);
      })
      .bench({{300, 200}, {300, 200}, {300, 1}, {200}})
      .fault<ShapeError>({{3, 4}, {3, 4}, {2}, {4}},
                         "bce_with_logits: weight does not broadcast to x; x is (3, 4), weight is (2); "
                         "expected dimensions of x or 1, aligned at the back")
      .fault<ShapeError>({{3, 4}, {3, 4}, {1}, {2, 3, 4}},
                         "bce_with_logits: pos_weight does not broadcast to x; x is (3, 4), pos_weight is "
                         "(2, 3, 4); expected dimensions of x or 1, aligned at the back");
  const auto each = [](const auto& x, const auto& t) {
    return bce_with_logits(x, t, {.reduction = Reduction::none});
  };
  row("bce_with_logits/none", each, real({3, 5}), real({3, 5}, 0, 1))
      .reference([](const Array& x, const Array& t) { return bce(x, t, one, one, Reduction::none); })
      .resizable(0)
      .bench({{300, 200}, {300, 200}})
      .at({200, 1}, 0, {0})
      .at({200, 0}, 200, {1})
      .at({-200, 1}, 200, {-1})
      .at({-200, 0}, 0, {0})
      .at({0, 0.5}, std::log(2.0), {0, 0})
      .at({-20, 0}, std::log1p(std::exp(-20.0)), {1 / (1 + std::exp(20.0))});
  row(
      "mse_loss", [](const auto& x, const auto& t) { return mse_loss(x, t); }, real({3, 5}), real({3, 5}))
      .reference([](const Array& x, const Array& t) {
        double s = 0;
        for (Index k = 0; k < x.size(); ++k) s += (x[k] - t[k]) * (x[k] - t[k]);
        return Array(Shape(), {s / static_cast<double>(x.size())});
      })
      .resizable()
      .fault<ShapeError>({{3, 4}, {4}},
                         "mse_loss: shapes differ; x is (3, 4), targets are (4); expected equal shapes")
      .bench({{1024, 1024}, {1024, 1024}});
  row(
      "mse_loss/none",
      [](const auto& x, const auto& t) { return mse_loss(x, t, {.reduction = Reduction::none}); },
      real({3, 5}), real({3, 5}))
      .reference(elementwise([](double x, double t) { return (x - t) * (x - t); }))
      .resizable(0)
      .bench({{300, 200}, {300, 200}})
      .at({3, 1}, 4, {4, -4});
  row(
      "mse_loss/sum",
      [](const auto& x, const auto& t) { return mse_loss(x, t, {.reduction = Reduction::sum}); },
      real({3, 5}), real({3, 5}))
      .reference([](const Array& x, const Array& t) {
        double s = 0;
        for (Index k = 0; k < x.size(); ++k) s += (x[k] - t[k]) * (x[k] - t[k]);
        return Array(Shape(), {s});
      })
      .resizable(0)
      .bench({{300, 200}, {300, 200}});
});

}  // namespace
}  // namespace cases
