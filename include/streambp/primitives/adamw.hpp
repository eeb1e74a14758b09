// The step of AdamW (see optim/adamw.hpp), entry by entry.
//   m ← m + (1 − β1) (g − m)       v ← β2 v + (1 − β2) g²,   g = factor · gradient
//   θ ← shrink θ − rate m / (root_factor √v + ε)
#pragma once

#include <span>

#include "device.hpp"

namespace streambp {

struct adamw_step {
  double first, keep_second, second;  // 1 − β1, β2, 1 − β2
  double rate, root_factor, epsilon;  // rate / (1 − β1ᵗ), 1 / sqrt(1 − β2ᵗ)
  double shrink, factor;
};

// A run of entries of one parameter: places in the two buffers.
struct adamw_piece {
  position parameter = 0;
  position gradient = 0;
  position entries = 0;
  bool decays = false;  // otherwise its shrink is 1
};

}  // namespace streambp

namespace streambp::primitives {

// Moments stand at the places of the gradient. Roots are rounded as IEEE asks.
template <device D>
void adamw_update(D& on, const adamw_step& step, std::span<const adamw_piece> pieces,
                  std::span<scalar_of<D>> parameters, std::span<const scalar_of<D>> gradient,
                  std::span<scalar_of<D>> first, std::span<scalar_of<D>> second) {
  if (const auto with = on.enter("adamw_update"))
    adamw_update(*with, step, pieces, parameters, gradient, first, second);
}

// The first entry of the pieces whose product with factor, or its square, is not finite; the
// gradient's size if there is none.
template <device D>
position first_unusable(D& on, std::span<const adamw_piece> pieces,
                        std::span<const scalar_of<D>> gradient, double factor) {
  if (const auto with = on.enter("first_unusable"))
    return first_unusable(*with, pieces, gradient, factor);
  return position(gradient.size());
}

}  // namespace streambp::primitives
