// Flat arrays of doubles with a shape: what references are written on. Independent of the library's tensors
// and kernels, so that a reference cannot share their faults.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <stdexcept>
#include <utility>
#include <vector>

#include <wengert/base/shape.hpp>

namespace cases {

using wengert::Index;
using wengert::Shape;

/// Row-major doubles. `a[k]` is the k-th element, `a({i, j})` the element at an index.
struct Array {
  Shape shape{0};
  std::vector<double> v;

  Array() = default;
  explicit Array(const Shape& s, double value = 0) : shape(s), v(static_cast<std::size_t>(s.size()), value) {}
  Array(const Shape& s, std::vector<double> values) : shape(s), v(std::move(values)) {
    if (static_cast<Index>(v.size()) != s.size())
      throw std::logic_error(wengert::detail::text("Array: ", v.size(), " values for shape ", s));
  }
  Array(const Shape& s, std::initializer_list<double> values) : Array(s, std::vector<double>(values)) {}

  Index size() const { return static_cast<Index>(v.size()); }
  int rank() const { return shape.rank(); }
  /// Size of one axis; negative axes count from the back.
  Index dim(int axis) const { return shape[axis < 0 ? axis + rank() : axis]; }
  double& operator[](Index k) { return v[static_cast<std::size_t>(k)]; }
  double operator[](Index k) const { return v[static_cast<std::size_t>(k)]; }
  double& operator()(const Shape& at) { return v[static_cast<std::size_t>(position(at))]; }
  double operator()(const Shape& at) const { return v[static_cast<std::size_t>(position(at))]; }

  /// Where the element at an index lies.
  Index position(const Shape& at) const {
    Index k = 0;
    for (int i = 0; i < rank(); ++i) k = k * shape[i] + at[i];
    return k;
  }
  /// The index of element k.
  Shape index(Index k) const {
    Shape at = Shape::filled(rank(), 0);
    for (int i = rank(); i-- > 0;) {
      at[i] = k % shape[i];
      k /= shape[i];
    }
    return at;
  }
  /// The element that broadcasting to a shape of `to.rank()` axes puts at `to`.
  double stretched(const Shape& to) const {
    Shape at = Shape::filled(rank(), 0);
    const int shift = to.rank() - rank();
    for (int i = 0; i < rank(); ++i) at[i] = shape[i] == 1 ? 0 : to[i + shift];
    return (*this)(at);
  }
};

/// Calls `f(index)` for every index of a shape, in row-major order.
template <class F>
void for_each_index(const Shape& shape, F f) {
  const Array grid(shape);
  for (Index k = 0; k < grid.size(); ++k) f(grid.index(k));
}

/// The shape that NumPy's broadcasting gives two shapes which fit.
inline Shape common_shape(const Shape& a, const Shape& b) {
  const int rank = a.rank() > b.rank() ? a.rank() : b.rank();
  Shape out = Shape::filled(rank, 1);
  for (int i = 1; i <= rank; ++i) {
    const Index da = i <= a.rank() ? a[a.rank() - i] : 1, db = i <= b.rank() ? b[b.rank() - i] : 1;
    out[rank - i] = da == 1 ? db : da;
  }
  return out;
}

/// A reference that applies a function of doubles to each element of its broadcast inputs.
template <class F>
auto elementwise(F f) {
  return [f](const auto&... x) {
    Shape shape;
    ((shape = common_shape(shape, x.shape)), ...);
    Array y(shape);
    for (Index k = 0; k < y.size(); ++k) {
      const Shape at = y.index(k);
      y[k] = static_cast<double>(f(x.stretched(at)...));
    }
    return y;
  };
}

/// A reference that applies a function of a row (a vector of doubles) to each row along `axis`; the function
/// returns the row that takes its place, of any one length.
template <class F>
auto along(int axis, F f) {
  return [axis, f](const Array& x) {
    const int a = axis < 0 ? axis + x.rank() : axis;
    Shape rows = x.shape;
    rows[a] = x.shape[a] == 0 ? 0 : 1;
    Array y;
    bool first = true;
    for_each_index(rows, [&](Shape at) {
      std::vector<double> row;
      for (at[a] = 0; at[a] < x.shape[a]; ++at[a]) row.push_back(x(at));
      const std::vector<double> out = f(row);
      if (std::exchange(first, false)) {
        Shape shape = x.shape;
        shape[a] = static_cast<Index>(out.size());
        y = Array(shape);
      }
      for (at[a] = 0; at[a] < y.shape[a]; ++at[a]) y(at) = out[static_cast<std::size_t>(at[a])];
    });
    return first ? Array(x.shape) : y;
  };
}

}  // namespace cases
