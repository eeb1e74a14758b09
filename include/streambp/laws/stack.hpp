// How deep a call goes on the stack of the thread that makes it.
#pragma once

#include <cstddef>

#include "../core/language.hpp"

namespace streambp::laws {

// What a thread of a step may use, whatever the number of tokens; more is measured, but not all of
// it.
inline constexpr std::size_t most_stack = 256 << 10, measured_stack = 2 * most_stack;

// Bytes from here down to the last one that f changes, at most measured_stack: what lies below the
// frame is painted first, and looked at afterwards.
template <class F>
[[gnu::noinline, gnu::no_sanitize_address]] std::size_t stack_of(const F& f) {
  constexpr unsigned char paint = 0xa5;
  constexpr std::size_t frame = 512;  // this function's own
  const auto* const here = static_cast<const unsigned char*>(__builtin_frame_address(0));
  auto* const top = const_cast<volatile unsigned char*>(here) - frame;
  for (std::size_t i = 1; i <= measured_stack; ++i) *(top - i) = paint;
  f();
  std::size_t deepest = measured_stack;
  while (deepest > 0 && *(top - deepest) == paint) --deepest;
  return deepest + frame;
}

}  // namespace streambp::laws
