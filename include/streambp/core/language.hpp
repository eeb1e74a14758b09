// The language and the compilers that the headers are written for; every other header includes this
// one first, so that its sentence is the first error.
#pragma once

#if defined(__clang__) && !defined(__apple_build_version__)
#if __clang_major__ < 16
#error "streambp: this clang is too old; use clang 16 or later, or g++ 12 or later"
#endif
#elif defined(__GNUC__) && !defined(__clang__)
#if __GNUC__ < 12
#error "streambp: this g++ is too old; use g++ 12 or later, or clang 16 or later"
#endif
#endif

#if __cplusplus < 202002L
#error "streambp: the headers are C++20; compile with -std=c++20 or later"
#endif
