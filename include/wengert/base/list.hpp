// A growing array for the library's own lists. Its growth is compiled once for all element types, where a
// std::vector costs a program some fifty functions for each. Floor: base.
#pragma once

#include <cstddef>
#include <cstring>
#include <new>
#include <span>
#include <type_traits>
#include <utility>

#include <wengert/base/config.hpp>

namespace wengert::inline WENGERT_ISA::detail {

/// Moves `bytes` bytes to fresh memory of `capacity` bytes and gives the old memory back.
[[gnu::noinline]] inline void* relocate(void* old, std::size_t bytes, std::size_t capacity) {
  void* const fresh = ::operator new(capacity);
  if (bytes != 0) std::memcpy(fresh, old, bytes);
  ::operator delete(old);
  return fresh;
}

/// Whether a T may change its address by a copy of its bytes: plain data, and types that say so by
/// `static constexpr bool relocatable = true`.
template <class T>
inline constexpr bool relocatable =
    std::is_trivially_copy_constructible_v<T>&& std::is_trivially_destructible_v<T>;
template <class T>
requires requires { T::relocatable; }
inline constexpr bool relocatable<T> = T::relocatable;

/// The part of std::vector that the engine needs, for relocatable elements. Moves, and is not copied.
template <class T>
class List {
 public:
  List() noexcept = default;
  List(List&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)),
        capacity_(std::exchange(other.capacity_, 0)) {}
  List& operator=(List&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
    return *this;
  }
  ~List() {
    clear();
    ::operator delete(data_);
  }

  std::size_t size() const noexcept { return size_; }
  std::size_t capacity() const noexcept { return capacity_; }
  bool empty() const noexcept { return size_ == 0; }
  T* data() noexcept { return data_; }
  const T* data() const noexcept { return data_; }
  T* begin() noexcept { return data_; }
  T* end() noexcept { return data_ + size_; }
  const T* begin() const noexcept { return data_; }
  const T* end() const noexcept { return data_ + size_; }
  T& operator[](std::size_t i) noexcept { return data_[i]; }
  const T& operator[](std::size_t i) const noexcept { return data_[i]; }
  T& back() noexcept { return data_[size_ - 1]; }

  void reserve(std::size_t n) {
    static_assert(relocatable<T> && alignof(T) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__);
    if (n <= capacity_) return;
    data_ = static_cast<T*>(relocate(data_, size_ * sizeof(T), n * sizeof(T)));
    capacity_ = n;
  }
  T& push_back(T x) {
    if (size_ == capacity_) reserve(size_ < 4 ? 4 : 2 * size_);
    return *::new (static_cast<void*>(data_ + size_++)) T(std::move(x));
  }
  /// Puts `x` before element i.
  void insert(std::size_t i, T x) requires std::is_trivially_copyable_v<T> {
    push_back(x);
    for (std::size_t k = size_ - 1; k > i; --k) data_[k] = data_[k - 1];
    data_[i] = x;
  }
  void append(std::span<const T> xs) requires std::is_trivially_copyable_v<T> {
    if (size_ + xs.size() > capacity_)
      reserve(size_ + xs.size() < 2 * capacity_ ? 2 * capacity_ : size_ + xs.size());
    if (!xs.empty()) std::memcpy(data_ + size_, xs.data(), xs.size_bytes());
    size_ += xs.size();
  }
  /// Elements beyond the present ones become `x`.
  void resize(std::size_t n, T x) requires std::is_trivially_copyable_v<T> {
    if (n > capacity_) reserve(n < 2 * capacity_ ? 2 * capacity_ : n);
    for (; size_ < n; ++size_) data_[size_] = x;
    size_ = n;
  }
  void erase(std::size_t i) noexcept requires std::is_trivially_copyable_v<T> {
    for (--size_; i < size_; ++i) data_[i] = data_[i + 1];
  }
  void pop_back() noexcept { data_[--size_].~T(); }
  void clear() noexcept {
    if constexpr (!std::is_trivially_destructible_v<T>)
      while (size_ != 0) pop_back();
    size_ = 0;
  }

 private:
  T* data_ = nullptr;
  std::size_t size_ = 0, capacity_ = 0;
};

}  // namespace wengert::inline WENGERT_ISA::detail
