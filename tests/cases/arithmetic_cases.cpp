// Rows of + - * /, choices and map.
#include <limits>

#include <wengert/ops/activation.hpp>
#include <wengert/ops/select.hpp>

#include "cases/case.hpp"

namespace cases {
namespace {

using wengert::ShapeError;
using wengert::ValueError;

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

std::string no_broadcast(const std::string& op, const std::string& others = "") {
  return op + ": shapes do not broadcast; a is (3, 4), b is (3)" + others +
         "; expected equal dimensions or 1, aligned at the back";
}

const Rows arithmetic([] {
  row(
      "add", [](const auto& a, const auto& b) { return a + b; }, real({3, 4}), real({3, 4}))
      .reference(elementwise([](double a, double b) { return a + b; }))
      .resizable(0)
      .at({2, 3}, 5, {1, 1})
      .at({inf, -inf}, nan, {1, 1})
      .fault<ShapeError>({{3, 4}, {3}}, no_broadcast("add"))
      .bench({{512, 1024}, {512, 1024}});
  row(
      "add/row", [](const auto& a, const auto& b) { return a + b; }, real({5, 4}), real({4}))
      .reference(elementwise([](double a, double b) { return a + b; }))
      .resizable()
      .bench({{512, 1024}, {1024}});
  row(
      "add/column", [](const auto& a, const auto& b) { return a + b; }, real({3, 4}), real({3, 1}))
      .reference(elementwise([](double a, double b) { return a + b; }))
      .resizable()
      .bench({{512, 1024}, {512, 1}});
  row(
      "sub", [](const auto& a, const auto& b) { return a - b; }, real({3, 4}), real({3, 4}))
      .reference(elementwise([](double a, double b) { return a - b; }))
      .resizable(0)
      .at({2, 3}, -1, {1, -1})
      .fault<ShapeError>({{3, 4}, {3}}, no_broadcast("sub"))
      .bench({{512, 1024}, {512, 1024}});
  row(
      "mul", [](const auto& a, const auto& b) { return a * b; }, real({3, 4}), real({3, 4}))
      .reference(elementwise([](double a, double b) { return a * b; }))
      .resizable(0)
      .at({2, 3}, 6, {3, 2})
      .at({inf, 2}, inf, {2, inf})
      .fault<ShapeError>({{3, 4}, {3}}, no_broadcast("mul"))
      .bench({{512, 1024}, {512, 1024}});
  row(
      "mul/both_stretched", [](const auto& a, const auto& b) { return a * b; }, real({2, 3, 1}),
      real({2, 1, 5}))
      .reference(elementwise([](double a, double b) { return a * b; }))
      .sizes([](Index n) {
        return Shapes{{2, 3, 1}, {2, 1, n}};
      })
      .fault<ShapeError>(
          {{2, 3, 1}, {3, 2, 5}},
          "mul: shapes do not broadcast; a is (2, 3, 1), b is (3, 2, 5); expected equal dimensions "
          "or 1, aligned at the back")
      .bench({{16, 32, 1}, {16, 1, 1024}});
  row(
      "mul/middle", [](const auto& a, const auto& b) { return a * b; }, real({3, 2, 4}), real({3, 1, 4}))
      .reference(elementwise([](double a, double b) { return a * b; }))
      .resizable()
      .bench({{32, 64, 256}, {32, 1, 256}});
  row(
      "div", [](const auto& a, const auto& b) { return a / b; }, real({3, 4}), real({3, 4}, 0.5, 2))
      .reference(elementwise([](double a, double b) { return a / b; }))
      .resizable()
      .at({6, 3}, 2, {1.0 / 3, -2.0 / 3})
      .at({1, 0}, inf, {inf, -inf})
      .fault<ShapeError>({{3, 4}, {3}}, no_broadcast("div"))
      .bench({{512, 1024}, {512, 1024}});
  row(
      "neg", [](const auto& x) { return -x; }, real({3, 4}))
      .reference(elementwise([](double x) { return -x; }))
      .resizable(0)
      .at({2}, -2, {-1})
      .bench({{512, 1024}});
  row(
      "add/number", [](const auto& x) { return 2 + (x + 1.5) - 3; }, real({3, 4}))
      .reference(elementwise([](double x) { return x + 0.5; }))
      .resizable(0)
      .bench({{512, 1024}});
  row(
      "sub/from_number", [](const auto& x) { return 2 - x; }, real({3, 4}))
      .reference(elementwise([](double x) { return 2 - x; }))
      .resizable(0)
      .bench({{512, 1024}});
  row(
      "mul/number", [](const auto& x) { return 3 * x * 0.5; }, real({3, 4}))
      .reference(elementwise([](double x) { return 1.5 * x; }))
      .resizable(0)
      .bench({{512, 1024}});
  row(
      "div/number", [](const auto& x) { return x / 4; }, real({3, 4}))
      .reference(elementwise([](double x) { return x / 4; }))
      .resizable(0)
      .bench({{512, 1024}});
  row(
      "div/number_by", [](const auto& x) { return 3 / x; }, real({3, 4}, 0.5, 2))
      .reference(elementwise([](double x) { return 3 / x; }))
      .resizable()
      .at({2}, 1.5, {-0.75})
      .bench({{512, 1024}});
});

const Rows choices([] {
  row(
      "maximum", [](const auto& a, const auto& b) { return maximum(a, b); }, real({3, 4}).distinct(),
      real({3, 4}).distinct())
      .reference(elementwise([](double a, double b) { return a > b ? a : b; }))
      .resizable()
      .at({2, 3}, 3, {0, 1})
      .at({2, 2}, 2, {0.5, 0.5})
      .at({nan, 1}, nan)
      .at({1, nan}, nan)
      .fault<ShapeError>({{3, 4}, {3}}, no_broadcast("maximum"))
      .bench({{512, 1024}, {512, 1024}});
  row(
      "minimum", [](const auto& a, const auto& b) { return minimum(a, b); }, real({3, 4}).distinct(),
      real({3, 4}).distinct())
      .reference(elementwise([](double a, double b) { return a < b ? a : b; }))
      .resizable()
      .at({2, 3}, 2, {1, 0})
      .at({2, 2}, 2, {0.5, 0.5})
      .at({nan, 1}, nan)
      .fault<ShapeError>({{3, 4}, {3}}, no_broadcast("minimum"))
      .bench({{512, 1024}, {512, 1024}});
  row(
      "clamp", [](const auto& x) { return clamp(x, -1, 0.5); }, real({3, 4}).away_from({-1, 0.5}))
      .reference(elementwise([](double x) { return x < -1    ? -1
                                                   : x > 0.5 ? 0.5
                                                             : x; }))
      .resizable(0)
      .at({-1}, -1, {1})
      .at({0.5}, 0.5, {1})
      .at({2}, 0.5, {0})
      .at({nan}, nan, {0})
      .bench({{512, 1024}});
  row(
      "where", [](const auto& m, const auto& a, const auto& b) { return where(m, a, b); }, mask({3, 4}),
      real({3, 4}), real({3, 4}))
      .reference(elementwise([](double m, double a, double b) { return m != 0 ? a : b; }))
      .resizable(0)
      .bench({{512, 1024}, {512, 1024}, {512, 1024}});
  row(
      "where/stretched", [](const auto& m, const auto& a, const auto& b) { return where(m, a, b); },
      mask({3, 1}), real({4}), real({3, 4}))
      .reference(elementwise([](double m, double a, double b) { return m != 0 ? a : b; }))
      .resizable()
      .bench({{512, 1}, {1024}, {512, 1024}});
  // The branch that is not taken has an infinite slope, and must contribute nothing.
  row(
      "where/pole", [](const auto& x) { return where(x > 0, log(x), 0); }, real({3, 4}, 0.1, 2))
      .reference(elementwise([](double x) { return x > 0 ? std::log(x) : 0; }))
      .resizable()
      .at({0}, 0, {0})
      .at({-1}, 0, {0})
      .at({2}, std::log(2), {0.5})
      .bench({{512, 1024}});
  row(
      "masked_fill", [](const auto& x, const auto& m) { return masked_fill(x, m, -7); }, real({3, 4}),
      mask({3, 4}))
      .reference(elementwise([](double x, double m) { return m != 0 ? -7 : x; }))
      .resizable(0)
      .bench({{512, 1024}, {512, 1024}});
  row(
      "less", [](const auto& a, const auto& b) { return a < b; }, real({3, 4}), real({4}))
      .reference(elementwise([](double a, double b) { return a < b ? 1.0 : 0.0; }))
      .resizable()
      .at({2, 2}, 0)
      .at({nan, 2}, 0)
      .fault<ShapeError>({{3, 4}, {3}}, no_broadcast("less"))
      .bench({{512, 1024}, {1024}});
  row(
      "less_equal", [](const auto& a, const auto& b) { return a <= b; }, real({3, 4}), real({4}))
      .reference(elementwise([](double a, double b) { return a <= b ? 1.0 : 0.0; }))
      .resizable()
      .at({2, 2}, 1)
      .at({nan, 2}, 0)
      .bench({{512, 1024}, {1024}});
  row(
      "greater", [](const auto& a, const auto& b) { return a > b; }, real({3, 4}), real({4}))
      .reference(elementwise([](double a, double b) { return a > b ? 1.0 : 0.0; }))
      .resizable()
      .at({3, 2}, 1)
      .at({nan, 2}, 0)
      .bench({{512, 1024}, {1024}});
  row(
      "greater_equal", [](const auto& x) { return x >= 0.5; }, real({3, 4}))
      .reference(elementwise([](double x) { return x >= 0.5 ? 1.0 : 0.0; }))
      .resizable(0)
      .at({0.5}, 1)
      .bench({{512, 1024}});
  row(
      "equal", [](const auto& x) { return x == 0.5; }, real({3, 4}))
      .reference(elementwise([](double x) { return x == 0.5 ? 1.0 : 0.0; }))
      .resizable(0)
      .at({0.5}, 1)
      .at({nan}, 0)
      .bench({{512, 1024}});
  row(
      "not_equal", [](const auto& a, const auto& b) { return a != b; }, real({3, 4}), real({3, 4}))
      .reference(elementwise([](double a, double b) { return a != b ? 1.0 : 0.0; }))
      .resizable(0)
      .at({2, 2}, 0)
      .at({nan, nan}, 1)
      .bench({{512, 1024}, {512, 1024}});
});

const Rows maps([] {
  row(
      "map/one", [](const auto& x) { return map([](auto v) { return v * sigmoid(1.5 * v) + 2; }, x); },
      real({3, 4}))
      .reference(elementwise([](double x) { return x / (1 + std::exp(-1.5 * x)) + 2; }))
      .resizable(0)
      .bench({{512, 1024}});
  row(
      "map/three",
      [](const auto& x, const auto& w, const auto& b) {
        return map([](auto xv, auto wv, auto bv) { return tanh(xv * wv + bv); }, x, w, b);
      },
      real({3, 4}), real({4}), real({3, 1}))
      .reference(elementwise([](double x, double w, double b) { return std::tanh(x * w + b); }))
      .resizable()
      .fault<ShapeError>({{3, 4}, {3}, {1}}, no_broadcast("map", ", c is (1)"))
      .bench({{512, 1024}, {1024}, {512, 1}});
  row(
      "map/four",
      [](const auto& a, const auto& b, const auto& c, const auto& d) {
        return map([](auto p, auto q, auto r, auto s) { return where(p > q, p * r, q) - max(r, s) / 4; }, a,
                   b, c, d);
      },
      real({3, 4}).distinct(), real({3, 4}).distinct(), real({3, 4}).distinct(), real({3, 4}).distinct())
      .reference(elementwise(
          [](double p, double q, double r, double s) { return (p > q ? p * r : q) - (r > s ? r : s) / 4; }))
      .resizable()
      .bench({{512, 1024}, {512, 1024}, {512, 1024}, {512, 1024}});
  row(
      "map/constant", [](const auto& x) { return map([](auto) { return 3; }, x); }, real({3, 4}))
      .reference(elementwise([](double) { return 3.0; }))
      .resizable(0)
      .bench({{512, 1024}});
});

}  // namespace
}  // namespace cases
