// Rows of the test suite's own operators: they prove that the harness works where the library has no part in
// it.
#include "cases/case.hpp"
#include "support/toy.hpp"

namespace cases {
namespace {

const Rows toy_rows([] {
  row(
      "toy_mul", [](const auto& a, const auto& b) { return toy::mul(a, b); }, real({3, 4}), real({3, 4}))
      .reference(elementwise([](double a, double b) { return a * b; }))
      .resizable(0)
      .at({2, 3}, 6, {3, 2})
      .fault<wengert::ShapeError>({{3, 4}, {3}},
                                  "toy_mul: shapes differ; a is (3, 4), b is (3); expected equal shapes")
      .bench({{64, 64}, {64, 64}});
  row(
      "toy_rows", [](const auto& x, const auto& i) { return toy::rows(x, i); }, real({5, 3}), indices({4}, 5))
      .reference([](const Array& x, const Array& i) {
        Array y({i.size(), x.dim(1)});
        for (Index r = 0; r < i.size(); ++r)
          for (Index c = 0; c < x.dim(1); ++c) y({r, c}) = x({static_cast<Index>(i[r]), c});
        return y;
      })
      .sizes([](Index n) {
        return Shapes{{5, n}, {4}};
      })
      .bench({{200, 64}, {100}});
});

}  // namespace
}  // namespace cases
