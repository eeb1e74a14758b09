// What passes between rows and the host: copies, single entries, sums, whether all are finite.
#pragma once

#include <optional>
#include <span>

#include "device.hpp"
#include "expect_shape.hpp"

namespace streambp::primitives {

// The number, row by row, of the first entry that is not finite; rows * cols if all are.
template <device D>
position first_not_finite(D& on, given<D> x) {
  if (const auto with = on.enter("first_not_finite")) return first_not_finite(*with, x);
  return x.rows * x.cols;
}

// to = x, or y = from; row by row without gaps.
template <device D>
void read_rows(D& on, given<D> x, std::span<scalar_of<D>> to) {
  expect_count("read_rows", "to", to.size(), {"rows x columns", x.rows * x.cols});
  if (const auto with = on.enter("read_rows")) read_rows(*with, x, to);
}
template <device D>
void write_rows(D& on, std::span<const scalar_of<D>> from, written<D> y) {
  expect_count("write_rows", "from", from.size(), {"rows x columns", y.rows * y.cols});
  if (const auto with = on.enter("write_rows")) write_rows(*with, from, y);
}

// Σ c ∘ y in double precision, row by row.
template <device D>
double sum_of_products(D& on, given<D> c, given<D> y) {
  expect_alike("sum_of_products", "c", c, y);
  if (const auto with = on.enter("sum_of_products")) return sum_of_products(*with, c, y);
  return 0;
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
