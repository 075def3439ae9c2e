// Direct convolution as an implicit matrix product: a block of output pixels reads its inputs where they lie;
// no patches are copied out. Pixels at the edges leave out the taps that lie in the padding; where those
// differ too much from pixel to pixel, a slab holds the inputs with zeros around them. One engine does the
// forward pass and, by the phases of the stride, the backward pass to the input. Floor: kernels.
#pragma once

#include <wengert/kernels/conv_plan.hpp>
#include <wengert/kernels/conv_tile.hpp>
#include <wengert/kernels/gemm_blocked.hpp>

namespace wengert::inline WENGERT_ISA::kernels::detail {

/// Weights as a correlation reads them: tap t's rows (channels read) and columns (channels written) start at
/// data + t * tap; element (r, c) of group g at r * row + c * col + g * group.
template <class T>
struct TapWeights {
  const T* data;
  Index tap, row, col, group;
  Index kernel_height, kernel_width;

  TapWeights(const T* w, const ConvShape& s, const Window& v, Index row_, Index col_) noexcept
      : TapWeights(w, s.group_in() * s.out_channels, row_, col_, s.group_out(), v.height().kernel,
                   v.width().kernel) {}
  TapWeights(const T* w, Index tap_, Index row_, Index col_, Index group_, Index height, Index width) noexcept
      : data(w), tap(tap_), row(row_), col(col_), group(group_), kernel_height(height), kernel_width(width) {}

  const T* at(const CorrelationPlan& p, Index i) const noexcept {
    const Index tw = i % p.width.taps, th = i / p.width.taps % p.height.taps,
                td = i / p.width.taps / p.height.taps;
    return data + (((p.depth.tap_first + td * p.depth.tap_step) * kernel_height + p.height.tap_first +
                    th * p.height.tap_step) *
                       kernel_width +
                   p.width.tap_first + tw * p.width.tap_step) *
                      tap;
  }
};

/// Lists the runs of inputs that a pixel of each class reads, of group 0, cut at the blocks of `steps`. Those
/// of class i in block s are entries begin[i * steps.count + s] .. the next begin.
inline void list_runs(const CorrelationPlan& p, const PixelClasses& classes, Index group_channels,
                      const Panels& steps, Run* runs, Index* begin) {
  Index count = 0;
  classes.each([&](Index i, const auto& depth, const auto& height, const auto& width) {
    Index block = 0, row_end = 0;  // rows before row_end are of the blocks before `block`
    begin += i > 0 ? steps.count : 0;
    const auto enter_blocks = [&](Index row) {
      for (; row >= row_end && block < steps.count; row_end += steps.size(block++)) begin[block] = count;
    };
    for (Index td = depth.tap_begin; td < depth.tap_end; ++td)
      for (Index th = height.tap_begin; th < height.tap_end; ++th)
        for (Index tw = width.tap_begin; tw < width.tap_end; ++tw) {
          const Index tap = (td * p.height.taps + th) * p.width.taps + tw;
          Index row = tap * group_channels, offset = td * p.depth_stride() +
                                                     th * p.height.offset_step * p.row_stride() +
                                                     tw * p.width.offset_step * p.channels;
          for (const Index end = row + group_channels; row < end;) {
            enter_blocks(row);
            const Index length = std::min(end, row_end) - row;
            Run* const last = runs + count - 1;
            if (count > begin[block - 1] && last->offset + last->length == offset &&
                last->row + last->length == row - (row_end - steps.size(block - 1)))
              last->length += length;
            else
              runs[count++] = {offset, length, row - (row_end - steps.size(block - 1))};
            offset += length;
            row += length;
          }
        }
    enter_blocks(steps.total);
    begin[steps.count] = count;
  });
}

/// Memory that the next block reads: fetched into L2 while this one computes, a share with each of its tiles.
template <class T>
struct Ahead {
  const T *from = nullptr, *to = nullptr;

  void fetch(Index tiles) noexcept {  // of which this is the first
    constexpr Index line = 64 / Index{sizeof(T)};
    const Index lines = (to - from + line - 1) / line, share = (lines + tiles - 1) / tiles;
    for (Index i = 0; i < share && from < to; ++i, from += line) __builtin_prefetch(from, 0, 2);
  }
};

template <SimdScalar T>
class Correlation {
 public:
  Correlation(Index batch, Index channels, const AxisPlan& depth, const AxisPlan& height,
              const AxisPlan& width, Index groups, Index columns, const TapWeights<T>& weights,
              const OutputImage& image, const Epilogue<T>& epilogue)
      : classes_(depth, height, width),
        plan_(batch, channels, depth, height, width, sizeof(T), classes_.few()),
        groups_(groups),
        rows_(channels / groups),
        columns_(columns),
        weights_(weights),
        image_(image),
        epilogue_(epilogue),
        steps_(plan_.taps() * rows_, Blocking<T>::steps),
        panels_((columns + Tile<T>::width - 1) / Tile<T>::width, Tile<T>::vectors),
        use_(choose_use()) {
    if (!classes_.few()) classes_.unite(depth, height, width);
  }

  void run(const T* in, T* out) {
    const Index classes = classes_.count(), blocks = classes * steps_.count;
    const Scratch<Run> runs(classes * plan_.taps() + blocks);
    const Scratch<Index> run_begin(blocks + 1);
    runs_ = runs.data();
    run_begin_ = run_begin.data();
    list_runs(plan_, classes_, rows_, steps_, runs.data(), run_begin.data());
    const Scratch<T> packed(use_ == Use::packed ? groups_ * panels_.total * width * steps_.total : 0);
    packed_ = packed.data();
    if (use_ == Use::packed) pack(packed.data());

    // A block of pixels is shared out by panels of channels when there are few blocks.
    const Index all_panels = groups_ * panels_.count;
    const Index wanted = plan_.blocks >= 8 ? 1 : 8 / std::max<Index>(1, plan_.blocks);
    const Panels shares(all_panels, (all_panels + wanted - 1) / std::min(all_panels, wanted));
    constexpr Index indices = sizeof(Index) / sizeof(T);
    const Index pixels = plan_.block_pixels();
    const Index slab = (plan_.slab_size() + 15) / 16 * 16;
    const Index own = use_ == Use::packed_by_task ? Tile<T>::columns * steps_.size(0) : 0;
    const Index block_products = pixels * steps_.total * columns_ * groups_;
    constexpr Index task_products = 1 << 17;
    const Index grain = std::max<Index>(1, task_products * shares.count / std::max<Index>(1, block_products));
    const Index lists = (2 * pixels + classes + 1) * indices;
    parallel_for_scratch<T>(plan_.blocks * shares.count, grain, slab + own + lists,
                            [&](Index begin, Index end, T* scratch) {
                              T* const panel = scratch + slab;
                              Index* const in_at = reinterpret_cast<Index*>(panel + own);
                              const Listed listed{in_at, in_at + pixels, in_at + 2 * pixels};
                              Index prepared = -1;
                              for (Index t = begin; t < end; ++t) {
                                const Index block = t / shares.count;
                                if (block != prepared) prepare(block, in, scratch, in_at);
                                prepared = block;
                                Ahead<T> ahead;
                                if (t + 1 < end && (t + 1) / shares.count > block) {
                                  const auto [from, to] = block_inputs(plan_, block + 1);
                                  ahead = {in + from, in + to};
                                }
                                const Index first = shares.begin(t % shares.count);
                                run_block(plan_.in_place ? in : scratch, listed, first,
                                          first + shares.size(t % shares.count), panel, out, ahead);
                              }
                            });
  }

 private:
  static constexpr Index width = Tile<T>::width;

  /// A block's pixels, see list_pixels.
  struct Listed {
    const Index *in_at, *out_at, *begin;
  };

  Index panel_columns(Index j) const noexcept { return panels_.size(j) * width; }
  /// Where a panel of packed weights begins.
  Index panel_at(Index group, Index j) const noexcept {
    return (group * panels_.total + panels_.begin(j)) * width * steps_.total;
  }

  /// How tiles find their weights: where they are, when a tile's are contiguous and few tiles read them; in a
  /// packed copy of all, when several blocks share it; else a panel at a time, which its only block packs in
  /// its cache.
  enum class Use { in_place, packed, packed_by_task };
  Use choose_use() const noexcept {
    const bool in_order = groups_ == 1 && weights_.col == 1 && weights_.tap == rows_ * weights_.row &&
                          columns_ % width == 0 && plan_.depth.tap_step > 0 && plan_.height.tap_step > 0 &&
                          plan_.width.tap_step > 0;
    const bool few = plan_.block_pixels() <= Blocking<T>::few_row_panels * Tile<T>::rows;
    if (in_order && (panels_.count == 1 || (plan_.blocks == 1 && few))) return Use::in_place;
    return plan_.blocks == 1 ? Use::packed_by_task : Use::packed;
  }

  /// Block s of the rows of panel j, in the order of the runs.
  void pack_block(Index group, Index j, Index s, T* to) const {
    const Index first = panels_.begin(j) * width, size = panel_columns(j);
    const Index valid = std::min(size, columns_ - first);
    for (Index row = steps_.begin(s), end = row + steps_.size(s); row < end;) {
      const Index tap = row / rows_, within = row % rows_, count = std::min(end - row, rows_ - within);
      const T* const from = weights_.at(plan_, tap) + group * weights_.group + first * weights_.col;
      pack_columns<T>(count, valid, size, {from + within * weights_.row, weights_.row, weights_.col}, to);
      row += count;
      to += count * size;
    }
  }
  void pack(T* packed) const {
    const Index grain = std::max<Index>(1, Blocking<T>::copies / (steps_.size(0) * Tile<T>::columns));
    parallel_for(groups_ * panels_.count * steps_.count, grain, [&](Index begin, Index end) {
      for (Index i = begin; i < end; ++i) {
        const Index s = i % steps_.count, j = i / steps_.count % panels_.count;
        const Index group = i / steps_.count / panels_.count;
        pack_block(group, j, s, packed + panel_at(group, j) + steps_.begin(s) * panel_columns(j));
      }
    });
  }

  void prepare(Index block, const T* in, T* slab, Index* lists) const {
    if (!plan_.in_place) {
      const Index begin = block * plan_.block_segments;
      const Index end = std::min(plan_.segments, begin + plan_.block_segments);
      for (Index i = begin; i < end; ++i)
        fill_slab(plan_, Segment(plan_, i), in, slab + (i - begin) * plan_.depth.taps * plan_.slab_slice());
    }
    const Index pixels = plan_.block_pixels();
    list_pixels(plan_, classes_, block, image_, lists, lists + pixels, lists + 2 * pixels);
  }

  void run_block(const T* in, const Listed& listed, Index begin, Index end, T* own_panel, T* out,
                 Ahead<T> ahead) const {
    const Index classes = classes_.count();
    Index tiles = steps_.count * (end - begin) * (listed.begin[classes] / tile_rows<T>(panels_.size(0)) + 1);
    for (Index s = 0; s < steps_.count; ++s) {
      const bool last = s + 1 == steps_.count;
      for (Index at = begin; at < end; ++at) {
        const Index group = at / panels_.count, j = at % panels_.count;
        const Index first = panels_.begin(j) * width, vectors = panels_.size(j);
        const Index valid = std::min(panel_columns(j), columns_ - first);
        const Index channel = group * columns_ + first;
        const Epilogue<T> epilogue{epilogue_.add || s > 0,
                                   last && epilogue_.bias != nullptr ? epilogue_.bias + channel : nullptr,
                                   last ? epilogue_.activation : Activation::none};
        const Index b_step = use_ == Use::in_place ? weights_.row : panel_columns(j);
        const T* b = use_ == Use::in_place ? weights_.data + steps_.begin(s) * b_step + first
                     : use_ == Use::packed ? packed_ + panel_at(group, j) + steps_.begin(s) * b_step
                                           : own_panel;
        if (use_ == Use::packed_by_task) pack_block(group, j, s, own_panel);
        for (Index c = 0; c < classes; ++c) {
          const Run* const runs = runs_ + run_begin_[c * steps_.count + s];
          const Index count = run_begin_[c * steps_.count + s + 1] - run_begin_[c * steps_.count + s];
          const Index pixels = listed.begin[c + 1] - listed.begin[c];
          if (pixels == 0) continue;
          const Panels rows(pixels, tile_rows<T>(vectors));
          for (Index i = 0; i < rows.count; ++i) {
            const Index pixel = listed.begin[c] + rows.begin(i);
            if (ahead.from < ahead.to) ahead.fetch(std::max<Index>(1, tiles--));
            run_tile(runs, count, in + group * rows_, listed.in_at + pixel, b, b_step, out + channel,
                     listed.out_at + pixel, rows.size(i), vectors, valid, epilogue);
          }
        }
      }
    }
  }

  /// One tile; channels beyond `valid` are computed but neither read from nor written to out and the bias.
  void run_tile(const Run* runs, Index count, const T* in, const Index* in_at, const T* b, Index b_step,
                T* out, const Index* out_at, Index rows, Index vectors, Index valid,
                const Epilogue<T>& epilogue) const {
    const CorrelateTile<T> tile = correlate_tile_function<T>(rows, vectors);
    if (valid == vectors * width) {
      tile(runs, count, in, in_at, b, b_step, out, out_at, epilogue);
      return;
    }
    alignas(64) T local[most_tile_rows<T> * Tile<T>::columns];
    alignas(64) T bias[Tile<T>::columns];
    Index local_at[most_tile_rows<T>] = {};
    Epilogue<T> inner = epilogue;
    for (Index r = 0; r < rows; ++r) {
      local_at[r] = r * vectors * width;
      if (epilogue.add) copy_valid(out + out_at[r], local + local_at[r], valid);
    }
    if (epilogue.bias != nullptr) {
      copy_valid(epilogue.bias, bias, valid);
      inner.bias = bias;
    }
    tile(runs, count, in, in_at, b, b_step, local, local_at, inner);
    for (Index r = 0; r < rows; ++r) copy_valid(local + local_at[r], out + out_at[r], valid);
  }

  PixelClasses classes_;
  const CorrelationPlan plan_;
  const Index groups_, rows_, columns_;  // channels that a group reads and writes
  const TapWeights<T> weights_;
  const OutputImage image_;
  const Epilogue<T> epilogue_;
  const Panels steps_, panels_;  // of products; of vectors of columns
  const Use use_;
  const Run* runs_ = nullptr;
  const Index* run_begin_ = nullptr;
  const T* packed_ = nullptr;
};

/// The axes of a window for the engine: a single spatial axis is cut like rows.
inline Window for_engine(Window w) noexcept {
  if (w.height().in == 1 && w.height().kernel == 1 && w.height().out == 1) std::swap(w.axis[1], w.axis[2]);
  return w;
}

/// y = epilogue(x * w), all products of `s` direct.
template <SimdScalar T>
void direct_forward(const ConvShape& s, const T* x, const T* w, T* y, const Epilogue<T>& epilogue) {
  const Window v = for_engine(s.window);
  const TapWeights<T> weights(w, s, v, s.out_channels, 1);
  const OutputImage image{v.depth().out, v.height().out, v.width().out, s.out_channels};
  Correlation<T>(v.batch, s.in_channels(), forward_axis(v.depth()), forward_axis(v.height()),
                 forward_axis(v.width()), s.groups, s.group_out(), weights, image, epilogue)
      .run(x, y);
}

/// How many neighbours of a line of dx are computed at once, as channels of one pixel, where a pixel has too
/// few to fill vectors; 0 where its phases do better one by one. A step of v vectors takes v + 5/4 units of
/// time.
template <SimdScalar T>
Index merged_pixels(const ConvShape& s, const WindowAxis& a) noexcept {
  if (s.groups > 1 || a.dilation > 1) return 0;
  const auto cost = [&](Index pixels, Index taps, Index stands) {
    const Index vectors = (s.in_channels() * pixels + Tile<T>::width - 1) / Tile<T>::width;
    return (static_cast<double>(vectors) + 1.25) * static_cast<double>(taps) / static_cast<double>(stands);
  };
  double least = cost(1, a.kernel, a.stride);
  Index best = 0;
  for (Index n = a.stride; n * s.in_channels() <= Tile<T>::columns && 4 * n <= a.in; n += a.stride)
    if (const double c = cost(n, merged_data_axis(a, n).taps, n); c < least) least = c, best = n;
  return best;
}

/// The weights that such neighbours share: (kd, kh, taps, K, pixels, C), zeros where a pixel has no such tap.
template <SimdScalar T>
void merge_weights(const ConvShape& s, const Window& v, Index pixels, Index taps, const T* w, T* merged) {
  const Index c = s.in_channels(), k = s.out_channels, kernel = v.width().kernel;
  for (Index line = 0; line < v.depth().kernel * v.height().kernel; ++line)
    for (Index t = 0; t < taps; ++t)
      for (Index i = 0; i < pixels; ++i) {
        const Index tap = merged_tap(v.width(), pixels, i, t);
        T* const to = merged + (line * taps + t) * k * pixels * c + i * c;
        for (Index j = 0; j < k; ++j)
          for (Index n = 0; n < c; ++n)
            to[j * pixels * c + n] =
                tap >= 0 && tap < kernel ? w[((line * kernel + tap) * c + n) * k + j] : T(0);
      }
}

/// dx = or += the adjoint of the forward pass applied to dy. Pixels of few channels are computed several at a
/// time, the rest of each line one by one.
template <SimdScalar T>
void direct_backward_data(const ConvShape& s, const T* dy, const T* w, T* dx, bool add) {
  const Window v = for_engine(s.window);
  const OutputImage image{v.depth().in, v.height().in, v.width().in, s.in_channels()};
  const Epilogue<T> epilogue{add, nullptr, Activation::none};
  const auto correlate = [&](const AxisPlan& depth, const AxisPlan& height, const AxisPlan& width,
                             const TapWeights<T>& weights, Index pixels) {
    if (depth.taps * height.taps * width.taps > 0) {
      Correlation<T>(v.batch, s.out_channels, depth, height, width, s.groups, s.group_in() * pixels, weights,
                     image, epilogue)
          .run(dy, dx);
    } else if (!add) {  // no output reads these inputs
      const Index size = image.channels * pixels;
      parallel_for(v.batch * depth.count * height.count,
                   std::max<Index>(1, Blocking<T>::copies / std::max<Index>(1, width.count * size)),
                   [&](Index begin, Index end) {
                     for (Index i = begin; i < end; ++i)
                       for (Index j = 0; j < width.count; ++j)
                         std::fill_n(
                             dx + image.at(i / height.count / depth.count,
                                           depth.out_first + i / height.count % depth.count * depth.out_step,
                                           height.out_first + i % height.count * height.out_step,
                                           width.out_first + j * width.out_step),
                             size, T(0));
                   });
    }
  };
  const Index pixels = merged_pixels<T>(s, v.width());
  if (pixels > 0) {
    const AxisPlan width = merged_data_axis(v.width(), pixels);
    const Index columns = pixels * s.in_channels(), size = v.depth().kernel * v.height().kernel * width.taps;
    const Scratch<T> merged(size * s.out_channels * columns);
    merge_weights(s, v, pixels, width.taps, w, merged.data());
    const TapWeights<T> weights(merged.data(), s.out_channels * columns, columns, 1, columns,
                                v.height().kernel, width.taps);
    Window lines = v;
    lines.axis[2] = {};  // one phase
    for_phases(lines, [&](const AxisPlan& depth, const AxisPlan& height, const AxisPlan&) {
      correlate(depth, height, width, weights, pixels);
    });
  }
  const TapWeights<T> weights(w, s, v, 1, s.out_channels);
  for_phases(
      v,
      [&](const AxisPlan& depth, const AxisPlan& height, const AxisPlan& width) {
        correlate(depth, height, width, weights, 1);
      },
      pixels > 0 ? v.width().in / pixels * pixels : 0);
}

}  // namespace wengert::inline WENGERT_ISA::kernels::detail
