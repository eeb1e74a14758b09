// Entry-wise expressions: what a derived backward is made of.
#pragma once

#include <span>

#include "../expression/expression.hpp"
#include "device.hpp"
#include "expect_shape.hpp"

namespace streambp::primitives {

namespace detail {

// y (rows, 1), with the given rows in it.
template <class S>
void expect_column(const char* primitive, const view<S>& y, row_range rows) {
  expect_shape(primitive, "y", y, {"rows", y.rows}, {"one", 1});
  expect_rows_in(primitive, "y", y, rows);
}

}  // namespace detail

// y = the expression, in the given rows.
template <device D>
void evaluate(D& on, std::span<const autodiff::expression_term<scalar_of<D>>> terms, written<D> y,
              row_range rows) {
  expect_rows_in("evaluate", "y", y, rows);
  if (const auto with = on.enter("evaluate")) evaluate(*with, terms, y, rows);
}

// y (rows, 1) = the sum, or the largest, of each row of an expression of `cols` columns.
template <device D>
void evaluate_sum(D& on, std::span<const autodiff::expression_term<scalar_of<D>>> terms,
                  position cols, written<D> y, row_range rows) {
  detail::expect_column("evaluate_sum", y, rows);
  if (const auto with = on.enter("evaluate_sum")) evaluate_sum(*with, terms, cols, y, rows);
}

template <device D>
void evaluate_max(D& on, std::span<const autodiff::expression_term<scalar_of<D>>> terms,
                  position cols, written<D> y, row_range rows) {
  detail::expect_column("evaluate_max", y, rows);
  if (const auto with = on.enter("evaluate_max")) evaluate_max(*with, terms, cols, y, rows);
}

// y (rows, 1) = sqrt(mean x² + epsilon) of each row x of an expression; infinite where the inverse
// would be.
template <device D>
void evaluate_rms(D& on, std::span<const autodiff::expression_term<scalar_of<D>>> terms,
                  position cols, double epsilon, written<D> y, row_range rows) {
  detail::expect_column("evaluate_rms", y, rows);
  if (const auto with = on.enter("evaluate_rms"))
    evaluate_rms(*with, terms, cols, epsilon, y, rows);
}

// From dy, of `cols` columns or of one for all, to the gradients of the expression's leaves.
template <device D>
void differentiate(D& on, std::span<const autodiff::expression_term<scalar_of<D>>> terms,
                   position cols, given<D> dy, row_range rows) {
  if (dy.cols != 1)
    expect_shape("differentiate", "dy", dy, {"rows", dy.rows}, {"columns, or one", cols});
  expect_rows_in("differentiate", "dy", dy, rows);
  if (const auto with = on.enter("differentiate")) differentiate(*with, terms, cols, dy, rows);
}

// The same from dy (rows, 1) of evaluate_max, whose result was y.
template <device D>
void differentiate_max(D& on, std::span<const autodiff::expression_term<scalar_of<D>>> terms,
                       position cols, given<D> y, given<D> dy, row_range rows) {
  detail::expect_column("differentiate_max", y, rows);
  expect_shape("differentiate_max", "dy", dy, {"rows", y.rows}, {"one", 1});
  if (const auto with = on.enter("differentiate_max"))
    differentiate_max(*with, terms, cols, y, dy, rows);
}

// The same from dy (rows, 1) of evaluate_rms, whose result was y.
template <device D>
void differentiate_rms(D& on, std::span<const autodiff::expression_term<scalar_of<D>>> terms,
                       position cols, given<D> y, given<D> dy, row_range rows) {
  detail::expect_column("differentiate_rms", y, rows);
  expect_shape("differentiate_rms", "dy", dy, {"rows", y.rows}, {"one", 1});
  if (const auto with = on.enter("differentiate_rms"))
    differentiate_rms(*with, terms, cols, y, dy, rows);
}

}  // namespace streambp::primitives
