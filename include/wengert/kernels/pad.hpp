// Padding around any axes, and its adjoint, which gathers: each element of dx adds up what it was copied to,
// so that threads never meet. Floor: kernels.
#pragma once

#include <array>

#include <wengert/base/shape.hpp>
#include <wengert/kernels/copy.hpp>
#include <wengert/kernels/runs.hpp>

namespace wengert::inline WENGERT_ISA {

/// What padding holds: one value; the image mirrored at its edge, which is not repeated; the edge repeated.
enum class PadMode : std::uint8_t { constant, reflect, replicate };

namespace kernels {

/// One axis of `in` elements with `before` and `after` more around them.
struct PadAxis {
  Index in = 1, before = 0, after = 0;

  constexpr Index out() const noexcept { return before + in + after; }
  /// Where element o of the padded axis comes from; -1 for a constant.
  constexpr Index source(PadMode mode, Index o) const noexcept {
    const Index i = o - before;
    if (i >= 0 && i < in) return i;
    if (mode == PadMode::constant) return -1;
    if (mode == PadMode::replicate) return i < 0 ? 0 : in - 1;
    return i < 0 ? -i : 2 * (in - 1) - i;
  }
  /// Calls `f(o)` for every element o of the padded axis that comes from i: i's own place first.
  template <class F>
  constexpr void for_targets(PadMode mode, Index i, F f) const {
    f(before + i);
    if (mode == PadMode::replicate) {
      if (i == 0)
        for (Index o = 0; o < before; ++o) f(o);
      if (i == in - 1)
        for (Index o = before + in; o < out(); ++o) f(o);
    } else if (mode == PadMode::reflect) {
      if (i > 0 && i <= before) f(before - i);
      const Index mirrored = 2 * (in - 1) - i;
      if (mirrored >= in && mirrored < in + after) f(before + mirrored);
    }
  }
};

/// The axes of a padding, neighbours without any merged: outer axes, then `row`, then runs of `inner`
/// elements that stay together.
struct PadPlan {
  std::array<PadAxis, max_rank> outer{};
  PadAxis row;
  Index inner = 1;
  int outer_rank = 0;
  PadMode mode;

  PadPlan(const Shape& x, const Shape& before, const Shape& after, PadMode how) : mode(how) {
    std::array<PadAxis, max_rank> axes{};
    std::size_t n = 0;
    bool merges = false;
    for (int i = 0; i < x.rank(); ++i) {
      const bool plain = before[i] == 0 && after[i] == 0;
      if (plain && merges)
        axes[n - 1].in *= x[i];
      else
        axes[n++] = {x[i], before[i], after[i]};
      merges = plain;
    }
    if (merges) inner = axes[--n].in;
    if (n > 0) row = axes[--n];
    std::copy_n(axes.begin(), n, outer.begin());
    outer_rank = static_cast<int>(n);
  }

  Index rows_in() const noexcept {
    Index n = 1;
    for (int k = 0; k < outer_rank; ++k) n *= outer[static_cast<std::size_t>(k)].in;
    return n;
  }
  Index rows_out() const noexcept {
    Index n = 1;
    for (int k = 0; k < outer_rank; ++k) n *= outer[static_cast<std::size_t>(k)].out();
    return n;
  }
  /// The row of x that row o of y comes from; -1 for a constant.
  Index source_row(Index o) const noexcept {
    Index from = 0, step = 1;
    for (int k = outer_rank; k-- > 0;) {
      const PadAxis& a = outer[static_cast<std::size_t>(k)];
      const Index i = a.source(mode, o % a.out());
      if (i < 0) return -1;
      from += i * step;
      step *= a.in;
      o /= a.out();
    }
    return from;
  }
  /// Calls `f(row of y)` for every row of y that comes from row i of x.
  template <class F>
  void for_target_rows(Index i, F f) const {
    for_targets_from(outer_rank - 1, i, 0, 1, f);
  }

 private:
  template <class F>
  void for_targets_from(int k, Index i, Index row_of_y, Index step, F f) const {
    if (k < 0) return f(row_of_y);
    const PadAxis& a = outer[static_cast<std::size_t>(k)];
    a.for_targets(mode, i % a.in, [&](Index o) {
      for_targets_from(k - 1, i / a.in, row_of_y + o * step, step * a.out(), f);
    });
  }
};

/// y = x with padding around it.
template <Scalar T>
void pad(const PadPlan& plan, const T* x, T value, T* y) {
  const Index inner = plan.inner, wide = plan.row.in * inner, width = plan.row.out() * inner;
  if (width == 0) return;
  parallel_for(plan.rows_out(), std::max<Index>(1, copy_grain / width), [=, &plan](Index begin, Index end) {
    const PadAxis& row = plan.row;
    for (Index o = begin; o < end; ++o) {
      T* const to = y + o * width;
      const Index i = plan.source_row(o);
      if (i < 0) {
        fill_run(value, width, to);
        continue;
      }
      const T* const from = x + i * wide;
      const auto edge = [&](Index first, Index last) {
        if (plan.mode == PadMode::constant)
          fill_run(value, (last - first) * inner, to + first * inner);
        else
          for (Index k = first; k < last; ++k)
            copy_run<false>(from + row.source(plan.mode, k) * inner, inner, to + k * inner);
      };
      edge(0, row.before);
      copy_run<false>(from, wide, to + row.before * inner);
      edge(row.before + row.in, row.out());
    }
  });
}

/// dx = what of dy came from x, or += when `add`; sums in an order that the plan alone decides.
template <Field T>
void pad_vjp(const PadPlan& plan, const T* dy, T* dx, bool add) {
  const Index inner = plan.inner, wide = plan.row.in * inner, width = plan.row.out() * inner;
  if (wide == 0) return;
  parallel_for(plan.rows_in(), std::max<Index>(1, copy_grain / width), [=, &plan](Index begin, Index end) {
    const PadAxis& row = plan.row;
    for (Index i = begin; i < end; ++i) {
      T* const to = dx + i * wide;
      bool adds = add;
      plan.for_target_rows(i, [&](Index o) {
        const T* const from = dy + o * width;
        if (adds)
          copy_run<true>(from + row.before * inner, wide, to);
        else
          copy_run<false>(from + row.before * inner, wide, to);
        adds = true;
        if (plan.mode == PadMode::constant) return;
        for (Index k = 0; k < row.before; ++k)
          copy_run<true>(from + k * inner, inner, to + row.source(plan.mode, k) * inner);
        for (Index k = row.before + row.in; k < row.out(); ++k)
          copy_run<true>(from + k * inner, inner, to + row.source(plan.mode, k) * inner);
      });
    }
  });
}

}  // namespace kernels

}  // namespace wengert::inline WENGERT_ISA
