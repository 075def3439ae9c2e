// Inverted dropout: whether element i is kept follows from the seed, a counter and i alone, so that threads
// need no order and no state. Floor: kernels.
#pragma once

#include <algorithm>
#include <bit>
#include <cstring>

#include <wengert/base/random.hpp>
#include <wengert/kernels/parallel.hpp>
#include <wengert/kernels/simd.hpp>

namespace wengert::inline WENGERT_ISA::kernels {

/// The random words of one dropout: blocks of four from `first_block` on. An element whose word is below
/// `bound` is dropped.
struct DropoutDraw {
  std::uint64_t seed, first_block;
  std::uint32_t bound;

  /// Elements whose words are made at a time; a draw for n elements uses all blocks of the chunks it begins.
  static constexpr Index chunk = 64;
  static constexpr std::uint64_t words(Index n) noexcept {
    return static_cast<std::uint64_t>((n + chunk - 1) / chunk * chunk);
  }
};

namespace detail {

// Eight words of 32 bits, or four or two, each in the low half of a lane: the compilers' own vector type,
// whose one missing operation is the product of the low halves.
typedef std::uint64_t WideWords __attribute__((vector_size(simd_bytes < 16 ? 16 : simd_bytes)));

WENGERT_INLINE WideWords low_product(WideWords a, WideWords b) noexcept {
#if defined(__AVX512F__)
  return WideWords(_mm512_mul_epu32(__m512i(a), __m512i(b)));
#elif defined(__AVX2__)
  return WideWords(_mm256_mul_epu32(__m256i(a), __m256i(b)));
#elif defined(__SSE2__) && !defined(__AVX__)
  return WideWords(_mm_mul_epu32(__m128i(a), __m128i(b)));
#else
  return (a & 0xFFFFFFFFu) * (b & 0xFFFFFFFFu);
#endif
}

/// keep[i] for the 64 elements of a chunk: element i is word i / 16 of block i % 16, so that the generator
/// (Philox4x32-10, see `philox`) runs on vectors of blocks, of any width.
inline void dropout_chunk(const DropoutDraw& draw, Index chunk, Byte* keep) noexcept {
  constexpr std::size_t lanes = sizeof(WideWords) / sizeof(std::uint64_t), blocks = DropoutDraw::chunk / 4;
  std::uint64_t words[4][blocks];
  for (std::size_t b = 0; b < blocks; b += lanes) {
    WideWords c0, c1, c2{}, c3{};
    for (std::size_t i = 0; i < lanes; ++i) {
      c0[i] = draw.first_block + static_cast<std::uint64_t>(chunk) * blocks + b + i;
      c1[i] = c0[i] >> 32;
    }
    std::uint32_t k0 = static_cast<std::uint32_t>(draw.seed),
                  k1 = static_cast<std::uint32_t>(draw.seed >> 32);
    for (int round = 0; round < 10; ++round) {  // the high halves of c0..c3 hold anything
      const WideWords p = low_product(c0, WideWords{} + 0xD2511F53u),
                      q = low_product(c2, WideWords{} + 0xCD9E8D57u);
      c0 = (q >> 32) ^ c1 ^ std::uint64_t{k0};
      c2 = (p >> 32) ^ c3 ^ std::uint64_t{k1};
      c1 = q;
      c3 = p;
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    std::size_t j = 0;
    for (const WideWords& c : {c0, c1, c2, c3}) std::memcpy(words[j++] + b, &c, sizeof c);
  }
  const std::uint32_t bound = draw.bound;
  for (std::size_t j = 0; j < 4; ++j)
    for (std::size_t i = 0; i < blocks; ++i)
      keep[j * blocks + i] = static_cast<std::uint32_t>(words[j][i]) >= bound;
}

/// y[i] = x[i] * scale, or y[i] + that, where keep[i]; 0, or y[i], elsewhere, also where x is NaN.
template <bool Add, class T>
void dropout_piece(const T* x, const Byte* keep, Index n, T scale, T* y) {
  for (Index i = 0; i < n; ++i) {
    T v;
    if constexpr (SimdScalar<T>) {  // the compilers make vectors of a bitwise and, not of a choice by bytes
      using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
      v = std::bit_cast<T>(std::bit_cast<Bits>(x[i] * scale) & (Bits{0} - Bits{keep[i]}));
    } else {
      v = keep[i] != 0 ? T(x[i] * scale) : T(0);
    }
    y[i] = Add ? T(y[i] + v) : v;
  }
}

}  // namespace detail

/// keep[i] = 0 or 1 for n elements; y[i] = x[i] * scale where keep[i], else 0.
template <class T>
void dropout(const DropoutDraw& draw, const T* x, Index n, T scale, Byte* keep, T* y) {
  constexpr Index chunk = DropoutDraw::chunk;
  parallel_for((n + chunk - 1) / chunk, 64, [=](Index begin, Index end) {
    for (Index k = begin; k < end; ++k) {
      const Index first = k * chunk, count = std::min(chunk, n - first);
      alignas(64) Byte bytes[chunk];
      detail::dropout_chunk(draw, k, bytes);
      std::copy_n(bytes, count, keep + first);
      detail::dropout_piece<false>(x + first, bytes, count, scale, y + first);
    }
  });
}

/// dx[i] = dy[i] * scale where keep[i], else 0; dx[i] + that when `add`. dx may be dy.
template <class T>
void dropout_vjp(const T* dy, const Byte* keep, Index n, T scale, T* dx, bool add) {
  parallel_for(n, 1 << 14, [=](Index begin, Index end) {
    if (add)
      detail::dropout_piece<true>(dy + begin, keep + begin, end - begin, scale, dx + begin);
    else
      detail::dropout_piece<false>(dy + begin, keep + begin, end - begin, scale, dx + begin);
  });
}

}  // namespace wengert::inline WENGERT_ISA::kernels
