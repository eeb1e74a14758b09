// Rows as copies, ordered by the expert that each goes to: there, through the expert's own weights,
// and back.
#pragma once

#include <span>

#include "device.hpp"
#include "write.hpp"

namespace streambp::primitives {

// The copies of the rows, by expert and then by row: place(i, j) is where copy j of row i stands,
// first(0, e) the first place of expert e, and first(0, experts) their number. Numbers are held as
// scalars. Throws shape_error for more copies than a scalar counts.
template <device D>
void order_by_expert(D& on, given<D> chosen, position experts, written<D> place, written<D> first) {
  if (const auto with = on.enter("order_by_expert"))
    order_by_expert(*with, chosen, experts, place, first);
}

// copies_place(i, j) = x_i, or weights(i, j) x_i.
template <device D>
void copy_to_experts(D& on, given<D> x, given<D> place, given<D> weights, written<D> copies) {
  if (const auto with = on.enter("copy_to_experts"))
    copy_to_experts(*with, x, place, weights, copies);
}

// y_i += Σ_j weights(i, j) copies_place(i, j), weights 1 if without data.
template <device D>
void add_from_experts(D& on, given<D> copies, given<D> place, given<D> weights, written<D> y) {
  if (const auto with = on.enter("add_from_experts"))
    add_from_experts(*with, copies, place, weights, y);
}

// out(i, j) = copies_place(i, j) · dy_i
template <device D>
void dot_with_experts(D& on, given<D> copies, given<D> place, given<D> dy, written<D> out) {
  if (const auto with = on.enter("dot_with_experts"))
    dot_with_experts(*with, copies, place, dy, out);
}

// y = x w_eᵀ for the copies of each expert e; w holds the experts' matrices one below the other.
template <device D>
void project_experts(D& on, given<D> first, position experts, given<D> x, given<D> w,
                     written<D> y) {
  on.count(2 * x.rows * x.cols * y.cols);
  if (const auto with = on.enter("project_experts"))
    project_experts(*with, first, experts, x, w, y);
}

// dx (+)= dy w_e
template <device D>
void project_back_experts(D& on, given<D> first, position experts, given<D> dy, given<D> w,
                          written<D> dx, write how) {
  on.count(2 * dy.rows * dy.cols * dx.cols);
  if (const auto with = on.enter("project_back_experts"))
    project_back_experts(*with, first, experts, dy, w, dx, how);
}

// dw_e += dyᵀ x, grain by grain of the rows that the copies come from, last grain first.
template <device D>
void add_expert_gradients(D& on, given<D> first, position experts, given<D> chosen, given<D> dy,
                          given<D> x, written<D> dw, std::span<const position> grains) {
  on.count(2 * dy.rows * dy.cols * x.cols);
  if (const auto with = on.enter("add_expert_gradients"))
    add_expert_gradients(*with, first, experts, chosen, dy, x, dw, grains);
}

}  // namespace streambp::primitives
