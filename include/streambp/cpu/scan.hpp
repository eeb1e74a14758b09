// A gated recurrence along each segment: h_t = f_t ∘ h_{t-1} + (1 - f_t) ∘ c_t, entry by entry.
#pragma once

#include <algorithm>

#include "../primitives/scan.hpp"
#include "elementwise.hpp"

namespace streambp::cpu {
inline namespace STREAMBP_ISA {

template <class S>
[[gnu::noinline, gnu::flatten]] void scan_row(const S* f, const S* c, const S* before, position d,
                                              S* h) {
  along<S>(d, [&](position j, auto n) {
    const lanes<S> fj = load(f + j, n);
    store(h + j, n, fma(fj, load(before + j, n), (1 - fj) * load(c + j, n)));
  });
}

// g = dh + what later rows pass down;  df = g ∘ (before - c);  dc = g ∘ (1 - f);  passes f ∘ g
// down. That product goes through memory in each row, as it does between chunks, so that it is
// rounded.
template <class S>
[[gnu::noinline, gnu::flatten]] void scan_row_backward(const S* f, const S* c, const S* before,
                                                       const S* dh, position d, S* passed, S* df,
                                                       S* dc) {
  along<S>(d, [&](position j, auto n) {
    const lanes<S> fj = load(f + j, n);
    const lanes<S> g = load(dh + j, n) + load<S>(passed + j, n);
    const lanes<S> across = load(before + j, n) - load(c + j, n);
    store(passed + j, n, fj * g);
    store(df + j, n, g * across);
    store(dc + j, n, g * (1 - fj));
  });
}

template <class S>
void scan_forward(workers<S>& on, const piece_list& pieces, const carry_rows<S>& states, given<S> f,
                  given<S> c, view<S> h) {
  for_column_ranges(on, h.cols, [&](position j, position count) {
    const S zeros[column_range<S>] = {};
    for (const piece p : pieces) {
      const S* start = states.before(p);
      const S* before = start ? start + j : zeros;
      for (position row = p.row; row < p.last(); ++row) {
        scan_row(f.row(row) + j, c.row(row) + j, before, count, h.row(row) + j);
        before = h.row(row) + j;
      }
      for (S* after : {states.kept(p), states.handed_on(p)})
        if (after) std::copy_n(before, count, after + j);
    }
  });
}

template <class S>
void scan_backward(workers<S>& on, const piece_list& pieces, const carry_rows<S>& states,
                   given<S> f, given<S> c, given<S> h, given<S> dh, view<S> df, view<S> dc) {
  for_column_ranges(on, f.cols, [&](position j, position count) {
    const S zeros[column_range<S>] = {};
    S passed[column_range<S>];
    pieces.descending([&](const piece& p) {
      const S* after = states.d_after(p);
      std::copy_n(after ? after + j : zeros, count, passed);
      const S* start = states.before(p);
      for (position row = p.last(); row-- > p.row;) {
        const S* before = row > p.row ? h.row(row - 1) + j : start ? start + j : zeros;
        scan_row_backward(f.row(row) + j, c.row(row) + j, before, dh.row(row) + j, count, passed,
                          df.row(row) + j, dc.row(row) + j);
      }
      if (S* before = states.d_before(p)) sum_row(before + j, passed, count, before + j);
    });
  });
}

}  // namespace STREAMBP_ISA
}  // namespace streambp::cpu
