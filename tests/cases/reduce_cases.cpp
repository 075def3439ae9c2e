// Rows of the reductions over axes, and of argmax and argmin.
#include <cmath>
#include <limits>

#include <wengert/ops/arg.hpp>
#include <wengert/ops/reduce.hpp>

#include "cases/case.hpp"

namespace cases {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
const double nan = std::nan("");

// A reference: f of the list of elements that one y comes from, in row-major order.
template <class F>
auto over(std::vector<int> axes, bool keepdim, F f) {
  return [=](const Array& x) {
    std::vector<bool> reduced(static_cast<std::size_t>(x.rank()), axes.empty());
    for (const int a : axes) reduced[static_cast<std::size_t>(a < 0 ? a + x.rank() : a)] = true;
    Shape kept, shape;
    for (int i = 0; i < x.rank(); ++i) {
      const bool r = reduced[static_cast<std::size_t>(i)];
      kept.push_back(r ? 1 : x.shape[i]);
      if (!r || keepdim) shape.push_back(r ? 1 : x.shape[i]);
    }
    std::vector<std::vector<double>> lists(static_cast<std::size_t>(kept.size()));
    const Array grid(kept);
    for (Index k = 0; k < x.size(); ++k) {
      Shape at = x.index(k);
      for (int i = 0; i < x.rank(); ++i)
        if (reduced[static_cast<std::size_t>(i)]) at[i] = 0;
      lists[static_cast<std::size_t>(grid.position(at))].push_back(x[k]);
    }
    Array y(shape);
    for (Index k = 0; k < y.size(); ++k) y[k] = f(lists[static_cast<std::size_t>(k)]);
    return y;
  };
}

using List = std::vector<double>;

double total(const List& v) {
  double s = 0;
  for (const double x : v) s += x;
  return s;
}
double average(const List& v) { return total(v) / static_cast<double>(v.size()); }
auto variance(double correction) {
  return [=](const List& v) {
    const double m = average(v);
    double s = 0;
    for (const double x : v) s += (x - m) * (x - m);
    return s / (static_cast<double>(v.size()) - correction);
  };
}
double deviation(const List& v) { return std::sqrt(variance(1)(v)); }
double log_sum_exp(const List& v) {
  double s = 0;
  for (const double x : v) s += std::exp(x);
  return std::log(s);
}
double largest(const List& v) { return *std::max_element(v.begin(), v.end()); }
double smallest(const List& v) { return *std::min_element(v.begin(), v.end()); }
double where_largest(const List& v) {
  return static_cast<double>(std::max_element(v.begin(), v.end()) - v.begin());
}
double where_smallest(const List& v) {
  return static_cast<double>(std::min_element(v.begin(), v.end()) - v.begin());
}

// Numbers to reduce, what they give, and their gradients for dy = 1; no gradients: not compared.
struct Extreme {
  List x;
  double y;
  List dx = {};
};

// `v` as each row of a matrix of `copies` rows, or as each column.
Array as_rows(const List& v, Index copies) {
  const Index n = static_cast<Index>(v.size());
  Array a({copies, n});
  for (Index k = 0; k < a.size(); ++k) a[k] = v[static_cast<std::size_t>(k % n)];
  return a;
}
Array as_columns(const List& v, Index copies) {
  const Index n = static_cast<Index>(v.size());
  Array a({n, copies});
  for (Index k = 0; k < a.size(); ++k) a[k] = v[static_cast<std::size_t>(k / copies)];
  return a;
}

// Each way the kernels see a reduction: all axes; the last (rows without gaps); the first (columns); a middle
// one; axes that alternate with kept ones. Extremes are tried by row and in vector bodies and tails by
// column.
template <class F, class Reference>
void five_rows(const std::string& name, F f, Reference reference, const std::vector<Extreme>& extremes) {
  using wengert::Axes;
  auto all = row(
      name + "/all", [f](const auto& x) { return f(x, Axes::all(), false); }, real({4, 9}).distinct());
  all.reference(over({}, false, reference)).resizable(2).bench({{1024, 1024}});
  auto last = row(
      name + "/last", [f](const auto& x) { return f(x, -1, true); }, real({3, 7}).distinct());
  last.reference(over({-1}, true, reference)).resizable(2).bench({{1024, 1024}});
  auto first = row(
      name + "/first", [f](const auto& x) { return f(x, 0, false); }, real({5, 7}).distinct());
  first.reference(over({0}, false, reference)).resizable().bench({{1024, 1024}});
  row(
      name + "/middle", [f](const auto& x) { return f(x, 1, false); }, real({2, 5, 3}).distinct())
      .reference(over({1}, false, reference))
      .sizes(
          [](Index n) {
            return Shapes{{2, n, 3}};
          },
          2)
      .bench({{64, 256, 64}});
  row(
      name + "/alternating",
      [f](const auto& x) {
        return f(x, {-1, 1}, true);
      },
      real({2, 3, 4, 5}).distinct())
      .reference(over({1, 3}, true, reference))
      .resizable(2)
      .bench({{16, 32, 32, 64}});
  for (const Extreme& e : extremes) {
    using Gradient = std::vector<std::optional<Array>>;
    const bool g = !e.dx.empty();
    all.point({as_rows(e.x, 1)}, Array(Shape(), {e.y}), g ? Gradient{as_rows(e.dx, 1)} : Gradient{});
    last.point({as_rows(e.x, 3)}, Array({3, 1}, e.y), g ? Gradient{as_rows(e.dx, 3)} : Gradient{});
    first.point({as_columns(e.x, 37)}, Array({37}, e.y), g ? Gradient{as_columns(e.dx, 37)} : Gradient{});
  }
}

const Rows reduce_rows([] {
  using wengert::Axes;
  five_rows("sum", [](const auto& x, const Axes& a, bool keep) { return sum(x, a, keep); }, total,
            {{{inf, 1}, inf, {1, 1}}, {{nan, 1}, nan, {1, 1}}, {{inf, -inf}, nan, {1, 1}}});
  five_rows("mean", [](const auto& x, const Axes& a, bool keep) { return mean(x, a, keep); }, average,
            {{{7}, 7, {1}}, {{1, inf}, inf, {0.5, 0.5}}});
  five_rows("logsumexp", [](const auto& x, const Axes& a, bool keep) { return logsumexp(x, a, keep); },
            log_sum_exp,
            {{{1000, 1000}, 1000 + std::log(2.0), {0.5, 0.5}},
             {{-1000, -1000}, -1000 + std::log(2.0), {0.5, 0.5}},
             {{-inf, -inf, -inf}, -inf, {0, 0, 0}},
             {{-inf, 2, -inf}, 2, {0, 1, 0}},
             {{1, inf}, inf},
             {{1, nan}, nan, {nan, nan}}});
  const std::vector<Extreme> of_var = {{{7}, nan}, {{7, 7, 7}, 0, {0, 0, 0}}, {{1, nan}, nan, {nan, nan}}};
  five_rows(
      "var", [](const auto& x, const Axes& a, bool keep) { return var(x, a, {.keepdim = keep}); },
      variance(1), of_var);
  five_rows(
      "std", [](const auto& x, const Axes& a, bool keep) { return wengert::std(x, a, {.keepdim = keep}); },
      deviation, of_var);
  five_rows("max", [](const auto& x, const Axes& a, bool keep) { return max(x, a, keep); }, largest,
            {{{1, 3, 3, 2, 3}, 3, {0, 1, 0, 0, 0}},
             {{1, nan, 3, nan}, nan, {0, 1, 0, 0}},
             {{-inf, -inf}, -inf, {1, 0}}});
  five_rows("min", [](const auto& x, const Axes& a, bool keep) { return min(x, a, keep); }, smallest,
            {{{4, 2, 2}, 2, {0, 1, 0}}, {{-inf, 2, nan}, nan, {0, 0, 1}}, {{inf, inf}, inf, {1, 0}}});

  row(
      "var/biased", [](const auto& x) { return var(x, 0, {.correction = 0}); }, real({5, 6}))
      .reference(over({0}, false, variance(0)))
      .resizable()
      .bench({{100, 64}});
  row(
      "sum/mask", [](const auto& m) { return sum(m, 1); }, mask({3, 40}))
      .reference(over({1}, false, total))
      .bench({{1000, 100}});
  row(
      "max/whole", [](const auto& i) { return wengert::max(i, 1); }, indices({3, 40}, 1000))
      .reference(over({1}, false, largest))
      .bench({{1000, 100}});
});

const Rows arg_rows([] {
  row(
      "argmax/all", [](const auto& x) { return argmax(x); }, real({4, 9}).distinct())
      .reference(over({}, false, where_largest))
      .resizable()
      .point({Array({6}, {1, 3, nan, 3, nan, 5})}, Array(Shape(), {2}))
      .bench({{300, 300}});
  row(
      "argmax/last", [](const auto& x) { return argmax(x, -1, true); }, real({3, 7}).distinct())
      .reference(over({-1}, true, where_largest))
      .resizable()
      .point({as_rows({1, 3, 2, 3}, 3)}, Array({3, 1}, 1))
      .bench({{200, 700}});
  row(
      "argmax/first", [](const auto& x) { return argmax(x, 0); }, real({5, 7}).distinct())
      .reference(over({0}, false, where_largest))
      .resizable()
      .point({as_columns({1, 3, 2, 3}, 37)}, Array({37}, 1))
      .point({as_columns({1, nan, inf, nan}, 37)}, Array({37}, 1))
      .bench({{1300, 200}});
  row(
      "argmax/whole", [](const auto& i) { return argmax(i, 1); }, indices({3, 40, 2}, 1000))
      .reference(over({1}, false, where_largest))
      .bench({{3, 400, 20}});
  row(
      "argmin/middle", [](const auto& x) { return argmin(x, 1); }, real({2, 5, 3}).distinct())
      .reference(over({1}, false, where_smallest))
      .sizes([](Index n) {
        return Shapes{{2, n, 3}};
      })
      .bench({{20, 50, 30}});
});

}  // namespace
}  // namespace cases
