// Rows as copies, ordered by the expert that each goes to: there, through the expert's own weights,
// and back.
#pragma once

#include <span>

#include "device.hpp"
#include "expect_shape.hpp"
#include "write.hpp"

namespace streambp::primitives {

namespace detail {

template <class S>
void expect_first(const char* primitive, const view<S>& first, position experts) {
  expect_at_least(primitive, "first", first, {"one", 1}, {"experts + 1", experts + 1});
}
// Copies and weights of the rows x: place (rows, top).
template <device D>
void expect_copies(const char* primitive, given<D> x, given<D> copies, given<D> place,
                   given<D> weights) {
  expect_shape(primitive, "place", place, {"rows", x.rows}, {"experts a row", place.cols});
  expect_alike_if_any(primitive, "weights", weights, place);
  expect_shape(primitive, "copies", copies, {"rows x experts a row", x.rows * place.cols},
               {"columns", x.cols});
}

}  // namespace detail

// The copies of the rows, by expert and then by row: place(i, j) is where copy j of row i stands,
// first(0, e) the first place of expert e, and first(0, experts) their number. Numbers are held as
// scalars. Throws shape_error for more copies than a scalar counts.
template <device D>
void order_by_expert(D& on, given<D> chosen, position experts, written<D> place, written<D> first) {
  expect_alike("order_by_expert", "place", place, chosen);
  detail::expect_first("order_by_expert", first, experts);
  if (const auto with = on.enter("order_by_expert"))
    order_by_expert(*with, chosen, experts, place, first);
}

// copies_place(i, j) = x_i, or weights(i, j) x_i.
template <device D>
void copy_to_experts(D& on, given<D> x, given<D> place, given<D> weights, written<D> copies) {
  detail::expect_copies<D>("copy_to_experts", x, copies, place, weights);
  if (const auto with = on.enter("copy_to_experts"))
    copy_to_experts(*with, x, place, weights, copies);
}

// y_i += Σ_j weights(i, j) copies_place(i, j), weights 1 if without data.
template <device D>
void add_from_experts(D& on, given<D> copies, given<D> place, given<D> weights, written<D> y) {
  detail::expect_copies<D>("add_from_experts", y, copies, place, weights);
  if (const auto with = on.enter("add_from_experts"))
    add_from_experts(*with, copies, place, weights, y);
}

// out(i, j) = copies_place(i, j) · dy_i
template <device D>
void dot_with_experts(D& on, given<D> copies, given<D> place, given<D> dy, written<D> out) {
  detail::expect_copies<D>("dot_with_experts", dy, copies, place, out);
  if (const auto with = on.enter("dot_with_experts"))
    dot_with_experts(*with, copies, place, dy, out);
}

// y = x w_eᵀ for the copies of each expert e; w holds the experts' matrices one below the other.
template <device D>
void project_experts(D& on, given<D> first, position experts, given<D> x, given<D> w,
                     written<D> y) {
  detail::expect_first("project_experts", first, experts);
  expect_shape("project_experts", "w", w, {"experts x out", experts * y.cols}, {"in", x.cols});
  expect_shape("project_experts", "y", y, {"rows", x.rows}, {"out", y.cols});
  on.count(big_count(2) * x.rows * x.cols * y.cols);
  if (const auto with = on.enter("project_experts"))
    project_experts(*with, first, experts, x, w, y);
}

// dx (+)= dy w_e
template <device D>
void project_back_experts(D& on, given<D> first, position experts, given<D> dy, given<D> w,
                          written<D> dx, write how) {
  detail::expect_first("project_back_experts", first, experts);
  expect_shape("project_back_experts", "w", w, {"experts x out", experts * dy.cols},
               {"in", dx.cols});
  expect_shape("project_back_experts", "dx", dx, {"rows", dy.rows}, {"in", dx.cols});
  on.count(big_count(2) * dy.rows * dy.cols * dx.cols);
  if (const auto with = on.enter("project_back_experts"))
    project_back_experts(*with, first, experts, dy, w, dx, how);
}

// dw_e += dyᵀ x, grain by grain of the rows that the copies come from, last grain first.
template <device D>
void add_expert_gradients(D& on, given<D> first, position experts, given<D> chosen, given<D> dy,
                          given<D> x, written<D> dw, std::span<const position> grains) {
  detail::expect_first("add_expert_gradients", first, experts);
  expect_shape("add_expert_gradients", "dy", dy,
               {"rows x experts a row", chosen.rows * chosen.cols}, {"out", dy.cols});
  expect_shape("add_expert_gradients", "x", x, {"rows", dy.rows}, {"in", dw.cols});
  expect_shape("add_expert_gradients", "dw", dw, {"experts x out", experts * dy.cols},
               {"in", x.cols});
  expect_grains("add_expert_gradients", grains, chosen.rows);
  on.count(big_count(2) * dy.rows * dy.cols * x.cols);
  if (const auto with = on.enter("add_expert_gradients"))
    add_expert_gradients(*with, first, experts, chosen, dy, x, dw, grains);
}

}  // namespace streambp::primitives
