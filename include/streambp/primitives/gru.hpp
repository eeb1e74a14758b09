// A gated recurrent unit along each segment. g = [r z n] comes in with x's part and the biases, a
// with the bias of the state's part of n:
//   g_r, g_z += W h_{t-1},  a += W_n h_{t-1},  n = tanh(g_n + σ(r) ∘ a),
//   h_t = n + σ(z) ∘ (h_{t-1} - n)
#pragma once

#include "carry_rows.hpp"
#include "device.hpp"

namespace streambp::primitives {

// w (3 units, units); g (rows, 3 units) becomes the gates; a, h (rows, units). A state is h.
template <device D>
void gru_forward(D& on, const piece_list& pieces, const carry_rows<scalar_of<D>>& states,
                 given<D> w, written<D> g, written<D> a, written<D> h) {
  on.count(2 * g.rows * w.rows * w.cols);
  if (const auto with = on.enter("gru_forward")) gru_forward(*with, pieces, states, w, g, a, h);
}

// Gates become the gradients of g, a that of a. dh (rows, units) is overwritten.
template <device D>
void gru_backward(D& on, const piece_list& pieces, const carry_rows<scalar_of<D>>& states,
                  given<D> w, written<D> g, written<D> a, given<D> h, given<D> dy, written<D> dh) {
  on.count(2 * g.rows * w.rows * w.cols);
  if (const auto with = on.enter("gru_backward"))
    gru_backward(*with, pieces, states, w, g, a, h, dy, dh);
}

}  // namespace streambp::primitives
