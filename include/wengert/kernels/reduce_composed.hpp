// Reductions of two folds, the second of which needs the first: variance and log-sum-exp. Short rows go
// through both while they are near. Floor: kernels.
#pragma once

#include <wengert/kernels/softmax.hpp>

namespace wengert::inline WENGERT_ISA::kernels {

inline constexpr Index near_row = 16 * 1024;  // elements of a row that stays in L1 or L2 between two folds

/// y[i] /= n for `outputs` sums.
template <Scalar T>
void divide(T* y, Index outputs, T n) {
  for (Index i = 0; i < outputs; ++i) y[i] = static_cast<T>(y[i] / n);
}

/// y[i] = sqrt(y[i] / n).
template <Scalar T>
void root_of_quotient(T* y, Index outputs, T n) {
  for (Index i = 0; i < outputs; ++i) y[i] = static_cast<T>(sqrt(static_cast<T>(y[i] / n)));
}

namespace detail {

// x - mean with the mean of its output, or its square.
template <bool squared, Scalar T>
struct Deviation {
  const T* mean;
  struct At {
    Vec<T> m;
    WENGERT_INLINE Vec<T> operator()(Vec<T> x) const noexcept {
      const Vec<T> d = x - m;
      return squared ? d * d : d;
    }
  };
  WENGERT_INLINE At row(Index o) const noexcept { return {Vec<T>::broadcast(mean[o])}; }
  WENGERT_INLINE At columns(Index o, Index n) const noexcept { return {load_n(mean + o, n)}; }
};

template <Scalar T>
struct ExpShifted {
  const T* shift;
  struct At {
    Vec<T> m;
    WENGERT_INLINE Vec<T> operator()(Vec<T> x) const noexcept { return exp(x - m); }
  };
  WENGERT_INLINE At row(Index o) const noexcept { return {Vec<T>::broadcast(shift[o])}; }
  WENGERT_INLINE At columns(Index o, Index n) const noexcept { return {load_n(shift + o, n)}; }
};

}  // namespace detail

/// mean[o, i] over the reduced axis and squares[o, i] = sum of (x - mean)^2, both free of the rounding of a
/// first guess at the mean: with deviations d from that, the mean is off by sum(d) / n and the sum of squares
/// by sum(d)^2 / n. NaN and 0 where there is nothing to sum.
template <Scalar T>
void mean_and_squares(const ReduceView& v, const T* x, T* mean, T* squares) {
  const detail::Deviation<false, T> first{mean};
  const detail::Deviation<true, T> second{mean};
  const Index n = v.reduce;
  const T count = static_cast<T>(n);
  const auto correct = [=](Index o, T off) {
    squares[o] = static_cast<T>(squares[o] - off * off / count);
    mean[o] = static_cast<T>(mean[o] + off / count);
  };
  if (v.inner == 1 && n > 0 && n <= near_row) {
    parallel_for(v.outer, std::max<Index>(1, fold_grain / (3 * n)), [=](Index begin, Index end) {
      for (Index o = begin; o < end; ++o) {
        mean[o] = static_cast<T>(fold_span<FoldSum>(x + o * n, n) / count);
        squares[o] = fold_span<FoldSum>(x + o * n, n, second.row(o));
        correct(o, fold_span<FoldSum>(x + o * n, n, first.row(o)));
      }
    });
    return;
  }
  fold<FoldSum>(v, x, mean);
  divide(mean, v.outputs(), count);
  const Scratch<T> off(v.outputs());
  fold<FoldSum>(v, x, squares, second);
  fold<FoldSum>(v, x, off.data(), first);
  if (n > 0)
    for (Index o = 0; o < v.outputs(); ++o) correct(o, off[o]);
}

/// y[o, i] = log(sum(exp(x[o, :, i]))). Also shift and scale, with which exp(x - shift) * scale are the
/// softmax of x; scale is 0 where all is -inf.
template <Scalar T>
void logsumexp(const ReduceView& v, const T* x, T* y, T* shift, T* scale) {
  const auto finish = [=](Index o) {
    const T s = scale[o];
    y[o] = static_cast<T>(log(s) + shift[o]);
    scale[o] = s == T(0) ? T(0) : static_cast<T>(T(1) / s);
  };
  const Index n = v.reduce;
  if (v.inner == 1 && n > 0 && n <= near_row) {
    parallel_for(v.outer, softmax_grain / n, [=](Index begin, Index end) {
      for (Index o = begin; o < end; ++o) {
        shift[o] = exp_shift(fold_span<FoldLargest>(x + o * n, n), true);
        scale[o] = sum_exp(x + o * n, n, shift[o]);
        finish(o);
      }
    });
    return;
  }
  if (n == 0)
    std::fill(shift, shift + v.outputs(), T(0));
  else
    fold<FoldLargest>(v, x, shift);
  for (Index o = 0; o < v.outputs(); ++o) shift[o] = exp_shift(shift[o], true);
  fold<FoldSum, 4>(v, x, scale, detail::ExpShifted<T>{shift});
  for (Index o = 0; o < v.outputs(); ++o) finish(o);
}

/// dx = factor * dy of the output that x went into: the way back of sums and means.
template <Scalar T>
struct SpreadScaled {
  const T* dy;
  T factor;
  struct At {
    Vec<T> d;
    WENGERT_INLINE Vec<T> operator()() const noexcept { return d; }
  };
  WENGERT_INLINE At row(Index o) const noexcept {
    return {Vec<T>::broadcast(static_cast<T>(dy[o] * factor))};
  }
  WENGERT_INLINE At columns(Index o, Index n) const noexcept {
    return {load_n(dy + o, n) * Vec<T>::broadcast(factor)};
  }
};

/// dx = factor * dy * (x - mean), divided by `root` where that is given, and then 0 where root is 0.
template <Scalar T>
struct SpreadDeviation {
  const T* dy;
  const T* mean;
  const T* root;  // or null
  T factor;
  struct At {
    Vec<T> g, m;
    WENGERT_INLINE Vec<T> operator()(Vec<T> x) const noexcept { return g * (x - m); }
  };
  WENGERT_INLINE At make(Vec<T> d, Vec<T> m, Vec<T> y) const noexcept {
    const Vec<T> g = d * Vec<T>::broadcast(factor);
    return {root == nullptr ? g : where(y == 0, Vec<T>(T(0)), g / y), m};
  }
  WENGERT_INLINE At row(Index o) const noexcept {
    using V = Vec<T>;
    return make(V::broadcast(dy[o]), V::broadcast(mean[o]), V::broadcast(root == nullptr ? T(1) : root[o]));
  }
  WENGERT_INLINE At columns(Index o, Index n) const noexcept {
    return make(load_n(dy + o, n), load_n(mean + o, n), root == nullptr ? Vec<T>(T(1)) : load_n(root + o, n));
  }
};

/// dx = dy * exp(x - shift) * scale, and 0 where scale is 0.
template <Scalar T>
struct SpreadSoftmax {
  const T* dy;
  const T* shift;
  const T* scale;
  struct At {
    Vec<T> g, m;
    WENGERT_INLINE Vec<T> operator()(Vec<T> x) const noexcept { return exp(x - m) * g; }
  };
  WENGERT_INLINE At make(Vec<T> d, Vec<T> m, Vec<T> s) const noexcept {
    return {where(s == 0, Vec<T>(T(0)), d * s), m};
  }
  WENGERT_INLINE At row(Index o) const noexcept {
    using V = Vec<T>;
    return make(V::broadcast(dy[o]), V::broadcast(shift[o]), V::broadcast(scale[o]));
  }
  WENGERT_INLINE At columns(Index o, Index n) const noexcept {
    return make(load_n(dy + o, n), load_n(shift + o, n), load_n(scale + o, n));
  }
};

}  // namespace wengert::inline WENGERT_ISA::kernels
