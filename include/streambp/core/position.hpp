// A place on the packed sequence axis, and ranges of such places.
#pragma once

#include <cstdint>

#include "language.hpp"

namespace streambp {

// 64 bits everywhere: tokens times vocabulary passes 2^31 long before memory does.
using position = std::int64_t;

// Of sizes that a user names: their products with each other must not pass 2^63.
inline constexpr position largest_size = position(1) << 36;

// Of one axis: counts grow with its square, and their 127 bits must hold that times widths.
inline constexpr position most_tokens = position(1) << 44;

// The rows [first, last).
struct row_range {
  position first = 0;
  position last = 0;
  constexpr position rows() const { return last - first; }
  constexpr bool operator==(const row_range&) const = default;
};

constexpr position round_up(position value, position multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

constexpr position ceil_div(position value, position divisor) {
  return (value + divisor - 1) / divisor;
}

}  // namespace streambp
