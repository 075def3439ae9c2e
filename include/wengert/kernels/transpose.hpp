// Transposes of small blocks in registers, for copies and for the operands of products. Floor: kernels.
#pragma once

#include <utility>

#include <wengert/kernels/simd.hpp>

namespace wengert::inline WENGERT_ISA::kernels::detail {

// Vectors in the compilers' own type: xsimd has no shuffle inside 16-byte lanes, and gathers are four times
// slower.
template <class T, int N>
struct Packed {
  typedef T type __attribute__((vector_size(sizeof(T) * N)));
};
template <class T>
inline constexpr int lane_size = 16 / static_cast<int>(sizeof(T));  // elements in a lane
template <SimdScalar T>
using Register = typename Packed<T, static_cast<int>(simd_lanes<T>)>::type;

/// In each lane, elements P of the lanes of a and, from lane_size up, of b.
template <class T, int... P>
WENGERT_INLINE Register<T> shuffle_lanes(Register<T> a, Register<T> b) noexcept {
  constexpr int size = lane_size<T>, width = static_cast<int>(simd_lanes<T>);
  return [&]<int... I>(std::integer_sequence<int, I...>) WENGERT_INLINE_LAMBDA {
    constexpr int pattern[] = {P...};
    return __builtin_shufflevector(
        a, b, (pattern[I % size] % size + I / size * size + (pattern[I % size] >= size ? width : 0))...);
  }
  (std::make_integer_sequence<int, width>());
}

/// N elements: one lane from each of the rows src, src + step, ...
template <class T, int N>
WENGERT_INLINE typename Packed<T, N>::type load_lanes(const T* src, Index step) noexcept {
  using Vector = typename Packed<T, N>::type;
  const auto lane = [&](int i) WENGERT_INLINE_LAMBDA {
    typename Packed<float, 4>::type v;
    __builtin_memcpy(&v, src + i * step, sizeof(v));
    return v;
  };
  // Inserting from memory spares the shuffle port, which the transpose itself needs.
#if defined(__AVX512F__)
  if constexpr (sizeof(Vector) == 64)
    return reinterpret_cast<Vector>(_mm512_insertf32x4(
        _mm512_insertf32x4(_mm512_insertf32x4(_mm512_castps128_ps512(lane(0)), lane(1), 1), lane(2), 2),
        lane(3), 3));
#elif defined(__AVX__)
  if constexpr (sizeof(Vector) == 32)
    return reinterpret_cast<Vector>(_mm256_insertf128_ps(_mm256_castps128_ps256(lane(0)), lane(1), 1));
#endif
  if constexpr (sizeof(Vector) == 16) return reinterpret_cast<Vector>(lane(0));
}

/// dst[p * step + j] = src[j * row + p] for `width` rows j and `lane_size` positions p.
template <SimdScalar T>
WENGERT_INLINE void transpose_block(const T* src, Index row, T* dst, Index step) noexcept {
  constexpr int size = lane_size<T>, width = static_cast<int>(simd_lanes<T>);
  using Vector = typename Packed<T, width>::type;
  const auto load = [&](int i) { return load_lanes<T, width>(src + i * row, size * row); };
  const auto store = [&](int p, Vector v) { __builtin_memcpy(dst + p * step, &v, sizeof(v)); };
  if constexpr (size == 4) {
    const Vector q0 = load(0), q1 = load(1), q2 = load(2), q3 = load(3);
    const Vector low01 = shuffle_lanes<T, 0, 4, 1, 5>(q0, q1), high01 = shuffle_lanes<T, 2, 6, 3, 7>(q0, q1);
    const Vector low23 = shuffle_lanes<T, 0, 4, 1, 5>(q2, q3), high23 = shuffle_lanes<T, 2, 6, 3, 7>(q2, q3);
    store(0, shuffle_lanes<T, 0, 1, 4, 5>(low01, low23));
    store(1, shuffle_lanes<T, 2, 3, 6, 7>(low01, low23));
    store(2, shuffle_lanes<T, 0, 1, 4, 5>(high01, high23));
    store(3, shuffle_lanes<T, 2, 3, 6, 7>(high01, high23));
  } else {
    const Vector q0 = load(0), q1 = load(1);
    store(0, shuffle_lanes<T, 0, 2>(q0, q1));
    store(1, shuffle_lanes<T, 1, 3>(q0, q1));
  }
}

/// dst[p * step + j] = src[j * row + p] for j, p < Size, a multiple of the width.
template <Index Size, SimdScalar T>
void transpose_square(const T* src, Index row, T* dst, Index step) noexcept {
  constexpr Index lane = lane_size<T>, width = simd_lanes<T>;
  static_assert(Size % width == 0 && Size % lane == 0);
  for (Index j = 0; j < Size; j += width)
    for (Index p = 0; p < Size; p += lane) transpose_block(src + j * row + p, row, dst + p * step + j, step);
}

}  // namespace wengert::inline WENGERT_ISA::kernels::detail
