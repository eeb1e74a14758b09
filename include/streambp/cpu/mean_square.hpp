// Means of squares that a scalar holds.
#pragma once

#include <limits>

#include "isa.hpp"

namespace streambp::cpu {
inline namespace STREAMBP_ISA {

// Whether S holds the squares of which this is the mean: none overflowed, nor were they so small
// that they lost digits.
template <class S>
constexpr bool held(S mean_square) {
  using limits = std::numeric_limits<S>;
  return mean_square > limits::min() / limits::epsilon() && mean_square <= limits::max();
}

}  // namespace STREAMBP_ISA
}  // namespace streambp::cpu
