// What operators share that only rearrange elements: a rule for results in the same order, and names as
// template arguments, so that operators with one rule keep their own names on the tape. Floor: ops.
#pragma once

#include <algorithm>
#include <string_view>

#include <wengert/core/record.hpp>

namespace wengert::inline WENGERT_ISA::detail {

/// An operator's name as a template argument.
template <std::size_t N>
struct OpName {
  char text[N]{};
  constexpr OpName(const char (&s)[N]) { std::copy_n(s, N, text); }
  constexpr std::string_view view() const noexcept { return {text, N - 1}; }
};

/// y holds the elements of x in the same row-major order: dx += dy, in dy's own memory where it can be.
template <OpName Name, Scalar T>
struct SameOrderRule {
  static constexpr std::string_view name = Name.view();
  void backward(Vjp& v) const {
    if (!v.wants(0)) return;
    const T* dy = v.dy<T>();
    const GradRef<T> dx = v.into_over_dy<T>(0);
    if (dx.data != dy) kernels::accumulate(dy, v.size(), dx.data, dx.add);
  }
};

/// Records `rule` for y, for element types that can carry a gradient.
template <class Rec, Scalar T, class MakeRule>
void record_if(const Rec& rec, Tensor<T>& y, MakeRule make_rule) {
  if constexpr (Field<T>)
    if (rec) rec.record(y, make_rule());
}

/// x as three axes around one: (outer, axis, inner).
struct AxisSplit {
  Index outer, axis, inner;
  AxisSplit(const Shape& shape, int at) noexcept
      : outer(shape.product(0, at)),
        axis(shape.rank() > 0 ? shape[at] : 1),
        inner(shape.product(at + 1, shape.rank())) {}
};

}  // namespace wengert::inline WENGERT_ISA::detail
