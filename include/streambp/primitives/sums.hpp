// Sums of all entries, for the host: in double precision and a fixed order.
#pragma once

#include <span>

#include "device.hpp"
#include "expect_shape.hpp"

namespace streambp::primitives {

// Σ c ∘ y
template <device D>
double sum_of_products(D& on, given<D> c, given<D> y) {
  expect_alike("sum_of_products", "c", c, y);
  if (const auto with = on.enter("sum_of_products")) return sum_of_products(*with, c, y);
  return 0;
}

// Σ (x / unit)²
template <device D>
double sum_of_squares(D& on, std::span<const scalar_of<D>> x, double unit) {
  if (const auto with = on.enter("sum_of_squares")) return sum_of_squares(*with, x, unit);
  return 0;
}

// max |x| of those that are no NaN; 0 of none.
template <device D>
double largest_of(D& on, std::span<const scalar_of<D>> x) {
  if (const auto with = on.enter("largest_of")) return largest_of(*with, x);
  return 0;
}

}  // namespace streambp::primitives
