// The one door to xsimd, and the facts about the instruction set that kernels tune by. Floor: kernels.
#pragma once

// g++ 12 warns about its own intrinsics, where they mean "any value will do"; the state at the header
// decides.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#endif
#include <xsimd/xsimd.hpp>
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

#include <wengert/base/config.hpp>
#include <wengert/base/scalar.hpp>

/// Small functions whose cost is the call itself: always inlined, so that constants stay in registers. Not
/// where clang checks every access, whose optimizer would take minutes over a kernel.
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define WENGERT_INLINE inline
#define WENGERT_INLINE_LAMBDA
#endif
#endif
#if !defined(WENGERT_INLINE)
#define WENGERT_INLINE inline __attribute__((always_inline))
#define WENGERT_INLINE_LAMBDA __attribute__((always_inline))
#endif

// The kernels that take longest to compile say with WENGERT_INSTANCE which of them a program can share
// between its units. WENGERT_EXTERN_KERNELS, defined for all of them, leaves those out; one unit defines
// WENGERT_INSTANTIATE_KERNELS as well and has them.
#if defined(WENGERT_INSTANTIATE_KERNELS)
#define WENGERT_INSTANCE(...) template __VA_ARGS__
#elif defined(WENGERT_EXTERN_KERNELS)
#define WENGERT_INSTANCE(...) extern template __VA_ARGS__
#else
#define WENGERT_INSTANCE(...) static_assert(true)
#endif

// g++ 12 at -O3 with AVX-512 turns a conditional load or store of a register in a loop into a masked one, and
// takes the condition for the mask: one lane instead of all. A branch with an asm is left alone.
#if defined(__GNUC__) && !defined(__clang__) && defined(__AVX512F__)
#define WENGERT_KEEP_BRANCH() __asm__("")
#else
#define WENGERT_KEEP_BRANCH() static_cast<void>(0)
#endif

namespace wengert::inline WENGERT_ISA::kernels {

/// The SIMD register of `T`.
template <SimdScalar T>
using Batch = xsimd::batch<T>;

/// The comparison result of two `Batch<T>`.
template <SimdScalar T>
using BatchMask = xsimd::batch_bool<T>;

/// Elements in one register of `T`.
template <SimdScalar T>
inline constexpr Index simd_lanes = static_cast<Index>(Batch<T>::size);

/// Bytes in one register.
inline constexpr Index simd_bytes = simd_lanes<float> * Index{sizeof(float)};

/// Architectural SIMD registers: how many accumulators a kernel can keep without spilling.
#if defined(__AVX512F__) || defined(__aarch64__)
inline constexpr int simd_registers = 32;
#else
inline constexpr int simd_registers = 16;
#endif

/// True where `fma(a, b, c)` rounds once.
#if defined(__FMA__) || defined(__aarch64__)
inline constexpr bool simd_has_fma = true;
#else
inline constexpr bool simd_has_fma = false;
#endif

}  // namespace wengert::inline WENGERT_ISA::kernels
