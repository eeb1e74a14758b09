// Loops over rows that a layer writes itself, and the rows before rows.
#pragma once

#include "../core/packed.hpp"
#include "carry_rows.hpp"
#include "device.hpp"
#include "expect_shape.hpp"

namespace streambp::primitives {

// Calls f(row) once for each row, about `cols` entries wide, from any thread: it writes its own row
// alone. Only on devices whose rows the host reaches: f is the host's code.
template <device D, class F>
void for_rows(D& on, position rows, position cols, const F& f) {
  static_assert(D::is_host, "streambp: for_rows runs the host's code; say host_only = true");
  if (const auto with = on.enter("for_rows")) for_rows(*with, rows, cols, f);
}
// f(piece, row) for each row of the pieces.
template <device D, class F>
void for_rows(D& on, const piece_list& pieces, position cols, const F& f) {
  static_assert(D::is_host, "streambp: for_rows runs the host's code; say host_only = true");
  if (const auto with = on.enter("for_rows")) for_rows(*with, pieces, cols, f);
}

// into_t = y_{t-1}, and before a piece's first row its state's first entries: y, into (rows, d).
template <device D, class States>
void rows_before(D& on, const piece_list& pieces, const States& states, given<D> y,
                 written<D> into) {
  expect_alike("rows_before", "y", y, into);
  expect_pieces("rows_before", pieces, "y", y);
  expect_states("rows_before", states, {"columns", into.cols});
  if (const auto with = on.enter("rows_before")) rows_before(*with, pieces, states, y, into);
}

}  // namespace streambp::primitives
