// Tensor<T>: a cheap handle on shape, strides, a shared buffer and a place on the tape. Floor: core.
#pragma once

#include <concepts>
#include <vector>

#include <wengert/core/place.hpp>
#include <wengert/kernels/copy.hpp>

namespace wengert::inline WENGERT_ISA {

namespace detail {

/// What a Tensor consists of, whatever its element type. Copies are calls: they are many in a program, and
/// each would be two dozen instructions and their unwinding. Moves and ends, which every operator has, are
/// not.
class TensorParts {
 public:
  [[gnu::noinline]] TensorParts(const TensorParts& other) noexcept = default;
  TensorParts(TensorParts&& other) noexcept = default;
  [[gnu::noinline]] TensorParts& operator=(const TensorParts& other) noexcept = default;
  TensorParts& operator=(TensorParts&& other) noexcept = default;

 protected:
  TensorParts() noexcept : shape_{0}, strides_{1} {}
  [[gnu::noinline]] TensorParts(const Shape& shape, std::size_t bytes_each)
      : shape_(shape),
        strides_(contiguous_strides(shape)),
        buffer_(static_cast<std::size_t>(checked_size("tensor", shape, bytes_each)) * bytes_each) {}
  [[gnu::noinline]] TensorParts(Buffer buffer, const Shape& shape, const Strides& strides,
                                Index offset) noexcept
      : shape_(shape),
        strides_(strides),
        offset_(offset),
        contiguous_(lies_dense(shape, strides)),
        buffer_(std::move(buffer)) {}
  ~TensorParts() = default;

  struct Detached {
    explicit Detached(int) noexcept {}  // never made from braces: those are an empty list to callers
  };
  /// The same, but nowhere on a tape.
  [[gnu::noinline]] TensorParts(const TensorParts& x, Detached) noexcept
      : shape_(x.shape_),
        strides_(x.strides_),
        offset_(x.offset_),
        contiguous_(x.contiguous_),
        buffer_(x.buffer_) {}

  Shape shape_;
  Strides strides_;
  Index offset_ = 0;
  bool contiguous_ = true;
  Buffer buffer_;
  Place place_;

 private:
  static bool lies_dense(const Shape& shape, const Strides& strides) noexcept {
    Index step = 1;
    for (int i = shape.rank(); i-- > 0;) {
      if (shape[i] == 0) return true;
      if (shape[i] != 1 && strides[i] != step) return false;
      step *= shape[i];
    }
    return true;
  }
};

}  // namespace detail

/// A row-major, strided array of T that remembers how it was computed. Copies share the elements. Rank 0
/// holds one element; a dimension may be 0. Reading never records; free functions in `ops/` do. A tensor that
/// was recorded belongs to the thread that recorded it; others may read its values and drop it.
template <Scalar T>
class Tensor : public detail::TensorParts {
 public:
  using value_type = T;

  /// Shape (0): no elements.
  Tensor() = default;
  /// Uninitialised elements. Throws ShapeError when a dimension is negative or the size overflows.
  explicit Tensor(const Shape& shape) : TensorParts(shape, sizeof(T)) {}
  /// Elements in row-major order. Throws ShapeError when their number does not fit.
  Tensor(const Shape& shape, std::span<const T> values) : Tensor(shape) {
    if (static_cast<Index>(values.size()) != size())
      fail<ShapeError>("tensor", "number of values differs; shape is ", shape, ", values are ", values.size(),
                       "; expected ", size());
    if (!values.empty()) std::memcpy(buffer_.bytes(), values.data(), values.size_bytes());
  }
  Tensor(const Shape& shape, std::initializer_list<T> values)
      : Tensor(shape, std::span<const T>(values.begin(), values.size())) {}
  Tensor(const Shape& shape, const std::vector<T>& values) requires(!std::same_as<T, bool>)
      : Tensor(shape, std::span<const T>(values)) {}
  /// A view: `strides` in elements from `offset`. The caller answers for its bounds.
  Tensor(Buffer buffer, const Shape& shape, const Strides& strides, Index offset)
      : TensorParts(std::move(buffer), shape, strides, offset) {}

  const Shape& shape() const noexcept { return shape_; }
  const Strides& strides() const noexcept { return strides_; }
  Index offset() const noexcept { return offset_; }
  int rank() const noexcept { return shape_.rank(); }
  /// Number of elements.
  Index size() const noexcept { return shape_.size(); }
  bool empty() const noexcept { return size() == 0; }
  /// Size of one axis; negative axes count from the back. Throws ShapeError.
  Index dim(Index axis) const { return shape_[normalize_axis("dim", axis, rank())]; }
  static constexpr std::string_view dtype() noexcept { return dtype_name<T>(); }

  /// Whether the elements lie in row-major order without gaps.
  bool is_contiguous() const noexcept { return contiguous_; }

  /// The first element; the others follow by `strides()`. Null when there are no elements.
  const T* data() const noexcept { return buffer_ ? buffer_.template as<T>() + offset_ : nullptr; }

  /// For writing in place: raises the version, so that a backward which saved the old values throws instead
  /// of using the new ones. Take it anew for each round of writes. Throws TapeError on a recorded tensor,
  /// whose values would no longer be what the tape says; write to a leaf, or to `detach()`.
  T* mutable_data() {
    if (place_.on_tape() && grad_enabled())
      fail<TapeError>("mutable_data", "the tensor is the result of a recorded operation; shape is ", shape_,
                      "; expected a leaf or a constant; write to its detach() or to a clone");
    buffer_.raise_version();
    return const_cast<T*>(data());
  }

  /// The only element. Throws ShapeError when there is not exactly one.
  T item() const {
    if (size() != 1)
      fail<ShapeError>("item", "the tensor must hold one element; shape is ", shape_, "; expected one");
    return *data();
  }

  /// One element by its indices; negative ones count from the back. Throws ShapeError, IndexError.
  template <std::convertible_to<Index>... I>
  T at(I... indices) const {
    const Index given[] = {static_cast<Index>(indices)..., 0};
    if (sizeof...(I) != static_cast<std::size_t>(rank()))
      fail<ShapeError>("at", "number of indices differs; got ", sizeof...(I), ", shape is ", shape_,
                       "; expected ", rank());
    Index where = 0;
    for (int axis = 0; axis < rank(); ++axis) {
      const Index i = given[axis];
      if (i < -shape_[axis] || i >= shape_[axis])
        fail<IndexError>("at", "index ", i, " is out of range; shape is ", shape_, ", axis ", axis,
                         "; expected ",
                         shape_[axis] == 0 ? std::string("no index")
                                           : detail::text(-shape_[axis], "..", shape_[axis] - 1));
      where += (i < 0 ? i + shape_[axis] : i) * strides_[axis];
    }
    return data()[where];
  }

  /// The elements in row-major order.
  std::vector<T> to_vector() const {
    std::vector<T> out(static_cast<std::size_t>(size()));
    if constexpr (std::same_as<T, bool>) {
      const Tensor flat = packed();
      std::copy(flat.data(), flat.data() + size(), out.begin());
    } else {
      kernels::copy(shape_, data(), strides_, out.data(), contiguous_strides(shape_));
    }
    return out;
  }

  /// The elements, for a contiguous tensor. Throws ShapeError otherwise.
  std::span<const T> span() const {
    if (!is_contiguous())
      fail<ShapeError>("span", "the tensor is not contiguous; shape is ", shape_, ", strides are ", strides_,
                       "; expected contiguous(x)");
    return {data(), static_cast<std::size_t>(size())};
  }

  /// Writes `value` everywhere, in place; see `mutable_data`. Throws ShapeError on an expanded tensor.
  Tensor& fill(T value) {
    require_separate_elements("fill");
    T* y = mutable_data();
    if (is_contiguous()) {
      kernels::fill(y, size(), value);
    } else {
      kernels::copy(shape_, &value, Strides::filled(rank(), 0), y, strides_);
    }
    return *this;
  }

  /// Copies the values of `x`, of the same shape, in place; see `mutable_data`. A copy is not recorded, so a
  /// tracked `x` throws TapeError: pass its detach(). Throws ShapeError when shapes differ or this tensor is
  /// expanded.
  Tensor& copy_from(const Tensor& x) {
    if (x.shape_ != shape_)
      fail<ShapeError>("copy_from", "shapes differ; this is ", shape_, ", x is ", x.shape_,
                       "; expected equal shapes");
    require_separate_elements("copy_from");
    if (x.place_.tracked() && grad_enabled())
      fail<TapeError>("copy_from", "x asks for a gradient, which a copy in place would sever; shape is ",
                      shape_, "; expected a constant; pass its detach()");
    const Tensor source = x.shares_buffer(*this) ? x.packed_copy() : x;
    kernels::copy(shape_, source.data(), source.strides_, mutable_data(), strides_);
    return *this;
  }

  /// The same values, as a constant that no gradient flows through. Shares the buffer.
  Tensor detach() const { return Tensor(*this, Detached(0)); }

  /// This tensor's values without gaps, not recorded; itself when it is contiguous. See `contiguous` in ops/.
  Tensor packed() const { return is_contiguous() ? detach() : packed_copy(); }
  /// A contiguous copy of the values, not recorded. See `clone` in ops/.
  Tensor packed_copy() const {
    Tensor y(shape_);
    kernels::copy(shape_, data(), strides_, y.buffer_.template as<T>(), y.strides_);
    return y;
  }

  /// Whether operations on this tensor are recorded.
  bool requires_grad() const noexcept { return place_.tracked(); }

  /// Makes this tensor a leaf whose gradient a GradStore keeps, or a constant again. Throws TapeError on the
  /// result of a recorded operation (see `retain_grad`).
  Tensor& requires_grad(bool wanted) {
    static_assert(Field<T>, "integers, bytes and masks are never differentiated");
    if (place_.on_tape())
      fail<TapeError>("requires_grad", "the tensor is the result of a recorded operation; shape is ", shape_,
                      "; expected a leaf; use retain_grad() to see its gradient, or start from its detach()");
    if (wanted && !place_.leaf()) place_ = detail::Place(detail::LeafRef::make<T>(size()));
    if (!wanted) place_ = detail::Place();
    return *this;
  }

  /// Asks that backward also keeps this intermediate's gradient in the store. Throws TapeError when the
  /// tensor is not the result of an operation on the present tape.
  Tensor& retain_grad() {
    if (place_.leaf()) return *this;
    if (!place_.live())
      fail<TapeError>("retain_grad", "the tensor is not on the tape; shape is ", shape_,
                      "; expected the result of a recorded operation, before backward");
    place_.keep_gradient_in(detail::LeafRef::make<T>(size()));
    return *this;
  }

  /// Number of in-place writes that the buffer has seen.
  std::uint32_t version() const noexcept { return buffer_.version(); }
  bool shares_buffer(const Tensor& other) const noexcept { return buffer_ && buffer_ == other.buffer_; }

  // What follows serves the engine and operators.
  const Buffer& buffer() const noexcept { return buffer_; }
  const detail::Place& place() const noexcept { return place_; }
  void set_place(detail::Place place) noexcept { place_ = std::move(place); }
  detail::Place& own_place() noexcept { return place_; }
  /// The elements of a result under construction: no version is raised, since nobody can have saved it yet.
  T* fresh_data() noexcept { return const_cast<T*>(data()); }

 private:
  Tensor(const Tensor& x, Detached detached) noexcept : TensorParts(x, detached) {}

  void require_separate_elements(std::string_view op) const {
    if (empty()) return;
    for (int i = 0; i < rank(); ++i)
      if (strides_[i] == 0 && shape_[i] > 1)
        fail<ShapeError>(op, "several elements lie in one place; shape is ", shape_, ", strides are ",
                         strides_, "; expected a tensor that was not expanded; write to a clone");
  }
};

}  // namespace wengert::inline WENGERT_ISA
