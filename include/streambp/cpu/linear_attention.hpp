// Attention without softmax, by a state a head: S_t = a_t S_{t-1} + k_t v_tᵀ, o_t = scale S_tᵀ q_t,
// tile by tile along each segment; threads share the heads.
#pragma once

#include <algorithm>

#include "../primitives/linear_attention.hpp"
#include "device.hpp"
#include "linear_attention_tile.hpp"

namespace streambp::cpu {
inline namespace STREAMBP_ISA {

// Calls f(first, rows) for the tiles of the piece's rows [first, last).
template <class F>
void tiles_of(row_range rows, position tile, const F& f) {
  for (position i = rows.first; i < rows.last; i += tile) f(i, std::min(tile, rows.last - i));
}

template <class S>
void linear_attention_forward(workers<S>& on, const linear_attention_shape& shape,
                              const piece_list& pieces, const carry_rows<S>& states, given<S> q,
                              given<S> k, given<S> v, given<S> la, view<S> o, written<S> kept,
                              written<S> workspace) {
  on.parallel(shape.heads, [&](position h, int thread) {
    const linear_attention_head<S> head(shape, h, on.packing(thread), workspace.row(thread));
    const auto state = head.state();
    for (const piece p : pieces) {
      head.load_state(head.part(states.before(p)), state);
      tiles_of({p.row, p.last()}, shape.tile, [&](position row, position rows) {
        if (row > p.row && (row - p.row) % largest_tile == 0)
          head.store_state(state, head.part(kept.row(row - largest_tile)));
        const auto x = head.at({q, k, v, la}, row, rows);
        head.read(x, state, head.own(o, row, rows, shape.value_width));
        head.advance(x, state, state);
      });
      for (S* after : {states.kept(p), states.handed_on(p)})
        if (after) head.store_state(state, head.part(after));
    }
  });
}

template <class S>
void linear_attention_backward(workers<S>& on, const linear_attention_shape& shape,
                               const piece_list& pieces, const carry_rows<S>& states, given<S> q,
                               given<S> k, given<S> v, given<S> la, given<S> d_o, view<S> dq,
                               view<S> dk, view<S> dv, written<S> dla, given<S> kept,
                               written<S> workspace) {
  on.parallel(shape.heads, [&](position h, int thread) {
    const linear_attention_head<S> head(shape, h, on.packing(thread), workspace.row(thread));
    const auto visit_tile = [&](position row, position rows, position number) {
      head.backward(
          head.at({q, k, v, la}, row, rows), head.run(number),
          d_o.middle_rows(row, rows).middle_cols(h * shape.value_width, shape.value_width),
          {head.own(dq, row, rows, shape.key_width), head.own(dk, row, rows, shape.key_width),
           head.own(dv, row, rows, shape.value_width),
           dla.rows > 0 ? head.own(dla, row, rows, 1) : view<S>{}});
    };
    pieces.descending([&](const piece& p) {
      head.load_state(head.part(states.d_after(p)), head.d_state());
      for (position first = (p.rows - 1) / largest_tile * largest_tile; first >= 0;
           first -= largest_tile) {
        const row_range run{p.row + first, p.row + std::min(first + largest_tile, p.rows)};
        head.load_state(
            head.part(first > 0 ? kept.row(run.first - largest_tile) : states.before(p)),
            head.run(0));
        position number = 0;
        tiles_of(run, shape.tile, [&](position row, position rows) {
          if (row + rows < run.last)
            head.advance(head.at({q, k, v, la}, row, rows), head.run(number), head.run(number + 1));
          ++number;
        });
        while (number-- > 0) {
          const position row = run.first + number * shape.tile;
          visit_tile(row, std::min(shape.tile, run.last - row), number);
        }
      }
      if (S* before = head.part(states.d_before(p))) head.add_state(head.d_state(), before);
    });
  });
}

template <class S>
void sum_over_group(workers<S>& on, const linear_attention_shape& shape, given<S> x, view<S> y) {
  const position width = y.cols / shape.key_heads;
  for_rows(on, x.rows, x.cols, [&](position i) {
    for (position g = 0; g < shape.key_heads; ++g) {
      const S* first = x.row(i) + g * shape.group() * width;
      S* sum = y.row(i) + g * width;
      std::copy_n(first, width, sum);
      for (position h = 1; h < shape.group(); ++h) sum_row<S>(sum, first + h * width, width, sum);
    }
  });
}

}  // namespace STREAMBP_ISA
}  // namespace streambp::cpu
