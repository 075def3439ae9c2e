// Rows of operators that take indices.
#include <wengert/ops/index.hpp>

#include "cases/case.hpp"

namespace cases {
namespace {

using wengert::ShapeError;

Index whole(double v) { return static_cast<Index>(v); }

// Rows of x by an index of any shape.
Array taken(const Array& x, const Array& i) {
  Shape shape = i.shape;
  for (int a = 1; a < x.rank(); ++a) shape.push_back(x.shape[a]);
  Array y(shape);
  const Index width = i.size() == 0 ? 0 : y.size() / i.size();
  for (Index k = 0; k < y.size(); ++k) y[k] = x[whole(i[k / width]) * width + k % width];
  return y;
}

// x along one axis by a vector of indices.
auto selected(int axis) {
  return [axis](const Array& x, const Array& i) {
    Shape shape = x.shape;
    shape[axis] = i.size();
    Array y(shape);
    for (Index k = 0; k < y.size(); ++k) {
      Shape at = y.index(k);
      at[axis] = whole(i[at[axis]]);
      y[k] = x(at);
    }
    return y;
  };
}

auto gathered(int axis) {
  return [axis](const Array& x, const Array& i) {
    Array y(i.shape);
    for (Index k = 0; k < y.size(); ++k) {
      Shape at = y.index(k);
      at[axis] = whole(i[k]);
      y[k] = x(at);
    }
    return y;
  };
}

template <class Put>
auto scattered(int axis, Put put) {
  return [axis, put](const Array& x, const Array& i, const Array& source) {
    Array y = x;
    for (Index k = 0; k < i.size(); ++k) {
      Shape at = i.index(k);
      at[axis] = whole(i[k]);
      put(y(at), source[k]);
    }
    return y;
  };
}

const Rows rows_by_index([] {
  row(
      "take_rows", [](const auto& x, const auto& i) { return take_rows(x, i); }, real({5, 2, 3}),
      indices({4}, 5))
      .reference(taken)
      .sizes(
          [](Index n) {
            return Shapes{{5, 2, n}, {4}};
          },
          0)
      .fault<ShapeError>({{}, {2}}, "take_rows: x has no rows; x is (); expected rank 1 or higher")
      .fault<ShapeError>({{1, 1, 1, 1, 1}, {1, 1, 1, 1, 1}},
                         "take_rows: the rank of the result is too high; x is (1, 1, 1, 1, 1), indices are "
                         "(1, 1, 1, 1, 1); expected at most 8 axes")
      .bench({{1000, 4, 16}, {512}});
  row(
      "embedding", [](const auto& w, const auto& i) { return embedding(w, i); }, real({5, 3}),
      indices({2, 4}, 5))
      .reference(taken)
      .sizes(
          [](Index n) {
            return Shapes{{5, n}, {2, 4}};
          },
          0)
      .fault<ShapeError>({{5}, {2}},
                         "embedding: weight must be a matrix; weight is (5); expected "
                         "(vocabulary, width)")
      .bench({{1000, 128}, {32, 16}});
  row(
      "embedding/int32", [](const auto& w, const auto& i) { return embedding(w, i); }, real({5, 3}),
      indices({2, 0, 3}, 5))
      .reference(taken)
      .sizes(
          [](Index n) {
            return Shapes{{5, 7}, {2, n}};
          },
          0)
      .bench({{1000, 32}, {1024, 10}});
  row(
      "index_select/axis0", [](const auto& x, const auto& i) { return index_select(x, 0, i); }, real({5, 3}),
      indices({7}, 5))
      .reference(selected(0))
      .sizes(
          [](Index n) {
            return Shapes{{5, n}, {7}};
          },
          0)
      .fault<ShapeError>({{5, 3}, {2, 2}},
                         "index_select: index must be a vector; index is (2, 2); expected rank 1")
      .fault<ShapeError>({{}, {2}}, "index_select: axis 0 is out of range; rank is 0; expected no axis")
      .bench({{256, 64}, {300}});
  row(
      "index_select/middle", [](const auto& x, const auto& i) { return index_select(x, 1, i); },
      real({2, 5, 3}), indices({4}, 5))
      .reference(selected(1))
      .sizes(
          [](Index n) {
            return Shapes{{2, 5, n}, {4}};
          },
          0)
      .bench({{16, 64, 64}, {80}});
  row(
      "index_select/last", [](const auto& x, const auto& i) { return index_select(x, -1, i); }, real({4, 5}),
      indices({6}, 5))
      .reference(selected(1))
      .sizes(
          [](Index n) {
            return Shapes{{3, 5}, {n}};
          },
          0)
      .bench({{256, 128}, {100}});
});

const Rows elements_by_index([] {
  row(
      "gather/axis0", [](const auto& x, const auto& i) { return gather(x, 0, i); }, real({5, 4}),
      indices({3, 2}, 5))
      .reference(gathered(0))
      .sizes(
          [](Index n) {
            return Shapes{{5, n}, {3, n}};
          },
          0)
      .fault<ShapeError>({{5, 4}, {3}},
                         "gather: index does not fit x; x is (5, 4), index is (3), axis 0; expected "
                         "the rank of x, and no larger dimension beside the axis")
      .fault<ShapeError>({{5, 4}, {3, 5}},
                         "gather: index does not fit x; x is (5, 4), index is (3, 5), axis 0; "
                         "expected the rank of x, and no larger dimension beside the axis")
      .bench({{64, 512}, {100, 512}});
  row(
      "gather/middle", [](const auto& x, const auto& i) { return gather(x, 1, i); }, real({2, 5, 4}),
      indices({2, 6, 3}, 5))
      .reference(gathered(1))
      .sizes(
          [](Index n) {
            return Shapes{{2, 5, n}, {2, 6, n}};
          },
          0)
      .bench({{16, 32, 64}, {16, 40, 64}});
  row(
      "gather/last", [](const auto& x, const auto& i) { return gather(x, -1, i); }, real({3, 5}),
      indices({3, 4}, 5))
      .reference(gathered(1))
      .sizes(
          [](Index n) {
            return Shapes{{3, 5}, {2, n}};
          },
          0)
      .bench({{512, 100}, {512, 64}});
  row(
      "scatter_add/axis0",
      [](const auto& x, const auto& i, const auto& s) { return scatter_add(x, 0, i, s); }, real({4, 3}),
      indices({6, 3}, 4), real({6, 3}))
      .reference(scattered(0, [](double& y, double s) { y += s; }))
      .sizes(
          [](Index n) {
            return Shapes{{4, n}, {6, n}, {6, n}};
          },
          0)
      .fault<ShapeError>({{4, 3}, {2, 3}, {3, 2}},
                         "scatter_add: shapes of index and source differ; index is (2, 3), "
                         "source is (3, 2); expected equal shapes")
      .fault<ShapeError>(
          {{4, 3}, {2, 4}, {2, 4}},
          "scatter_add: index does not fit x; x is (4, 3), index is (2, 4), axis 0; expected the "
          "rank of x, and no larger dimension beside the axis")
      .bench({{64, 256}, {200, 256}, {200, 256}});
  row(
      "scatter_add/last", [](const auto& x, const auto& i, const auto& s) { return scatter_add(x, 1, i, s); },
      real({3, 5}), indices({2, 7}, 5), real({2, 7}))
      .reference(scattered(1, [](double& y, double s) { y += s; }))
      .sizes(
          [](Index n) {
            return Shapes{{3, 5}, {3, n}, {3, n}};
          },
          0)
      .bench({{256, 100}, {256, 128}, {256, 128}});
  // Positions that differ only along the axis get different indices: 2, 0, 3 down every column.
  row(
      "scatter/axis0", [](const auto& x, const auto& i, const auto& s) { return scatter(x, 0, i, s); },
      real({4, 2}), indices({3, 2}, 4).values({2, 2, 0, 0, 3, 3}), real({3, 2}))
      .reference(scattered(0, [](double& y, double s) { y = s; }))
      .sizes(
          [](Index n) {
            return Shapes{{4, n}, {1, n}, {1, n}};
          },
          0)
      .fault<ShapeError>({{4, 3}, {2, 3}, {3, 2}},
                         "scatter: shapes of index and source differ; index is (2, 3), "
                         "source is (3, 2); expected equal shapes")
      .bench({{6, 4096}, {1, 4096}, {1, 4096}});
  row(
      "scatter/last", [](const auto& x, const auto& i, const auto& s) { return scatter(x, -1, i, s); },
      real({3, 5}), indices({2, 3}, 5).values({4, 0, 2}), real({2, 3}))
      .reference(scattered(1, [](double& y, double s) { y = s; }))
      .sizes(
          [](Index n) {
            return Shapes{{n, 5}, {n, 3}, {n, 3}};
          },
          0)
      .bench({{4096, 5}, {4096, 3}, {4096, 3}});
  row(
      "one_hot", [](const auto& i) { return wengert::one_hot<std::int32_t>(i, 5); }, indices({2, 3}, 5))
      .reference([](const Array& i) {
        Shape shape = i.shape;
        shape.push_back(5);
        Array y(shape);
        for (Index k = 0; k < i.size(); ++k) y[k * 5 + whole(i[k])] = 1;
        return y;
      })
      .resizable(0)
      .bench({{4096}});
});

}  // namespace
}  // namespace cases
