// map: any element-wise function of one to four broadcast tensors as one record, and the rule behind every
// element-wise operator of the library. Floor: ops.
#pragma once

#include <wengert/core/record.hpp>
#include <wengert/kernels/map_reduce.hpp>

namespace wengert::inline WENGERT_ISA {

namespace detail {

using kernels::saves_nothing;
using kernels::saves_x;
using kernels::saves_y;
using kernels::Vec;

template <Scalar T, std::size_t K>
using Operands = std::array<const Tensor<T>*, K>;

/// Whether the kernels can read `x` in place: its last axis is contiguous or stretched.
template <Scalar T>
bool row_readable(const Tensor<T>& x) noexcept {
  int last = x.rank() - 1;
  while (last >= 0 && x.shape()[last] == 1) --last;
  return last < 0 || x.strides()[last] == 1 || x.strides()[last] == 0;
}

/// Calls `f` with operands that the kernels can read; null ones stay null.
template <Scalar T, std::size_t K, class F>
void with_readable(Operands<T, K> x, F f) {
  bool ready = true;
  for (const Tensor<T>* t : x) ready = ready && (t == nullptr || row_readable(*t));
  if (ready) return f(x);
  std::array<Tensor<T>, K> packed;
  for (std::size_t k = 0; k < K; ++k)
    if (x[k] != nullptr && !row_readable(*x[k])) {
      packed[k] = x[k]->packed_copy();
      x[k] = &packed[k];
    }
  f(x);
}

/// Null operands are not read; `stand_in` is what they point at.
template <Scalar T, std::size_t K>
kernels::MapInputs<T, K> map_inputs(const Shape& shape, const Operands<T, K>& x,
                                    const T* stand_in = nullptr) {
  kernels::MapInputs<T, K> in{shape, {}, {}};
  for (std::size_t k = 0; k < K; ++k) {
    in.data[k] = x[k] == nullptr ? stand_in : x[k]->data();
    in.strides[k] = x[k] == nullptr ? contiguous_strides(shape)
                                    : broadcast_strides(x[k]->shape(), x[k]->strides(), shape);
  }
  return in;
}

template <class Op>
constexpr bool reads_x(std::size_t k) {
  return (Op::saves >> k & 1U) != 0;
}
template <class Op>
constexpr bool reads_y() {
  return (Op::saves & saves_y) != 0;
}
template <class Op>
constexpr bool passes_dy_on(std::size_t k) {
  if constexpr (requires { Op::identity; }) return (Op::identity >> k & 1U) != 0;
  return false;
}

/// Where the gradients of the inputs marked `full` go, which have the output's shape; one of them may take
/// over the memory of dy. False when there is nothing left to compute.
template <class Op, Scalar T, std::size_t K>
bool collect(Vjp& v, const std::array<bool, K>& full, kernels::MapGradients<T, K>& g) {
  std::size_t last = K;
  for (std::size_t k = 0; k < K; ++k)
    if (full[k]) last = k;
  bool work = false;
  for (std::size_t k = 0; k < K; ++k) {
    if (!full[k]) continue;
    const int i = static_cast<int>(k);
    const GradRef<T> to = k == last ? v.into_over_dy<T>(i) : v.into<T>(i);
    if (passes_dy_on<Op>(k) && to.data == g.dy) continue;  // the gradient has moved on as it is
    g.dx[k] = to.data;
    g.add[k] = to.add;
    work = true;
  }
  return work;
}

/// Rule of an element-wise operation `Op` over dense operands. `Op` is a struct with
///   name; value(x...) on Vecs; vjp(dy, y, x...), an array of one partial an input;
///   saves, the values that vjp reads; optionally `identity`, a bit for each input whose partial is dy
///   itself, and `has_poles`, when a slope can be infinite or NaN where dy is 0.
template <class Op, Scalar T, std::size_t K>
struct DenseMapRule {
  static constexpr std::string_view name = Op::name;
  Op op;
  std::array<SavedFlat<T>, K> x;  // empty where vjp does not read it
  SavedFlat<T> y;

  auto saved() const {
    return std::apply([this](const auto&... s) { return std::tie(s..., y); }, x);
  }
  void backward(Vjp& v) {
    kernels::MapGradients<T, K> g{y.data(), v.dy<T>(), {}, {}};
    std::array<const T*, K> values;
    std::array<bool, K> full;
    for (std::size_t k = 0; k < K; ++k) {
      values[k] = reads_x<Op>(k) ? x[k].data() : g.dy;
      full[k] = v.wants(static_cast<int>(k));
    }
    if (collect<Op>(v, full, g))
      kernels::map_vjp_dense<T, K>(kernels::map_rows<Op, T, T, K>, &op, v.size(), values, g);
  }
};

/// Rule of an element-wise operation with broadcast or strided operands.
template <class Op, Scalar T, std::size_t K>
struct MapRule {
  static constexpr std::string_view name = Op::name;
  Op op;
  std::array<Saved<T>, K> x;  // empty where vjp does not read it
  SavedFlat<T> y;
  std::array<Shape, K> shapes;

  auto saved() const {
    return std::apply([this](const auto&... s) { return std::tie(s..., y); }, x);
  }

  void backward(Vjp& v) {
    Operands<T, K> values{};
    for (std::size_t k = 0; k < K; ++k)
      if (reads_x<Op>(k)) values[k] = &x[k].value();
    with_readable<T, K>(values, [&](const Operands<T, K>& readable) {
      const Shape shape = v.shape();
      const auto in = map_inputs<T, K>(shape, readable, v.dy<T>());
      // Stretched inputs first, while dy is there.
      std::array<bool, K> full{};
      for (std::size_t k = 0; k < K; ++k) {
        const int i = static_cast<int>(k);
        if (!v.wants(i)) continue;
        full[k] = shapes[k] == shape;
        if constexpr (K > 1)
          if (!full[k]) sum_into(v.into<T>(i), in, v.dy<T>(), k);
      }
      kernels::MapGradients<T, K> g{y.data(), v.dy<T>(), {}, {}};
      if (collect<Op>(v, full, g)) kernels::map_vjp<T, K>(kernels::map_rows<Op, T, T, K>, &op, in, g);
    });
  }

 private:
  void sum_into(GradRef<T> to, const kernels::MapInputs<T, K>& in, const T* dy, std::size_t k) const {
    if (in.shape.size() == 0) {  // an empty sum
      if (!to.add) kernels::fill(to.data, shapes[k].size(), T(0));
      return;
    }
    const Strides strides = broadcast_strides(shapes[k], contiguous_strides(shapes[k]), in.shape);
    kernels::map_vjp_broadcast<T, K>(kernels::map_rows<Op, T, T, K>, &op, in, y.data(), dy, k, strides,
                                     to.data, to.add);
  }
};

[[noreturn, gnu::cold, gnu::noinline]] inline void fail_broadcast(
    std::string_view op, const std::string_view* names, std::initializer_list<const Shape*> shapes) {
  Message operands;
  for (const Shape* s : shapes) {
    if (!operands.empty()) append_string(operands, ", ");
    append_string(operands, *names++);
    append_string(operands, " is ");
    s->append_to(operands);
  }
  fail<ShapeError>(op, "shapes do not broadcast; ", std::string_view(operands.data(), operands.size()),
                   "; expected equal dimensions or 1, aligned at the back");
}

/// What errors call the operands of an element-wise operation, unless it has `operands` of its own.
inline constexpr std::string_view operand_letters[] = {"a", "b", "c", "d"};
template <class Op>
constexpr const std::string_view* letters_of() {
  if constexpr (requires { Op::operands; })
    return Op::operands;
  else
    return operand_letters;
}

/// The shape that all broadcast to, checked for elements of `bytes_each`. `storage` holds it when no operand
/// has it. Throws ShapeError that names all operands.
template <class... S>
const Shape& common_shape(std::string_view op, const std::string_view* names, std::size_t bytes_each,
                          Shape& storage, const Shape& first, const S&... rest) {
  const Shape* common = &first;
  [[maybe_unused]] const auto join = [&](const Shape& s) {
    if (s == *common) return;
    if (!try_broadcast(*common, s, storage)) fail_broadcast(op, names, {&first, &rest...});
    common = &storage;
  };
  (join(rest), ...);
  if (common == &storage) checked_size(op, storage, bytes_each);
  return *common;
}

template <Scalar T, std::size_t K>
bool all_dense(const Shape& shape, const Operands<T, K>& x) noexcept {
  for (const Tensor<T>* t : x)
    if (t->shape() != shape || !t->is_contiguous()) return false;
  return true;
}

template <class R, class Op, Scalar T, std::size_t K>
Tensor<R> map_forward(const Op& op, const Shape& shape, const Operands<T, K>& x, bool dense) {
  constexpr const auto& rows = kernels::map_rows<Op, T, R, K>;
  Tensor<R> y(shape);
  if (dense) {
    std::array<const T*, K> data;
    for (std::size_t k = 0; k < K; ++k) data[k] = x[k]->data();
    kernels::map_dense<T, K>(rows, &op, y.size(), data, y.fresh_data(), sizeof(R));
  } else {
    with_readable<T, K>(x, [&](const Operands<T, K>& in) {
      kernels::map<T, K>(rows, &op, map_inputs<T, K>(shape, in), y.fresh_data(), sizeof(R));
    });
  }
  return y;
}

/// The operands that vjp reads, saved; the others empty.
template <class Op, class S, Scalar T, std::size_t K>
std::array<S, K> kept(const Operands<T, K>& x) {
  return [&]<std::size_t... k>(std::index_sequence<k...>) {
    return std::array<S, K>{(reads_x<Op>(k) ? S(*x[k]) : S())...};
  }
  (std::make_index_sequence<K>{});
}

/// y = op.value(x...), recorded.
template <class Op, Scalar T, std::same_as<Tensor<T>>... Rest>
Tensor<T> map_op(const Op& op, const Tensor<T>& first, const Rest&... rest) {
  constexpr std::size_t K = 1 + sizeof...(Rest);
  Shape storage;
  const Shape& shape =
      common_shape(Op::name, letters_of<Op>(), sizeof(T), storage, first.shape(), rest.shape()...);
  const Recorder rec(Op::name, first, rest...);
  const Operands<T, K> x{&first, &rest...};
  const bool dense = all_dense(shape, x);
  Tensor<T> y = map_forward<T, Op, T, K>(op, shape, x, dense);
  if constexpr (Field<T>) {
    if (!rec) return y;
    SavedFlat<T> saved_y = reads_y<Op>() ? SavedFlat<T>(y) : SavedFlat<T>();
    if (dense)
      rec.record(y, DenseMapRule<Op, T, K>{op, kept<Op, SavedFlat<T>>(x), std::move(saved_y)});
    else
      rec.record(y, MapRule<Op, T, K>{
                        op, kept<Op, Saved<T>>(x), std::move(saved_y), {first.shape(), rest.shape()...}});
  }
  return y;
}

/// A user's function as an operation: its partials are those of dual numbers.
template <class F>
struct LambdaOp {
  static constexpr std::string_view name = "map";
  static constexpr unsigned saves = saves_x(0) | saves_x(1) | saves_x(2) | saves_x(3);
  static constexpr bool has_poles = true;
  F f;

  template <class T, class... Rest>
  auto value(Vec<T> x, Rest... rest) const {
    return Vec<T>(f(x, rest...));
  }
  template <class T, class... Xs>
  auto vjp(Vec<T> dy, Vec<T>, Xs... x) const {
    constexpr int K = sizeof...(Xs);
    using D = kernels::Dual<Vec<T>, K>;
    int k = 0;
    const D y = apply(std::array<D, K>{D::variable(x, k++)...}, std::make_index_sequence<K>{});
    std::array<Vec<T>, K> dx;
    for (std::size_t i = 0; i < K; ++i) dx[i] = dy * y.d[i];
    return dx;
  }

 private:
  template <class D, std::size_t K, std::size_t... i>
  D apply(const std::array<D, K>& x, std::index_sequence<i...>) const {
    return D(f(x[i]...));
  }
};

}  // namespace detail

/// Applies a function of one to four numbers to tensors element by element, as one fused, vectorised,
/// differentiable operation: `map([](auto x, auto w) { return tanh(x) * w; }, x, w)`.
///   y    = f(x...)              inputs broadcast; y: their common shape
///   dx_k += dy * df/dx_k        (summed over stretched axes), by running f on dual numbers; saves the inputs
/// `f` is called with SIMD vectors and with dual numbers of them, so it is generic (`auto`), has no branches
/// on its arguments (use `where(x > 0, a, b)`, `max`, `min`, `clamp`), calls functions unqualified, and
/// captures by value. Throws ShapeError when shapes do not broadcast, TapeError on stale operands.
template <class F, Field T, std::same_as<Tensor<T>>... Rest>
Tensor<T> map(const F& f, const Tensor<T>& x, const Rest&... rest) {
  static_assert(sizeof...(Rest) <= 3, "map takes one to four tensors");
  static_assert(alignof(F) <= Arena::alignment, "capture scalars, not vectors");
  return detail::map_op(detail::LambdaOp<F>{f}, x, rest...);
}

}  // namespace wengert::inline WENGERT_ISA
