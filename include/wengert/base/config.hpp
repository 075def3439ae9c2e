// Version and instruction set: the inline namespace that keeps translation units built with different
// flags from sharing a symbol. Floor: base.
#pragma once

#define WENGERT_VERSION_MAJOR 0
#define WENGERT_VERSION_MINOR 1
#define WENGERT_VERSION_PATCH 0

// Only compiler flags select the instruction set, so kernels, Eigen and xsimd always agree within a unit.
#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__) && \
    defined(__FMA__)
#define WENGERT_ISA isa_avx512
#define WENGERT_ISA_NAME "avx512"
#elif defined(__AVX2__) && defined(__FMA__)
#define WENGERT_ISA isa_avx2
#define WENGERT_ISA_NAME "avx2+fma"
#elif defined(__AVX2__)
#define WENGERT_ISA isa_avx2_nofma
#define WENGERT_ISA_NAME "avx2"
#elif defined(__AVX__)
#define WENGERT_ISA isa_avx
#define WENGERT_ISA_NAME "avx"
#elif defined(__SSE4_2__)
#define WENGERT_ISA isa_sse42
#define WENGERT_ISA_NAME "sse4.2"
#elif defined(__SSE4_1__)
#define WENGERT_ISA isa_sse41
#define WENGERT_ISA_NAME "sse4.1"
#elif defined(__SSSE3__)
#define WENGERT_ISA isa_ssse3
#define WENGERT_ISA_NAME "ssse3"
#elif defined(__SSE3__)
#define WENGERT_ISA isa_sse3
#define WENGERT_ISA_NAME "sse3"
#elif defined(__SSE2__)
#define WENGERT_ISA isa_sse2
#define WENGERT_ISA_NAME "sse2"
#elif defined(__aarch64__)
#define WENGERT_ISA isa_neon64
#define WENGERT_ISA_NAME "neon64"
#else
#define WENGERT_ISA isa_scalar
#define WENGERT_ISA_NAME "scalar"
#endif

namespace wengert::inline WENGERT_ISA {

/// Name of the instruction set that the kernels of this translation unit use, such as "avx2+fma".
constexpr const char* simd_name() noexcept { return WENGERT_ISA_NAME; }

}  // namespace wengert::inline WENGERT_ISA
