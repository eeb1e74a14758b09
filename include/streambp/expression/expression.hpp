// An entry-wise expression over rows, ready for a device.
#pragma once

#include "graph.hpp"

namespace streambp::autodiff {

// One of an expression's terms: leaves, which are rows, and operations on the terms before it. The
// last one is the result.
template <class Scalar>
struct expression_term {
  operation op = operation::constant;
  autodiff::unary function{};
  int a = -1, b = -1, c = -1;  // terms
  bool leaf = false;
  bool read = true;      // its value is used
  bool reached = false;  // a gradient comes to it
  double constant = 0;   // and the exponent of a power
  // Of a leaf: row i at value + i * stride, an entry a column or, if not wide, one for all.
  const Scalar* value = nullptr;
  position stride = 0;
  bool wide = true;
  Scalar* gradient = nullptr;
  position gradient_stride = 0;
  bool assigns = false;  // its gradient, instead of adding to it
};

}  // namespace streambp::autodiff
