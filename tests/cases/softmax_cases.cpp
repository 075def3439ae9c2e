// Rows of softmax and log_softmax.
#include <cmath>
#include <limits>

#include <wengert/ops/softmax.hpp>

#include "cases/case.hpp"

namespace cases {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
const double nan = std::nan("");

using List = std::vector<double>;

List softmax_of(const List& x) {
  double s = 0;
  List y;
  for (const double v : x) s += std::exp(v);
  for (const double v : x) y.push_back(std::exp(v) / s);
  return y;
}
List log_softmax_of(const List& x) {
  List y = softmax_of(x);
  for (double& v : y) v = std::log(v);
  return y;
}

// What a row of -inf, infinities and huge numbers give, and the gradients for dy = (1, 0).
struct Extreme {
  List x, y, dx;
};

template <class F, class Reference>
void three_axes(const std::string& name, F f, Reference reference, const std::vector<Extreme>& extremes) {
  auto last = row(
      name + "/last", [f](const auto& x) { return f(x, -1); }, real({3, 7}));
  last.reference(along(-1, reference)).resizable(0).bench({{1024, 1024}});
  auto first = row(
      name + "/first", [f](const auto& x) { return f(x, 0); }, real({5, 7}));
  first.reference(along(0, reference)).resizable(0).bench({{256, 256}});
  row(
      name + "/middle", [f](const auto& x) { return f(x, 1); }, real({2, 5, 3}))
      .reference(along(1, reference))
      .sizes([](Index n) {
        return Shapes{{2, n, 3}};
      })
      .template fault<wengert::ShapeError>({{3}},
                                           name + ": axis 1 is out of range; rank is 1; expected -1..0")
      .bench({{64, 64, 64}});
  // All extremes at once, each a row beside the others: none may touch another.
  const Index n = static_cast<Index>(extremes.size());
  Array x({n, 2}), y({n, 2}), dx({n, 2}), dy({n, 2});
  Array across_x({2, n}), across_y({2, n}), across_dx({2, n}), across_dy({2, n});
  for (Index i = 0; i < n; ++i)
    for (Index j = 0; j < 2; ++j) {
      const Extreme& e = extremes[static_cast<std::size_t>(i)];
      const auto k = static_cast<std::size_t>(j);
      x({i, j}) = across_x({j, i}) = e.x[k];
      y({i, j}) = across_y({j, i}) = e.y[k];
      dx({i, j}) = across_dx({j, i}) = e.dx[k];
      dy({i, j}) = across_dy({j, i}) = j == 0;
    }
  last.point({x}, y, {dx}, dy);
  first.point({across_x}, across_y, {across_dx}, across_dy);
}

const double p = 1 / (1 + std::exp(-1.0)), h = std::log(2.0);

const Rows softmax_rows([] {
  three_axes("softmax", [](const auto& x, Index axis) { return softmax(x, axis); }, softmax_of,
             {{{-inf, -inf}, {0, 0}, {0, 0}},
              {{0, 0}, {0.5, 0.5}, {0.25, -0.25}},
              {{3e4, 3e4 - 1}, {p, 1 - p}, {p * (1 - p), -p * (1 - p)}},
              {{-inf, 4}, {0, 1}, {0, 0}},
              {{nan, 1}, {nan, nan}, {nan, nan}},
              {{inf, 1}, {nan, nan}, {nan, nan}}});
  three_axes("log_softmax", [](const auto& x, Index axis) { return log_softmax(x, axis); }, log_softmax_of,
             {{{-inf, -inf}, {-inf, -inf}, {0, 0}},
              {{0, 0}, {-h, -h}, {0.5, -0.5}},
              {{3e4, 3e4 - 1}, {std::log(p), std::log(p) - 1}, {1 - p, p - 1}},
              {{-inf, 4}, {-inf, 0}, {1, -1}},
              {{nan, 1}, {nan, nan}, {nan, nan}},
              {{inf, 1}, {nan, nan}, {nan, nan}}});
});

}  // namespace
}  // namespace cases
