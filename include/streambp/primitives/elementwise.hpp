// Copies, sums and scalings of rows, and the bias.
#pragma once

#include <span>

#include "device.hpp"
#include "expect_shape.hpp"

namespace streambp::primitives {

// y = 0
template <device D>
void zero(D& on, written<D> y) {
  if (const auto with = on.enter("zero")) zero(*with, y);
}

// y = value, its bits if it is NaN
template <device D>
void fill(D& on, scalar_of<D> value, written<D> y) {
  if (const auto with = on.enter("fill")) fill(*with, value, y);
}

// y += value
template <device D>
void shift(D& on, double value, written<D> y) {
  if (const auto with = on.enter("shift")) shift(*with, value, y);
}

// y = x
template <device D>
void copy(D& on, given<D> x, written<D> y) {
  expect_alike("copy", "x", x, y);
  if (const auto with = on.enter("copy")) copy(*with, x, y);
}

// y = x1 + x2; y may be either.
template <device D>
void sum(D& on, given<D> x1, given<D> x2, written<D> y) {
  expect_alike("sum", "x1", x1, y);
  expect_alike("sum", "x2", x2, y);
  if (const auto with = on.enter("sum")) sum(*with, x1, x2, y);
}

// y += x
template <device D>
void add(D& on, given<D> x, written<D> y) {
  expect_alike("add", "x", x, y);
  sum(on, y, x, y);
}

// y = factor y
template <device D>
void scale(D& on, double factor, written<D> y) {
  if (const auto with = on.enter("scale")) scale(*with, factor, y);
}

// y += b in every row; b (1, d).
template <device D>
void add_bias(D& on, given<D> b, written<D> y) {
  expect_shape("add_bias", "b", b, {"one", 1}, {"columns", y.cols});
  if (const auto with = on.enter("add_bias")) add_bias(*with, b, y);
}

// db += the sum of dy's rows, last grain first; db (1, d).
template <device D>
void add_column_sums(D& on, given<D> dy, written<D> db, std::span<const position> grains) {
  expect_gradient("add_column_sums", "db", db, {"one", 1}, {"columns", dy.cols});
  expect_grains("add_column_sums", grains, dy.rows);
  if (const auto with = on.enter("add_column_sums")) add_column_sums(*with, dy, db, grains);
}

}  // namespace streambp::primitives
