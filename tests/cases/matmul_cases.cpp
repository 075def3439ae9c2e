// Rows of matmul and linear. References are plain double loops over every index.
#include <wengert/ops/linear.hpp>
#include <wengert/ops/matmul.hpp>

#include "cases/case.hpp"

namespace cases {
namespace {

Array as_matrix_left(const Array& a) { return a.rank() == 1 ? Array({1, a.dim(0)}, a.v) : a; }
Array as_matrix_right(const Array& b) { return b.rank() == 1 ? Array({b.dim(0), 1}, b.v) : b; }

Shape prefix(const Shape& s) {
  Shape out;
  for (int i = 0; i + 2 < s.rank(); ++i) out.push_back(s[i]);
  return out;
}

/// The element (row, column) of the matrix that broadcasting puts at `batch`.
double element(const Array& a, const Shape& batch, Index row, Index column) {
  Shape at = batch;
  at.push_back(row);
  at.push_back(column);
  Shape used;
  for (int i = at.rank() - a.rank(); i < at.rank(); ++i) used.push_back(at[i]);
  for (int i = 0; i + 2 < a.rank(); ++i)
    if (a.shape[i] == 1) used[i] = 0;
  return a(used);
}

Array matmul_reference(const Array& left, const Array& right) {
  const Array a = as_matrix_left(left), b = as_matrix_right(right);
  const Shape batch = common_shape(prefix(a.shape), prefix(b.shape));
  const Index m = a.dim(-2), k = a.dim(-1), n = b.dim(-1);
  Shape shape = batch;
  if (left.rank() > 1) shape.push_back(m);
  if (right.rank() > 1) shape.push_back(n);
  Array y(shape);
  Index at = 0;
  for_each_index(batch, [&](const Shape& t) {
    for (Index i = 0; i < m; ++i)
      for (Index j = 0; j < n; ++j, ++at)
        for (Index p = 0; p < k; ++p) y[at] += element(a, t, i, p) * element(b, t, p, j);
  });
  return y;
}

Array linear_reference(const Array& x, const Array& w, const Array& b) {
  Shape shape = x.shape;
  shape[x.rank() - 1] = w.dim(0);
  Array y(shape);
  const Index in = w.dim(1), out = w.dim(0);
  for (Index k = 0; k < y.size(); ++k) {
    y[k] = b.size() == 0 ? 0 : b[k % out];
    for (Index i = 0; i < in; ++i) y[k] += x[k / out * in + i] * w[k % out * in + i];
  }
  return y;
}

Array relu_reference(Array y) {
  for (double& v : y.v) v = v > 0 ? v : 0;
  return y;
}

const auto multiply = [](const auto& a, const auto& b) { return matmul(a, b); };

void matmul_row(const char* name, const Shape& a, const Shape& b, std::function<Shapes(Index)> sizes) {
  row(name, multiply, real(a), real(b)).reference(matmul_reference).sizes(sizes, 0).bench(sizes(256));
}

const Rows matmul_rows([] {
  row("matmul", multiply, real({3, 4}), real({4, 5}))
      .reference(matmul_reference)
      .sizes(
          [](Index n) {
            return Shapes{{n, 7}, {7, n}};
          },
          0)
      .point({Array({2, 2}, {1, 2, 3, 4}), Array({2, 1}, {5, 6})}, Array({2, 1}, {17, 39}),
             {Array({2, 2}, {5, 6, 5, 6}), Array({2, 1}, {4, 6})})
      .fault<wengert::ShapeError>(
          {{3, 4}, {5, 6}},
          "matmul: inner dimensions differ; a is (3, 4), b is (5, 6); expected b.dim(0) "
          "== a.dim(1) == 4")
      .fault<wengert::ShapeError>({{4}, {5}},
                                  "matmul: inner dimensions differ; a is (4), b is (5); expected b.dim(0) == "
                                  "a.dim(0) == 4")
      .fault<wengert::ShapeError>({{2, 3, 4}, {2, 3, 4}},
                                  "matmul: inner dimensions differ; a is (2, 3, 4), b is (2, 3, 4); expected "
                                  "b.dim(1) == a.dim(2) == 4")
      .fault<wengert::ShapeError>(
          {{}, {4}},
          "matmul: an operand has no axes; a is (), b is (4); expected rank 1 or more; "
          "use a * b to scale")
      .fault<wengert::ShapeError>(
          {{2, 3, 4}, {3, 4, 5}},
          "matmul: batch dimensions do not broadcast; a is (2, 3, 4), b is (3, 4, 5); "
          "expected equal dimensions or 1 before the last two, aligned at the back")
      .bench({{256, 256}, {256, 256}});
  matmul_row("matmul/inner", {2, 5}, {5, 3}, [](Index n) { return Shapes{{3, n}, {n, 4}}; });
  matmul_row("matmul/dot", {6}, {6}, [](Index n) { return Shapes{{n}, {n}}; });
  matmul_row("matmul/vector_left", {4}, {4, 5}, [](Index n) { return Shapes{{3}, {3, n}}; });
  matmul_row("matmul/vector_right", {4, 5}, {5}, [](Index n) { return Shapes{{n, 3}, {3}}; });
  matmul_row("matmul/vector_left_batch", {4}, {2, 3, 4, 5}, [](Index n) { return Shapes{{n}, {2, n, 3}}; });
  matmul_row("matmul/vector_right_batch", {2, 3, 4, 5}, {5}, [](Index n) { return Shapes{{2, n, 3}, {3}}; });
  matmul_row("matmul/batch", {2, 3, 4}, {2, 4, 5}, [](Index n) { return Shapes{{n, 2, 3}, {n, 3, 2}}; });
  matmul_row("matmul/shared_right", {2, 3, 4}, {4, 5}, [](Index n) { return Shapes{{2, n, 3}, {3, n}}; });
  matmul_row("matmul/shared_left", {3, 4}, {2, 4, 5}, [](Index n) { return Shapes{{2, 3}, {n, 3, 2}}; });
  matmul_row("matmul/broadcast", {2, 1, 3, 4}, {5, 4, 2}, [](Index n) {
    return Shapes{{n, 1, 2, 3}, {2, 3, 2}};
  });
  matmul_row("matmul/stretched_both", {2, 1, 3, 4}, {1, 3, 4, 2}, [](Index n) {
    return Shapes{{2, 1, 1, n}, {1, 3, n, 1}};
  });
  matmul_row("matmul/stretched_around", {1, 3, 1, 2, 3}, {2, 1, 4, 3, 2}, [](Index n) {
    return Shapes{{1, 2, 1, 2, 3}, {2, 1, 2, 3, n}};
  });
});

const Rows linear_rows([] {
  const auto with_bias = [](const auto& x, const auto& w, const auto& b) { return linear(x, w, b); };
  const auto without = [](const auto& x, const auto& w) { return linear(x, w); };
  row("linear", with_bias, real({3, 4}), real({5, 4}), real({5}))
      .reference(linear_reference)
      .sizes(
          [](Index n) {
            return Shapes{{n, 3}, {n, 3}, {n}};
          },
          0)
      .point({Array({1, 2}, {1, 2}), Array({1, 2}, {3, 4}), Array({1}, {5})}, Array({1, 1}, {16}),
             {Array({1, 2}, {3, 4}), Array({1, 2}, {1, 2}), Array({1}, {1})})
      .fault<wengert::ShapeError>(
          {{2, 3}, {5, 4}, {5}},
          "linear: inner dimensions differ; x is (2, 3), w is (5, 4); expected x.dim(1) == "
          "w.dim(1) == 4")
      .fault<wengert::ShapeError>(
          {{2, 4}, {5, 4}, {4}},
          "linear: bias does not fit; x is (2, 4), w is (5, 4), b is (4); expected (5)")
      .fault<wengert::ShapeError>(
          {{2, 4}, {5, 4}, {}}, "linear: bias does not fit; x is (2, 4), w is (5, 4), b is (); expected (5)")
      .fault<wengert::ShapeError>({{}, {5, 4}, {5}},
                                  "linear: x has no axes; x is (), w is (5, 4); expected rank 1 or more")
      .fault<wengert::ShapeError>({{2, 4}, {4}, {4}},
                                  "linear: w must be a matrix; x is (2, 4), w is (4); expected (out, 4)")
      .bench({{64, 784}, {256, 784}, {256}});
  row("linear/vector", with_bias, real({4}), real({5, 4}), real({5}))
      .reference(linear_reference)
      .sizes(
          [](Index n) {
            return Shapes{{n}, {2, n}, {2}};
          },
          0)
      .bench({{784}, {256, 784}, {256}});
  row("linear/leading", with_bias, real({2, 3, 4}), real({5, 4}), real({5}))
      .reference(linear_reference)
      .sizes(
          [](Index n) {
            return Shapes{{2, n, 3}, {1, 3}, {1}};
          },
          0)
      .bench({{16, 64, 128}, {128, 128}, {128}});
  row("linear/no_bias", without, real({2, 3, 4}), real({5, 4}))
      .reference([](const Array& x, const Array& w) { return linear_reference(x, w, Array()); })
      .sizes(
          [](Index n) {
            return Shapes{{3, n}, {4, n}};
          },
          0)
      .bench({{64, 160}, {128, 160}});
  // Positive and negative sums well away from the kink.
  row(
      "linear_relu", [](const auto& x, const auto& w, const auto& b) { return linear_relu(x, w, b); },
      real({3, 4}, 0.1, 0.5), real({5, 4}, 0.1, 0.5), real({5}).values({3, -5, 2, -4, 1}))
      .reference([](const Array& x, const Array& w, const Array& b) {
        return relu_reference(linear_reference(x, w, b));
      })
      .sizes(
          [](Index n) {
            return Shapes{{n, 3}, {5, 3}, {5}};
          },
          0)
      .point({Array({1, 1}, {2}), Array({3, 1}, {1, 0, -1}), Array({3}, {1, 0, 1})}, Array({1, 3}, {3, 0, 0}),
             {Array({1, 1}, {1}), Array({3, 1}, {2, 0, 0}), Array({3}, {1, 0, 0})})
      .fault<wengert::ShapeError>({{2, 3}, {5, 4}, {5}},
                                  "linear_relu: inner dimensions differ; x is (2, 3), w is (5, 4); expected "
                                  "x.dim(1) == w.dim(1) == 4")
      .bench({{64, 784}, {256, 784}, {256}});
  row(
      "linear_relu/no_bias", [](const auto& x, const auto& w) { return linear_relu(x, w); },
      real({3, 4}, 0.1, 0.5), real({2, 4}).values({0.5, 0.4, 0.3, 0.2, -0.5, -0.4, -0.3, -0.2}))
      .reference(
          [](const Array& x, const Array& w) { return relu_reference(linear_reference(x, w, Array())); })
      .bench({{64, 160}, {128, 160}});
});

}  // namespace
}  // namespace cases
