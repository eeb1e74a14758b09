// A causal convolution of each feature by itself: y_t = b + Σ_i w_i ∘ x_{t-i}, i < taps.
#pragma once

#include <span>

#include "carry_rows.hpp"
#include "device.hpp"
#include "expect_shape.hpp"
#include "write.hpp"

namespace streambp::primitives {

// x, y (rows, d); w (taps, d); b (1, d) or without data. A state is the last taps - 1 rows of x. A
// y without rows is not wanted: only states are handed on.
template <device D>
void convolution_forward(D& on, const piece_list& pieces, const carry_rows<scalar_of<D>>& states,
                         given<D> x, given<D> w, given<D> b, written<D> y) {
  expect_shape("convolution_forward", "x", x, {"rows", pieces.rows().rows()}, {"columns", w.cols});
  expect_shape_if_any("convolution_forward", "b", b, {"one", 1}, {"columns", w.cols});
  expect_shape_if_any("convolution_forward", "y", y, {"rows", x.rows}, {"columns", w.cols});
  expect_states("convolution_forward", states, {"(taps - 1) x columns", (w.rows - 1) * w.cols});
  if (const auto with = on.enter("convolution_forward"))
    convolution_forward(*with, pieces, states, x, w, b, y);
}

// dx_t (+)= Σ_i w_i ∘ dy_{t+i}. dx may be the rows that x was in.
template <device D>
void convolution_backward(D& on, const piece_list& pieces, const carry_rows<scalar_of<D>>& states,
                          given<D> w, given<D> dy, written<D> dx, write how) {
  expect_shape("convolution_backward", "dy", dy, {"rows", pieces.rows().rows()},
               {"columns", w.cols});
  expect_alike("convolution_backward", "dx", dx, dy);
  expect_states("convolution_backward", states, {"(taps - 1) x columns", (w.rows - 1) * w.cols});
  if (const auto with = on.enter("convolution_backward"))
    convolution_backward(*with, pieces, states, w, dy, dx, how);
}

// dw_i += Σ_t dy_t ∘ x_{t-i}, grain by grain, the last grain first. `grains` are ascending edges on
// the packed axis.
template <device D>
void add_tap_gradients(D& on, const piece_list& pieces, const carry_rows<scalar_of<D>>& states,
                       given<D> x, given<D> dy, written<D> dw, std::span<const position> grains) {
  expect_shape("add_tap_gradients", "x", x, {"rows", pieces.rows().rows()}, {"columns", dw.cols});
  expect_alike("add_tap_gradients", "dy", dy, x);
  expect_grains("add_tap_gradients", grains, x.rows);
  expect_states("add_tap_gradients", states, {"(taps - 1) x columns", (dw.rows - 1) * dw.cols});
  if (const auto with = on.enter("add_tap_gradients"))
    add_tap_gradients(*with, pieces, states, x, dy, dw, grains);
}

}  // namespace streambp::primitives
