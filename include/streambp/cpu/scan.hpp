// A gated recurrence along each segment: h_t = f_t ∘ h_{t-1} + (1 - f_t) ∘ c_t, entry by entry.
#pragma once

#include <algorithm>
#include <type_traits>

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

// f, c, h (rows, d). The state before a segment's first row is `initial` (1, d), or 0 if without
// data; before the chunk's first row, if its segment began earlier, state_in (1, d). Writes the
// state after the chunk's last row to state_out (1, d), unless without data.
template <class S>
void scan_forward(device<S>& on, const piece_list& pieces, std::type_identity_t<view<const S>> f,
                  std::type_identity_t<view<const S>> c,
                  std::type_identity_t<view<const S>> initial,
                  std::type_identity_t<view<const S>> state_in, view<S> h,
                  std::type_identity_t<view<S>> state_out) {
  if (on.counts_only()) return;
  for_column_ranges(on, h.cols, [&](position j, position count) {
    const S zeros[column_range<S>] = {};
    for (const piece p : pieces) {
      const S* before = p.start > 0 ? state_in.data + j : initial.data ? initial.data + j : zeros;
      for (position row = p.row; row < p.last(); ++row) {
        scan_row(f.row(row) + j, c.row(row) + j, before, count, h.row(row) + j);
        before = h.row(row) + j;
      }
    }
    if (state_out.data && h.rows > 0) std::copy_n(h.row(h.rows - 1) + j, count, state_out.data + j);
  });
}

// Assigns df, dc (rows, d) and, unless without data, dstate_in (1, d): the gradient of the state
// before the chunk's first row. Takes dstate_out (1, d), the gradient of the state after the last
// row, if its segment goes on after the chunk. Adds to dinitial (1, d), unless without data, at
// each segment's start. df may be f, dc may be c.
template <class S>
void scan_backward(device<S>& on, const piece_list& pieces, std::type_identity_t<view<const S>> f,
                   std::type_identity_t<view<const S>> c,
                   std::type_identity_t<view<const S>> initial,
                   std::type_identity_t<view<const S>> state_in,
                   std::type_identity_t<view<const S>> h, std::type_identity_t<view<const S>> dh,
                   std::type_identity_t<view<const S>> dstate_out, view<S> df, view<S> dc,
                   std::type_identity_t<view<S>> dstate_in,
                   std::type_identity_t<view<S>> dinitial) {
  if (on.counts_only()) return;
  const packed& samples = pieces.samples();
  const row_range chunk = pieces.rows();
  for_column_ranges(on, f.cols, [&](position j, position count) {
    const S zeros[column_range<S>] = {};
    S passed[column_range<S>] = {};
    if (chunk.rows() > 0 && samples.segment(samples.segment_at(chunk.last - 1)).last > chunk.last)
      std::copy_n(dstate_out.data + j, count, passed);
    for (position end = chunk.last; end > chunk.first;) {
      const position start = samples.segment(samples.segment_at(end - 1)).first;
      const position first = std::max(start, chunk.first);
      for (position row = end; row-- > first;) {
        const position i = row - chunk.first;
        const S* before = row != start   ? (i == 0 ? state_in.data : h.row(i - 1)) + j
                          : initial.data ? initial.data + j
                                         : zeros;
        scan_row_backward(f.row(i) + j, c.row(i) + j, before, dh.row(i) + j, count, passed,
                          df.row(i) + j, dc.row(i) + j);
      }
      if (first == start) {
        if (dinitial.data) sum_row(dinitial.data + j, passed, count, dinitial.data + j);
        std::fill_n(passed, count, S(0));
      }
      end = first;
    }
    if (dstate_in.data) std::copy_n(passed, count, dstate_in.data + j);
  });
}

}  // namespace STREAMBP_ISA
}  // namespace streambp::cpu
