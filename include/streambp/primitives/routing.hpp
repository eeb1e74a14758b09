// Which experts a row goes to: softmax of a router's logits, the largest entries, and the gradient.
#pragma once

#include <algorithm>
#include <span>

#include "device.hpp"
#include "expect_shape.hpp"

namespace streambp {

// Weights of the two parts of a router's loss, tokens, experts a token.
struct routing_loss_of {
  double balance, z_loss, tokens, top;
};

}  // namespace streambp

namespace streambp::primitives {

// p = softmax of the logits, in their place; lse (rows, 1); chosen and weights (rows, top).
template <device D>
void route(D& on, written<D> logits, bool normalised, written<D> lse, written<D> chosen,
           written<D> weights) {
  expect_shape("route", "lse", lse, {"rows", logits.rows}, {"one", 1});
  expect_shape("route", "chosen", chosen, {"rows", logits.rows},
               {"at most the experts", std::min(chosen.cols, logits.cols)});
  expect_alike("route", "weights", weights, chosen);
  if (const auto with = on.enter("route")) route(*with, logits, normalised, lse, chosen, weights);
}

// Adds to sums (1, 2 experts + 1), grain by grain, first grain first: Σ p, how often each expert
// was chosen, Σ lse².
template <device D>
void add_routing_sums(D& on, given<D> p, given<D> lse, given<D> chosen,
                      std::span<const position> grains, written<D> sums) {
  expect_shape("add_routing_sums", "lse", lse, {"rows", p.rows}, {"one", 1});
  expect_shape("add_routing_sums", "chosen", chosen, {"rows", p.rows},
               {"experts a row", chosen.cols});
  expect_grains("add_routing_sums", grains, p.rows);
  expect_shape("add_routing_sums", "sums", sums, {"one", 1}, {"2 experts + 1", 2 * p.cols + 1});
  if (const auto with = on.enter("add_routing_sums"))
    add_routing_sums(*with, p, lse, chosen, grains, sums);
}

// The gradient of the logits, in place of p, from dw = dL/dweights, which is used up, and from
// side (1, experts + 1): the slopes of the side losses in each Σ p and in Σ lse².
template <device D>
void route_backward(D& on, written<D> p, given<D> lse, given<D> chosen, given<D> weights,
                    written<D> dw, bool normalised, given<D> side) {
  expect_shape("route_backward", "lse", lse, {"rows", p.rows}, {"one", 1});
  expect_shape("route_backward", "chosen", chosen, {"rows", p.rows},
               {"experts a row", chosen.cols});
  expect_alike("route_backward", "weights", weights, chosen);
  expect_alike("route_backward", "dw", dw, chosen);
  expect_at_least("route_backward", "side", side, {"one", 1}, {"experts + 1", p.cols + 1});
  if (const auto with = on.enter("route_backward"))
    route_backward(*with, p, lse, chosen, weights, dw, normalised, side);
}

// balance · E Σ_e (times_e / (T top)) (mass_e / T) + z_loss Σ lse² / T, and its gradient in the
// sums (add_routing_sums), assigned; the choices have none. sums, slopes (1, 2 E + 1).
template <device D>
double routing_loss(D& on, const routing_loss_of& of, given<D> sums, written<D> slopes) {
  expect_alike("routing_loss", "slopes", slopes, sums);
  if (const auto with = on.enter("routing_loss")) return routing_loss(*with, of, sums, slopes);
  return 0;
}

}  // namespace streambp::primitives
