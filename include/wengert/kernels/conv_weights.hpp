// The backward pass of a direct convolution to its weights: products over pixels, read from the same slabs as
// the forward pass. Floor: kernels.
#pragma once

#include <wengert/kernels/conv_direct.hpp>

namespace wengert::inline WENGERT_ISA::kernels::detail {

/// dw = or += sum over pixels of x times dy. The tiles of dw are shared out, and each thread goes through all
/// blocks of pixels with a slab of its own: threads wait for nobody and read nothing that another wrote. Each
/// element of dw is one chain a block, the blocks added in order.
template <SimdScalar T>
class WeightCorrelation {
 public:
  WeightCorrelation(const ConvShape& s, const Window& w)
      : s_(s),
        plan_(w.batch, s.in_channels(), forward_axis(w.depth()), forward_axis(w.height()),
              forward_axis(w.width()), sizeof(T)),
        panels_((s.group_out() + width - 1) / width, Tile<T>::vectors),
        rows_(s.products(), tile_rows<T>(panels_.size(0))),
        packs_(s.group_out() % width != 0 || s.out_channels > Tile<T>::columns) {}

  void run(const T* x, const T* dy, T* dw, bool add) {
    const Scratch<Index> table(s_.products() + plan_.blocks * block_lines());
    row_at_ = table.data();
    lines_ = table.data() + s_.products();
    list_rows(table.data());
    for (Index block = 0; block < plan_.blocks; ++block)
      list_lines(block, table.data() + s_.products() + block * block_lines());
    const Index tiles = s_.groups * panels_.count * rows_.count;
    const Index products = plan_.blocks * plan_.block_pixels() * s_.products() * s_.out_channels;
    const Index parts =
        std::clamp<Index>(products / Blocking<T>::task_products, 1, std::min<Index>(num_threads(), tiles));
    parallel_for_scratch<T>(parts, 1, plan_.slab_size() + packed_size(),
                            [&](Index begin, Index end, T* slab) {
                              for (Index part = begin; part < end; ++part)
                                for (Index block = 0; block < plan_.blocks; ++block)
                                  run_block(block, tiles * part / parts, tiles * (part + 1) / parts, x, dy,
                                            slab, dw, add || block > 0);
                            });
  }

 private:
  static constexpr Index width = Tile<T>::width;

  Index first_pixel(Index block) const noexcept {
    const Segment s(plan_, block * plan_.block_segments);
    return ((s.image * plan_.depth.count + s.slice) * plan_.height.count + s.row) * plan_.width.count;
  }

  /// Where weight row m of group 0 reads, from a pixel's first input.
  void list_rows(Index* at) const noexcept {
    for (Index td = 0; td < plan_.depth.taps; ++td)
      for (Index th = 0; th < plan_.height.taps; ++th)
        for (Index tw = 0; tw < plan_.width.taps; ++tw)
          for (Index c = 0; c < s_.group_in(); ++c)
            *at++ = td * plan_.depth_stride() + th * plan_.height.offset_step * plan_.row_stride() +
                    tw * plan_.width.offset_step * plan_.channels + c;
  }

  Index block_lines() const noexcept { return plan_.block_pixels() / plan_.width.count; }
  /// Where each line of a block's pixels begins in x.
  void list_lines(Index block, Index* out) const noexcept {
    const Index begin = block * plan_.block_segments;
    for (Index i = begin; i < std::min(plan_.segments, begin + plan_.block_segments); ++i) {
      const Segment s(plan_, i);
      for (Index r = 0; r < s.rows; ++r) *out++ = line_at(plan_, s, i - begin, r);
    }
  }
  /// A panel of dy.
  Index packed_size() const noexcept { return packs_ ? plan_.block_pixels() * Tile<T>::columns : 0; }

  /// Tiles begin .. end - 1 of dw = or += what the pixels of a block give; `slab` has room for a panel
  /// behind.
  void run_block(Index block, Index begin, Index end, const T* x, const T* dy, T* slab, T* dw,
                 bool add) const {
    const Index first = block * plan_.block_segments;
    const Index segments = std::min(plan_.segments - first, plan_.block_segments);
    Index lines = 0;
    for (Index i = 0; i < segments; ++i) {
      const Segment segment(plan_, first + i);
      lines += segment.rows;
      if (!plan_.in_place) fill_slab(plan_, segment, x, slab + i * plan_.depth.taps * plan_.slab_slice());
    }
    T* const packed = slab + plan_.slab_size();
    for (Index panel = begin / rows_.count; panel * rows_.count < end; ++panel) {
      const Index group = panel / panels_.count, j = panel % panels_.count;
      const Index column = group * s_.group_out() + panels_.begin(j) * width,
                  columns = panels_.size(j) * width;
      const Index valid = std::min(columns, s_.group_out() - panels_.begin(j) * width);
      const T* b = dy + first_pixel(block) * s_.out_channels + column;
      if (packs_) {
        pack_columns<T>(lines * plan_.width.count, valid, columns, {b, s_.out_channels, 1}, packed);
        b = packed;
      }
      const T* const a = (plan_.in_place ? x : slab) + group * s_.group_in();
      const Index first_row = panel * rows_.count;
      for (Index i = std::max(begin, first_row); i < std::min(end, first_row + rows_.count); ++i)
        run_tile(i - first_row, panels_.size(j), valid, lines_ + block * block_lines(), lines, a, b,
                 packs_ ? columns : s_.out_channels, dw + column, add);
    }
  }

  /// Tile i of the rows of a panel: `valid` columns at dw.
  void run_tile(Index i, Index vectors, Index valid, const Index* lines, Index count, const T* x, const T* dy,
                Index dy_step, T* dw, bool add) const {
    const Index row = rows_.begin(i), rows = rows_.size(i), columns = vectors * width;
    T* const out = dw + row * s_.out_channels;
    const auto tile = correlate_weights_tile_function<T>(rows, vectors);
    const auto run = [&](T* c, Index ldc) {
      tile(lines, count, plan_.width.count, x, plan_.width.in_step * plan_.channels, row_at_ + row, dy,
           dy_step, c, ldc, add);
    };
    if (valid == columns) {
      run(out, s_.out_channels);
      return;
    }
    alignas(64) T local[most_tile_rows<T> * Tile<T>::columns];
    if (add)
      for (Index r = 0; r < rows; ++r) copy_valid(out + r * s_.out_channels, local + r * columns, valid);
    run(local, columns);
    for (Index r = 0; r < rows; ++r) copy_valid(local + r * columns, out + r * s_.out_channels, valid);
  }

  const ConvShape s_;
  const CorrelationPlan plan_;
  const Panels panels_, rows_;  // vectors of a group's output channels; its weights
  const bool packs_;
  const Index *row_at_ = nullptr, *lines_ = nullptr;  // see list_rows; of all blocks, see list_lines
};

/// dw = or += the products of x and dy.
template <SimdScalar T>
void direct_backward_weights(const ConvShape& s, const T* x, const T* dy, T* dw, bool add) {
  WeightCorrelation<T>(s, for_engine(s.window)).run(x, dy, dw, add);
}

}  // namespace wengert::inline WENGERT_ISA::kernels::detail
