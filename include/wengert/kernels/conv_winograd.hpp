// Winograd's convolution for 3 x 3 taps with stride 1: tiles of the image and the weights are mapped to
// points, where a convolution is a product of matrices at each point, (M + 2)^2 of them for M^2 outputs
// instead of 9 M^2. Forward and backward to the input here, to the weights in conv_winograd_weights.hpp.
// Floor: kernels.
#pragma once

#include <cstdint>

#include <wengert/kernels/conv_direct.hpp>
#include <wengert/kernels/conv_winograd_tile.hpp>
#include <wengert/kernels/conv_winograd_transform.hpp>

namespace wengert::inline WENGERT_ISA::kernels::detail {

/// Patches of `size` x `size` pixels of one image after another: patch (i, j) begins at pixel (i * step -
/// before).
struct WinogradPatches {
  Index batch, height, width;  // of the images
  Index rows, columns;         // of patches in an image
  Index step, before_height, before_width;

  Index total() const noexcept { return batch * rows * columns; }
};

/// Asks for the line of x[i], which may lie outside of x: a hint reads nothing.
template <class T>
WENGERT_INLINE void prefetch_near(const T* x, Index i) noexcept {
  const auto bytes = static_cast<std::uintptr_t>(i * Index{sizeof(T)});
  __builtin_prefetch(reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(x) + bytes));
}

/// Asks for one line of each of `Size` x `Size` pixels from x[at] on, rows `row` values apart.
template <int Size, class T>
WENGERT_INLINE void prefetch_pixels(const T* x, Index at, Index row, Index channels) noexcept {
#pragma GCC unroll 4
  for (int r = 0; r < Size; ++r)
#pragma GCC unroll 4
    for (int s = 0; s < Size; ++s) prefetch_near(x, at + r * row + s * channels);
}

/// v[point][patch - first][c] = f along both axes of patches begin .. end - 1 of x, zeros outside the image.
/// Points are `plane` values apart; v holds those of `rows`.
template <int In, int Out, class T, class F, class Rows = AllRows<Out>>
void map_patches(const WinogradPatches& p, Index channels, const T* x, Index begin, Index end, Index first,
                 Index plane, T* v, F f, Rows rows = {}) {
  using V = Vec<T>;
  const Index row = p.width * channels;
  for (Index patch = begin; patch < end; ++patch) {
    const Index n = patch / p.columns / p.rows;
    const Index h = patch / p.columns % p.rows * p.step - p.before_height;
    const Index w = patch % p.columns * p.step - p.before_width;
    const Index top = std::clamp<Index>(-h, 0, In), bottom = std::clamp<Index>(p.height - h, top, In);
    const Index left = std::clamp<Index>(-w, 0, In), right = std::clamp<Index>(p.width - w, left, In);
    const bool whole = top == 0 && left == 0 && bottom == In && right == In;
    const Index at = ((n * p.height + h) * p.width + w) * channels;
    T* const to = v + (patch - first) * channels;
    for_vectors<T>(channels, [=](Index c, auto load, auto store) WENGERT_INLINE_LAMBDA {
      constexpr Index width = V::lanes;
      alignas(64) T padded[In * In * width];  // a patch at the edge, with its zeros
      // What the patch below has beyond this one: rows too short to be foreseen by the processor.
      prefetch_pixels<Out - 2>(x, at + In * row + c, row, channels);
      const T* from = padded;
      Index down = In * width, across = width;
      if (whole) {
        from = x + (at + c);
        down = row;
        across = channels;
      } else {
        for (Index i = 0; i < In * In; ++i) V(T(0)).store(padded + i * width);
        for (Index r = top; r < bottom; ++r)
          for (Index s = left; s < right; ++s)
            load(x + (at + r * row + s * channels + c)).store(padded + (r * In + s) * width);
      }
      transform_both<V, In, Out>(
          [=](int r, int s) WENGERT_INLINE_LAMBDA { return load(from + r * down + s * across); },
          [=](int r, int s, V value)
              WENGERT_INLINE_LAMBDA { store(value, to + ((r - rows.begin) * Out + s) * plane + c); },
          f, rows);
    });
  }
}

/// Values between two points, for `size` that belong together: an odd number of lines, since the points of a
/// patch, a power of two apart, would crowd each other out of L1.
template <class T>
constexpr Index winograd_plane(Index size) noexcept {
  constexpr Index line = 64 / Index{sizeof(T)};
  return ((size + line - 1) / line | 1) * line;
}

/// How many patches are in work at once: as many as fit the L2 cache with what they are mapped to, but enough
/// that each product has more arithmetic than reading of weights.
template <class T>
Index winograd_block(Index patches, Index points, Index in, Index out) noexcept {
  constexpr Index cache = 1 << 19, most = 16 << 20;
  const Index each = points * (in + out) * Index{sizeof(T)};
  const Index wanted =
      std::clamp<Index>(std::max(cache / each, in * out / (in + out)), 1, std::max<Index>(1, most / each));
  Index blocks = std::max<Index>(1, (patches + wanted - 1) / wanted);
  blocks += blocks > 1 ? blocks % 2 : 0;  // an even share for two threads
  return std::max<Index>(1, (patches + blocks - 1) / blocks);
}

template <int M, SimdScalar T>
class WinogradProduct {
 public:
  using Axis = WinogradAxis<M>;
  static constexpr Index points = Axis::points * Axis::points;
  static constexpr Index width = Tile<T>::width;

  /// out (batch, height, width, columns) from in (.., .., .., rows), read from `before` pixels ahead of each
  /// output.
  WinogradProduct(Index batch, Index rows, Index columns, const WindowAxis& h, const WindowAxis& w,
                  const Epilogue<T>& epilogue)
      : patches_{batch, h.in, w.in, (h.out + M - 1) / M, (w.out + M - 1) / M, M, h.before, w.before},
        out_height_(h.out),
        out_width_(w.out),
        rows_(rows),
        columns_(columns),
        epilogue_(epilogue),
        panels_((columns + width - 1) / width, Tile<T>::vectors),
        steps_(rows, Blocking<T>::steps),
        stride_(panels_.total * width),
        block_(winograd_block<T>(patches_.total(), points, rows, stride_)),
        in_plane_(winograd_plane<T>(block_ * rows)),
        out_plane_(winograd_plane<T>(block_ * stride_)) {}

  Index weights_size() const noexcept { return points * stride_ * rows_; }
  Index work_size() const noexcept { return points * (in_plane_ + out_plane_); }

  /// w: 9 taps, `tap` apart, of rows x columns, rows `row` apart.
  void run(const T* in, const T* w, Index tap, Index row, T* out) {
    const Scratch<T> weights(weights_size());
    map_weights(w, tap, row, weights.data());
    const Index total = patches_.total(), blocks = total == 0 ? 0 : (total + block_ - 1) / block_;
    constexpr Index many = 8;
    if (blocks >= many) {
      parallel_for_scratch<T>(blocks, 1, work_size(), [&](Index begin, Index end, T* v) {
        for (Index i = begin; i < end; ++i) run_block(i, in, weights.data(), v, out);
      });
    } else {
      const Scratch<T> work(work_size());
      for (Index i = 0; i < blocks; ++i) run_block(i, in, weights.data(), work.data(), out);
    }
  }

 private:
  /// The outputs of block i, on several threads unless the caller is one of many.
  void run_block(Index i, const T* in, const T* weights, T* v, T* out) const {
    const Index first = i * block_, count = std::min(block_, patches_.total() - first);
    T* const x = v + points * in_plane_;
    const Index grain = std::max<Index>(1, Blocking<T>::copies / (points * (rows_ + stride_)));
    parallel_for(count, grain,
                 [&](Index begin, Index end) { map_in(first + begin, first + end, first, in, v); });
    const Index products = count * rows_ * Tile<T>::columns;
    parallel_for(points * panels_.count, std::max<Index>(1, Blocking<T>::task_products / products),
                 [&](Index begin, Index end) {
                   for (Index k = begin; k < end; ++k)
                     multiply(k / panels_.count, k % panels_.count, count, v, weights, x);
                 });
    parallel_for(count, grain,
                 [&](Index begin, Index end) { map_out(first + begin, first + end, first, x, out); });
  }

  void map_in(Index begin, Index end, Index first, const T* in, T* v) const {
    map_patches<Axis::points, Axis::points>(patches_, rows_, in, begin, end, first, in_plane_, v,
                                            [](const auto& d, auto& o)
                                                WENGERT_INLINE_LAMBDA { Axis::input(d, o); });
  }

  /// u[point][panel][row][column of the panel], zeros beyond the columns.
  void map_weights(const T* w, Index tap, Index row, T* u) const {
    using V = Vec<T>;
    const Index grain = std::max<Index>(1, Blocking<T>::copies / (points * Tile<T>::columns));
    parallel_for(panels_.count * rows_, grain, [=, this](Index begin, Index end) {
      for (Index i = begin; i < end; ++i) {
        const Index j = i / rows_, c = i % rows_, size = panels_.size(j) * width;
        for (Index k = 0; k < size; k += width) {
          const Index column = panels_.begin(j) * width + k, valid = std::min(width, columns_ - column);
          const T* const from = w + c * row + column;
          T* const to = u + panels_.begin(j) * width * rows_ + c * size + k;
          transform_both<V, 3, Axis::points>(
              [=](int r, int s)
                  WENGERT_INLINE_LAMBDA { return V::load_partial(from + (r * 3 + s) * tap, valid); },
              [=, this](int r, int s, V value)
                  WENGERT_INLINE_LAMBDA { value.store(to + (r * Axis::points + s) * stride_ * rows_); },
              [](const auto& a, auto& b) WENGERT_INLINE_LAMBDA { Axis::weights(a, b); });
        }
      }
    });
  }

  /// x[point] = v[point] u[point], a panel of columns.
  void multiply(Index point, Index j, Index count, const T* v, const T* u, T* x) const {
    const Index vectors = panels_.size(j), first = panels_.begin(j) * width;
    const Panels rows(count, even_tile_rows<T>(vectors));
    for (Index s = 0; s < steps_.count; ++s) {
      const T* const a = v + point * in_plane_ + steps_.begin(s);
      const T* const b = u + (point * stride_ + first) * rows_ + steps_.begin(s) * vectors * width;
      for (Index i = 0; i < rows.count; ++i)
        even_tile_function<T, false>(rows.size(i), vectors)(
            steps_.size(s), a + rows.begin(i) * rows_, rows_, b, vectors * width,
            x + point * out_plane_ + rows.begin(i) * stride_ + first, stride_, s > 0);
    }
  }

  void map_out(Index begin, Index end, Index first, const T* x, T* out) const {
    using V = Vec<T>;
    for (Index patch = begin; patch < end; ++patch) {
      const Index n = patch / patches_.columns / patches_.rows;
      const Index h = patch / patches_.columns % patches_.rows * M, w = patch % patches_.columns * M;
      const Index height = std::min<Index>(M, out_height_ - h), across = std::min<Index>(M, out_width_ - w);
      T* const to = out + ((n * out_height_ + h) * out_width_ + w) * columns_;
      const T* const from = x + (patch - first) * stride_;
      const Index row = out_width_ * columns_;
      for_vectors<T>(columns_, [=, this](Index k, auto load, auto store) WENGERT_INLINE_LAMBDA {
        const V bias = epilogue_.bias != nullptr ? load(epilogue_.bias + k) : V(T(0));
        const bool relu = epilogue_.activation == Activation::relu;
        if (epilogue_.add) prefetch_pixels<M>(to, M * columns_ + k, row, columns_);  // of the next patch
        V y[M][M];
        transform_both<V, Axis::points, M>(
            [=, this](int r, int s)
                WENGERT_INLINE_LAMBDA { return load(from + (r * Axis::points + s) * out_plane_ + k); },
            [&y, bias](int r, int s, V value) WENGERT_INLINE_LAMBDA { y[r][s] = value + bias; },
            [](const auto& a, auto& b) WENGERT_INLINE_LAMBDA { Axis::output(a, b); });
        const auto finish = [&](Index rows, Index pixels) WENGERT_INLINE_LAMBDA {
#pragma GCC unroll 4
          for (int r = 0; r < rows; ++r)
#pragma GCC unroll 4
            for (int s = 0; s < pixels; ++s) {
              T* const pixel = to + (r * row + s * columns_ + k);
              V value = y[r][s];
              if (epilogue_.add) value = load(pixel) + value;
              if (relu) value = where(value < V(T(0)), V(T(0)), value);
              store(value, pixel);
            }
        };
        if (height == M && across == M)
          finish(M, M);  // sizes the compiler knows: no branches
        else
          finish(height, across);
      });
    }
  }

  const WinogradPatches patches_;
  const Index out_height_, out_width_, rows_, columns_;
  const Epilogue<T> epilogue_;
  const Panels panels_, steps_;  // of vectors of columns; of rows
  const Index stride_, block_;   // columns with the zeros beyond; patches at once
  const Index in_plane_, out_plane_;
};

/// y = epilogue(x * w).
template <int M, SimdScalar T>
void winograd_forward(const ConvShape& s, const T* x, const T* w, T* y, const Epilogue<T>& epilogue) {
  const Index c = s.in_channels(), k = s.out_channels;
  WinogradProduct<M, T>(s.window.batch, c, k, s.window.height(), s.window.width(), epilogue)
      .run(x, w, c * k, k, y);
}

/// dx = or += the convolution of dy with the weights turned about.
template <int M, SimdScalar T>
void winograd_backward_data(const ConvShape& s, const T* dy, const T* w, T* dx, bool add) {
  const Index c = s.in_channels(), k = s.out_channels;
  const auto turned = [](const WindowAxis& a) { return WindowAxis{a.out, a.in, 3, 1, 2 - a.before, 1}; };
  const Index columns = (c + Tile<T>::width - 1) / Tile<T>::width * Tile<T>::width;
  const Scratch<T> weights(9 * k * columns);  // (tap, k, c), the last tap first
  constexpr Index rows = 64;
  const Index parts = (k + rows - 1) / rows;
  parallel_for(9 * parts, std::max<Index>(1, Blocking<T>::copies / (rows * columns)),
               [=, to = weights.data()](Index begin, Index end) {
                 for (Index i = begin; i < end; ++i) {
                   const Index tap = i / parts, first = i % parts * rows;
                   pack_columns<T>(std::min(rows, k - first), c, columns,
                                   {w + (8 - tap) * c * k + first, 1, k}, to + (tap * k + first) * columns);
                 }
               });
  WinogradProduct<M, T>(s.window.batch, k, c, turned(s.window.height()), turned(s.window.width()),
                        {add, nullptr, Activation::none})
      .run(dy, weights.data(), k * columns, columns, dx);
}

WENGERT_INSTANCE(void winograd_forward<2>(const ConvShape&, const float*, const float*, float*,
                                          const Epilogue<float>&));
WENGERT_INSTANCE(void winograd_forward<4>(const ConvShape&, const float*, const float*, float*,
                                          const Epilogue<float>&));
WENGERT_INSTANCE(void winograd_forward<2>(const ConvShape&, const double*, const double*, double*,
                                          const Epilogue<double>&));
WENGERT_INSTANCE(void winograd_forward<4>(const ConvShape&, const double*, const double*, double*,
                                          const Epilogue<double>&));
WENGERT_INSTANCE(void winograd_backward_data<2>(const ConvShape&, const float*, const float*, float*, bool));
WENGERT_INSTANCE(void winograd_backward_data<4>(const ConvShape&, const float*, const float*, float*, bool));
WENGERT_INSTANCE(void winograd_backward_data<2>(const ConvShape&, const double*, const double*, double*,
                                                bool));
WENGERT_INSTANCE(void winograd_backward_data<4>(const ConvShape&, const double*, const double*, double*,
                                                bool));

}  // namespace wengert::inline WENGERT_ISA::kernels::detail
