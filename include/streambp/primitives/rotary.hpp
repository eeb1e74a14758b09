// Rotary positions (Su et al. 2021): pairs of a head's features turn by position times frequency.
#pragma once

#include <span>

#include "../core/packed.hpp"
#include "device.hpp"
#include "expect_shape.hpp"
#include "rotary_shape.hpp"

namespace streambp::primitives {

// Turns x (rows, heads * width) in place; `inverse` turns back, and so serves the gradient.
// `frequencies`: radians per position of each of the rotated / 2 pairs. A row's position counts
// from its segment's start, after the rows that its piece has before.
template <device D>
void rotate(D& on, const rotary_shape& shape, std::span<const double> frequencies,
            const piece_list& pieces, written<D> x, bool inverse = false) {
  expect_shape("rotate", "x", x, {"rows", pieces.rows().rows()},
               {"heads x width", shape.heads * shape.width});
  if (2 * position(frequencies.size()) != shape.rotated)
    throw shape_error(sentence("rotate: ", frequencies.size(), " frequencies for ", shape.rotated,
                               " features that turn; one for each pair"));
  if (const auto with = on.enter("rotate")) rotate(*with, shape, frequencies, pieces, x, inverse);
}

}  // namespace streambp::primitives
