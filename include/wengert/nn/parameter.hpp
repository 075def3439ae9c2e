// The tensors a module owns: parameters, which are trained, and buffers, which are not. Floor: nn.
#pragma once

#include <algorithm>
#include <mutex>

#include <wengert/base/list.hpp>
#include <wengert/core/tensor.hpp>

namespace wengert::inline WENGERT_ISA::nn {

namespace detail {

/// `shape`, of parameters of the module `name`. Throws ShapeError when a dimension is negative or the size
/// overflows.
template <class T>
const Shape& checked(std::string_view name, const Shape& shape) {
  checked_size(name, shape, sizeof(T));
  return shape;
}

/// Every parameter, buffer and module alive, by address: how a module that forgets to list one of its members
/// is found out. Written when one is made or dropped, read when a model's members are listed.
class Living {
 public:
  struct One {
    const void* where;
    std::string_view type;
  };

  static Living& instance() {
    static Living* living = new Living;  // outlives modules with static storage
    return *living;
  }
  [[gnu::noinline]] void add(const void* where, std::string_view type) {
    const std::lock_guard lock(mutex_);
    all_.insert(at(where), One{where, type});
  }
  [[gnu::noinline]] void remove(const void* where) noexcept {
    const std::lock_guard lock(mutex_);
    all_.erase(at(where));
  }
  /// Those in [begin, end), in order.
  wengert::detail::List<One> between(const void* begin, const void* end) {
    const std::lock_guard lock(mutex_);
    const std::size_t first = at(begin);
    wengert::detail::List<One> found;
    found.append({all_.data() + first, at(end) - first});
    return found;
  }

 private:
  /// The first that lies at or behind `where`.
  std::size_t at(const void* where) const noexcept {
    const auto before = [](const One& a, const void* b) { return std::less<>()(a.where, b); };
    return static_cast<std::size_t>(std::lower_bound(all_.begin(), all_.end(), where, before) - all_.begin());
  }
  std::mutex mutex_;
  wengert::detail::List<One> all_;  // in order of address
};

/// Base of what a module must list. Identity is the address, so a copy is another one.
class Listed {
 public:
  explicit Listed(std::string_view type) : type_(type) { Living::instance().add(this, type_); }
  Listed(const Listed& other) : Listed(other.type_) {}
  Listed(Listed&& other) noexcept : Listed(other.type_) {}
  Listed& operator=(const Listed&) noexcept { return *this; }
  Listed& operator=(Listed&&) noexcept { return *this; }
  ~Listed() { Living::instance().remove(this); }

  std::string_view listed_type() const noexcept { return type_; }

 private:
  std::string_view type_;
};

enum class Role : std::uint8_t { parameter, buffer };

}  // namespace detail

/// A tensor that a module owns. A copy has elements of its own, and is a leaf of its own: a copied model
/// shares nothing with its source. Assigning a copy of the same shape writes the elements in place and keeps
/// this tensor's leaf, so an optimizer goes on with it; a move hands elements and leaf over. As a Tensor, or
/// copied into one, it is a handle that shares them, as every Tensor. Write by `copy_from`, `fill` or
/// `mutable_data`.
template <Field T, detail::Role R>
class OwnedTensor : public Tensor<T>, public detail::Listed {
 public:
  static constexpr bool is_parameter = R == detail::Role::parameter;

  OwnedTensor() : Listed(type()) {}
  /// Takes over the elements of `values`, or copies them when somebody else holds them too or they have gaps.
  [[gnu::cold]] explicit OwnedTensor(Tensor<T> values) : Tensor<T>(own(std::move(values))), Listed(type()) {
    if (is_parameter) this->requires_grad(true);
  }
  OwnedTensor(const OwnedTensor& other) : Tensor<T>(other.packed_copy()), Listed(other) {
    if (other.requires_grad()) this->requires_grad(true);
  }
  OwnedTensor(OwnedTensor&& other) noexcept
      : Tensor<T>(std::exchange(static_cast<Tensor<T>&>(other), Tensor<T>())), Listed(std::move(other)) {}
  [[gnu::noinline]] ~OwnedTensor() = default;
  OwnedTensor& operator=(const OwnedTensor& other) {
    if (this == &other) return *this;
    if (this->shape() == other.shape()) {
      this->copy_from(other.detach());
    } else {
      OwnedTensor copy(other);
      *this = std::move(copy);
    }
    return *this;
  }
  OwnedTensor& operator=(OwnedTensor&& other) noexcept {
    if (this != &other)
      static_cast<Tensor<T>&>(*this) = std::exchange(static_cast<Tensor<T>&>(other), Tensor<T>());
    return *this;
  }

 private:
  static constexpr std::string_view type() { return is_parameter ? "Parameter" : "Buffer"; }
  static Tensor<T> own(Tensor<T> values) {
    if (values.is_contiguous() && values.buffer().unique() && !values.requires_grad()) return values;
    return values.packed_copy();
  }
};

/// A tensor that training changes: a leaf. `Parameter<float> scale{ones<float>({3})}`; freeze it by
/// `requires_grad(false)`.
template <Field T>
using Parameter = OwnedTensor<T, detail::Role::parameter>;

/// A tensor that belongs to a module's state but is not trained, such as a running mean.
template <Field T>
using Buffer = OwnedTensor<T, detail::Role::buffer>;

}  // namespace wengert::inline WENGERT_ISA::nn
