// A gated recurrent unit along each segment. g = [r z n] comes in with x's part and the biases, a
// with the bias of the state's part of n:
//   g_r, g_z += W h_{t-1},  a += W_n h_{t-1},  n = tanh(g_n + σ(r) ∘ a),  h_t = n + σ(z) ∘ (h_{t-1}
//   - n)
#pragma once

#include <algorithm>

#include "../primitives/gru.hpp"
#include "activation.hpp"
#include "elementwise.hpp"
#include "passed_down.hpp"
#include "side_by_side.hpp"

namespace streambp::cpu {
inline namespace STREAMBP_ISA {

// g (3, d) with `units` from gate to gate becomes the gates.
template <class S>
[[gnu::noinline, gnu::flatten]] void gru_row(S* g, position units, const S* a, const S* before,
                                             position d, S* h) {
  along<S>(d, [&](position j, auto m) {
    S *gr = g + j, *gz = gr + units, *gn = gz + units;
    const lanes<S> r = logistic(load<S>(gr, m)), z = logistic(load<S>(gz, m)),
                   n = tanh(fma(r, load(a + j, m), load<S>(gn, m)));
    store(gr, m, r);
    store(gz, m, z);
    store(gn, m, n);
    store(h + j, m, fma(z, load(before + j, m) - n, n));
  });
}

// Gates and a become the gradients of what came in; `passed` holds what later rows pass down, and
// then this row's z ∘ dh, through memory as it is between chunks.
template <class S>
[[gnu::noinline, gnu::flatten]] void gru_row_backward(S* g, position units, S* a, const S* before,
                                                      const S* dy, position d, S* passed) {
  along<S>(d, [&](position j, auto m) {
    S *gr = g + j, *gz = gr + units, *gn = gz + units;
    const lanes<S> r = load<S>(gr, m), z = load<S>(gz, m), n = load<S>(gn, m);
    const lanes<S> dh = load(dy + j, m) + load<S>(passed + j, m);
    const lanes<S> dn = dh * (1 - z) * fma(-n, n, 1);
    store(gr, m, dn * load<S>(a + j, m) * (r * (1 - r)));
    store(gz, m, dh * (load(before + j, m) - n) * (z * (1 - z)));
    store(gn, m, dn);
    store(a + j, m, dn * r);
    store(passed + j, m, dh * z);
  });
}

template <class S>
void gru_forward(workers<S>& on, const piece_list& pieces, const carry_rows<S>& states, given<S> w,
                 view<S> g, view<S> a, view<S> h) {
  const position units = w.cols;
  steps_ascending(on, pieces, units, [&](const rows_abreast& now, position j, position count) {
    const S zeros[column_range<S>] = {};
    const S *before[rows_abreast::most], *known[rows_abreast::most];
    S* sums[3][rows_abreast::most];
    int some = 0;  // rows with a state before them
    for (int r = 0; r < now.count; ++r) {
      const position row = now.row[r];
      before[r] = now.begins(r) ? states.before(now.of[r]) : h.row(row - 1);
      if (!before[r]) continue;
      sums[0][some] = g.row(row) + j;
      sums[1][some] = g.row(row) + units + j;
      sums[2][some] = a.row(row) + j;
      known[some++] = before[r];
    }
    for (int gate = 0; gate < 3; ++gate)
      with_count(some, [&](auto m) {
        add_row_dots<m>(w.middle_rows(gate * units + j, count), known, sums[gate]);
      });
    for (int r = 0; r < now.count; ++r) {
      const position row = now.row[r];
      gru_row<S>(g.row(row) + j, units, a.row(row) + j, before[r] ? before[r] + j : zeros, count,
                 h.row(row) + j);
      if (!now.ends(r)) continue;
      for (S* after : {states.kept(now.of[r]), states.handed_on(now.of[r])})
        if (after) std::copy_n(h.row(row) + j, count, after + j);
    }
  });
}

template <class S>
void gru_backward(workers<S>& on, const piece_list& pieces, const carry_rows<S>& states, given<S> w,
                  view<S> g, view<S> a, given<S> h, given<S> dy, view<S> dh) {
  const position units = w.cols;
  steps_descending(on, pieces, units, [&](const rows_abreast& now, position j, position count) {
    const S zeros[column_range<S>] = {};
    passed_down<S> passed(now, dh, j, count, [&](int r) -> const S* {
      return now.ends(r) ? states.d_after(now.of[r]) : dh.row(now.row[r] + 1);
    });
    passed.add_mixed(w.middle_rows(0, 2 * units).middle_cols(j, count), g);
    passed.add_mixed(w.middle_rows(2 * units, units).middle_cols(j, count), a);
    for (int r = 0; r < now.count; ++r) {
      const piece& p = now.of[r];
      const position row = now.row[r];
      if (row < p.row) {
        S* before = states.d_before(p);
        if (before) sum_row<S>(before + j, passed.to[r], count, before + j);
      } else {
        const S* before = now.begins(r) ? states.before(p) : h.row(row - 1);
        gru_row_backward<S>(g.row(row) + j, units, a.row(row) + j, before ? before + j : zeros,
                            dy.row(row) + j, count, passed.to[r]);
      }
    }
  });
}

}  // namespace STREAMBP_ISA
}  // namespace streambp::cpu
