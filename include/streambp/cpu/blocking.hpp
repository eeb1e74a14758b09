// Block sizes of products: constants, never asked from the machine's caches.
#pragma once

#include <algorithm>

#include "../core/position.hpp"
#include "isa.hpp"

namespace streambp::cpu {
inline namespace STREAMBP_ISA {

// y = x w, summed over the depth. An entry of y is fixed by its row of x, by `depth`, and by the
// panel of columns that it lies in; y may be cut anywhere else. Other sizes set the speed alone.
template <class Scalar>
struct blocking {
  static constexpr position depth = 256;  // of the summed dimension, between two additions to y
  static constexpr position height = 8;   // y is cut at multiples of this many rows ...
  static constexpr position panel = 192 / sizeof(Scalar);     // ... and of this many columns
  static constexpr position rows = 512 / sizeof(Scalar);      // of y, packed at a time
  static constexpr position columns = 3072 / sizeof(Scalar);  // of y, packed at a time, at most

  // What is enough where matrices have no side longer than this, and attention its blocks of keys.
  static constexpr position columns_for(position longest) {
    return std::min(columns, round_up(std::max<position>(longest, 192), panel));
  }
  // Scalars that one thread needs: both packed operands, and the last rows of x and y, padded.
  static constexpr position packing(position columns) {
    return depth * (rows + columns) + height * (depth + columns);
  }
};

// What one thread packs in, 64-byte aligned. Any product fits; one of fewer columns packs its rows
// once.
template <class Scalar>
struct packing_space {
  Scalar* data;      // blocking::packing(columns)
  position columns;  // a multiple of blocking::panel

  packing_space(Scalar* data, position columns = blocking<Scalar>::columns)
      : data(data), columns(columns) {}
};

}  // namespace STREAMBP_ISA
}  // namespace streambp::cpu
