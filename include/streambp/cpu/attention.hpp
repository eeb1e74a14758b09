// Attention over packed segments, by query tiles and key blocks; no buffer is tokens x tokens.
//   S = scale q kᵀ [softcap c: c tanh(S / c)],  P = softmax of S over what is visible,  o = P v
//   delta = rowsum(d_o ∘ o),  dS = P ∘ (d_o vᵀ − delta) [∘ (1 − (S / c)²)]
//   dv += Pᵀ d_o,  dq = scale dS k,  dk += scale dSᵀ q
#pragma once

#include <algorithm>
#include <type_traits>

#include "../primitives/attention.hpp"
#include "block_product.hpp"
#include "device.hpp"
#include "key_block.hpp"
#include "online_softmax.hpp"
#include "tile_heads.hpp"

namespace streambp::cpu {
inline namespace STREAMBP_ISA {

// What a softmax row hands from one turn of memory rows to the next, (rows, heads) each, beside the
// output that is not divided yet. The maximum stands where lse will.
template <class S>
struct attention_result {
  view<S> o, lse, sum;
};

// o and lse of a tile, for the heads that share one key and value head: as far as the key blocks
// that begin in `memory` take them.
template <class S>
[[gnu::noinline]] void attend_tile(packing_space<S> packing, const tile_heads& of,
                                   attention_scratch<S> at, view<const S> q,
                                   const memory_block<S>& memory, const S* sinks,
                                   const attention_result<S>& to) {
  const attention_shape& shape = of.shape;
  const tile_turn turn = turn_of(shape, of.tile, memory.rows, memory.first);
  if (!turn.runs) return;
  const view<const S> k_head = of.shared(memory.k, shape.key_width);
  const view<const S> v_head = of.shared(memory.v, shape.value_width);
  const view<S> q_tile = at.q.middle_rows(0, of.rows());  // (rows, key_width)
  const view<S> o_tile = at.o.middle_rows(0, of.rows());  // (rows, value_width)
  S* const maximum = at.maximum.data;
  S* const sum = at.sum.data;
  of.gather(q, S(shape.scale), q_tile);
  for (position r = 0; r < of.rows(); ++r) {
    std::fill_n(o_tile.row(r), o_tile.cols, S(0));
    maximum[r] = no_score<S>;
    sum[r] = 0;
  }
  if (!turn.begins) {
    of.gather<S>(to.o, S(1), o_tile);
    for (position r = 0; r < of.present(); ++r) {
      maximum[r] = to.lse(of.row(r), of.head(r));
      sum[r] = to.sum(of.row(r), of.head(r));
    }
  }

  key_blocks(shape, of.tile, memory.rows, [&](const key_block& block) {
    if (!block.begins()) return;
    const view<S> p = at.scores.middle_rows(0, of.rows()).middle_cols(0, block.keys);
    times_transposed<S>(packing, q_tile, block_rows(block, k_head, at.k), p, write::assign);
    for (position r = 0; r < of.rows(); ++r) {
      const row_range seen = r < of.present() ? visible(shape, block, of.place(r)) : row_range{};
      const S factor =
          softmax_step(maximum[r], sum[r], p.row(r), seen, block.keys, S(shape.softcap));
      if (factor != 1) scale_row<S>(o_tile.row(r), factor, o_tile.cols, o_tile.row(r));
    }
    times<S>(packing, p, block_rows(block, v_head, at.v), o_tile, write::add);
  });

  if (!turn.ends) {
    of.scatter<S>(o_tile, S(1), to.o);
    for (position r = 0; r < of.present(); ++r) {
      to.lse(of.row(r), of.head(r)) = maximum[r];
      to.sum(of.row(r), of.head(r)) = sum[r];
    }
    return;
  }
  for (position r = 0; r < of.present(); ++r) {
    const softmax_end<S> end =
        softmax_finish(maximum[r], sum[r], sinks ? sinks + of.head(r) : nullptr);
    scale_row<S>(o_tile.row(r), end.factor, o_tile.cols, of.part(to.o, r, o_tile.cols));
    to.lse(of.row(r), of.head(r)) = end.lse;
  }
}

// Adds xᵀ w (keys, width) to the block's rows of a head whose turn it is; of a ragged one all of it
// stands in scratch first.
template <class S>
[[gnu::noinline]] void add_to_block(packing_space<S> packing, const key_block& block,
                                    view<const S> x, view<const S> w, view<S> head,
                                    view<S> scratch) {
  const row_range part = block.turn;
  const view<S> rows = head.middle_rows(block.memory.first + part.first, part.rows());
  if (!block.ragged())
    return transposed_times<S>(packing, x.middle_cols(part.first, part.rows()), w, rows,
                               write::add);
  transposed_times<S>(packing, x, w, scratch.middle_rows(0, block.keys), write::assign);
  for (position i = 0; i < part.rows(); ++i)
    for (position j = 0; j < head.cols; ++j) rows(i, j) += scratch(part.first + i, j);
}

// The forward's inputs and results, and the gradients: dq is assigned, dk, dv, dsinks are added to.
template <class S>
struct attention_gradient {
  view<const S> q;
  memory_block<S> memory;
  const S* sinks;
  view<const S> o, lse, d_o;
  view<S> dq, dk, dv;
  S* dsinks;
};

// What a tile adds to dk and dv in their turn, and to dq from key blocks that begin in it, for the
// heads that share one key and value head. A memory row is complete after its own turn, in which it
// meets every tile, last one first: so a key block that began in the turn before is computed a
// second time for the rest of its rows.
template <class S>
[[gnu::noinline]] void differentiate_tile(packing_space<S> packing, const tile_heads& of,
                                          attention_scratch<S> at,
                                          const attention_gradient<S>& in) {
  const attention_shape& shape = of.shape;
  const bool of_sinks = in.dsinks && in.memory.first;
  const tile_turn turn = turn_of(shape, of.tile, in.memory.rows, in.memory.first);
  if (!turn.reaches && !of_sinks) return;
  const view<const S> k_head = of.shared(in.memory.k, shape.key_width);
  const view<const S> v_head = of.shared(in.memory.v, shape.value_width);
  const view<S> dk_head = of.shared(in.dk, shape.key_width);
  const view<S> dv_head = of.shared(in.dv, shape.value_width);
  const view<S> q_tile = at.q.middle_rows(0, of.rows());    // (rows, key_width)
  const view<S> d_o_tile = at.o.middle_rows(0, of.rows());  // (rows, value_width)
  const view<S> dq_tile = at.dq.middle_rows(0, of.rows());  // (rows, key_width)
  S* const lse = at.maximum.data;
  S* const delta = at.sum.data;
  of.gather(in.q, S(shape.scale), q_tile);
  of.gather(in.d_o, S(1), d_o_tile);
  for (position r = 0; r < of.rows(); ++r) std::fill_n(dq_tile.row(r), dq_tile.cols, S(0));
  if (turn.runs && !turn.begins) of.gather<S>(in.dq, S(1), dq_tile);
  for (position r = 0; r < of.present(); ++r) {
    lse[r] = in.lse(of.row(r), of.head(r));
    delta[r] = dot_row<S>(d_o_tile.row(r), of.part(in.o, r, d_o_tile.cols), d_o_tile.cols);
  }
  if (of_sinks)
    for (position h = 0; h < shape.group(); ++h)
      in.dsinks[of.head(h)] +=
          sink_gradient(in.sinks[of.head(h)], lse + h, delta + h, of.tile.rows, shape.group());

  key_blocks(shape, of.tile, in.memory.rows, [&](const key_block& block) {
    const view<S> p = at.scores.middle_rows(0, of.rows()).middle_cols(0, block.keys);
    const view<S> ds = at.d_scores.middle_rows(0, of.rows()).middle_cols(0, block.keys);
    const view<const S> k_block = block_rows(block, k_head, at.k);
    times_transposed<S>(packing, q_tile, k_block, p, write::assign);
    times_transposed<S>(packing, d_o_tile, block_rows(block, v_head, at.v), ds, write::assign);
    for (position r = 0; r < of.rows(); ++r) {
      row_range seen = r < of.present() ? visible(shape, block, of.place(r)) : row_range{};
      if (!block.begins()) seen = in_turn(block, seen);
      softmax_gradient(p.row(r), ds.row(r), seen, block.keys, lse[r], delta[r], S(shape.softcap));
      // P = 1 whatever S is; dP − delta would leave rounding.
      if (!in.sinks && seen.rows() == 1 && visible_keys(shape, of.tile.of, of.place(r)) == 1)
        std::fill_n(ds.row(r), block.keys, S(0));
    }
    if (block.begins()) times<S>(packing, ds, k_block, dq_tile, write::add);
    add_to_block<S>(packing, block, p, d_o_tile, dv_head, at.v);
    add_to_block<S>(packing, block, ds, q_tile, dk_head, at.k);
  });
  if (turn.runs) of.scatter<S>(dq_tile, turn.ends ? S(shape.scale) : S(1), in.dq);
}

template <class S>
void attention_forward(workers<S>& on, attention_shape shape, piece_list pieces, given<S> q,
                       std::type_identity_t<memory_block<S>> memory,
                       std::type_identity_t<const S*> sinks, written<S> o, written<S> lse,
                       written<S> sum, written<S> workspace) {
  // Tasks are slots of `tile` rows: a tile belongs to the slot that holds its first row.
  const position rows = pieces.rows().rows();
  const attention_result<S> to{o, lse, sum};
  on.parallel(ceil_div(rows, shape.tile) * shape.kv_heads, [&](position task, int thread) {
    const position first = task / shape.kv_heads * shape.tile;
    const attention_scratch<S> at(shape, workspace.row(thread));
    tiles_ascending(pieces, shape.tile, {first, std::min(first + shape.tile, rows)},
                    [&](const query_tile& tile) {
                      attend_tile<S>(on.packing(thread), {shape, tile, task % shape.kv_heads}, at,
                                     q, memory, sinks, to);
                    });
  });
}

template <class S>
void attention_backward(workers<S>& on, attention_shape shape, piece_list pieces, given<S> q,
                        std::type_identity_t<memory_block<S>> memory,
                        std::type_identity_t<const S*> sinks, given<S> o, given<S> lse,
                        given<S> d_o, written<S> dq, written<S> dk, written<S> dv,
                        std::type_identity_t<S*> dsinks, written<S> workspace) {
  // A row of dk and dv adds over query tiles, last first, whatever the chunks; so one thread does a
  // whole key and value head.
  const attention_gradient<S> all{q, memory, sinks, o, lse, d_o, dq, dk, dv, dsinks};
  on.parallel(shape.kv_heads, [&](position kv_head, int thread) {
    const attention_scratch<S> at(shape, workspace.row(thread));
    tiles_descending(pieces, shape.tile, [&](const query_tile& tile) {
      differentiate_tile<S>(on.packing(thread), {shape, tile, kv_head}, at, all);
    });
  });
}

}  // namespace STREAMBP_ISA
}  // namespace streambp::cpu
