// Data sets in memory, and the loader that hands them out in shuffled batches. Floor: data.
#pragma once

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include <wengert/base/random.hpp>
#include <wengert/core/tensor.hpp>
#include <wengert/kernels/parallel.hpp>

namespace wengert::inline WENGERT_ISA::data {

namespace detail {

/// The rows of `bytes` bytes at x that are numbered in `rows`, one after another at y.
inline void copy_rows(const void* x, std::span<const Index> rows, void* y, Index bytes) {
  constexpr Index grain_bytes = 64 * 1024;
  const auto from = static_cast<const std::byte*>(x);
  const auto to = static_cast<std::byte*>(y);
  kernels::parallel_for(static_cast<Index>(rows.size()), std::max<Index>(1, grain_bytes / bytes),
                        [=](Index begin, Index end) {
                          for (Index i = begin; i < end; ++i)
                            std::memcpy(to + i * bytes, from + rows[static_cast<std::size_t>(i)] * bytes,
                                        static_cast<std::size_t>(bytes));
                        });
}

}  // namespace detail

/// Inputs x (N, ...) and targets y (N, ...), one row a sample.
template <Scalar X, Scalar Y>
struct Batch {
  Tensor<X> x;
  Tensor<Y> y;
};

/// N samples in memory: x (N, ...) and y (N, ...), contiguous. Throws ShapeError when either has rank 0 or
/// their numbers of samples differ.
template <Scalar X, Scalar Y>
class Dataset {
 public:
  [[gnu::cold]] Dataset(const Tensor<X>& x, const Tensor<Y>& y) {
    if (x.rank() == 0 || y.rank() == 0 || x.dim(0) != y.dim(0))
      fail<ShapeError>("dataset", "numbers of samples differ; x is ", x.shape(), ", y is ", y.shape(),
                       "; expected one row a sample in both");
    x_ = x.packed();
    y_ = y.packed();
  }

  /// Number of samples.
  Index size() const noexcept { return x_.shape()[0]; }
  const Tensor<X>& x() const noexcept { return x_; }
  const Tensor<Y>& y() const noexcept { return y_; }

  /// The samples numbered in `rows`, copied into a batch. Throws IndexError.
  Batch<X, Y> gather(std::span<const Index> rows) const {
    for (std::size_t i = 0; i < rows.size(); ++i)
      if (rows[i] < 0 || rows[i] >= size())
        fail<IndexError>("dataset", "sample ", rows[i], " at position ", i, " is out of range; x is ",
                         x_.shape(), "; expected ",
                         size() == 0 ? std::string("no sample") : wengert::detail::text("0..", size() - 1));
    return {rows_of(x_, rows), rows_of(y_, rows)};
  }

  /// Samples [begin, end) as views. Throws IndexError.
  Batch<X, Y> range(Index begin, Index end) const {
    if (begin < 0 || end < begin || end > size())
      fail<IndexError>("dataset", "samples ", begin, "..", end, " are out of range; x is ", x_.shape(),
                       "; expected 0 <= begin <= end <= ", size());
    return {rows_between(x_, begin, end), rows_between(y_, begin, end)};
  }

 private:
  template <Scalar T>
  static Tensor<T> rows_between(const Tensor<T>& t, Index begin, Index end) {
    Shape shape = t.shape();
    shape[0] = end - begin;
    return Tensor<T>(t.buffer(), shape, t.strides(), t.offset() + begin * t.strides()[0]);
  }

  template <Scalar T>
  static Tensor<T> rows_of(const Tensor<T>& t, std::span<const Index> rows) {
    Shape shape = t.shape();
    shape[0] = static_cast<Index>(rows.size());
    Tensor<T> out(shape);
    const Index width = rows.empty() ? 0 : out.size() / shape[0];
    if (width == 0) return out;
    detail::copy_rows(t.data(), rows, out.fresh_data(), width * static_cast<Index>(sizeof(T)));
    return out;
  }

  Tensor<X> x_;
  Tensor<Y> y_;
};

/// How a Loader hands out its data set.
struct LoaderOptions {
  Index batch = 32;        ///< samples a batch, at least 1
  bool shuffle = true;     ///< a fresh order each epoch
  bool drop_last = false;  ///< leave out a last batch that is short
  std::uint64_t seed = 0;  ///< of the orders
};

/// Hands a data set out in batches: `for (auto [x, y] : loader) ...` is one epoch. The order of epoch e
/// depends on the seed and e alone. Keeps its own copy of the handles, so the data set may go. One owner.
/// Throws ValueError unless batch >= 1.
template <Scalar X, Scalar Y>
class Loader {
 public:
  explicit Loader(Dataset<X, Y> dataset, LoaderOptions options = {})
      : dataset_(std::move(dataset)), options_(options), order_(static_cast<std::size_t>(dataset_.size())) {
    if (options.batch < 1) fail<ValueError>("loader", "batch is ", options.batch, "; expected at least 1");
    std::iota(order_.begin(), order_.end(), Index{0});
  }

  /// Batches in an epoch.
  Index batches() const noexcept {
    const Index n = dataset_.size(), b = options_.batch;
    return n / b + (n % b != 0 && !options_.drop_last ? 1 : 0);
  }
  /// Samples in the data set.
  Index samples() const noexcept { return dataset_.size(); }
  /// The epoch that the next `begin()` starts, from 0.
  std::uint64_t epoch() const noexcept { return epoch_; }
  /// Continues at an epoch, after a restart.
  void set_epoch(std::uint64_t epoch) noexcept { epoch_ = epoch; }

  class Iterator {
   public:
    using value_type = Batch<X, Y>;
    using difference_type = std::ptrdiff_t;
    value_type operator*() const { return loader_->batch(at_); }
    Iterator& operator++() noexcept {
      ++at_;
      return *this;
    }
    friend bool operator==(const Iterator& a, const Iterator& b) noexcept { return a.at_ == b.at_; }

   private:
    friend Loader;
    Iterator(const Loader* loader, Index at) noexcept : loader_(loader), at_(at) {}
    const Loader* loader_;
    Index at_;
  };

  /// Starts an epoch.
  Iterator begin() {
    if (options_.shuffle) {
      std::iota(order_.begin(), order_.end(), Index{0});
      Generator(options_.seed).split(epoch_).shuffle(std::span<Index>(order_));
    }
    ++epoch_;
    return Iterator(this, 0);
  }
  Iterator end() noexcept { return Iterator(this, batches()); }

 private:
  Batch<X, Y> batch(Index k) const {
    const Index begin = k * options_.batch, end = begin + std::min(options_.batch, dataset_.size() - begin);
    if (!options_.shuffle) return dataset_.range(begin, end);
    return dataset_.gather(std::span<const Index>(order_).subspan(static_cast<std::size_t>(begin),
                                                                  static_cast<std::size_t>(end - begin)));
  }

  Dataset<X, Y> dataset_;
  LoaderOptions options_;
  std::vector<Index> order_;
  std::uint64_t epoch_ = 0;
};

}  // namespace wengert::inline WENGERT_ISA::data
