// Resizing of images by nearest neighbour and by linear interpolation, and its adjoint. Both work a row at a
// time: rows are mixed first, over whole rows of pixels and channels, then pixels within the row. The adjoint
// gathers, so that threads never meet. Floor: kernels.
#pragma once

#include <array>
#include <cmath>

#include <wengert/kernels/copy.hpp>
#include <wengert/kernels/runs.hpp>
#include <wengert/memory/buffer.hpp>

namespace wengert::inline WENGERT_ISA {

/// How `upsample` fills in pixels: the nearest one, or interpolation between neighbours along every spatial
/// axis (linear, bilinear, trilinear).
enum class UpsampleMode : std::uint8_t { nearest, linear };

namespace kernels {

/// One spatial axis: element o of `out` lies at o * ratio (nearest, aligned corners), or at
/// (o + 1/2) * ratio - 1/2, among the elements of `in`.
struct ResizeAxis {
  Index in = 1, out = 1;
  double ratio = 1;
  UpsampleMode mode = UpsampleMode::nearest;
  bool align_corners = false;

  /// Element o reads `first` and, where `weight` is not 0, its successor: y = (1 - weight) x[first] + weight
  /// x[first + 1]. PyTorch's formulas; as there, nearest computes in single precision.
  struct Tap {
    Index first;
    double weight;
  };
  Tap tap(Index o) const noexcept {
    if (in == out) return {o, 0};
    if (mode == UpsampleMode::nearest) {
      if (out == 2 * in) return {o / 2, 0};
      const float at = std::floor(static_cast<float>(o) * static_cast<float>(ratio));
      return {std::min(static_cast<Index>(at), in - 1), 0};
    }
    const double d = static_cast<double>(o);
    const double at = align_corners ? d * ratio : std::max(0.0, (d + 0.5) * ratio - 0.5);
    const Index first = std::min(static_cast<Index>(at), in - 1);
    const double weight = std::min(1.0, std::max(0.0, at - static_cast<double>(first)));
    return {first, first + 1 < in ? weight : 0};
  }
};

/// The axes of a resizing, from (batch, in..., channels) to (batch, out..., channels).
struct Resize {
  Index batch = 1, channels = 1;
  ResizeAxis axis[3];  // depth, height, width
};

namespace detail {

/// Every tap of an axis, and for each input element the outputs that read it.
template <Field T>
class ResizeTable {
 public:
  explicit ResizeTable(const ResizeAxis& axis)
      : numbers_(axis.out + axis.in + 1), weights_(2 * axis.out), outputs_(axis.out) {
    Index* const readers = numbers_.data() + axis.out;
    Index reached = 0;  // inputs whose first reader is known
    for (Index o = 0; o < axis.out; ++o) {
      const ResizeAxis::Tap t = axis.tap(o);
      numbers_[o] = t.first;
      weights_[2 * o] = static_cast<T>(1 - t.weight);
      weights_[2 * o + 1] = static_cast<T>(t.weight);
      const Index last = t.first + (t.weight != 0 ? 1 : 0);
      while (reached <= last) readers[reached++] = o;
    }
    while (reached <= axis.in) readers[reached++] = axis.out;
  }

  Index first(Index o) const noexcept { return numbers_[o]; }
  /// Of the tap `first(o) + k`, k = 0 or 1.
  T weight(Index o, Index k) const noexcept { return weights_[2 * o + k]; }
  bool has(Index o, Index k) const noexcept { return !(weight(o, k) == T(0)); }
  /// Calls `f(o, weight)` for every output that reads input i, in order.
  template <class F>
  void for_readers(Index i, F f) const {
    for (Index o = numbers_[outputs_ + i]; o < outputs_ && first(o) <= i; ++o)
      if (const Index k = i - first(o); k <= 1 && has(o, k)) f(o, weight(o, k));
  }

 private:
  Scratch<Index> numbers_;  // first tap of each output; first reader of each input
  Scratch<T> weights_;
  Index outputs_;
};

/// sum (+)= w x over a row; the first row is stored.
template <Field T>
WENGERT_INLINE void mix_row(const T* x, T w, Index n, T* sum, bool& started) noexcept {
  if (started)
    scale_run<true>(x, w, n, sum);
  else
    scale_run<false>(x, w, n, sum);
  started = true;
}

/// A row of output pixels from a row of input pixels; C channels, or c where C is 0.
template <Index C, Field T>
void resize_pixels(const ResizeTable<T>& table, const T* x, Index c, Index out, T* y) {
  for (Index o = 0; o < out; ++o) {
    const T v = table.weight(o, 0), w = table.weight(o, 1);
    if constexpr (C > 0) {  // few channels: vectors would be all tail
      const T *const left = x + table.first(o) * C, *const right = left + C;
      T* const to = y + o * C;
      if (w == T(0))
        for (Index k = 0; k < C; ++k) to[k] = left[k];
      else if (v == T(0))
        for (Index k = 0; k < C; ++k) to[k] = right[k];
      else
        for (Index k = 0; k < C; ++k) to[k] = v * left[k] + w * right[k];
    } else {
      const T *const left = x + table.first(o) * c, *const right = left + c;
      if (w == T(0))
        copy_run<false>(left, c, y + o * c);
      else if (v == T(0))
        copy_run<false>(right, c, y + o * c);
      else
        blend_run(left, v, right, w, c, y + o * c);
    }
  }
}

/// The adjoint: a row of dx, stored or added to, from a row of dy.
template <Index C, Field T>
void resize_pixels_vjp(const ResizeTable<T>& table, const T* dy, Index c, Index in, T* dx, bool add) {
  constexpr Index lanes = Vec<T>::lanes;
  for (Index i = 0; i < in; ++i) {
    if constexpr (C > 0) {
      T* const to = dx + i * C;
      T sum[C];
      for (Index k = 0; k < C; ++k) sum[k] = add ? to[k] : T(0);
      table.for_readers(i, [&](Index o, T w) {
        for (Index k = 0; k < C; ++k) sum[k] = sum[k] + w * dy[o * C + k];
      });
      for (Index k = 0; k < C; ++k) to[k] = sum[k];
    } else {
      T* const to = dx + i * c;
      Index k = 0;
      for (; k + lanes <= c; k += lanes) {
        Vec<T> sum = add ? Vec<T>::load(to + k) : Vec<T>(T(0));
        table.for_readers(i, [&](Index o, T w) { sum += Vec<T>(w) * Vec<T>::load(dy + o * c + k); });
        sum.store(to + k);
      }
      if (k < c) {
        Vec<T> sum = add ? Vec<T>::load_partial(to + k, c - k) : Vec<T>(T(0));
        table.for_readers(
            i, [&](Index o, T w) { sum += Vec<T>(w) * Vec<T>::load_partial(dy + o * c + k, c - k); });
        sum.store_partial(to + k, c - k);
      }
    }
  }
}

}  // namespace detail

/// y = x resized.
template <Field T>
void resize(const Resize& r, const T* x, T* y) {
  const auto& [depth, height, width] = r.axis;
  const Index c = r.channels, in = width.in, out = width.out, from_row = in * c, to_row = out * c;
  const Index rows = r.batch * depth.out * height.out;
  if (rows * to_row == 0) return;
  const detail::ResizeTable<T> d(depth), h(height), w(width);
  const auto pixels = c == 1   ? &detail::resize_pixels<1, T>
                      : c == 3 ? &detail::resize_pixels<3, T>
                               : &detail::resize_pixels<0, T>;
  const auto rows_of = [=, &d, &h, &w, &r](Index begin, Index end, T* scratch) {
    const Index d_in = r.axis[0].in, h_in = r.axis[1].in, d_out = r.axis[0].out, h_out = r.axis[1].out;
    for (Index row = begin; row < end; ++row) {
      const Index oh = row % h_out, od = row / h_out % d_out, n = row / h_out / d_out;
      const T* mixed = x + ((n * d_in + d.first(od)) * h_in + h.first(oh)) * from_row;
      if (d.has(od, 1) || h.has(oh, 1)) {
        bool started = false;
        for (Index i = 0; i < 2; ++i)
          for (Index j = 0; j < 2; ++j)
            if (d.has(od, i) && h.has(oh, j))
              detail::mix_row(mixed + (i * h_in + j) * from_row, d.weight(od, i) * h.weight(oh, j), from_row,
                              scratch, started);
        mixed = scratch;
      }
      pixels(w, mixed, c, out, y + row * to_row);
    }
  };
  parallel_for_scratch<T>(rows, std::max<Index>(1, copy_grain / (from_row + to_row)), from_row, rows_of);
}

/// dx = the adjoint of `resize` applied to dy, or += when `add`.
template <Field T>
void resize_vjp(const Resize& r, const T* dy, T* dx, bool add) {
  const auto& [depth, height, width] = r.axis;
  const Index c = r.channels, in = width.in, from_row = width.out * c, to_row = in * c;
  const Index rows = r.batch * depth.in * height.in;
  if (rows * to_row == 0) return;
  const detail::ResizeTable<T> d(depth), h(height), w(width);
  const auto pixels = c == 1   ? &detail::resize_pixels_vjp<1, T>
                      : c == 3 ? &detail::resize_pixels_vjp<3, T>
                               : &detail::resize_pixels_vjp<0, T>;
  const auto rows_of = [=, &d, &h, &w, &r](Index begin, Index end, T* scratch) {
    const Index d_in = r.axis[0].in, h_in = r.axis[1].in, d_out = r.axis[0].out, h_out = r.axis[1].out;
    for (Index row = begin; row < end; ++row) {
      const Index ih = row % h_in, id = row / h_in % d_in, n = row / h_in / d_in;
      bool started = false;
      d.for_readers(id, [&](Index od, T wd) {
        h.for_readers(ih, [&](Index oh, T wh) {
          detail::mix_row(dy + ((n * d_out + od) * h_out + oh) * from_row, wd * wh, from_row, scratch,
                          started);
        });
      });
      T* const to = dx + row * to_row;
      if (started)
        pixels(w, scratch, c, in, to, add);
      else if (!add)
        fill_run(T(0), to_row, to);
    }
  };
  const Index per_row = from_row * (depth.out * height.out / (depth.in * height.in) + 1);
  parallel_for_scratch<T>(rows, std::max<Index>(1, copy_grain / per_row), from_row, rows_of);
}

}  // namespace kernels

}  // namespace wengert::inline WENGERT_ISA
