// How far two numbers that should be equal may differ, and why.
#pragma once

#include "../core/language.hpp"

namespace streambp::laws {

// Relative to the largest entry of the tensor that is compared.
struct tolerance {
  // Of extrapolated slopes. A constant of a backward in float is wrong by up to 6e-8.
  double differences = 2e-9;
  // What a value's own rounding may be, in epsilons of the sum of its terms' sizes.
  double value = 8;
  // Of slopes at kinks and other places that are visited apart, from one side or near infinite
  // ones.
  double places = 1e-6;
  // How far one-sided slopes may be from converged, where a place is judged as a kink.
  double kinks = 1e-3;
  // Of fp32 beside fp64, in shifts that moving all inputs by a rounding makes.
  double single = 64;
  // Sums of one step's tokens in another order; in units of the precision's epsilon.
  double rounding = 512;
  // Of the largest entry of all gradients: what a tensor's own largest entry counts as at least.
  // The gradient of a key's bias, for one, is 0 but for rounding.
  double smallest = 1e-4;
};

}  // namespace streambp::laws
