// Pools as modules. They hold no parameters and serve every element type. Floor: nn.
#pragma once

#include <wengert/nn/activation.hpp>
#include <wengert/ops/pool_adaptive.hpp>

namespace wengert::inline WENGERT_ISA::nn {

namespace detail {

template <class Derived, int axes>
struct MaxPool : Stateless<Derived> {
  explicit MaxPool(const MaxPoolOptions& options) : options(options) {
    using namespace wengert::detail;
    check_pool_options(pool_name(PoolKind::max, axes), axes, options);
  }
  template <Field T>
  Tensor<T> apply(const Tensor<T>& x) const {
    return wengert::detail::max_pool<axes>(x, options);
  }
  MaxPoolOptions options;
};

template <class Derived, int axes>
struct AvgPool : Stateless<Derived> {
  explicit AvgPool(const AvgPoolOptions& options) : options(options) {
    using namespace wengert::detail;
    check_pool_options(pool_name(PoolKind::avg, axes), axes, options);
  }
  template <Field T>
  Tensor<T> apply(const Tensor<T>& x) const {
    return wengert::detail::avg_pool<axes>(x, options);
  }
  AvgPoolOptions options;
};

template <class Derived, wengert::detail::PoolKind kind, int axes>
struct AdaptivePool : Stateless<Derived> {
  explicit AdaptivePool(const PerAxis& size) : size(size) {
    size.check(wengert::detail::pool_name(kind, axes), "output size", axes, 1);
  }
  template <Field T>
  Tensor<T> apply(const Tensor<T>& x) const {
    using namespace wengert::detail;
    const kernels::PoolWindow window = adaptive_window(pool_name(kind, axes), axes, x.shape(), size);
    if constexpr (kind == PoolKind::adaptive_max)
      return wengert::detail::max_pool<kind, axes>(x, window);
    else
      return wengert::detail::avg_pool<kind, axes>(x, window);
  }
  PerAxis size;
};

}  // namespace detail

/// The largest element of each window of (N, W, C): `MaxPool1d({.kernel = 3, .stride = 2, .padding = 1})`;
/// see `wengert::max_pool1d`, which throws the same ValueError for these options.
struct MaxPool1d : detail::MaxPool<MaxPool1d, 1> {
  using MaxPool::MaxPool;
};
/// The same of (N, H, W, C); see `wengert::max_pool2d`.
struct MaxPool2d : detail::MaxPool<MaxPool2d, 2> {
  using MaxPool::MaxPool;
};
/// The same of (N, D, H, W, C); see `wengert::max_pool3d`.
struct MaxPool3d : detail::MaxPool<MaxPool3d, 3> {
  using MaxPool::MaxPool;
};

/// The mean of each window of (N, W, C); see `wengert::avg_pool1d`, which throws the same ValueError.
struct AvgPool1d : detail::AvgPool<AvgPool1d, 1> {
  using AvgPool::AvgPool;
};
/// The same of (N, H, W, C); see `wengert::avg_pool2d`.
struct AvgPool2d : detail::AvgPool<AvgPool2d, 2> {
  using AvgPool::AvgPool;
};
/// The same of (N, D, H, W, C); see `wengert::avg_pool3d`.
struct AvgPool3d : detail::AvgPool<AvgPool3d, 3> {
  using AvgPool::AvgPool;
};

/// The largest elements of (N, W, C) in a given number of windows; see `wengert::adaptive_max_pool1d`.
struct AdaptiveMaxPool1d
    : detail::AdaptivePool<AdaptiveMaxPool1d, wengert::detail::PoolKind::adaptive_max, 1> {
  using AdaptivePool::AdaptivePool;
};
/// The same of (N, H, W, C); see `wengert::adaptive_max_pool2d`.
struct AdaptiveMaxPool2d
    : detail::AdaptivePool<AdaptiveMaxPool2d, wengert::detail::PoolKind::adaptive_max, 2> {
  using AdaptivePool::AdaptivePool;
};
/// The means of (N, W, C) in a given number of windows; see `wengert::adaptive_avg_pool1d`.
struct AdaptiveAvgPool1d
    : detail::AdaptivePool<AdaptiveAvgPool1d, wengert::detail::PoolKind::adaptive_avg, 1> {
  using AdaptivePool::AdaptivePool;
};
/// The same of (N, H, W, C); see `wengert::adaptive_avg_pool2d`.
struct AdaptiveAvgPool2d
    : detail::AdaptivePool<AdaptiveAvgPool2d, wengert::detail::PoolKind::adaptive_avg, 2> {
  using AdaptivePool::AdaptivePool;
};

/// The mean over all pixels, (N, ..., C) to (N, C); see `wengert::global_avg_pool`.
struct GlobalAvgPool : detail::Stateless<GlobalAvgPool> {
  template <Field T>
  static Tensor<T> apply(const Tensor<T>& x) {
    return global_avg_pool(x);
  }
};
/// The largest element over all pixels, (N, ..., C) to (N, C); see `wengert::global_max_pool`.
struct GlobalMaxPool : detail::Stateless<GlobalMaxPool> {
  template <Field T>
  static Tensor<T> apply(const Tensor<T>& x) {
    return global_max_pool(x);
  }
};

}  // namespace wengert::inline WENGERT_ISA::nn
