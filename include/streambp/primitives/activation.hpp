// Scalar functions of each entry and their slopes, alone and as the gate of a gated MLP.
#pragma once

#include "activation_kind.hpp"
#include "device.hpp"
#include "expect_shape.hpp"

namespace streambp::primitives {

// y = f(x); y may be x.
template <device D>
void activation_forward(D& on, activation kind, given<D> x, written<D> y) {
  expect_alike("activation_forward", "y", y, x);
  if (const auto with = on.enter("activation_forward")) activation_forward(*with, kind, x, y);
}

// dx += dy ∘ f'(x); dx may be dy.
template <device D>
void activation_backward(D& on, activation kind, given<D> x, given<D> dy, written<D> dx) {
  expect_alike("activation_backward", "dy", dy, x);
  expect_alike("activation_backward", "dx", dx, x);
  if (const auto with = on.enter("activation_backward"))
    activation_backward(*with, kind, x, dy, dx);
}

// h = f(gate) ∘ up; h may be either.
template <device D>
void gated_forward(D& on, activation kind, given<D> gate, given<D> up, written<D> h) {
  expect_alike("gated_forward", "gate", gate, h);
  expect_alike("gated_forward", "up", up, h);
  if (const auto with = on.enter("gated_forward")) gated_forward(*with, kind, gate, up, h);
}

// dgate = dh ∘ f'(gate) ∘ up and dup = dh ∘ f(gate), in place of gate and up.
template <device D>
void gated_backward(D& on, activation kind, written<D> gate, written<D> up, given<D> dh) {
  expect_alike("gated_backward", "up", up, gate);
  expect_alike("gated_backward", "dh", dh, gate);
  if (const auto with = on.enter("gated_backward")) gated_backward(*with, kind, gate, up, dh);
}

}  // namespace streambp::primitives
