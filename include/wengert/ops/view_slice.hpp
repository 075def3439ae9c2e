// Views of a part: slice, select, split, chunk. They share x's buffer; their gradients add into the part
// only. Floor: ops.
#pragma once

#include <array>
#include <initializer_list>
#include <span>
#include <vector>

#include <wengert/kernels/scatter.hpp>
#include <wengert/ops/view_rule.hpp>

namespace wengert::inline WENGERT_ISA {

namespace detail {

/// dx[part] += dy; a gradient that nothing has reached yet is 0 outside the part.
template <OpName Name, Scalar T>
struct SliceRule {
  static constexpr std::string_view name = Name.view();
  kernels::Slice part;
  void backward(Vjp& v) const {
    if (!v.wants(0)) return;
    const GradRef<T> dx = v.into<T>(0);
    kernels::scatter_slice(v.dy<T>(), part, dx.data, dx.add);
  }
};

/// Elements begin, begin + step, ... of axis `a`, `count` of them; the axis is dropped when `drop`.
template <OpName Name, class Rec, Scalar T>
Tensor<T> slice_to(const Rec& rec, const Tensor<T>& x, int a, Index begin, Index step, Index count,
                   bool drop = false) {
  Shape shape = x.shape();
  Strides strides = x.strides();
  const Index offset = x.offset() + (count == 0 ? 0 : begin * strides[a]);
  shape[a] = count;
  strides[a] *= step;
  if (drop) {
    shape.erase(a);
    strides.erase(a);
  }
  Tensor<T> y(x.buffer(), shape, strides, offset);
  record_if(rec, y, [&] {
    const AxisSplit s(x.shape(), a);
    return SliceRule<Name, T>{{s.outer, s.axis, s.inner, begin, step, count}};
  });
  return y;
}

template <OpName Name, Scalar T>
std::vector<Tensor<T>> split_every(const Tensor<T>& x, int a, Index size) {
  const Recorder rec(Name.view(), x);
  const Index n = x.shape()[a];
  std::vector<Tensor<T>> parts;
  Index begin = 0;
  do {
    const Index count = std::min(size, n - begin);
    parts.push_back(slice_to<Name>(rec, x, a, begin, 1, count));
    begin += count;
  } while (begin < n);
  return parts;
}

}  // namespace detail

/// The end of an axis, as `end` of `slice`.
inline constexpr Index axis_end = std::numeric_limits<Index>::max();

/// Elements begin, begin + step, ... before `end` along one axis; a view. As in Python, negative bounds count
/// from the back and bounds beyond the axis are held to it, so the result may be empty.
///   dx[begin:end:step] += dy             saves nothing
/// Throws ShapeError when the axis is out of range, ValueError unless step >= 1.
template <Scalar T>
Tensor<T> slice(const Tensor<T>& x, Index axis, Index begin, Index end = axis_end, Index step = 1) {
  const int a = normalize_axis("slice", axis, x.rank());
  if (step < 1)
    fail<ValueError>("slice", "step is ", step, "; x is ", x.shape(), ", axis ", axis,
                     "; expected step >= 1");
  const Recorder rec("slice", x);
  const Index n = x.shape()[a];
  const auto held = [n](Index i) { return std::clamp<Index>(i < 0 ? i + n : i, 0, n); };
  const Index first = held(begin), length = std::max<Index>(0, held(end) - first);
  const Index count = length == 0 ? 0 : (length - 1) / step + 1;
  return detail::slice_to<"slice">(rec, x, a, first, count < 2 ? 1 : step, count);
}

/// The elements at position i of one axis, without that axis; a view. Negative i counts from the back.
///   dx[i] += dy             saves nothing
/// Throws ShapeError when the axis is out of range, IndexError when i is.
template <Scalar T>
Tensor<T> select(const Tensor<T>& x, Index axis, Index i) {
  const int a = normalize_axis("select", axis, x.rank());
  const Index n = x.shape()[a];
  if (i < -n || i >= n)
    fail<IndexError>("select", "index ", i, " is out of range; x is ", x.shape(), ", axis ", axis,
                     "; expected ", n == 0 ? std::string("no index") : detail::text(-n, "..", n - 1));
  const Recorder rec("select", x);
  return detail::slice_to<"select">(rec, x, a, i < 0 ? i + n : i, 1, 1, true);
}

/// x in parts of the given sizes along one axis; views.
///   dx[part] += dy of each part             saves nothing
/// Throws ShapeError when a size is negative or they do not add up to the axis.
template <Scalar T>
std::vector<Tensor<T>> split(const Tensor<T>& x, std::span<const Index> sizes, Index axis = 0) {
  const int a = normalize_axis("split", axis, x.rank());
  const Index n = x.shape()[a];
  Index total = 0;
  for (const Index size : sizes) {
    if (size < 0 || size > n - total)
      fail<ShapeError>("split", "sizes do not fit; x is ", x.shape(), ", axis ", axis, ", size ", size,
                       " begins at ", total, "; expected sizes >= 0 that add up to ", n);
    total += size;
  }
  if (total != n)
    fail<ShapeError>("split", "sizes do not add up; x is ", x.shape(), ", axis ", axis, ", sizes add up to ",
                     total, "; expected ", n);
  const Recorder rec("split", x);
  std::vector<Tensor<T>> parts;
  parts.reserve(sizes.size());
  Index begin = 0;
  for (const Index size : sizes) {
    parts.push_back(detail::slice_to<"split">(rec, x, a, begin, 1, size));
    begin += size;
  }
  return parts;
}
template <Scalar T>
std::vector<Tensor<T>> split(const Tensor<T>& x, std::initializer_list<Index> sizes, Index axis = 0) {
  return split(x, std::span<const Index>(sizes.begin(), sizes.size()), axis);
}

/// x in parts of `size` along one axis, as PyTorch's split; the last may be shorter. An empty axis is one
/// part. Views.
///   dx[part] += dy of each part             saves nothing
/// Throws ShapeError when the axis is out of range, ValueError unless size >= 1.
template <Scalar T>
std::vector<Tensor<T>> split(const Tensor<T>& x, Index size, Index axis = 0) {
  const int a = normalize_axis("split", axis, x.rank());
  if (size < 1)
    fail<ValueError>("split", "size is ", size, "; x is ", x.shape(), ", axis ", axis,
                     "; expected size >= 1");
  return detail::split_every<"split">(x, a, size);
}

/// x in N equal parts along one axis: `auto [q, k, v] = split<3>(qkv, -1)`. Views; allocates nothing.
///   dx[part] += dy of each part             saves nothing
/// Throws ShapeError when the axis is out of range or N does not divide it.
template <int N, Scalar T>
std::array<Tensor<T>, static_cast<std::size_t>(N)> split(const Tensor<T>& x, Index axis = 0) {
  static_assert(N >= 1);
  const int a = normalize_axis("split", axis, x.rank());
  const Index size = x.shape()[a] / N;
  if (size * N != x.shape()[a])
    fail<ShapeError>("split", "the axis does not divide; x is ", x.shape(), ", axis ", axis, ", parts are ",
                     N, "; expected a multiple of ", N);
  const Recorder rec("split", x);
  std::array<Tensor<T>, static_cast<std::size_t>(N)> parts;
  Index begin = 0;
  for (Tensor<T>& part : parts) {
    part = detail::slice_to<"split">(rec, x, a, begin, 1, size);
    begin += size;
  }
  return parts;
}

/// x in at most n parts of equal size along one axis, as PyTorch's chunk: each holds ceil(dim / n), the last
/// what is left. Views.
///   dx[part] += dy of each part             saves nothing
/// Throws ShapeError when the axis is out of range, ValueError unless n >= 1.
template <Scalar T>
std::vector<Tensor<T>> chunk(const Tensor<T>& x, Index n, Index axis = 0) {
  const int a = normalize_axis("chunk", axis, x.rank());
  if (n < 1)
    fail<ValueError>("chunk", "n is ", n, "; x is ", x.shape(), ", axis ", axis, "; expected n >= 1");
  const Index size = x.shape()[a] / n + (x.shape()[a] % n != 0 ? 1 : 0);
  return detail::split_every<"chunk">(x, a, std::max<Index>(1, size));
}

}  // namespace wengert::inline WENGERT_ISA
