// Rows of concat and stack.
#include <wengert/ops/join.hpp>

#include "cases/case.hpp"

namespace cases {
namespace {

using wengert::ShapeError;

Array joined(std::initializer_list<const Array*> xs, int axis) {
  Shape shape = (*xs.begin())->shape;
  shape[axis] = 0;
  for (const Array* x : xs) shape[axis] += x->dim(axis);
  Array y(shape);
  Index begin = 0;
  for (const Array* x : xs) {
    for (Index k = 0; k < x->size(); ++k) {
      Shape at = x->index(k);
      at[axis] += begin;
      y(at) = (*x)[k];
    }
    begin += x->dim(axis);
  }
  return y;
}

const Rows join_rows([] {
  row(
      "concat/axis0",
      [](const auto& a, const auto& b) {
        return wengert::concat({a, b});
      },
      real({2, 4}), real({3, 4}))
      .reference([](const Array& a, const Array& b) {
        return joined({&a, &b}, 0);
      })
      .resizable(0)
      .fault<ShapeError>({{2, 4}, {2, 3}},
                         "concat: shapes differ beside axis 0; tensor 0 is (2, 4), tensor 1 is "
                         "(2, 3); expected equal dimensions there")
      .fault<ShapeError>({{2, 4}, {4}},
                         "concat: shapes differ beside axis 0; tensor 0 is (2, 4), tensor 1 is "
                         "(4); expected equal dimensions there")
      .fault<ShapeError>({{}, {}}, "concat: axis 0 is out of range; rank is 0; expected no axis")
      .bench({{128, 256}, {64, 256}});
  row(
      "concat/last",
      [](const auto& a, const auto& b, const auto& c) {
        return wengert::concat({a, b, c}, -1);
      },
      real({3, 2}), real({3, 0}), real({3, 5}))
      .reference([](const Array& a, const Array& b, const Array& c) {
        return joined({&a, &b, &c}, 1);
      })
      .sizes(
          [](Index n) {
            return Shapes{{2, n}, {2, 3}, {2, n / 2}};
          },
          0)
      .bench({{256, 128}, {256, 64}, {256, 3}});
  row(
      "concat/middle",
      [](const auto& a, const auto& b) {
        return wengert::concat({a, b, a}, 1);
      },
      real({2, 3, 4}), real({2, 1, 4}))
      .reference([](const Array& a, const Array& b) {
        return joined({&a, &b, &a}, 1);
      })
      .sizes(
          [](Index n) {
            return Shapes{{2, 3, n}, {2, 1, n}};
          },
          0)
      .bench({{32, 16, 64}, {32, 8, 64}});
  row(
      "stack/axis0",
      [](const auto& a, const auto& b) {
        return wengert::stack({a, b});
      },
      real({3, 4}), real({3, 4}))
      .reference([](const Array& a, const Array& b) {
        const Array u({1, a.dim(0), a.dim(1)}, a.v), v({1, b.dim(0), b.dim(1)}, b.v);
        return joined({&u, &v}, 0);
      })
      .resizable(0)
      .fault<ShapeError>(
          {{2, 4}, {2, 3}},
          "stack: shapes differ; tensor 0 is (2, 4), tensor 1 is (2, 3); expected equal shapes")
      .bench({{128, 256}, {128, 256}});
  row(
      "stack/last",
      [](const auto& a, const auto& b, const auto& c) {
        return wengert::stack({a, b, c}, -1);
      },
      real({3, 4}), real({3, 4}), real({3, 4}))
      .reference([](const Array& a, const Array& b, const Array& c) {
        const Shape s{a.dim(0), a.dim(1), 1};
        const Array u(s, a.v), v(s, b.v), w(s, c.v);
        return joined({&u, &v, &w}, 2);
      })
      .resizable(0)
      .bench({{128, 64}, {128, 64}, {128, 64}});
});

}  // namespace
}  // namespace cases
