// Shapes, strides, axes and the broadcasting rule (NumPy's). Floor: base.
#pragma once

#include <algorithm>
#include <array>
#include <initializer_list>
#include <limits>
#include <span>
#include <string>
#include <string_view>

#include <wengert/base/error.hpp>
#include <wengert/base/scalar.hpp>

namespace wengert::inline WENGERT_ISA {

/// The highest rank a tensor may have; dimensions are stored inline.
inline constexpr int max_rank = 8;

/// A short list of integers stored inline: the dimensions of a tensor, its strides, or a set of axes.
class Shape {
 public:
  constexpr Shape() noexcept = default;
  constexpr Shape(std::initializer_list<Index> dims) : Shape(std::span(dims.begin(), dims.size())) {}
  constexpr explicit Shape(std::span<const Index> dims) {
    if (dims.size() > max_rank)
      fail<ShapeError>("shape", "rank ", dims.size(), " is too high; expected at most ", max_rank);
    for (Index d : dims) dims_[static_cast<std::size_t>(rank_++)] = d;
  }
  /// `rank` entries, each `value`.
  static constexpr Shape filled(int rank, Index value) {
    if (rank > max_rank)
      fail<ShapeError>("shape", "rank ", rank, " is too high; expected at most ", max_rank);
    Shape s;
    for (int i = 0; i < rank; ++i) s.push_back(value);
    return s;
  }

  constexpr int rank() const noexcept { return rank_; }
  constexpr bool empty() const noexcept { return rank_ == 0; }
  constexpr Index operator[](int i) const noexcept { return dims_[static_cast<std::size_t>(i)]; }
  constexpr Index& operator[](int i) noexcept { return dims_[static_cast<std::size_t>(i)]; }
  constexpr Index back() const noexcept { return (*this)[rank_ - 1]; }
  constexpr const Index* begin() const noexcept { return dims_.data(); }
  constexpr const Index* end() const noexcept { return dims_.data() + rank_; }
  constexpr Index* begin() noexcept { return dims_.data(); }
  constexpr Index* end() noexcept { return dims_.data() + rank_; }
  constexpr std::span<const Index> span() const noexcept { return {begin(), end()}; }

  constexpr void push_back(Index d) {
    if (rank_ == max_rank) fail<ShapeError>("shape", "rank is too high; expected at most ", max_rank);
    dims_[static_cast<std::size_t>(rank_++)] = d;
  }
  constexpr void insert(int at, Index d) {
    push_back(d);
    for (int i = rank_ - 1; i > at; --i) (*this)[i] = (*this)[i - 1];
    (*this)[at] = d;
  }
  constexpr void erase(int at) noexcept {
    for (--rank_; at < rank_; ++at) (*this)[at] = (*this)[at + 1];
  }

  /// Product of the dimensions; 1 for rank 0. Unchecked: see `checked_size`.
  constexpr Index size() const noexcept { return product(0, rank_); }
  /// Product of the dimensions of the axes [first, last).
  constexpr Index product(int first, int last) const noexcept {
    std::uint64_t n = 1;  // unsigned: a size that does not fit wraps around, for checked_size to refuse
    for (int i = first; i < last; ++i) n *= static_cast<std::uint64_t>((*this)[i]);
    return static_cast<Index>(n);
  }

  /// As Python prints a tuple: "()", "(3)", "(3, 4)".
  std::string str() const { return detail::text(*this); }
  [[gnu::noinline, gnu::cold]] void append_to(detail::Message& out) const {
    out.push_back('(');
    for (int i = 0; i < rank_; ++i) {
      if (i != 0) out.append({", ", 2});
      detail::append_whole(out, "%lld", static_cast<long long>((*this)[i]));
    }
    out.push_back(')');
  }

  friend constexpr bool operator==(const Shape& a, const Shape& b) noexcept {
    if (a.rank_ != b.rank_) return false;
    for (int i = 0; i < a.rank_; ++i)  // not std::equal: a call of memcmp costs more than the loop
      if (a[i] != b[i]) return false;
    return true;
  }

 private:
  std::array<Index, max_rank> dims_{};
  int rank_ = 0;
};

using Strides = Shape;

/// Row-major strides of a contiguous tensor.
constexpr Strides contiguous_strides(const Shape& shape) noexcept {
  Strides s = shape;
  std::uint64_t step = 1;  // as in Shape::product
  for (int i = shape.rank(); i-- > 0; step *= static_cast<std::uint64_t>(shape[i]))
    s[i] = static_cast<Index>(step);
  return s;
}

/// Number of elements, after checking that no dimension is negative and that `bytes_each` times the product
/// of those above 0 fits the address space: products of some dimensions then never overflow, also beside an
/// axis of 0. (NumPy has the same rule.) Throws ShapeError.
constexpr Index checked_size(std::string_view op, const Shape& shape, std::size_t bytes_each = 1) {
  Index n = 1;
  bool zero = false;
  for (Index d : shape) {
    if (d < 0) fail<ShapeError>(op, "negative dimension; shape is ", shape, "; expected dimensions >= 0");
    zero |= d == 0;
  }
  for (Index d : shape)
    if (__builtin_mul_overflow(n, d == 0 ? 1 : d, &n) ||
        n > std::numeric_limits<Index>::max() / 2 / Index(bytes_each))
      fail<ShapeError>(op, "number of elements overflows; shape is ", shape,
                       "; expected a tensor that fits memory");
  return zero ? 0 : n;
}

/// `axis` counted from the front; negative axes count from the back. Throws ShapeError.
constexpr int normalize_axis(std::string_view op, Index axis, int rank) {
  if (axis < -rank || axis >= rank) {
    if (rank == 0)
      fail<ShapeError>(op, "axis ", axis, " is out of range; rank is ", rank, "; expected no axis");
    else
      fail<ShapeError>(op, "axis ", axis, " is out of range; rank is ", rank, "; expected ", -rank, "..",
                       rank - 1);
  }
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

/// Whether `a` and `b` have a common shape under NumPy's rule: aligned at the back, a dimension of 1
/// stretches. `out`, which may be one of them, becomes that shape.
constexpr bool try_broadcast(const Shape& a, const Shape& b, Shape& out) noexcept {
  const Shape longer = a.rank() >= b.rank() ? a : b, shorter = a.rank() >= b.rank() ? b : a;
  out = longer;
  const int shift = longer.rank() - shorter.rank();
  for (int i = 0; i < shorter.rank(); ++i) {
    const Index l = longer[i + shift], s = shorter[i];
    if (l == 1)
      out[i + shift] = s;
    else if (s != 1 && s != l)
      return false;
  }
  return true;
}

/// Common shape of `a` and `b`. Throws ShapeError naming `op` and both shapes.
constexpr Shape broadcast_shapes(std::string_view op, const Shape& a, const Shape& b) {
  Shape out;
  if (!try_broadcast(a, b, out))
    fail<ShapeError>(op, "shapes do not broadcast; a is ", a, ", b is ", b,
                     "; expected equal dimensions or 1, aligned at the back");
  return out;
}

/// Strides that read a tensor of `shape` and `strides` as if it had shape `to`: 0 along stretched axes.
constexpr Strides broadcast_strides(const Shape& shape, const Strides& strides, const Shape& to) noexcept {
  Strides out = Shape::filled(to.rank(), 0);
  const int shift = to.rank() - shape.rank();
  for (int i = 0; i < shape.rank(); ++i)
    out[i + shift] = shape[i] == 1 && to[i + shift] != 1 ? 0 : strides[i];
  return out;
}

}  // namespace wengert::inline WENGERT_ISA
