// Convolutions of channels-last arrays as loops over every product, in double; shared by the rows of
// convolutions and of transposed ones. Output sizes are counted, not computed.
#pragma once

#include <vector>

#include "cases/array.hpp"

namespace cases {

/// Numbers for each spatial axis, padding apart for both ends.
struct Taps {
  std::vector<Index> stride, before, after, dilation;
  std::vector<Index> extra = {};  // pixels more at the end of a transposed convolution's output
};

namespace conv_detail {

inline Index at(const std::vector<Index>& v, int i) { return v[static_cast<std::size_t>(i)]; }

/// How many windows fit, one after another.
inline Index windows(Index in, Index kernel, Index stride, Index before, Index after, Index dilation) {
  Index n = 0;
  for (Index first = -before; first + (kernel - 1) * dilation < in + after; first += stride) ++n;
  return n;
}

/// (kernel sizes) of w.
inline Shape taps_of(const Array& w) {
  Shape taps;
  for (int i = 0; i + 2 < w.rank(); ++i) taps.push_back(w.dim(i));
  return taps;
}

inline Shape with_channels(const Shape& tap, Index row, Index column) {
  Shape s = tap;
  s.push_back(row);
  s.push_back(column);
  return s;
}

}  // namespace conv_detail

/// Padding that makes the output in / stride pixels, rounded up; an odd one at the end.
inline Taps same_padding(const Array& x, const Array& w, std::vector<Index> stride,
                         std::vector<Index> dilation) {
  Taps s{std::move(stride), {}, {}, std::move(dilation)};
  for (int i = 0; i + 2 < w.rank(); ++i) {
    const auto count = [&](Index total) {
      return conv_detail::windows(x.dim(i + 1), w.dim(i), conv_detail::at(s.stride, i), 0, total,
                                  conv_detail::at(s.dilation, i));
    };
    Index wanted = 0, total = 0;
    for (Index p = 0; p < x.dim(i + 1); p += conv_detail::at(s.stride, i)) ++wanted;
    while (count(total) < wanted) ++total;
    s.before.push_back(total / 2);
    s.after.push_back(total - total / 2);
  }
  return s;
}

/// x: (N, ..., C), w: (k..., C / groups, K), b: (K) or null; y: (N, ..., K).
inline Array convolved(const Array& x, const Array& w, const Array* b, const Taps& s) {
  using conv_detail::at;
  const int axes = x.rank() - 2;
  const Index group_in = w.dim(-2), outs = w.dim(-1), groups = x.dim(-1) / group_in,
              group_out = outs / groups;
  Shape shape = x.shape;
  for (int i = 0; i < axes; ++i)
    shape[i + 1] = conv_detail::windows(x.dim(i + 1), w.dim(i), at(s.stride, i), at(s.before, i),
                                        at(s.after, i), at(s.dilation, i));
  shape[axes + 1] = outs;
  Array y(shape);
  Shape pixels = shape;
  pixels[axes + 1] = 1;
  for_each_index(pixels, [&](const Shape& to) {
    Shape out = to;
    for (Index k = 0; k < outs; ++k) {
      out[axes + 1] = k;
      y(out) = b != nullptr ? (*b)[k] : 0;
    }
    for_each_index(conv_detail::taps_of(w), [&](const Shape& tap) {
      Shape from = to;
      for (int i = 0; i < axes; ++i) {
        from[i + 1] = to[i + 1] * at(s.stride, i) - at(s.before, i) + tap[i] * at(s.dilation, i);
        if (from[i + 1] < 0 || from[i + 1] >= x.dim(i + 1)) return;
      }
      const Index pixel = y.position(to), input = x.position(from),
                  weight = w.position(conv_detail::with_channels(tap, 0, 0));
      for (Index k = 0; k < outs; ++k)
        for (Index c = 0; c < group_in; ++c)
          y[pixel + k] += x[input + k / group_out * group_in + c] * w[weight + c * outs + k];
    });
  });
  return y;
}

/// x: (N, ..., C), w: (k..., K / groups, C), b: (K) or null; y: (N, ..., K). Every input pixel adds its
/// window to the output; `before` pixels are cut from both ends.
inline Array conv_transposed(const Array& x, const Array& w, const Array* b, Index groups, const Taps& s) {
  using conv_detail::at;
  const int axes = x.rank() - 2;
  const Index ins = w.dim(-1), group_out = w.dim(-2), group_in = ins / groups, outs = group_out * groups;
  Shape shape = x.shape;
  for (int i = 0; i < axes; ++i)
    shape[i + 1] = (x.dim(i + 1) - 1) * at(s.stride, i) + (w.dim(i) - 1) * at(s.dilation, i) + 1 -
                   2 * at(s.before, i) + at(s.extra, i);
  shape[axes + 1] = outs;
  Array y(shape);
  if (b != nullptr)
    for (Index i = 0; i < y.size(); ++i) y[i] = (*b)[i % outs];
  Shape pixels = x.shape;
  pixels[axes + 1] = 1;
  for_each_index(pixels, [&](const Shape& from) {
    for_each_index(conv_detail::taps_of(w), [&](const Shape& tap) {
      Shape to = from;
      for (int i = 0; i < axes; ++i) {
        to[i + 1] = from[i + 1] * at(s.stride, i) - at(s.before, i) + tap[i] * at(s.dilation, i);
        if (to[i + 1] < 0 || to[i + 1] >= shape[i + 1]) return;
      }
      const Index pixel = y.position(to), input = x.position(from),
                  weight = w.position(conv_detail::with_channels(tap, 0, 0));
      for (Index c = 0; c < ins; ++c)
        for (Index k = 0; k < group_out; ++k)
          y[pixel + c / group_in * group_out + k] += x[input + c] * w[weight + k * ins + c];
    });
  });
  return y;
}

/// References of rows with these options: with bias, without, with bias and relu.
inline auto with_bias(const Taps& s) {
  return [s](const Array& x, const Array& w, const Array& b) { return convolved(x, w, &b, s); };
}
inline auto without_bias(const Taps& s) {
  return [s](const Array& x, const Array& w) { return convolved(x, w, nullptr, s); };
}
inline auto rectified(const Taps& s) {
  return [s](const Array& x, const Array& w, const Array& b) {
    Array y = convolved(x, w, &b, s);
    for (double& v : y.v) v = v > 0 ? v : 0;
    return y;
  };
}

}  // namespace cases
