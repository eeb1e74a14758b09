// A gated recurrent unit along each segment. g = [r z n] comes in with x's part and the biases, a
// with the bias of the state's part of n:
//   g_r, g_z += W h_{t-1},  a += W_n h_{t-1},  n = tanh(g_n + σ(r) ∘ a),
//   h_t = n + σ(z) ∘ (h_{t-1} - n)
#pragma once

#include "carry_rows.hpp"
#include "device.hpp"
#include "expect_shape.hpp"

namespace streambp::primitives {

namespace detail {

template <device D>
void expect_gru(const char* primitive, const piece_list& pieces,
                const carry_rows<scalar_of<D>>& states, given<D> w, given<D> g, given<D> a,
                given<D> h) {
  const side rows{"rows", pieces.rows().rows()}, units{"units", w.cols};
  expect_shape(primitive, "w", w, {"3 units", 3 * w.cols}, units);
  expect_shape(primitive, "g", g, rows, {"3 units", 3 * w.cols});
  expect_shape(primitive, "a", a, rows, units);
  expect_shape(primitive, "h", h, rows, units);
  expect_states(primitive, states, units);
}

}  // namespace detail

// w (3 units, units); g (rows, 3 units) becomes the gates; a, h (rows, units). A state is h.
template <device D>
void gru_forward(D& on, const piece_list& pieces, const carry_rows<scalar_of<D>>& states,
                 given<D> w, written<D> g, written<D> a, written<D> h) {
  detail::expect_gru<D>("gru_forward", pieces, states, w, g, a, h);
  on.count(big_count(2) * g.rows * w.rows * w.cols);
  if (const auto with = on.enter("gru_forward")) gru_forward(*with, pieces, states, w, g, a, h);
}

// Gates become the gradients of g, a that of a. dh (rows, units) is overwritten.
template <device D>
void gru_backward(D& on, const piece_list& pieces, const carry_rows<scalar_of<D>>& states,
                  given<D> w, written<D> g, written<D> a, given<D> h, given<D> dy, written<D> dh) {
  detail::expect_gru<D>("gru_backward", pieces, states, w, g, a, h);
  expect_alike("gru_backward", "dy", dy, h);
  expect_alike("gru_backward", "dh", dh, h);
  on.count(big_count(2) * g.rows * w.rows * w.cols);
  if (const auto with = on.enter("gru_backward"))
    gru_backward(*with, pieces, states, w, g, a, h, dy, dh);
}

}  // namespace streambp::primitives
