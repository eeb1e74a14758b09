// The products of a linear layer: forward, and both halves of its backward.
#pragma once

#include <span>

#include "device.hpp"
#include "expect_shape.hpp"
#include "write.hpp"

namespace streambp::primitives {

// y (+)= x wᵀ: x (rows, in), w (out, in), y (rows, out). A row of y depends on that row of x alone:
// not on how many rows there are, its place among them, or threads.
template <device D>
void project(D& on, given<D> x, given<D> w, written<D> y, write how = write::assign) {
  expect_shape("project", "w", w, {"out", y.cols}, {"in", x.cols});
  expect_shape("project", "y", y, {"rows", x.rows}, {"out", w.rows});
  on.count(big_count(2) * x.rows * w.rows * w.cols);
  if (const auto with = on.enter("project")) project(*with, x, w, y, how);
}

// dx (+)= dy w: dy (rows, out), w (out, in), dx (rows, in). The same promise.
template <device D>
void project_back(D& on, given<D> dy, given<D> w, written<D> dx, write how = write::assign) {
  expect_shape("project_back", "w", w, {"out", dy.cols}, {"in", dx.cols});
  expect_shape("project_back", "dx", dx, {"rows", dy.rows}, {"in", w.cols});
  on.count(big_count(2) * dy.rows * w.rows * w.cols);
  if (const auto with = on.enter("project_back")) project_back(*with, dy, w, dx, how);
}

// dw += dyᵀ x, grain by grain, the last grain first: dy (rows, out), x (rows, in), dw (out, in).
// `grains` are the ascending edges of the rows' grains, the first of them that of row 0.
template <device D>
void add_weight_gradient(D& on, given<D> dy, given<D> x, written<D> dw,
                         std::span<const position> grains) {
  expect_gradient("add_weight_gradient", "dw", dw, {"out", dy.cols}, {"in", x.cols});
  expect_shape("add_weight_gradient", "x", x, {"rows", dy.rows}, {"in", dw.cols});
  expect_grains("add_weight_gradient", grains, x.rows);
  on.count(big_count(2) * x.rows * dw.rows * dw.cols);
  if (const auto with = on.enter("add_weight_gradient"))
    add_weight_gradient(*with, dy, x, dw, grains);
}

}  // namespace streambp::primitives
