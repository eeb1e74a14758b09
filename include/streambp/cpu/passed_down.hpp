// What a recurrence's later rows pass down to earlier ones, in a backward that goes step by step.
#pragma once

#include <algorithm>

#include "side_by_side.hpp"

namespace streambp::cpu {
inline namespace STREAMBP_ISA {

// Gradients of the states that rows abreast leave, `units` of each from `first` on. A row whose
// next one is in the chunk is `behind`: what the next one's gates pass through the state's weights
// is to be added.
template <class S>
struct passed_down {
  S* to[rows_abreast::most];          // where they stand: at the row of dh (rows, units)
  position next[rows_abreast::most];  // of a row behind: the row after it
  S* behind[rows_abreast::most];      // and where it stands
  int count = 0;                      // of rows behind

  // Begun with from(r), the whole state's of row r of `now`, or with zeros where that is null.
  template <class From>
  passed_down(const rows_abreast& now, view<S> dh, position first, position units,
              const From& from) {
    for (int r = 0; r < now.count; ++r) {
      const position row = now.row[r];
      to[r] = row < now.of[r].row ? before_pieces_[r] : dh.row(row) + first;
      const S* start = from(r);
      if (start)
        std::copy_n(start + first, units, to[r]);
      else
        std::fill_n(to[r], units, S(0));
      if (now.ends(r)) continue;
      next[count] = row + 1;
      behind[count++] = to[r];
    }
  }

  // Adds x w of the next row to each row behind: x (rows, gates), w (gates, units).
  void add_mixed(view<const S> w, view<const S> x) {
    const S* rows[rows_abreast::most];
    for (int i = 0; i < count; ++i) rows[i] = x.row(next[i]);
    with_count(count, [&](auto m) { add_row_mix<m>(w, rows, behind); });
  }

 private:
  S before_pieces_[rows_abreast::most][column_range<S>];
};

}  // namespace STREAMBP_ISA
}  // namespace streambp::cpu
