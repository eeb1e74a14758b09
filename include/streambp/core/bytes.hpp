// Amounts of memory: literals and words.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <string>

#include "language.hpp"

namespace streambp {

// Does not compile when the bytes are more than 64 bits can count.
consteval std::size_t shifted(unsigned long long n, int bits) {
  if (n > ~0ull >> bits) throw "more bytes than 64 bits can count";
  return std::size_t(n << bits);
}

inline namespace literals {
consteval std::size_t operator""_KiB(unsigned long long n) { return shifted(n, 10); }
consteval std::size_t operator""_MiB(unsigned long long n) { return shifted(n, 20); }
consteval std::size_t operator""_GiB(unsigned long long n) { return shifted(n, 30); }
}  // namespace literals

// More than can be counted; it fits no budget.
inline constexpr std::size_t uncountable = ~std::size_t(63);

// a + b, or uncountable.
constexpr std::size_t sum_of_bytes(std::size_t a, std::size_t b) {
  return a < uncountable - std::min(b, uncountable) ? a + b : uncountable;
}
// Of rows x cols values, in whole lines of 64 bytes; or uncountable.
constexpr std::size_t bytes_of_rows(std::size_t rows, std::size_t cols, std::size_t size) {
  std::size_t bytes = 0;
  const bool passes = __builtin_mul_overflow(cols, size, &bytes) ||
                      __builtin_mul_overflow(rows, bytes, &bytes) || bytes > uncountable;
  return passes ? uncountable : (bytes + 63) / 64 * 64;
}

// "183.4 MiB"; exact below 10 KiB.
inline std::string bytes_in_words(std::size_t bytes) {
  char text[48];
  if (bytes < 10_KiB)
    std::snprintf(text, sizeof text, "%zu B", bytes);
  else if (bytes < 10_MiB)
    std::snprintf(text, sizeof text, "%.1f KiB", double(bytes) / double(1_KiB));
  else if (bytes < 10_GiB)
    std::snprintf(text, sizeof text, "%.1f MiB", double(bytes) / double(1_MiB));
  else if (bytes < 10240_GiB)
    std::snprintf(text, sizeof text, "%.2f GiB", double(bytes) / double(1_GiB));
  else
    std::snprintf(text, sizeof text, "%.2f TiB", double(bytes) / double(1024_GiB));
  return text;
}

}  // namespace streambp
