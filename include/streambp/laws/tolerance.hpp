// How far two numbers that should be equal may differ, and why.
#pragma once

#include "../core/language.hpp"

namespace streambp::laws {

// Relative to the largest entry of the tensor that is compared.
struct tolerance {
  // Five-point differences of step 1e-3: truncation is near 1e-12 times the fifth derivative,
  // rounding near 1e-12 times value / slope.
  double differences = 1e-7;
  // Sums of one step's tokens in another order; in units of the precision's epsilon.
  double rounding = 512;
  // Of the largest entry of all gradients: what a tensor's own largest entry counts as at least.
  // The gradient of a key's bias, for one, is 0 but for rounding.
  double smallest = 1e-4;
};

inline constexpr double difference_step = 1e-3;

}  // namespace streambp::laws
