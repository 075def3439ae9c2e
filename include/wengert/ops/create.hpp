// Tensors from nothing: constants, sequences, nested lists, vectors. All are constants that ask for no
// gradient; call requires_grad(true) on a result to make it a leaf. Floor: ops.
#pragma once

#include <cmath>
#include <initializer_list>
#include <span>

#include <wengert/core/tensor.hpp>

namespace wengert::inline WENGERT_ISA {

/// `shape` elements, uninitialised. Throws ShapeError when a dimension is negative or the size overflows, as
/// does everything below that takes a shape.
template <Scalar T = float>
Tensor<T> empty(const Shape& shape) {
  checked_size("empty", shape, sizeof(T));
  return Tensor<T>(shape);
}

/// Elements that all equal `value`.
template <Scalar T>
Tensor<T> full(const Shape& shape, T value) {
  checked_size("full", shape, sizeof(T));
  Tensor<T> y(shape);
  kernels::fill(y.fresh_data(), y.size(), value);
  return y;
}

template <Scalar T = float>
Tensor<T> zeros(const Shape& shape) {
  checked_size("zeros", shape, sizeof(T));
  return full<T>(shape, T(0));
}

template <Scalar T = float>
Tensor<T> ones(const Shape& shape) {
  checked_size("ones", shape, sizeof(T));
  return full<T>(shape, T(1));
}

/// Of the shape and element type of x, contiguous, uninitialised.
template <Scalar T>
Tensor<T> empty_like(const Tensor<T>& x) {
  return Tensor<T>(x.shape());
}
template <Scalar T>
Tensor<T> full_like(const Tensor<T>& x, std::type_identity_t<T> value) {
  return full<T>(x.shape(), value);
}
template <Scalar T>
Tensor<T> zeros_like(const Tensor<T>& x) {
  return full<T>(x.shape(), T(0));
}
template <Scalar T>
Tensor<T> ones_like(const Tensor<T>& x) {
  return full<T>(x.shape(), T(1));
}

/// A tensor of rank 0.
template <Scalar T>
Tensor<T> scalar(T value) {
  return full<T>({}, value);
}

/// begin, begin + step, ... before `end`: begin + i * step, for float computed in double. Throws ValueError
/// when step is 0, not finite, or leads away from `end`.
template <Scalar T>
requires std::is_arithmetic_v<T> Tensor<T> arange(T begin, std::type_identity_t<T> end,
                                                  std::type_identity_t<T> step = T(1)) {
  const bool towards = step > T(0) ? end >= begin : step < T(0) && end <= begin;
  Index n = 0;
  if constexpr (std::integral<T>) {
    // Unsigned differences hold what the signed ones cannot.
    using U = std::uint64_t;
    if (towards && begin != end) {
      const U distance = step > T(0) ? static_cast<U>(end) - static_cast<U>(begin)
                                     : static_cast<U>(begin) - static_cast<U>(end);
      const U by = step > T(0) ? static_cast<U>(step) : U{0} - static_cast<U>(step);
      n = static_cast<Index>(std::min<U>((distance - 1) / by + 1, std::numeric_limits<Index>::max()));
    }
  } else {
    const double count = std::ceil((double{end} - double{begin}) / double{step});
    if (towards && std::isfinite(double{end} - double{begin}) && std::isfinite(double{step})) {
      n = count < 9e18 ? static_cast<Index>(count) : std::numeric_limits<Index>::max();
    } else {
      n = -1;
    }
  }
  if (!towards || n < 0)
    fail<ValueError>("arange", "the step does not lead from begin to end; begin is ", begin, ", end is ", end,
                     ", step is ", step, "; expected a finite step towards end");
  checked_size("arange", {n}, sizeof(T));
  Tensor<T> y({n});
  for (Index i = 0; i < n; ++i) {
    if constexpr (std::integral<T>)
      y.fresh_data()[i] = static_cast<T>(static_cast<std::uint64_t>(begin) +
                                         static_cast<std::uint64_t>(i) * static_cast<std::uint64_t>(step));
    else
      y.fresh_data()[i] = static_cast<T>(double{begin} + static_cast<double>(i) * double{step});
  }
  return y;
}

/// 0, 1, ... before `end`.
template <Scalar T>
requires std::is_arithmetic_v<T> Tensor<T> arange(T end) { return arange<T>(T(0), end); }

/// n numbers at equal distances, of which the first is `begin` and the last `end`; one number is `begin`.
/// Computed in double. Throws ValueError when n is negative.
template <Field T = float>
requires std::is_floating_point_v<T> Tensor<T> linspace(std::type_identity_t<T> begin,
                                                        std::type_identity_t<T> end, Index n) {
  if (n < 0) fail<ValueError>("linspace", "n is ", n, "; expected n >= 0");
  checked_size("linspace", {n}, sizeof(T));
  Tensor<T> y({n});
  const double a = double{begin}, b = double{end}, last = static_cast<double>(n - 1);
  for (Index i = 0; i < n; ++i) {
    const double t = n == 1 ? 0 : static_cast<double>(i) / last;
    y.fresh_data()[i] = i + 1 == n && n > 1 ? end : static_cast<T>(a * (1 - t) + b * t);
  }
  return y;
}

/// The identity matrix of n rows, or (n, columns) with ones on the diagonal from the upper left. Throws
/// ShapeError when a size is negative.
template <Scalar T = float>
Tensor<T> eye(Index n, Index columns) {
  checked_size("eye", {n, columns}, sizeof(T));
  Tensor<T> y = zeros<T>({n, columns});
  for (Index i = 0; i < std::min(n, columns); ++i) y.fresh_data()[i * columns + i] = T(1);
  return y;
}
template <Scalar T = float>
Tensor<T> eye(Index n) {
  return eye<T>(n, n);
}

namespace detail {

/// One element, or a list of lists of elements.
template <Scalar T>
class NestedList {
 public:
  template <class A>
  requires std::convertible_to<A, T> NestedList(A value) : value_(static_cast<T>(value)) {}
  NestedList(std::initializer_list<NestedList> items) : items_(items), is_list_(true) {}

  Shape shape() const {
    Shape s;
    for (const NestedList* l = this; l->is_list_; l = l->items_.begin()) {
      s.push_back(static_cast<Index>(l->items_.size()));
      if (l->items_.size() == 0) break;
    }
    return s;
  }
  /// Throws ShapeError unless the entries form `shape` from `depth` on.
  void check(const Shape& shape, int depth) const {
    const Index size = static_cast<Index>(items_.size());
    if (is_list_ != (depth < shape.rank()) || (is_list_ && size != shape[depth]))
      fail<ShapeError>("tensor", "nested lists are ragged; an entry at depth ", depth, " is ",
                       is_list_ ? text("a list of ", size) : std::string("a number"),
                       ", the first ones make ", shape, "; expected equal lengths");
    for (const NestedList& item : items_) item.check(shape, depth + 1);
  }
  /// Writes the elements from `to` on and returns the end.
  T* copy(T* to) const {
    if (!is_list_) *to++ = value_;
    for (const NestedList& item : items_) to = item.copy(to);
    return to;
  }

 private:
  T value_{};
  std::initializer_list<NestedList> items_{};
  bool is_list_ = false;
};

}  // namespace detail

/// A tensor from nested lists: `tensor<float>({{1, 2}, {3, 4}})` is (2, 2), `tensor<float>(5)` has rank 0.
/// Throws ShapeError when lists at one depth differ in length, or lists are deeper than the highest rank.
template <Scalar T>
Tensor<T> tensor(std::type_identity_t<detail::NestedList<T>> values) {
  const Shape shape = values.shape();
  values.check(shape, 0);
  Tensor<T> y(shape);
  values.copy(y.fresh_data());
  return y;
}

/// A vector with the elements of a std::vector, a std::span, an array. Tensor's constructor takes a shape
/// with them; `to_vector()` and `span()` lead back.
template <class R>
requires requires(const R& r) { std::span(r); }
auto tensor(const R& values) {
  const auto s = std::span(values);
  using T = std::remove_cv_t<typename decltype(s)::element_type>;
  return Tensor<T>({static_cast<Index>(s.size())}, std::span<const T>(s));
}

}  // namespace wengert::inline WENGERT_ISA
