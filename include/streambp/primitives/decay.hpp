// Decays of a state, as logarithms: one a head for all tokens, or one a head and token.
#pragma once

#include <span>

#include "device.hpp"
#include "expect_shape.hpp"

namespace streambp::primitives {

// la = the same logarithms in every row.
template <device D>
void constant_decays(D& on, std::span<const double> logarithms, written<D> la) {
  expect_count("constant_decays", "logarithms", logarithms.size(), {"heads", la.cols});
  if (const auto with = on.enter("constant_decays")) constant_decays(*with, logarithms, la);
}

// la = ln σ(z) / root: a = σ(z)^(1/root).
template <device D>
void sigmoid_decays(D& on, double root, given<D> z, written<D> la) {
  expect_alike("sigmoid_decays", "z", z, la);
  if (const auto with = on.enter("sigmoid_decays")) sigmoid_decays(*with, root, z, la);
}

// dz = dla σ(-z) / root; dz may be dla.
template <device D>
void sigmoid_decays_backward(D& on, double root, given<D> z, given<D> dla, written<D> dz) {
  expect_alike("sigmoid_decays_backward", "z", z, dz);
  expect_alike("sigmoid_decays_backward", "dla", dla, dz);
  if (const auto with = on.enter("sigmoid_decays_backward"))
    sigmoid_decays_backward(*with, root, z, dla, dz);
}

}  // namespace streambp::primitives
