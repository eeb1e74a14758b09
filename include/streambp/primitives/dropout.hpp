// Dropout whose draws are a function of place, so that a backward or a recomputation finds them
// again.
#pragma once

#include <cstdint>
#include <span>

#include "../core/packed.hpp"
#include "../core/random.hpp"
#include "device.hpp"
#include "expect_shape.hpp"

namespace streambp {

// What the entries that dropout keeps are a function of.
struct dropout_draw {
  double rate;                             // of entries dropped, in [0, 1]
  random_key key;                          // its sample is taken from `samples`
  std::span<const std::uint64_t> samples;  // id of each segment; empty: its number
};

}  // namespace streambp

namespace streambp::primitives {

// y = x / (1 - rate) where kept, 0 where dropped. y may be x.
template <device D>
void dropout(D& on, const dropout_draw& draw, const piece_list& pieces, given<D> x, written<D> y) {
  expect_alike("dropout", "y", y, x);
  expect_pieces("dropout", pieces, "x", x);
  if (const auto with = on.enter("dropout")) dropout(*with, draw, pieces, x, y);
}

// y += the same; so dx += the gradient of y = dropout(x), from dy.
template <device D>
void add_dropout(D& on, const dropout_draw& draw, const piece_list& pieces, given<D> x,
                 written<D> y) {
  expect_alike("dropout", "y", y, x);
  expect_pieces("dropout", pieces, "x", x);
  if (const auto with = on.enter("add_dropout")) add_dropout(*with, draw, pieces, x, y);
}

}  // namespace streambp::primitives
