// Long short-term memory along each segment. z = [i f g o] comes in with everything but the state's
// part:
//   z_t += W h_{t-1},  c_t = σ(f) ∘ c_{t-1} + σ(i) ∘ tanh(g),  h_t = σ(o) ∘ tanh(c_t)
#pragma once

#include "carry_rows.hpp"
#include "device.hpp"
#include "expect_shape.hpp"

namespace streambp::primitives {

namespace detail {

template <device D>
void expect_lstm(const char* primitive, const piece_list& pieces,
                 const carry_rows<scalar_of<D>>& states, given<D> w, given<D> z, given<D> c) {
  const side rows{"rows", pieces.rows().rows()}, units{"units", w.cols};
  expect_shape(primitive, "w", w, {"4 units", 4 * w.cols}, units);
  expect_shape(primitive, "z", z, rows, {"4 units", 4 * w.cols});
  expect_shape(primitive, "c", c, rows, units);
  expect_states(primitive, states, {"2 units", 2 * w.cols});
}

}  // namespace detail

// w (4 units, units); z (rows, 4 units) becomes the gates; c, h (rows, units). A state is h, then
// c.
template <device D>
void lstm_forward(D& on, const piece_list& pieces, const carry_rows<scalar_of<D>>& states,
                  given<D> w, written<D> z, written<D> c, written<D> h) {
  detail::expect_lstm<D>("lstm_forward", pieces, states, w, z, c);
  expect_alike("lstm_forward", "h", h, c);
  on.count(big_count(2) * z.rows * w.rows * w.cols);
  if (const auto with = on.enter("lstm_forward")) lstm_forward(*with, pieces, states, w, z, c, h);
}

// Gates become the gradients of z. dh and dc (rows, units) are overwritten.
template <device D>
void lstm_backward(D& on, const piece_list& pieces, const carry_rows<scalar_of<D>>& states,
                   given<D> w, written<D> z, given<D> c, given<D> dy, written<D> dh,
                   written<D> dc) {
  detail::expect_lstm<D>("lstm_backward", pieces, states, w, z, c);
  expect_alike("lstm_backward", "dy", dy, c);
  expect_alike("lstm_backward", "dh", dh, c);
  expect_alike("lstm_backward", "dc", dc, c);
  on.count(big_count(2) * z.rows * w.rows * w.cols);
  if (const auto with = on.enter("lstm_backward"))
    lstm_backward(*with, pieces, states, w, z, c, dy, dh, dc);
}

}  // namespace streambp::primitives
