// The backward pass of a direct convolution to its weights: products over pixels, read from the same slabs as
// the forward pass. Floor: kernels.
#pragma once

#include <wengert/kernels/conv_direct.hpp>

namespace wengert::inline WENGERT_ISA::kernels::detail {

/// dw = or += sum over pixels of x times dy. Blocks of pixels follow one another, and within each the rows
/// and columns of dw are shared out: each element of dw is one chain a block, the blocks added in order.
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
    const Index pixels = plan_.block_pixels(), lines = pixels / plan_.width.count;
    const Index groups = s_.groups;
    const Scratch<T> slab(plan_.slab_size()), packed(packs_ ? pixels * groups * panels_.total * width : 0);
    const Scratch<Index> table(s_.products() + lines);
    row_at_ = table.data();
    lines_ = table.data() + s_.products();
    list_rows(table.data());
    for (Index block = 0; block < plan_.blocks; ++block) {
      count_ = list_lines(block, table.data() + s_.products());
      const Index first = first_pixel(block);
      x_ = plan_.in_place ? x : slab.data();
      dy_ = packs_ ? packed.data() : dy + first * s_.out_channels;
      prepare(block, x, dy + first * s_.out_channels, slab.data(), packed.data());
      const bool adds = add || block > 0;
      const Index tile_products = count_ * plan_.width.count * Tile<T>::rows * Tile<T>::columns;
      constexpr Index task_products = 1 << 18;
      parallel_for(groups * panels_.count * rows_.count,
                   std::max<Index>(1, task_products / std::max<Index>(1, tile_products)),
                   [&](Index begin, Index end) {
                     for (Index i = begin; i < end; ++i)
                       run_tile(i / rows_.count / panels_.count, i / rows_.count % panels_.count,
                                i % rows_.count, dw, adds);
                   });
    }
    if (plan_.blocks == 0 && !add) std::fill_n(dw, s_.weight_size(), T(0));
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

  /// Where each line of pixels begins in x. Returns their number.
  Index list_lines(Index block, Index* out) const noexcept {
    const Index begin = block * plan_.block_segments;
    const Index end = std::min(plan_.segments, begin + plan_.block_segments);
    Index count = 0;
    for (Index i = begin; i < end; ++i) {
      const Segment s(plan_, i);
      for (Index r = 0; r < s.rows; ++r, ++count) out[count] = line_at(plan_, s, i - begin, r);
    }
    return count;
  }

  /// Fills the slab and packs dy, each block of columns on its own.
  void prepare(Index block, const T* x, const T* dy, T* slab, T* packed) const {
    const Index begin = block * plan_.block_segments;
    const Index segments = std::min(plan_.segments, begin + plan_.block_segments) - begin;
    if (!plan_.in_place) {
      const Index size = plan_.depth.taps * plan_.slab_slice();
      parallel_for(segments, std::max<Index>(1, Blocking<T>::copies / size), [&](Index from, Index to) {
        for (Index i = from; i < to; ++i) fill_slab(plan_, Segment(plan_, begin + i), x, slab + i * size);
      });
    }
    if (!packs_) return;
    const Index pixels = count_ * plan_.width.count;
    parallel_for(s_.groups * panels_.count,
                 std::max<Index>(1, Blocking<T>::copies / (pixels * Tile<T>::columns)),
                 [&](Index from, Index to) {
                   for (Index i = from; i < to; ++i) {
                     const Index group = i / panels_.count, j = i % panels_.count;
                     const Index first = panels_.begin(j) * width, size = panels_.size(j) * width;
                     pack_columns<T>(pixels, std::min(size, s_.group_out() - first), size,
                                     {dy + group * s_.group_out() + first, s_.out_channels, 1},
                                     packed + (group * panels_.total + panels_.begin(j)) * width * pixels);
                   }
                 });
  }

  void run_tile(Index group, Index j, Index i, T* dw, bool add) const {
    const Index pixels = count_ * plan_.width.count;
    const Index first = panels_.begin(j) * width, vectors = panels_.size(j), columns = vectors * width;
    const Index valid = std::min(columns, s_.group_out() - first);
    const Index row = rows_.begin(i), rows = rows_.size(i);
    const T* const dy = packs_ ? dy_ + (group * panels_.total + panels_.begin(j)) * width * pixels
                               : dy_ + group * s_.group_out() + first;
    const Index dy_step = packs_ ? columns : s_.out_channels;
    T* const out = dw + row * s_.out_channels + group * s_.group_out() + first;
    const auto tile = correlate_weights_tile_function<T>(rows, vectors);
    const auto run = [&](T* c, Index ldc) {
      tile(lines_, count_, plan_.width.count, x_ + group * s_.group_in(),
           plan_.width.in_step * plan_.channels, row_at_ + row, dy, dy_step, c, ldc, add);
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
  const Index *row_at_ = nullptr, *lines_ = nullptr;
  const T *x_ = nullptr, *dy_ = nullptr;
  Index count_ = 0;  // lines of the block
};

/// dw = or += the products of x and dy.
template <SimdScalar T>
void direct_backward_weights(const ConvShape& s, const T* x, const T* dy, T* dw, bool add) {
  WeightCorrelation<T>(s, for_engine(s.window)).run(x, dy, dw, add);
}

}  // namespace wengert::inline WENGERT_ISA::kernels::detail
