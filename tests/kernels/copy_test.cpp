// Strided copies against plain loops: transposes of every size around the tile, plain and accumulating, bits
// kept.
#include <cstdint>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include <wengert/kernels/copy.hpp>

namespace wg = wengert;
using wg::Index;

namespace {

template <class T>
std::vector<T> numbered(Index n) {
  std::vector<T> v(static_cast<std::size_t>(n));
  for (Index i = 0; i < n; ++i) v[static_cast<std::size_t>(i)] = static_cast<T>((i * 37) % 101 - 50);
  return v;
}

template <class T>
class Copy : public ::testing::Test {};
using Types = ::testing::Types<float, double, std::int64_t, std::uint8_t>;
TYPED_TEST_SUITE(Copy, Types);

/// y (rows x cols at y_row, y_col) = or += x (rows x cols at x_row, x_col); nothing else changes.
template <class T>
void check(Index rows, Index cols, Index x_row, Index x_col, Index y_row, Index y_col, bool add) {
  SCOPED_TRACE(std::to_string(rows) + "x" + std::to_string(cols) + (add ? " add" : ""));
  const auto place = [](Index i, Index j, Index row, Index col) {
    return static_cast<std::size_t>(i * row + j * col);
  };
  const Index size = (rows - 1) * y_row + (cols - 1) * y_col + 5;
  const std::vector<T> x = numbered<T>((rows - 1) * x_row + (cols - 1) * x_col + 1);
  std::vector<T> y = numbered<T>(size), expected = y;
  for (Index i = 0; i < rows; ++i)
    for (Index j = 0; j < cols; ++j) {
      T& to = expected[place(i, j, y_row, y_col)];
      const T from = x[place(i, j, x_row, x_col)];
      to = add ? static_cast<T>(to + from) : from;
    }
  if (add)
    wg::kernels::copy_add<T>({rows, cols}, x.data(), {x_row, x_col}, y.data(), {y_row, y_col});
  else
    wg::kernels::copy<T>({rows, cols}, x.data(), {x_row, x_col}, y.data(), {y_row, y_col});
  ASSERT_EQ(std::memcmp(y.data(), expected.data(), y.size() * sizeof(T)), 0);
}

TYPED_TEST(Copy, TransposesAroundTheTile) {
  for (Index rows : {1, 2, 3, 4, 5, 15, 16, 17, 31, 32, 33, 50})
    for (Index cols : {1, 3, 4, 15, 16, 17, 32, 35, 47})
      for (bool add : {false, true}) {
        check<TypeParam>(rows, cols, 1, rows, cols, 1, add);          // columns of x contiguous
        check<TypeParam>(rows, cols, cols, 1, 1, rows, add);          // columns of y contiguous
        check<TypeParam>(rows, cols, 1, rows + 3, cols + 2, 1, add);  // within wider matrices
        check<TypeParam>(rows, cols, cols + 1, 1, 1, rows + 7, add);
        check<TypeParam>(rows, cols, 2, 2 * rows, cols, 1, add);  // every second element
      }
}

TYPED_TEST(Copy, SourcesOfOneRowOrColumn) {
  for (Index n : {16, 32, 40}) {
    check<TypeParam>(n, n, 0, 1, n, 1, false);
    check<TypeParam>(n, n, 1, 0, n, 1, true);
    check<TypeParam>(n, n, 0, 0, 1, n, true);
  }
}

}  // namespace
