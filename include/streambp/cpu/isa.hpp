// The instruction set that the compile flags chose. Everything under cpu/ lives in a namespace
// named after it, so that objects compiled with different flags never share a function.
#pragma once

#include "../core/language.hpp"

#if defined(__FAST_MATH__)
#error "streambp: exact gradients need IEEE arithmetic; compile without -ffast-math"
#endif

#if defined(__AVX512F__) && defined(__AVX512DQ__)
#define STREAMBP_ISA avx512
#elif defined(__AVX2__) && defined(__FMA__)
#define STREAMBP_ISA avx2
#else
#define STREAMBP_ISA generic
#endif

namespace streambp::cpu {
inline namespace STREAMBP_ISA {

#define STREAMBP_STRING_OF(x) #x
#define STREAMBP_STRING(x) STREAMBP_STRING_OF(x)
inline constexpr const char* isa = STREAMBP_STRING(STREAMBP_ISA);
#undef STREAMBP_STRING
#undef STREAMBP_STRING_OF

}  // namespace STREAMBP_ISA
}  // namespace streambp::cpu
