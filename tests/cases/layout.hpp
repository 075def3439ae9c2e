// Tensors of one set of values in different layouts.
#pragma once

#include <limits>
#include <variant>

#include <wengert/core/tensor.hpp>

#include "cases/array.hpp"

namespace cases {

using wengert::Byte;
using wengert::Tensor;

/// A tensor of whichever element type.
using Any = std::variant<Tensor<float>, Tensor<double>, Tensor<Index>, Tensor<std::int32_t>, Tensor<Byte>,
                         Tensor<bool>>;

/// How a tensor's elements lie. `expanded` needs values that are the same along the first axis of more than
/// one element.
enum class Layout { contiguous, transposed, sliced, stepped, expanded };

inline const char* layout_name(Layout l) {
  constexpr const char* names[] = {"contiguous", "transposed", "sliced with an offset", "stepped",
                                   "expanded"};
  return names[static_cast<int>(l)];
}

/// The axis that `Layout::expanded` stretches, or -1.
inline int stretched_axis(const Shape& shape) {
  for (int i = 0; i < shape.rank(); ++i)
    if (shape[i] > 1) return i;
  return -1;
}
/// `x` with the values at index 0 of the stretched axis everywhere along it.
inline Array made_constant_along(const Array& x, int axis) {
  Array y(x.shape);
  for (Index k = 0; k < y.size(); ++k) {
    Shape at = y.index(k);
    at[axis] = 0;
    y[k] = x(at);
  }
  return y;
}

/// A value that must never be read: NaN, or an integer far out of any range.
template <class E>
constexpr E poison() {
  if constexpr (std::numeric_limits<E>::has_quiet_NaN) return std::numeric_limits<E>::quiet_NaN();
  return std::numeric_limits<E>::max();
}

template <class E>
Tensor<E> tensor_of(const Array& values, Layout layout) {
  const Shape& shape = values.shape;
  const int rank = shape.rank();
  Shape outer = shape;                  // of the memory
  Shape step = Shape::filled(rank, 1);  // of the view in it
  Shape first = Shape::filled(rank, 0);
  if (layout == Layout::transposed) {
    for (int i = 0; i < rank; ++i) outer[i] = shape[rank - 1 - i];
  } else if (layout == Layout::sliced) {
    for (int i = 0; i < rank; ++i) {
      outer[i] = shape[i] + 3;
      first[i] = 1;
    }
  } else if (layout == Layout::stepped) {
    for (int i = 0; i < rank; ++i) {
      outer[i] = 2 * shape[i] + 2;
      first[i] = i % 2;
      step[i] = 2;
    }
  }
  const int stretched = layout == Layout::expanded ? stretched_axis(shape) : -1;
  if (stretched >= 0) outer[stretched] = 1;

  Shape strides = wengert::contiguous_strides(outer);
  if (layout == Layout::transposed)
    for (int i = 0; i < rank / 2; ++i) std::swap(strides[i], strides[rank - 1 - i]);
  Index offset = 0;
  for (int i = 0; i < rank; ++i) {
    offset += first[i] * strides[i];
    strides[i] *= step[i];
  }
  if (stretched >= 0) strides[stretched] = 0;

  wengert::Buffer memory(static_cast<std::size_t>(outer.size()) * sizeof(E));
  E* const p = memory.as<E>();
  std::fill_n(p, outer.size(), poison<E>());
  for (Index k = 0; k < values.size(); ++k) {
    const Shape at = values.index(k);
    Index where = offset;
    for (int i = 0; i < rank; ++i) where += at[i] * strides[i];
    p[where] = static_cast<E>(values[k]);
  }
  return Tensor<E>(memory, shape, strides, offset);
}

template <class E>
Any make_tensor(const Array& values, Layout layout) {
  return tensor_of<E>(values, layout);
}

/// Any tensor's elements as doubles, which hold every value of the tests exactly.
inline Array to_array(const Any& x) {
  return std::visit(
      [](const auto& t) {
        const auto v = t.to_vector();
        return Array(t.shape(), std::vector<double>(v.begin(), v.end()));
      },
      x);
}

}  // namespace cases
