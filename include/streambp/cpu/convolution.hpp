// A causal convolution of each feature by itself: y_t = b + Σ_i w_i ∘ x_{t-i}, i < taps.
#pragma once

#include <algorithm>
#include <span>

#include "../primitives/convolution.hpp"
#include "elementwise.hpp"

namespace streambp::cpu {
inline namespace STREAMBP_ISA {

// The rows that a piece looks back at: its own, and ahead of them those of its state, oldest first.
template <class S>
struct rows_behind {
  view<const S> x;  // the chunk's
  const S* state;   // null: zeros
  position width;   // of a row of the state
  position first;   // row of the piece
  position taps;
  const S* zeros;

  // Requires row > first - taps.
  const S* operator()(position row) const {
    if (row >= first) return x.row(row);
    return state ? state + (row - first + taps - 1) * width : zeros;
  }
};

template <class S>
[[gnu::noinline, gnu::flatten]] void convolve_row(const rows_behind<S>& x, position row,
                                                  view<const S> w, const S* b, position d, S* y) {
  along<S>(d, [&](position j, auto n) {
    lanes<S> total = load(b + j, n);
    for (position i = 0; i < w.rows; ++i)
      total = fma(load(w.row(i) + j, n), load(x(row - i) + j, n), total);
    store(y + j, n, total);
  });
}

// total += Σ w_i ∘ dy_{row+i}, the last row first, over the rows that lie in [first, last). A chain
// of fma, so a chunk's edge only moves what is summed so far through memory.
template <class S>
[[gnu::noinline, gnu::flatten]] void correlate_row(view<const S> dy, row_range rows, position row,
                                                   view<const S> w, position d, S* total) {
  along<S>(d, [&](position j, auto n) {
    lanes<S> sum = load(total + j, n);
    for (position i = std::min(w.rows, rows.last - row) - 1;
         i >= std::max<position>(0, rows.first - row); --i)
      sum = fma(load(w.row(i) + j, n), load(dy.row(row + i) + j, n), sum);
    store(total + j, n, sum);
  });
}

// total += Σ dy_row ∘ x_{row-lag} over the rows.
template <class S>
[[gnu::noinline, gnu::flatten]] void add_lagged_products(const rows_behind<S>& x, view<const S> dy,
                                                         row_range rows, position lag, position d,
                                                         S* total) {
  along<S>(d, [&](position j, auto n) {
    lanes<S> sum = load(total + j, n);
    for (position row = rows.first; row < rows.last; ++row)
      sum = fma(load(dy.row(row) + j, n), load(x(row - lag) + j, n), sum);
    store(total + j, n, sum);
  });
}

template <class S>
void convolution_forward(workers<S>& on, const piece_list& pieces, const carry_rows<S>& states,
                         given<S> x, given<S> w, given<S> b, view<S> y) {
  const position taps = w.rows;
  for_column_ranges(on, w.cols, [&](position j, position count) {
    const S zeros[column_range<S>] = {};
    const S* bias = b.data ? b.data + j : zeros;
    for (const piece p : pieces) {
      const S* start = states.before(p);
      const rows_behind<S> behind{
          x.middle_cols(j, count), start ? start + j : nullptr, w.cols, p.row, taps, zeros};
      for (position row = p.row; y.rows > 0 && row < p.last(); ++row)
        convolve_row<S>(behind, row, w.middle_cols(j, count), bias, count, y.row(row) + j);
      for (S* after : {states.kept(p), states.handed_on(p)})
        for (position i = 1; after && i < taps; ++i)
          std::copy_n(behind(p.last() - taps + i), count, after + (i - 1) * w.cols + j);
    }
  });
}

template <class S>
void convolution_backward(workers<S>& on, const piece_list& pieces, const carry_rows<S>& states,
                          given<S> w, given<S> dy, view<S> dx, write how) {
  const position taps = w.rows;
  for_column_ranges(on, dx.cols, [&](position j, position count) {
    S total[column_range<S>];
    // The gradient of a row of the piece, or of one of the taps - 1 before it.
    const auto correlate = [&](const piece& p, position row) {
      const position in_state = row - (p.last() - taps + 1);
      const S* after = states.d_after(p);
      if (after && in_state >= 0)
        std::copy_n(after + in_state * dx.cols + j, count, total);
      else
        std::fill_n(total, count, S(0));
      correlate_row<S>(dy.middle_cols(j, count), {p.row, p.last()}, row, w.middle_cols(j, count),
                       count, total);
    };
    const auto add_to = [&](S* to) { sum_row<S>(to, total, count, to); };
    pieces.descending([&](const piece& p) {
      for (position row = p.row; row < p.last(); ++row) {
        correlate(p, row);
        if (how == write::assign)
          std::copy_n(total, count, dx.row(row) + j);
        else
          add_to(dx.row(row) + j);
      }
      S* before = states.d_before(p);
      for (position i = 1; before && i < taps; ++i) {
        correlate(p, p.row - taps + i);
        add_to(before + (i - 1) * dx.cols + j);
      }
    });
  });
}

template <class S>
void add_tap_gradients(workers<S>& on, const piece_list& pieces, const carry_rows<S>& states,
                       given<S> x, given<S> dy, view<S> dw, std::span<const position> grains) {
  const packed& samples = pieces.samples();
  const position chunk = pieces.rows().first;
  for_column_ranges(on, dw.cols, [&](position j, position count) {
    const S zeros[column_range<S>] = {};
    for (position lag = 0; lag < dw.rows; ++lag)
      for (std::size_t g = grains.size(); g-- > 1;) {
        S total[column_range<S>] = {};
        for (piece p : piece_list(samples, {grains[g - 1], grains[g]})) {
          const row_range own{grains[g - 1] - chunk + p.row, grains[g - 1] - chunk + p.last()};
          // The piece that the whole chunk has of this segment.
          const position first = std::max<position>(samples.segment(p.segment).first - chunk, 0);
          p.start -= own.first - first;
          const S* start = states.before(p);
          add_lagged_products<S>({x.middle_cols(j, count), start ? start + j : nullptr, dw.cols,
                                  first, dw.rows, zeros},
                                 dy.middle_cols(j, count), own, lag, count, total);
        }
        sum_row<S>(dw.row(lag) + j, total, count, dw.row(lag) + j);
      }
  });
}

}  // namespace STREAMBP_ISA
}  // namespace streambp::cpu
