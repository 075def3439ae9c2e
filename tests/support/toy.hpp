// Operators for tests of the engine, so that its tests need no operator of the library.
#pragma once

#include <stdexcept>

#include <wengert/core/backward.hpp>

namespace toy {

using namespace wengert;

/// y = sum(x * c), a scalar; dx += dy * c.
template <class T>
struct DotRule {
  static constexpr std::string_view name = "toy_dot";
  Saved<T> c;
  auto saved() const { return std::tie(c); }
  void backward(Vjp& v) {
    const T dy = *v.dy<T>();
    const GradRef<T> dx = v.into<T>(0);
    const T* w = c.data();
    for (Index i = 0; i < c.value().size(); ++i)
      dx.data[i] = dx.add ? T(dx.data[i] + dy * w[i]) : T(dy * w[i]);
  }
};
template <class T>
Tensor<T> dot(const Tensor<T>& x, const Tensor<T>& c) {
  if (x.shape() != c.shape())
    fail<ShapeError>("toy_dot", "shapes differ; x is ", x.shape(), ", c is ", c.shape(),
                     "; expected equal shapes");
  const Recorder rec("toy_dot", x);
  const Tensor<T> xc = x.packed(), cc = c.packed();
  Tensor<T> y((Shape()));
  T sum(0);
  for (Index i = 0; i < x.size(); ++i) sum = T(sum + xc.data()[i] * cc.data()[i]);
  *y.fresh_data() = sum;
  if (rec) rec.record(y, DotRule<T>{save(cc)});
  return y;
}

/// y = p a + q b for equal shapes; da += p dy, db += q dy. May hand dy's memory on to a.
template <class T>
struct CombineRule {
  static constexpr std::string_view name = "toy_combine";
  T p, q;
  void backward(Vjp& v) {
    const Index n = v.size();
    const T* dy = v.dy<T>();
    const auto put = [n, dy](const GradRef<T>& dx, T s) {
      for (Index i = 0; i < n; ++i) dx.data[i] = dx.add ? T(dx.data[i] + s * dy[i]) : T(s * dy[i]);
    };
    if (v.wants(1)) put(v.into<T>(1), q);
    if (v.wants(0)) put(v.into_over_dy<T>(0), p);
  }
};
template <class T>
Tensor<T> combine(const Tensor<T>& a, T p, const Tensor<T>& b, T q) {
  if (a.shape() != b.shape())
    fail<ShapeError>("toy_combine", "shapes differ; a is ", a.shape(), ", b is ", b.shape(),
                     "; expected equal shapes");
  const Recorder rec("toy_combine", a, b);
  const Tensor<T> ac = a.packed(), bc = b.packed();
  Tensor<T> y(a.shape());
  for (Index i = 0; i < y.size(); ++i) y.fresh_data()[i] = T(p * ac.data()[i] + q * bc.data()[i]);
  if (rec) rec.record(y, CombineRule<T>{p, q});
  return y;
}

/// y = a b for equal shapes; da += dy b, db += dy a; saves both.
template <class T>
struct MulRule {
  static constexpr std::string_view name = "toy_mul";
  Saved<T> a, b;
  auto saved() const { return std::tie(a, b); }
  void backward(Vjp& v) {
    const Index n = v.size();
    const T* dy = v.dy<T>();
    for (const int i : {0, 1}) {
      if (!v.wants(i)) continue;
      const Tensor<T> other = (i == 0 ? b : a).value().packed();
      const T* w = other.data();
      const GradRef<T> dx = v.into<T>(i);
      for (Index k = 0; k < n; ++k) dx.data[k] = dx.add ? T(dx.data[k] + dy[k] * w[k]) : T(dy[k] * w[k]);
    }
  }
};
template <class T>
Tensor<T> mul(const Tensor<T>& a, const Tensor<T>& b) {
  if (a.shape() != b.shape())
    fail<ShapeError>("toy_mul", "shapes differ; a is ", a.shape(), ", b is ", b.shape(),
                     "; expected equal shapes");
  const Recorder rec("toy_mul", a, b);
  const Tensor<T> ac = a.packed(), bc = b.packed();
  Tensor<T> y(a.shape());
  for (Index i = 0; i < y.size(); ++i) y.fresh_data()[i] = T(ac.data()[i] * bc.data()[i]);
  if (rec) rec.record(y, MulRule<T>{save(a), save(b)});
  return y;
}

/// y = s x; dx += s dy, over dy's own memory where it may.
template <class T>
struct ScaleRule {
  static constexpr std::string_view name = "toy_scale";
  T s;
  void backward(Vjp& v) {
    const Index n = v.size();
    const T* dy = v.dy<T>();
    const GradRef<T> dx = v.into_over_dy<T>(0);
    for (Index i = 0; i < n; ++i) dx.data[i] = dx.add ? T(dx.data[i] + s * dy[i]) : T(s * dy[i]);
  }
};
template <class T>
Tensor<T> scale(const Tensor<T>& x, T s) {
  const Recorder rec("toy_scale", x);
  const Tensor<T> xc = x.packed();
  Tensor<T> y(x.shape());
  for (Index i = 0; i < y.size(); ++i) y.fresh_data()[i] = T(s * xc.data()[i]);
  if (rec) rec.record(y, ScaleRule<T>{s});
  return y;
}

/// y = x, but the rule throws std::runtime_error("toy fault") in backward while `armed`.
template <class T>
struct FaultyRule {
  static constexpr std::string_view name = "toy_faulty";
  const bool* armed;
  void backward(Vjp& v) {
    if (*armed) throw std::runtime_error("toy fault");
    v.add(0, v.dy_tensor<T>());
  }
};
template <class T>
Tensor<T> faulty(const Tensor<T>& x, const bool& armed) {
  const Recorder rec("toy_faulty", x);
  Tensor<T> y = x.packed_copy();
  if (rec) rec.record(y, FaultyRule<T>{&armed});
  return y;
}

/// y = rows of x, (rows.size(), x.dim(1)); adds to the rows of dx that were read, through `into_rows`.
template <class T>
struct RowsRule {
  static constexpr std::string_view name = "toy_rows";
  Saved<Index> rows;
  Index width;
  auto saved() const { return std::tie(rows); }
  void backward(Vjp& v) {
    const std::span<const Index> r(rows.data(), static_cast<std::size_t>(rows.value().size()));
    const T* dy = v.dy<T>();
    T* dx = v.into_rows<T>(0, r, width);
    for (std::size_t i = 0; i < r.size(); ++i)
      for (Index j = 0; j < width; ++j) dx[r[i] * width + j] += dy[static_cast<Index>(i) * width + j];
  }
};
template <class T>
Tensor<T> rows(const Tensor<T>& x, const Tensor<Index>& which) {
  const Recorder rec("toy_rows", x);
  const Tensor<T> xc = x.packed();
  const Tensor<Index> r = which.packed();
  const Index width = x.dim(1);
  Tensor<T> y({which.size(), width});
  for (Index i = 0; i < which.size(); ++i)
    for (Index j = 0; j < width; ++j) y.fresh_data()[i * width + j] = xc.data()[r.data()[i] * width + j];
  if (rec) rec.record(y, RowsRule<T>{save(r), width});
  return y;
}

}  // namespace toy
