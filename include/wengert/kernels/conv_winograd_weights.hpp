// Winograd's convolution, backward to the weights: the adjoint of the forward pass, so the same maps
// transposed. Floor: kernels.
#pragma once

#include <wengert/kernels/conv_winograd.hpp>

namespace wengert::inline WENGERT_ISA::kernels::detail {

template <int M, SimdScalar T>
class WinogradWeights {
 public:
  using Axis = WinogradAxis<M>;
  static constexpr Index points = Axis::points * Axis::points;
  static constexpr Index width = Tile<T>::width;

  explicit WinogradWeights(const ConvShape& s)
      : c_(s.in_channels()),
        k_(s.out_channels),
        stride_((k_ + width - 1) / width * width),
        panels_(stride_ / width, Tile<T>::vectors),
        rows_(c_, even_tile_rows<T>(panels_.size(0))) {
    const WindowAxis &h = s.window.height(), &w = s.window.width();
    x_ = {s.window.batch, h.in, w.in, (h.out + M - 1) / M, (w.out + M - 1) / M, M, h.before, w.before};
    dy_ = {s.window.batch, h.out, w.out, x_.rows, x_.columns, M, 0, 0};
    block_ = winograd_block<T>(x_.total(), points, c_, k_);
    blocks_ = x_.total() == 0 ? 0 : (x_.total() + block_ - 1) / block_;
    constexpr Index part_bytes = 160 << 10, most_parts = 8;
    const bool small = points * c_ * stride_ * Index{sizeof(T)} <= part_bytes;
    parts_ = small && blocks_ >= most_parts ? most_parts : 1;
  }

  void run(const T* x, const T* dy, T* dw, bool add) {
    const Index size = points * c_ * stride_, work_size = points * block_ * (c_ + k_);
    const Scratch<T> sums(parts_ * size);
    if (blocks_ == 0) std::fill_n(sums.data(), size, T(0));
    if (parts_ > 1) {  // few weights: each part of the blocks has sums of its own, and stays on one thread
      parallel_for_scratch<T>(parts_, 1, work_size, [&](Index begin, Index end, T* v) {
        for (Index part = begin; part < end; ++part)
          for (Index first = blocks_ * part / parts_, i = first; i < blocks_ * (part + 1) / parts_; ++i)
            run_block(i, x, dy, v, sums.data() + part * size, i > first);
      });
    } else {
      const Scratch<T> work(work_size);
      for (Index i = 0; i < blocks_; ++i) run_block(i, x, dy, work.data(), sums.data(), i > 0);
    }
    parallel_for(c_, std::max<Index>(1, Blocking<T>::copies / (parts_ * points * stride_)),
                 [&](Index begin, Index end) {
                   for (Index c = begin; c < end; ++c) map_back(c, sums.data(), size, dw, add);
                 });
  }

 private:
  /// u = or += the products of block i, on several threads unless the caller is one of many.
  void run_block(Index i, const T* x, const T* dy, T* v, T* u, bool add) const {
    const Index first = i * block_, count = std::min(block_, x_.total() - first);
    T* const g = v + block_ * points * c_;
    const Index grain = std::max<Index>(1, Blocking<T>::copies / (points * (c_ + k_)));
    parallel_for(count, grain, [&](Index begin, Index end) {
      map_patches<Axis::points, Axis::points>(x_, c_, x, first + begin, first + end, first, count, v,
                                              [](const auto& d, auto& o)
                                                  WENGERT_INLINE_LAMBDA { Axis::input(d, o); });
      map_patches<M, Axis::points>(dy_, k_, dy, first + begin, first + end, first, count, g,
                                   [](const auto& d, auto& o)
                                       WENGERT_INLINE_LAMBDA { Axis::output_adjoint(d, o); });
    });
    const Index tile_products = count * Tile<T>::rows * Tile<T>::columns;
    parallel_for(points * panels_.count * rows_.count,
                 std::max<Index>(1, Blocking<T>::task_products / tile_products), [&](Index begin, Index end) {
                   for (Index t = begin; t < end; ++t)
                     multiply(t / rows_.count / panels_.count, t / rows_.count % panels_.count,
                              t % rows_.count, count, v, g, u, add);
                 });
  }

  /// A tile of u[point] = or += v[point]^T g[point].
  void multiply(Index point, Index j, Index i, Index count, const T* v, const T* g, T* u, bool add) const {
    const Index first = panels_.begin(j) * width, vectors = panels_.size(j), columns = vectors * width;
    const Index row = rows_.begin(i);
    const T* const b = g + point * count * k_ + first;
    const auto tile = even_tile_function<T, true>(rows_.size(i), vectors);
    T* const to = u + (point * c_ + row) * stride_ + first;
    if (first + columns <= k_) {
      tile(count, v + point * count * c_ + row, c_, b, k_, to, stride_, add);
      return;
    }
    // The last vector ends beyond the columns: a piece of g at a time is copied with zeros behind it.
    constexpr Index piece = 64;
    alignas(64) T padded[piece * Tile<T>::columns];
    for (Index p = 0; p < count; p += piece) {
      const Index n = std::min(piece, count - p);
      pack_columns<T>(n, k_ - first, columns, {b + p * k_, k_, 1}, padded);
      tile(n, v + (point * count + p) * c_ + row, c_, padded, columns, to, stride_, add || p > 0);
    }
  }

  /// dw from the sums of all parts, `size` apart.
  void map_back(Index c, const T* u, Index size, T* dw, bool add) const {
    using V = Vec<T>;
    for_vectors<T>(k_, [=, this](Index k, auto load, auto store) WENGERT_INLINE_LAMBDA {
      transform_both<V, Axis::points, 3>(
          [=, this](int r, int s) WENGERT_INLINE_LAMBDA {
            const T* from = u + ((r * Axis::points + s) * c_ + c) * stride_ + k;
            V sum = load(from);
            for (Index part = 1; part < parts_; ++part) sum = sum + load(from += size);
            return sum;
          },
          [=, this](int r, int s, V value) WENGERT_INLINE_LAMBDA {
            T* const to = dw + ((r * 3 + s) * c_ + c) * k_ + k;
            store(add ? load(to) + value : value, to);
          },
          [](const auto& a, auto& b) WENGERT_INLINE_LAMBDA { Axis::weights_adjoint(a, b); });
    });
  }

  const Index c_, k_, stride_;  // channels; output channels with the zeros beyond
  const Panels panels_, rows_;  // of vectors of output channels; of channels
  WinogradPatches x_, dy_;
  Index block_ = 1, blocks_ = 0, parts_ = 1;  // patches at once; how often; sums of their own
};

/// dw = or += the gradient of the weights.
template <int M, SimdScalar T>
void winograd_backward_weights(const ConvShape& s, const T* x, const T* dy, T* dw, bool add) {
  WinogradWeights<M, T>(s).run(x, dy, dw, add);
}

}  // namespace wengert::inline WENGERT_ISA::kernels::detail
