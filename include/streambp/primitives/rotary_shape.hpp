// Rotary positions (Su et al. 2021): which features of a head turn, and how fast.
#pragma once

#include <cmath>

#include "../core/position.hpp"

namespace streambp {

struct rotary_shape {
  position heads;
  position width;    // of a head
  position rotated;  // leading features of a head that turn, an even number
  double base;
  bool interleaved = false;  // pairs (2i, 2i + 1); otherwise (i, i + rotated / 2), as in Llama
};

// Radians per position of a pair: base^(-2 pair / rotated).
inline double rotary_frequency(const rotary_shape& shape, position pair) {
  return std::pow(shape.base, -2.0 * double(pair) / double(shape.rotated));
}

}  // namespace streambp
