// Long short-term memory along each segment. z = [i f g o] comes in with everything but the state's
// part:
//   z_t += W h_{t-1},  c_t = σ(f) ∘ c_{t-1} + σ(i) ∘ tanh(g),  h_t = σ(o) ∘ tanh(c_t)
#pragma once

#include <algorithm>

#include "../primitives/lstm.hpp"
#include "activation.hpp"
#include "elementwise.hpp"
#include "passed_down.hpp"
#include "side_by_side.hpp"

namespace streambp::cpu {
inline namespace STREAMBP_ISA {

// z (4, d) with `units` from gate to gate becomes the gates.
template <class S>
[[gnu::noinline, gnu::flatten]] void lstm_row(S* z, position units, const S* c_before, position d,
                                              S* c, S* h) {
  along<S>(d, [&](position j, auto n) {
    S *zi = z + j, *zf = zi + units, *zg = zf + units, *zo = zg + units;
    const lanes<S> i = logistic(load<S>(zi, n)), f = logistic(load<S>(zf, n)),
                   g = tanh(load<S>(zg, n)), o = logistic(load<S>(zo, n));
    const lanes<S> cj = fma(f, load(c_before + j, n), i * g);
    store(zi, n, i);
    store(zf, n, f);
    store(zg, n, g);
    store(zo, n, o);
    store(c + j, n, cj);
    store(h + j, n, o * tanh(cj));
  });
}

// dh = dy + what later rows pass down, dc' = dc_after + dh ∘ o ∘ (1 - tanh² c); gates become the
// gradients of z, and dc = f ∘ dc' is passed on through memory, as it is between chunks.
template <class S>
[[gnu::noinline, gnu::flatten]] void lstm_row_backward(S* z, position units, const S* c_before,
                                                       const S* c, const S* dy, const S* passed,
                                                       const S* dc_after, position d, S* dc) {
  along<S>(d, [&](position j, auto n) {
    S *zi = z + j, *zf = zi + units, *zg = zf + units, *zo = zg + units;
    const lanes<S> i = load<S>(zi, n), f = load<S>(zf, n), g = load<S>(zg, n), o = load<S>(zo, n);
    const lanes<S> t = tanh(load(c + j, n)), dh = load(dy + j, n) + load(passed + j, n);
    const lanes<S> dcj = fma(dh * o, fma(-t, t, 1), load(dc_after + j, n));
    store(zi, n, dcj * g * (i * (1 - i)));
    store(zf, n, dcj * load(c_before + j, n) * (f * (1 - f)));
    store(zg, n, dcj * i * fma(-g, g, 1));
    store(zo, n, dh * t * (o * (1 - o)));
    store(dc + j, n, dcj * f);
  });
}

template <class S>
void lstm_forward(workers<S>& on, const piece_list& pieces, const carry_rows<S>& states, given<S> w,
                  view<S> z, view<S> c, view<S> h) {
  const position units = w.cols;
  steps_ascending(on, pieces, units, [&](const rows_abreast& now, position j, position count) {
    const S zeros[column_range<S>] = {};
    const S *h_before[rows_abreast::most], *c_before[rows_abreast::most];
    S* gates[rows_abreast::most];
    int some = 0;  // rows with a state before them
    for (int r = 0; r < now.count; ++r) {
      const position row = now.row[r];
      const S* state = now.begins(r) ? states.before(now.of[r]) : nullptr;
      c_before[r] = !now.begins(r) ? c.row(row - 1) + j : state ? state + units + j : zeros;
      const S* before = now.begins(r) ? state : h.row(row - 1);
      if (!before) continue;
      h_before[some] = before;
      gates[some++] = z.row(row) + j;
    }
    for (int gate = 0; gate < 4; ++gate) {
      with_count(some, [&](auto m) {
        add_row_dots<m>(w.middle_rows(gate * units + j, count), h_before, gates);
      });
      for (int r = 0; r < some; ++r) gates[r] += units;
    }
    for (int r = 0; r < now.count; ++r) {
      const position row = now.row[r];
      lstm_row(z.row(row) + j, units, c_before[r], count, c.row(row) + j, h.row(row) + j);
      if (!now.ends(r)) continue;
      for (S* after : {states.kept(now.of[r]), states.handed_on(now.of[r])}) {
        if (!after) continue;
        std::copy_n(h.row(row) + j, count, after + j);
        std::copy_n(c.row(row) + j, count, after + units + j);
      }
    }
  });
}

template <class S>
void lstm_backward(workers<S>& on, const piece_list& pieces, const carry_rows<S>& states,
                   given<S> w, view<S> z, given<S> c, given<S> dy, view<S> dh, view<S> dc) {
  const position units = w.cols;
  steps_descending(on, pieces, units, [&](const rows_abreast& now, position j, position count) {
    const S zeros[column_range<S>] = {};
    passed_down<S> passed(now, dh, j, count, [&](int r) -> const S* {
      return now.ends(r) ? states.d_after(now.of[r]) : nullptr;
    });
    passed.add_mixed(w.middle_cols(j, count), z);
    for (int r = 0; r < now.count; ++r) {
      const piece& p = now.of[r];
      const position row = now.row[r];
      if (row < p.row) {
        S* before = states.d_before(p);
        if (!before) continue;
        const S* parts[] = {passed.to[r], dc.row(row + 1) + j};
        for (int part = 0; part < 2; ++part) {
          S* to = before + part * units + j;
          sum_row<S>(to, parts[part], count, to);
        }
      } else {
        const S* after = now.ends(r) ? states.d_after(p) : dc.row(row + 1) - units;
        const S* state = states.before(p);
        const S* c_before = !now.begins(r) ? c.row(row - 1) + j : state ? state + units + j : zeros;
        lstm_row_backward<S>(z.row(row) + j, units, c_before, c.row(row) + j, dy.row(row) + j,
                             passed.to[r], after ? after + units + j : zeros, count,
                             dc.row(row) + j);
      }
    }
  });
}

}  // namespace STREAMBP_ISA
}  // namespace streambp::cpu
