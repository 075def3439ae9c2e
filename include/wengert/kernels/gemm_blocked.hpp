// Cache blocking and threads of the SIMD matrix product. Floor: kernels.
#pragma once

#include <algorithm>

#include <wengert/kernels/gemm_pack.hpp>
#include <wengert/kernels/parallel.hpp>
#include <wengert/memory/buffer.hpp>

namespace wengert::inline WENGERT_ISA::kernels::detail {

template <SimdScalar T>
struct Blocking {
  static constexpr Index steps = 1024 / static_cast<Index>(sizeof(T));  // of k: a panel of b stays near L1
  static constexpr Index row_panels = 24;                               // of a: a block stays in L2
  static constexpr Index column_panels = 24;       // of b: packed at once, shared by all threads
  static constexpr Index task_products = 1 << 18;  // about 3 us: less is not handed over
  static constexpr Index copies = 1 << 15;         // elements packed in about 3 us
  static constexpr Index tasks = 16;
  static constexpr Index task_row_panels = 4;  // fewer would fetch a panel of b for too little work
  static constexpr Index few_row_panels = 12;  // b is packed a panel at a time where it is not read in place
  static constexpr Index far_results =
      (1 << 19) / static_cast<Index>(sizeof(T));  // a c that L2 does not keep

  /// Row panels of a that read a b of contiguous rows in place, `row` apart. Packing costs the more the fewer
  /// they are; rows about a page apart crowd each other out of L1, which costs a third of the speed.
  static constexpr Index in_place_row_panels(Index row, bool ragged) noexcept {
    constexpr Index near = 2048 / Index{sizeof(T)}, page = 3584 / Index{sizeof(T)};
    return row <= near && !ragged ? 48 : row < page ? 24 : 8;
  }

  /// Column panels of b that read an a of contiguous columns in place, `step` apart: the same for a.
  static constexpr Index in_place_column_panels(Index step) noexcept {
    constexpr Index near = 1280 / Index{sizeof(T)}, page = 4096 / Index{sizeof(T)};
    return step <= near ? 8 : step < page ? 2 : 1;
  }
};

/// One product as the loops below see it.
template <SimdScalar T>
struct Product {
  Index m, n, k;
  MatrixView<T> a, b;
  T* c;
  Index ldc;
  Epilogue<T> epilogue;
};

/// One tile; columns beyond `valid` are computed but neither read from nor written to c and the bias.
template <SimdScalar T>
void finish_tile(TileFunction<T> tile, Index k, const T* a, Index a_row, Index a_step, const T* b,
                 Index b_step, T* c, Index ldc, Index rows, Index vectors, Index valid,
                 const Epilogue<T>& epilogue) {
  if (valid == vectors * Tile<T>::width) {
    tile(k, a, a_row, a_step, b, b_step, c, ldc, epilogue);
    return;
  }
  const Index columns = vectors * Tile<T>::width, whole = valid / Tile<T>::width * Tile<T>::width;
  alignas(64) T out[Tile<T>::rows * Tile<T>::columns];
  alignas(64) T bias[Tile<T>::columns];
  const auto copy = [whole, valid](const T* from, T* to) {
    for (Index j = 0; j < whole; j += Tile<T>::width)
      Batch<T>::load_unaligned(from + j).store_unaligned(to + j);
    store_first(load_first(from + whole, valid - whole), to + whole, valid - whole);
  };
  Epilogue<T> local = epilogue;
  if (epilogue.add)
    for (Index r = 0; r < rows; ++r) copy(c + r * ldc, out + r * columns);
  if (epilogue.bias != nullptr) {
    copy(epilogue.bias, bias);
    local.bias = bias;
  }
  tile(k, a, a_row, a_step, b, b_step, out, columns, local);
  for (Index r = 0; r < rows; ++r) copy(out + r * columns, c + r * ldc);
}

/// The product for m, n, k >= 1. Only rows and columns of c are shared out, never k, and each element of c is
/// the same chain of operations in every tile: the bits depend on k alone.
template <SimdScalar T>
class BlockedProduct {
 public:
  explicit BlockedProduct(const Product<T>& product)
      : x_(product),
        rows_(x_.m, Tile<T>::rows),
        columns_((x_.n + width - 1) / width, Tile<T>::vectors),
        steps_(x_.k, Block::steps),
        ragged_(x_.n % width != 0 ? columns_.count - 1 : -1),
        share_b_(rows_.count > (x_.b.col == 1 ? Block::in_place_row_panels(x_.b.row, ragged_ >= 0)
                                              : Block::few_row_panels)),
        pack_a_(x_.a.col != 1 && (x_.a.row != 1 || columns_.count > Block::in_place_column_panels(x_.a.col))),
        a_row_(pack_a_ ? 1 : x_.a.row),
        a_step_(pack_a_ ? row_step<T> : x_.a.col),
        row_chunk_(pack_a_ ? std::min(rows_.count, Block::row_panels) : rows_.count),
        column_chunk_(std::min(columns_.count, Block::column_panels)),
        a_size_(pack_a_ ? whole_lines(row_chunk_ * row_step<T> * steps_.size(0)) : 0),
        b_size_(share_b_ ? column_chunk_ * Tile<T>::columns * steps_.size(0) : 0),
        panel_size_(!share_b_ && (x_.b.col != 1 || ragged_ >= 0) ? Tile<T>::columns * steps_.size(0) : 0) {}

  /// Values that the packed operands take.
  Index workspace_size() const noexcept { return panel_size_ + a_size_ + b_size_; }

  /// `workspace`, when given, has room for `workspace_size()` values, and the call stays on its thread.
  void run(T* workspace = nullptr) {
    const Scratch<T> owned(workspace == nullptr ? a_size_ + b_size_ : 0);
    panel_ = workspace;
    a_packed_ = workspace == nullptr ? owned.data() : workspace + panel_size_;
    b_packed_ = a_packed_ + a_size_;
    for (j_begin_ = 0; j_begin_ < columns_.count; j_begin_ = j_end_) {
      j_end_ = std::min(columns_.count, j_begin_ + column_chunk_);
      for (Index s = 0; s < steps_.count; ++s) {
        p_ = steps_.begin(s);
        k_ = steps_.size(s);
        epilogue_.add = x_.epilogue.add || s > 0;
        const bool last = s + 1 == steps_.count;
        epilogue_.bias = last ? x_.epilogue.bias : nullptr;
        epilogue_.activation = last ? x_.epilogue.activation : Activation::none;
        epilogue_.far = x_.m * x_.n > Block::far_results;
        if (share_b_)
          parallel_for(j_end_ - j_begin_, std::max<Index>(1, Block::copies / (k_ * Tile<T>::columns)),
                       [this](Index begin, Index end) {
                         for (Index j = j_begin_ + begin; j < j_begin_ + end; ++j)
                           pack_panel(j, shared_panel(j));
                       });
        for (i_begin_ = 0; i_begin_ < rows_.count; i_begin_ = i_end_) {
          i_end_ = std::min(rows_.count, i_begin_ + row_chunk_);
          if (pack_a_)
            parallel_for(k_, std::max<Index>(1, Block::copies / chunk_rows()),
                         [this](Index begin, Index end) {
                           pack_rows<T>(begin, end, k_, rows_, i_begin_, i_end_,
                                        {x_.a.data + p_ * x_.a.col, x_.a.row, x_.a.col}, a_packed_);
                         });
          run_chunk();
        }
      }
    }
  }

 private:
  using Block = Blocking<T>;
  static constexpr Index width = Tile<T>::width;

  static constexpr Index whole_lines(Index n) noexcept {
    constexpr Index line = 64 / Index{sizeof(T)};
    return (n + line - 1) / line * line;
  }
  Index chunk_rows() const noexcept { return rows_.begin(i_end_) - rows_.begin(i_begin_); }
  T* shared_panel(Index j) const noexcept {
    return b_packed_ + (columns_.begin(j) - columns_.begin(j_begin_)) * width * k_;
  }
  /// A panel of few rows is packed by the task that uses it, and stays in its nearest cache.
  bool needs_packing(Index j) const noexcept { return x_.b.col != 1 || j == ragged_; }

  void pack_panel(Index j, T* dst) const noexcept {
    const Index first = columns_.begin(j) * width, size = columns_.size(j) * width;
    const T* b = x_.b.data + p_ * x_.b.row + first * x_.b.col;
    pack_columns<T>(k_, std::min(size, x_.n - first), size, {b, x_.b.row, x_.b.col}, dst);
  }

  /// Shares out row panels i_begin .. i_end and column panels j_begin .. j_end for one block of k.
  void run_chunk() {
    const Index row_count = i_end_ - i_begin_, column_count = j_end_ - j_begin_;
    const Index wanted = std::clamp<Index>(
        chunk_rows() * column_count * Tile<T>::columns * k_ / Block::task_products, 1, Block::tasks);
    const Index least = (row_count + Block::row_panels - 1) / Block::row_panels;
    const Index column_groups = std::min((wanted + least - 1) / least, column_count);
    const bool whole = !share_b_ && x_.b.col != 1;  // cutting the rows would pack every panel once a cut
    const Index most = whole ? least : std::max(least, row_count / Block::task_row_panels);
    const Index row_groups = std::clamp(wanted / column_groups, least, most);
    const Panels rows(row_count, (row_count + row_groups - 1) / row_groups);
    const Panels columns(column_count, (column_count + column_groups - 1) / column_groups);
    parallel_for_scratch<T>(rows.count * columns.count, 1, panel_ == nullptr ? panel_size_ : 0,
                            [&](Index begin, Index end, T* scratch) {
                              T* const panel = panel_ == nullptr ? scratch : panel_;
                              for (Index t = begin; t < end; ++t) {
                                const Index i = i_begin_ + rows.begin(t / columns.count),
                                            j = j_begin_ + columns.begin(t % columns.count);
                                run_task(i, i + rows.size(t / columns.count), j,
                                         j + columns.size(t % columns.count), panel);
                              }
                            });
  }

  void run_task(Index i_begin, Index i_end, Index j_begin, Index j_end, T* panel) const {
    for (Index j = j_begin; j < j_end; ++j) {
      const Index first = columns_.begin(j) * width, vectors = columns_.size(j);
      const Index valid = std::min(vectors * width, x_.n - first);
      const bool in_place = !share_b_ && !needs_packing(j);
      const T* b = in_place ? x_.b.data + p_ * x_.b.row + first : share_b_ ? shared_panel(j) : panel;
      const Index b_step = in_place ? x_.b.row : vectors * width;
      if (!in_place && !share_b_) pack_panel(j, panel);
      Epilogue<T> epilogue = epilogue_;
      if (epilogue.bias != nullptr) epilogue.bias += first;
      for (Index i = i_begin; i < i_end; ++i) {
        const Index row = rows_.begin(i), size = rows_.size(i);
        const T* a = pack_a_ ? a_packed_ + (i - i_begin_) * row_step<T> * k_
                             : x_.a.data + row * x_.a.row + p_ * x_.a.col;
        finish_tile<T>(tile_function<T>(size, vectors), k_, a, a_row_, a_step_, b, b_step,
                       x_.c + row * x_.ldc + first, x_.ldc, size, vectors, valid, epilogue);
      }
    }
  }

  const Product<T> x_;
  const Panels rows_, columns_, steps_;  // columns in vectors
  const Index ragged_;                   // the panel that ends in a part of a vector, or -1
  const bool share_b_;                   // b is packed before the tasks begin
  const bool pack_a_;
  const Index a_row_, a_step_, row_chunk_, column_chunk_;
  const Index a_size_, b_size_, panel_size_;
  T* panel_ = nullptr;  // in a workspace that was given; else each task has its own
  T *a_packed_ = nullptr, *b_packed_ = nullptr;
  Index j_begin_ = 0, j_end_ = 0, i_begin_ = 0, i_end_ = 0, p_ = 0, k_ = 0;
  Epilogue<T> epilogue_;
};

}  // namespace wengert::inline WENGERT_ISA::kernels::detail
