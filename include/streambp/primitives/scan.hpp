// A gated recurrence along each segment: h_t = f_t ∘ h_{t-1} + (1 - f_t) ∘ c_t, entry by entry.
#pragma once

#include "carry_rows.hpp"
#include "device.hpp"
#include "expect_shape.hpp"

namespace streambp::primitives {

// f, c, h (rows, d); states are (1, d).
template <device D>
void scan_forward(D& on, const piece_list& pieces, const carry_rows<scalar_of<D>>& states,
                  given<D> f, given<D> c, written<D> h) {
  expect_alike("scan_forward", "f", f, h);
  expect_alike("scan_forward", "c", c, h);
  expect_pieces("scan_forward", pieces, "h", h);
  expect_states("scan_forward", states, {"columns", h.cols});
  if (const auto with = on.enter("scan_forward")) scan_forward(*with, pieces, states, f, c, h);
}

// Assigns df, dc (rows, d). df may be f, dc may be c.
template <device D>
void scan_backward(D& on, const piece_list& pieces, const carry_rows<scalar_of<D>>& states,
                   given<D> f, given<D> c, given<D> h, given<D> dh, written<D> df, written<D> dc) {
  expect_alike("scan_backward", "c", c, f);
  expect_alike("scan_backward", "h", h, f);
  expect_alike("scan_backward", "dh", dh, f);
  expect_alike("scan_backward", "df", df, f);
  expect_alike("scan_backward", "dc", dc, f);
  expect_pieces("scan_backward", pieces, "f", f);
  expect_states("scan_backward", states, {"columns", f.cols});
  if (const auto with = on.enter("scan_backward"))
    scan_backward(*with, pieces, states, f, c, h, dh, df, dc);
}

}  // namespace streambp::primitives
