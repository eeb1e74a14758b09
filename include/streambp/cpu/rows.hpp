// Loops that share rows or columns out to the threads, and sums over rows, grain by grain.
#pragma once

#include <algorithm>
#include <span>

#include "../primitives/rows.hpp"
#include "../core/packed.hpp"
#include "../core/view.hpp"
#include "device.hpp"
#include "lanes.hpp"

namespace streambp::cpu {
inline namespace STREAMBP_ISA {

// Calls f(first, last) with ranges of rows of about 16384 entries.
template <class S, class F>
void for_row_ranges(workers<S>& on, position rows, position cols, const F& f) {
  const position some =
      on.row_by_row() ? 1 : std::max<position>(1, 16384 / std::max<position>(1, cols));
  on.parallel(ceil_div(rows, some),
              [&](position task, int) { f(task * some, std::min(rows, (task + 1) * some)); });
}

// Calls f(row) once for each row.
template <class S, class F>
void for_rows(workers<S>& on, position rows, position cols, const F& f) {
  for_row_ranges(on, rows, cols, [&](position first, position last) {
    for (position row = first; row < last; ++row) f(row);
  });
}

// Calls f(piece, row) once for each row of the pieces.
template <class S, class F>
void for_rows(workers<S>& on, const piece_list& pieces, position cols, const F& f) {
  for_row_ranges(on, pieces.rows().rows(), cols, [&](position first, position last) {
    for (const piece p : pieces) {
      if (p.row >= last) break;
      for (position row = std::max(first, p.row); row < std::min(last, p.last()); ++row) f(p, row);
    }
  });
}

// Columns that one task takes.
template <class S>
inline constexpr position column_range = 4 * lanes<S>::count;

// Calls f(first, count) with ranges of columns.
template <class S, class F>
void for_column_ranges(workers<S>& on, position cols, const F& f) {
  on.parallel(ceil_div(cols, column_range<S>), [&](position task, int) {
    const position first = task * column_range<S>;
    f(first, std::min(column_range<S>, cols - first));
  });
}

// y_j += sum over the rows of one grain of term(row, j, n), for the columns j of `groups` lanes.
template <int groups, class S, class Count, class Term>
[[gnu::noinline, gnu::flatten]] void add_grain_sums(row_range grain, position j, Count n,
                                                    const Term& term, S* y) {
  lanes<S> total[groups];
  for (lanes<S>& t : total) t = 0;
  for (position row = grain.first; row < grain.last; ++row)
    for (int g = 0; g < groups; ++g) total[g] = total[g] + term(row, j + g * lanes<S>::count, n);
  for (int g = 0; g < groups; ++g) {
    S* at = y + j + g * lanes<S>::count;
    store(at, n, load<S>(at, n) + total[g]);
  }
}

// y_j += sum over all rows of term(row, j, n), last grain first. `grains` are ascending edges; term
// gets rows counted from the first.
template <class S, class Term>
void add_row_sums(workers<S>& on, std::span<const position> grains, position cols, S* y,
                  const Term& term) {
  for_column_ranges(on, cols, [&](position first, position count) {
    for (std::size_t g = grains.size(); g-- > 1;) {
      const row_range grain{grains[g - 1] - grains[0], grains[g] - grains[0]};
      if (count == column_range<S>)
        add_grain_sums<4>(grain, first, whole<S>{}, term, y);
      else
        along<S>(count,
                 [&](position j, auto n) { add_grain_sums<1>(grain, first + j, n, term, y); });
    }
  });
}

}  // namespace STREAMBP_ISA
}  // namespace streambp::cpu
