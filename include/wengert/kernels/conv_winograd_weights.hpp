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
    x_plane_ = winograd_plane<T>(block_ * c_);
    dy_plane_ = winograd_plane<T>(block_ * k_);
    blocks_ = x_.total() == 0 ? 0 : (x_.total() + block_ - 1) / block_;
    constexpr Index part_bytes = 160 << 10, most_parts = 8;
    const bool small = points * c_ * stride_ * Index{sizeof(T)} <= part_bytes;
    parts_ = small && blocks_ >= most_parts ? most_parts : 1;
  }

  void run(const T* x, const T* dy, T* dw, bool add) {
    const Index size = points * c_ * stride_;
    const Scratch<T> sums(parts_ * size);
    if (blocks_ == 0) std::fill_n(sums.data(), size, T(0));
    // A task stays on one thread, and no other reads what it maps: with few weights it is a part of the
    // blocks that has sums of its own, else some rows of the points, whatever their number.
    const Index most = Axis::points, rows = parts_ > 1 ? most : (most + num_threads() - 1) / num_threads();
    const Index groups = (most + rows - 1) / rows;
    parallel_for_scratch<T>(parts_ * groups, 1, rows * Axis::points * (x_plane_ + dy_plane_),
                            [&](Index begin, Index end, T* v) {
                              for (Index task = begin; task < end; ++task) {
                                const Index part = task / groups, row = task % groups * rows;
                                const Index first = blocks_ * part / parts_;
                                for (Index i = first; i < blocks_ * (part + 1) / parts_; ++i)
                                  run_block(i, {int(row), int(std::min(row + rows, most))}, x, dy, v,
                                            sums.data() + part * size, i > first);
                              }
                            });
    parallel_for(c_, std::max<Index>(1, Blocking<T>::copies / (parts_ * points * stride_)),
                 [&](Index begin, Index end) {
                   for (Index c = begin; c < end; ++c) map_back(c, sums.data(), size, dw, add);
                 });
  }

 private:
  /// u = or += the products of block i at the points of some rows.
  void run_block(Index i, SomeRows rows, const T* x, const T* dy, T* v, T* u, bool add) const {
    const Index first = i * block_, count = std::min(block_, x_.total() - first);
    const Index some = (rows.end - rows.begin) * Axis::points;
    T* const g = v + some * x_plane_;
    if (some == points)
      map_block(AllRows<Axis::points>(), first, count, x, dy, v, g);
    else
      map_block(rows, first, count, x, dy, v, g);
    for (Index point = 0; point < some; ++point)
      for (Index j = 0; j < panels_.count; ++j)
        for (Index r = 0; r < rows_.count; ++r)
          multiply(j, r, count, v + point * x_plane_, g + point * dy_plane_,
                   u + (rows.begin * Axis::points + point) * c_ * stride_, add);
  }

  template <class Rows>
  void map_block(Rows rows, Index first, Index count, const T* x, const T* dy, T* v, T* g) const {
    map_patches<Axis::points, Axis::points>(
        x_, c_, x, first, first + count, first, x_plane_, v,
        [](const auto& d, auto& o) WENGERT_INLINE_LAMBDA { Axis::input(d, o); }, rows);
    map_patches<M, Axis::points>(
        dy_, k_, dy, first, first + count, first, dy_plane_, g,
        [](const auto& d, auto& o) WENGERT_INLINE_LAMBDA { Axis::output_adjoint(d, o); }, rows);
  }

  /// A tile of u = or += v^T g, at one point.
  void multiply(Index j, Index i, Index count, const T* v, const T* g, T* u, bool add) const {
    const Index first = panels_.begin(j) * width, vectors = panels_.size(j), columns = vectors * width;
    const Index row = rows_.begin(i);
    const T* const b = g + first;
    const auto tile = even_tile_function<T, true>(rows_.size(i), vectors);
    T* const to = u + row * stride_ + first;
    if (first + columns <= k_) {
      tile(count, v + row, c_, b, k_, to, stride_, add);
      return;
    }
    // The last vector ends beyond the columns: a piece of g at a time is copied with zeros behind it.
    constexpr Index piece = 64;
    alignas(64) T padded[piece * Tile<T>::columns];
    for (Index p = 0; p < count; p += piece) {
      const Index n = std::min(piece, count - p);
      pack_columns<T>(n, k_ - first, columns, {b + p * k_, k_, 1}, padded);
      tile(n, v + p * c_ + row, c_, padded, columns, to, stride_, add || p > 0);
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
  Index x_plane_ = 0, dy_plane_ = 0;
};

/// dw = or += the gradient of the weights.
template <int M, SimdScalar T>
void winograd_backward_weights(const ConvShape& s, const T* x, const T* dy, T* dw, bool add) {
  WinogradWeights<M, T>(s).run(x, dy, dw, add);
}

WENGERT_INSTANCE(void winograd_backward_weights<2>(const ConvShape&, const float*, const float*, float*,
                                                   bool));
WENGERT_INSTANCE(void winograd_backward_weights<4>(const ConvShape&, const float*, const float*, float*,
                                                   bool));
WENGERT_INSTANCE(void winograd_backward_weights<2>(const ConvShape&, const double*, const double*, double*,
                                                   bool));
WENGERT_INSTANCE(void winograd_backward_weights<4>(const ConvShape&, const double*, const double*, double*,
                                                   bool));

}  // namespace wengert::inline WENGERT_ISA::kernels::detail
