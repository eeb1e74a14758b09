// The order of a recurrence that is computed token by token: step i takes row i of every piece of
// the chunk, four of them at a time, each thread some of the units.
#pragma once

#include <algorithm>

#include "row_dots.hpp"
#include "rows.hpp"

namespace streambp::cpu {
inline namespace STREAMBP_ISA {

// Rows of different pieces at the same step.
struct rows_abreast {
  static constexpr int most = 4;
  piece of[most];
  position row[most];
  int count = 0;

  bool begins(int r) const { return row[r] == of[r].row; }
  bool ends(int r) const { return row[r] + 1 == of[r].last(); }
};

namespace kernel {

// A piece that starts from its parent's state comes after all that do not: the parent may end here.
inline bool waits(const piece_list& pieces, const piece& p) {
  return p.start == 0 && pieces.samples().parent(p.segment) >= 0;
}

inline position longest(const piece_list& pieces, bool waiting) {
  position rows = 0;
  for (const piece p : pieces)
    if (waits(pieces, p) == waiting) rows = std::max(rows, p.rows);
  return rows;
}

}  // namespace kernel

// Calls f(rows_abreast, first_unit, units), on one thread for each range of units at a step; all of
// a step before the next.
template <class S, class F>
void steps_ascending(workers<S>& on, const piece_list& pieces, position units, const F& f) {
  for (const bool waiting : {false, true})
    for (position i = 0; i < kernel::longest(pieces, waiting); ++i)
      for_column_ranges(on, units, [&](position first, position count) {
        rows_abreast now;
        for (const piece p : pieces) {
          if (i >= p.rows || kernel::waits(pieces, p) != waiting) continue;
          now.of[now.count] = p;
          now.row[now.count++] = p.row + i;
          if (now.count == now.most) f(now, first, count), now.count = 0;
        }
        if (now.count > 0) f(now, first, count);
      });
}

// The same, last step first; at last step -1, whose rows stand before their pieces.
template <class S, class F>
void steps_descending(workers<S>& on, const piece_list& pieces, position units, const F& f) {
  for (const bool waiting : {true, false}) {
    const position steps = kernel::longest(pieces, waiting);
    for (position i = steps; steps > 0 && i-- > -1;)
      for_column_ranges(on, units, [&](position first, position count) {
        rows_abreast now;
        pieces.descending([&](const piece& p) {
          if (i >= p.rows || kernel::waits(pieces, p) != waiting) return;
          now.of[now.count] = p;
          now.row[now.count++] = p.row + i;
          if (now.count == now.most) f(now, first, count), now.count = 0;
        });
        if (now.count > 0) f(now, first, count);
      });
  }
}

template <class S, class States>
void rows_before(workers<S>& on, const piece_list& pieces, const States& states, given<S> y,
                 view<S> into) {
  for_rows(on, pieces, into.cols, [&](const piece& p, position row) {
    const S* from = row > p.row ? y.row(row - 1) : states.before(p);
    if (from)
      std::copy_n(from, into.cols, into.row(row));
    else
      std::fill_n(into.row(row), into.cols, S(0));
  });
}

}  // namespace STREAMBP_ISA
}  // namespace streambp::cpu
