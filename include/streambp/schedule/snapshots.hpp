// Which states of a carry are kept: one before each chunk, or, in two levels, one before each
// interval of chunks and those of a single interval.
#pragma once

#include "../core/position.hpp"

namespace streambp {

// With an interval near sqrt(chunks) about 2 sqrt(chunks) states are kept; an interval's states are
// then computed again when the descending sweep reaches it.
struct snapshots {
  position chunks = 0;
  position interval = 1;

  constexpr position coarse() const { return ceil_div(chunks, interval) + 1; }
  constexpr position rows() const { return coarse() + interval - 1; }
  // The row of the state before chunk c.
  constexpr position row(position c) const {
    return c % interval == 0 ? c / interval : coarse() + c % interval - 1;
  }
  constexpr bool two_levels() const { return interval > 1; }
  constexpr bool begins_interval(position c) const { return c % interval == 0; }
};

}  // namespace streambp
