// Entry-wise functions given as code: y = f(x), and its gradient from a dual number a lane.
#pragma once

#include "device.hpp"
#include "expect_shape.hpp"

namespace streambp::primitives {

// y = f(x); y may be x.
template <device D, class F>
void map_entries(D& on, const F& f, given<D> x, written<D> y) {
  expect_alike("map_entries", "y", y, x);
  if (const auto with = on.enter("map_entries")) map_entries(*with, f, x, y);
}

// dx += dy ∘ f'(x); dx may be dy.
template <device D, class F>
void differentiate_entries(D& on, const F& f, given<D> x, given<D> dy, written<D> dx) {
  expect_alike("differentiate_entries", "dy", dy, x);
  expect_alike("differentiate_entries", "dx", dx, x);
  if (const auto with = on.enter("differentiate_entries"))
    differentiate_entries(*with, f, x, dy, dx);
}

}  // namespace streambp::primitives
