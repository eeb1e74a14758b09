// What the host sees of rows: whether they are finite, and single entries.
#pragma once

#include <optional>

#include "device.hpp"

namespace streambp::primitives {

// The number, row by row, of the first entry that is not finite; rows * cols if all are.
template <device D>
position first_not_finite(D& on, given<D> x) {
  if (const auto with = on.enter("first_not_finite")) return first_not_finite(*with, x);
  return x.rows * x.cols;
}

// x(i, j)
template <device D>
scalar_of<D> entry(D& on, given<D> x, position i, position j) {
  if (const auto with = on.enter("entry")) return entry(*with, x, i, j);
  return 0;
}

// The first entry that is not finite, if there is one.
template <class Scalar>
struct found_entry {
  position row, column;
  Scalar value;
};
template <device D>
std::optional<found_entry<scalar_of<D>>> find_not_finite(D& on, given<D> x) {
  const position i = first_not_finite(on, x);
  if (i == x.rows * x.cols) return std::nullopt;
  return found_entry<scalar_of<D>>{i / x.cols, i % x.cols, entry(on, x, i / x.cols, i % x.cols)};
}

}  // namespace streambp::primitives
