// A convolution's passes as correlations: which inputs, with which weights, each output sums. Floor: kernels.
#pragma once

#include <numeric>

#include <wengert/kernels/conv_shape.hpp>

namespace wengert::inline WENGERT_ISA::kernels::detail {

/// One axis of a correlation: output j < count stands at out_first + j * out_step and sums inputs
/// j * in_step + offset_first + i * offset_step, i < taps, times weights tap_first + i * tap_step.
struct AxisPlan {
  Index count = 1, out_first = 0, out_step = 1;
  Index in = 1, in_step = 1;
  Index taps = 1, tap_first = 0, tap_step = 1;
  Index offset_first = 0, offset_step = 1;

  /// Inputs that `outputs` neighbouring outputs reach over.
  constexpr Index reach(Index outputs) const noexcept {
    return (outputs - 1) * in_step + (taps - 1) * offset_step + 1;
  }
  /// Taps begin .. end - 1 of output j read within the input.
  constexpr Index tap_begin(Index j) const noexcept {
    const Index at = j * in_step + offset_first;
    return at >= 0 ? 0 : std::min(taps, (-at + offset_step - 1) / offset_step);
  }
  constexpr Index tap_end(Index j) const noexcept {
    const Index left = in - j * in_step - offset_first;
    if (left > (taps - 1) * offset_step) return taps;
    return left <= 0 ? 0 : (left + offset_step - 1) / offset_step;
  }
  /// Whether no output reads outside the input.
  constexpr bool inside() const noexcept { return offset_first >= 0 && offset_first + reach(count) <= in; }
};

/// The forward pass along one axis.
constexpr AxisPlan forward_axis(const WindowAxis& a) noexcept {
  return {a.out, 0, 1, a.in, a.stride, a.kernel, 0, 1, -a.before, a.dilation};
}

/// The backward pass to the input along one axis, for the positions phase, phase + stride, ...: those share
/// their taps, and step through the outputs one by one. Weights come last tap first, so that offsets rise.
constexpr AxisPlan data_axis(const WindowAxis& a, Index phase) noexcept {
  const Index common = std::gcd(a.stride, a.dilation), step = a.stride / common;
  AxisPlan p{(a.in - phase + a.stride - 1) / a.stride,
             phase,
             a.stride,
             a.out,
             1,
             0,
             0,
             -step,
             0,
             a.dilation / common};
  Index first = 0;  // the first tap that meets this phase
  while (first < step && (phase + a.before - first * a.dilation) % a.stride != 0) ++first;
  if (first >= std::min(step, a.kernel)) return p;
  p.taps = (a.kernel - 1 - first) / step + 1;
  p.tap_first = first + (p.taps - 1) * step;
  p.offset_first = (phase + a.before - p.tap_first * a.dilation) / a.stride;
  return p;
}

/// The same for blocks of `pixels` neighbours, a multiple of the stride: block j stands at pixels * j, and
/// sums all inputs that any of its pixels meets. Tap t is that of `merged_tap`. Without dilation.
constexpr AxisPlan merged_data_axis(const WindowAxis& a, Index pixels) noexcept {
  const auto floor = [&](Index i) { return i >= 0 ? i / a.stride : -((-i + a.stride - 1) / a.stride); };
  const Index first = floor(a.before - a.kernel + a.stride), last = floor(a.before + pixels - 1);
  return {a.in / pixels, 0, pixels, a.out, pixels / a.stride, last - first + 1, 0, 1, first, 1};
}

/// Which of the window's taps pixel i of such a block has at tap t; may lie outside of the window.
constexpr Index merged_tap(const WindowAxis& a, Index pixels, Index i, Index t) noexcept {
  return i + a.before - (merged_data_axis(a, pixels).offset_first + t) * a.stride;
}

/// Calls f(depth, height, width) for every phase of the backward pass to the input, along the width from
/// position `begin` on.
template <class F>
void for_phases(const Window& v, F f, Index begin = 0) {
  const auto phases = [](const WindowAxis& a, Index from) { return std::min(a.stride, a.in - from); };
  for (Index d = 0; d < phases(v.depth(), 0); ++d)
    for (Index h = 0; h < phases(v.height(), 0); ++h)
      for (Index w = begin; w < begin + phases(v.width(), begin); ++w)
        f(data_axis(v.depth(), d), data_axis(v.height(), h), data_axis(v.width(), w));
}

/// The outputs of an axis in stretches that read the same taps within the input: output j of stretch r,
/// begin <= j < end, reads taps tap_begin .. tap_end - 1.
struct TapRanges {
  static constexpr Index most = 16;
  struct Range {
    Index begin, end, tap_begin, tap_end;
  };
  Range range[most] = {};
  Index count = 0;  // most + 1 when there are more

  explicit TapRanges(const AxisPlan& a) noexcept {
    for (Index j = 0; j < a.count; ++j) {
      const Index begin = a.tap_begin(j), end = std::max(begin, a.tap_end(j));
      Range* const last = range + count - 1;
      if (count > 0 && last->tap_begin == begin && last->tap_end == end) {
        ++last->end;
      } else if (count == most) {
        count = most + 1;
        return;
      } else {
        range[count++] = {j, j + 1, begin, end};
      }
    }
  }
};

/// The stretches of all axes: pixels of one class, a stretch of each axis, read the same taps.
struct PixelClasses {
  static constexpr Index most = 32;
  TapRanges depth, height, width;

  PixelClasses(const AxisPlan& d, const AxisPlan& h, const AxisPlan& w) noexcept
      : depth(d), height(h), width(w) {}
  Index count() const noexcept { return depth.count * height.count * width.count; }
  bool few() const noexcept {
    return std::max({depth.count, height.count, width.count}) <= TapRanges::most && count() <= most;
  }
  /// As if all taps lay within the input, for a slab that holds the padding.
  void unite(const AxisPlan& d, const AxisPlan& h, const AxisPlan& w) noexcept {
    const auto one = [](TapRanges& r, const AxisPlan& a) {
      r.count = 1;
      r.range[0] = {0, a.count, 0, a.taps};
    };
    one(depth, d), one(height, h), one(width, w);
  }
  /// Calls f(class, depth range, height range, width range).
  template <class F>
  void each(F f) const {
    for (Index i = 0; i < count(); ++i)
      f(i, depth.range[i / width.count / height.count], height.range[i / width.count % height.count],
        width.range[i % width.count]);
  }
};

/// How a correlation is cut: a segment is some rows of one image's slice, a block some segments. A block's
/// inputs stay in the L2 cache: where they lie, when in place, or copied to a slab with the padding around
/// them.
struct CorrelationPlan {
  Index batch, channels;  // of the input
  AxisPlan depth, height, width;
  bool in_place;  // no output reads padding, or reads it left out: the input itself serves as slab
  Index segment_rows, row_segments, segments, block_segments, blocks;

  CorrelationPlan(Index batch_, Index channels_, const AxisPlan& d, const AxisPlan& h, const AxisPlan& w,
                  Index bytes_each, bool clips = false)
      : batch(batch_),
        channels(channels_),
        depth(d),
        height(h),
        width(w),
        in_place(clips || (d.inside() && h.inside() && w.inside())) {
    constexpr Index block_pixels = 448, slab_bytes = 384 << 10;
    const Index row_bytes = std::max<Index>(1, depth.taps * slab_row() * bytes_each);
    const auto bytes = [&](Index rows) { return height.reach(rows) * row_bytes; };
    segment_rows = std::clamp<Index>(block_pixels / width.count, 1, height.count);
    while (segment_rows > 1 && bytes(segment_rows) > slab_bytes) --segment_rows;
    row_segments = (height.count + segment_rows - 1) / segment_rows;
    row_segments += row_segments > 1 ? row_segments % 2 : 0;  // an even share for two threads
    segment_rows = (height.count + row_segments - 1) / row_segments;
    row_segments = (height.count + segment_rows - 1) / segment_rows;
    segments = batch * depth.count * row_segments;
    const Index most =
        std::min(block_pixels / (segment_rows * width.count), slab_bytes / bytes(segment_rows));
    block_segments = row_segments > 1 ? 1 : std::clamp<Index>(most, 1, std::max<Index>(1, segments));
    blocks = (segments + block_segments - 1) / block_segments;
  }

  Index taps() const noexcept { return depth.taps * height.taps * width.taps; }
  Index slab_row() const noexcept { return width.reach(width.count) * channels; }
  Index slab_slice() const noexcept { return height.reach(segment_rows) * slab_row(); }
  Index slab_size() const noexcept { return in_place ? 0 : block_segments * depth.taps * slab_slice(); }
  Index block_pixels() const noexcept { return block_segments * segment_rows * width.count; }

  /// Elements between the taps of each axis, in the slab or in the input.
  Index depth_stride() const noexcept {
    return in_place ? depth.offset_step * height.in * width.in * channels : slab_slice();
  }
  Index row_stride() const noexcept { return in_place ? width.in * channels : slab_row(); }
};

/// A segment: rows row .. row + rows - 1 of slice `slice` of image `image`.
struct Segment {
  Index image, slice, row, rows;

  Segment(const CorrelationPlan& p, Index i) noexcept
      : image(i / p.row_segments / p.depth.count),
        slice(i / p.row_segments % p.depth.count),
        row(i % p.row_segments * p.segment_rows),
        rows(std::min(p.segment_rows, p.height.count - row)) {}
};

/// Where row r of segment s, the i-th of its block, begins to read: in the slab, or in the input.
inline Index line_at(const CorrelationPlan& p, const Segment& s, Index i, Index r) noexcept {
  if (!p.in_place) return i * p.depth.taps * p.slab_slice() + r * p.height.in_step * p.slab_row();
  const Index slice = s.image * p.depth.in + s.slice * p.depth.in_step + p.depth.offset_first;
  const Index row = slice * p.height.in + (s.row + r) * p.height.in_step + p.height.offset_first;
  return (row * p.width.in + p.width.offset_first) * p.channels;
}

/// The stretch of x that block `block` reads: where it begins and ends.
inline std::pair<Index, Index> block_inputs(const CorrelationPlan& p, Index block) noexcept {
  const auto line = [&](const Segment& s, Index tap, Index r) {
    const Index d = s.slice * p.depth.in_step + p.depth.offset_first + tap * p.depth.offset_step;
    const Index h = s.row * p.height.in_step + p.height.offset_first + r;
    const Index slice = s.image * p.depth.in + std::clamp<Index>(d, 0, p.depth.in - 1);
    return (slice * p.height.in + std::clamp<Index>(h, 0, p.height.in)) * p.width.in * p.channels;
  };
  const Index begin = block * p.block_segments, end = std::min(p.segments, begin + p.block_segments);
  const Segment last(p, end - 1);
  return {line(Segment(p, begin), 0, 0), line(last, p.depth.taps - 1, p.height.reach(last.rows))};
}

/// Copies what segment `s` of x reads into its slab; zeros where that lies outside.
template <class T>
void fill_slab(const CorrelationPlan& p, const Segment& s, const T* x, T* slab) {
  const Index c = p.channels, line = p.width.in * c, row = p.slab_row();
  const Index left = std::clamp<Index>(-p.width.offset_first * c, 0, row);  // zeros before
  const Index from = std::max<Index>(p.width.offset_first * c, 0);
  const Index copied = std::clamp<Index>(line - from, 0, row - left);
  for (Index td = 0; td < p.depth.taps; ++td) {
    const Index d = s.slice * p.depth.in_step + p.depth.offset_first + td * p.depth.offset_step;
    for (Index r = 0; r < p.height.reach(s.rows); ++r) {
      const Index h = s.row * p.height.in_step + p.height.offset_first + r;
      T* const out = slab + td * p.slab_slice() + r * row;
      if (d < 0 || d >= p.depth.in || h < 0 || h >= p.height.in) {
        std::fill_n(out, row, T(0));
        continue;
      }
      std::fill_n(out, left, T(0));
      std::copy_n(x + ((s.image * p.depth.in + d) * p.height.in + h) * line + from, copied, out + left);
      std::fill_n(out + left + copied, row - left - copied, T(0));
    }
  }
}

/// The image that a correlation writes: sizes of its axes, channels of a pixel.
struct OutputImage {
  Index depth, height, width, channels;

  /// Where pixel (d, h, w) of image n begins.
  Index at(Index n, Index d, Index h, Index w) const noexcept {
    return (((n * depth + d) * height + h) * width + w) * channels;
  }
};

/// Where the pixels of a block read and write, class after class: offsets into the slab (or the input) of
/// their first tap, be it padding, and into the output. Class i begins at entry begin[i]; `begin` has one
/// entry more than there are classes.
inline void list_pixels(const CorrelationPlan& p, const PixelClasses& classes, Index block,
                        const OutputImage& image, Index* in_at, Index* out_at, Index* begin) {
  const Index from = block * p.block_segments, to = std::min(p.segments, from + p.block_segments);
  Index count = 0;
  classes.each([&](Index i, const auto& depth, const auto& height, const auto& width) {
    begin[i] = count;
    for (Index segment = from; segment < to; ++segment) {
      const Segment s(p, segment);
      if (s.slice < depth.begin || s.slice >= depth.end) continue;
      const Index rows = std::min(s.rows, height.end - s.row);
      for (Index r = std::max<Index>(0, height.begin - s.row); r < rows; ++r) {
        const Index in = line_at(p, s, segment - from, r);
        const Index out = image.at(s.image, p.depth.out_first + s.slice * p.depth.out_step,
                                   p.height.out_first + (s.row + r) * p.height.out_step, p.width.out_first);
        for (Index j = width.begin; j < width.end; ++j, ++count) {
          in_at[count] = in + j * p.width.in_step * p.channels;
          out_at[count] = out + j * p.width.out_step * image.channels;
        }
      }
    }
  });
  begin[classes.count()] = count;
}

}  // namespace wengert::inline WENGERT_ISA::kernels::detail
