// Where the windows of a pool lie: tables, an axis each, that serve fixed and adaptive windows alike, so that
// the kernels divide nothing at run time. Floor: kernels.
#pragma once

#include <wengert/base/window.hpp>
#include <wengert/kernels/parallel.hpp>

namespace wengert::inline WENGERT_ISA::kernels {

/// The windows of a pool. Adaptive: of the axes of `window` only in and out count; window o covers the inputs
/// o * in / out, rounded down, to (o + 1) * in / out, rounded up.
struct PoolWindow {
  Window window;
  bool adaptive = false;
  bool count_padding = false;  ///< padding, except beyond its own end, counts in an average's divisor

  /// The highest number of taps along one axis.
  constexpr Index kernel(int axis) const noexcept {
    const WindowAxis& a = window.axis[axis];
    if (!adaptive) return a.kernel;
    return a.out == 0 || a.in % a.out == 0 ? a.in / std::max<Index>(1, a.out) : a.in / a.out + 2;
  }
  constexpr Index taps() const noexcept { return kernel(0) * kernel(1) * kernel(2); }
};

/// One window along one axis: taps begin .. end - 1 lie in the image, tap t at first + t * dilation.
struct PoolSpan {
  Index first, begin, end;
  Index count;  ///< this axis' factor of an average's divisor
};
/// The windows that may cover one input along one axis: begin .. end - 1.
struct PoolCover {
  Index begin, end;
};

/// The tables of the three axes, and what the kernels need of the sizes. Made by the caller of parallel_for,
/// copied into its body as `View`.
class PoolTables {
 public:
  struct View {
    Index batch, channels;
    Index in[3], out[3], kernel[3], dilation[3];
    const PoolSpan* span[3];
    const PoolCover* cover[3];  // null unless asked for
    Index overlap = 1;          // at most so many windows cover one input

    Index inputs() const noexcept { return in[0] * in[1] * in[2]; }
    Index outputs() const noexcept { return out[0] * out[1] * out[2]; }
  };

  PoolTables(const PoolWindow& w, bool covers)
      : spans_(w.window.axis[0].out + w.window.axis[1].out + w.window.axis[2].out),
        covers_(covers ? w.window.axis[0].in + w.window.axis[1].in + w.window.axis[2].in : 0) {
    view_.batch = w.window.batch;
    view_.channels = w.window.channels;
    PoolSpan* spans = spans_.data();
    PoolCover* cover = covers_.data();
    for (int i = 0; i < 3; ++i) {
      const WindowAxis& a = w.window.axis[i];
      view_.in[i] = a.in;
      view_.out[i] = a.out;
      view_.kernel[i] = w.kernel(i);
      view_.dilation[i] = w.adaptive ? 1 : a.dilation;
      view_.span[i] = spans;
      view_.cover[i] = covers ? cover : nullptr;
      for (Index o = 0; o < a.out; ++o) spans[o] = w.adaptive ? adaptive(a, o) : fixed(a, o, w.count_padding);
      if (covers) {
        fill_covers(i, cover);
        cover += a.in;
      }
      spans += a.out;
    }
  }

  View view() const noexcept { return view_; }

 private:
  static PoolSpan adaptive(const WindowAxis& a, Index o) noexcept {
    const Index first = o * a.in / a.out, end = ((o + 1) * a.in + a.out - 1) / a.out;
    return {first, 0, end - first, end - first};
  }
  static PoolSpan fixed(const WindowAxis& a, Index o, bool count_padding) noexcept {
    const Index first = a.first(o), begin = a.tap_begin(o), end = std::max(begin, a.tap_end(o));
    const Index padded = std::min(first + a.kernel, a.in + a.before) - first;
    return {first, begin, end, count_padding ? padded : end - begin};
  }
  // Both ends of a window, holes between dilated taps included, grow with o: one sweep.
  void fill_covers(int axis, PoolCover* cover) noexcept {
    const PoolSpan* span = view_.span[axis];
    const Index out = view_.out[axis], step = view_.dilation[axis];
    const auto end_of = [=, kernel = view_.kernel[axis]](const PoolSpan& s) {
      return step == 1 ? s.first + s.end : s.first + (kernel - 1) * step + 1;
    };
    Index lo = 0, hi = 0, most = 0;
    for (Index i = 0; i < view_.in[axis]; ++i) {
      while (lo < out && end_of(span[lo]) <= i) ++lo;
      while (hi < out && span[hi].first <= i) ++hi;
      cover[i] = {lo, std::max(lo, hi)};
      most = std::max(most, hi - lo);
    }
    view_.overlap *= most;
  }

  Scratch<PoolSpan> spans_;
  Scratch<PoolCover> covers_;
  View view_;
};

namespace detail {

inline constexpr Index pool_grain = 128 * 1024;  // element visits a block: about 3 us

/// Calls `body(row, begin, end)` for pieces of the rows of an image's last spatial axis, `width` pixels each;
/// `cost` element visits a pixel.
template <class Body>
void for_pool_rows(Index rows, Index width, Index cost, Body body) {
  if (rows == 0 || width == 0) return;
  const Index piece = std::clamp<Index>(pool_grain / std::max<Index>(1, cost), 1, width);
  const Index pieces = (width - 1) / piece + 1;
  const Index grain = std::max<Index>(1, pool_grain / std::max<Index>(1, cost * piece));
  parallel_for(rows * pieces, grain, [=](Index begin, Index end) {
    for (Index j = begin; j < end; ++j) {
      const Index from = j % pieces * piece;
      body(j / pieces, from, std::min(width, from + piece));
    }
  });
}

}  // namespace detail

}  // namespace wengert::inline WENGERT_ISA::kernels
