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

// o and lse of a tile, for the heads that share one key and value head.
template <class S>
[[gnu::noinline]] void attend_tile(packing_space<S> packing, const tile_heads& of,
                                   attention_scratch<S> at, view<const S> q, view<const S> k,
                                   view<const S> v, const S* sinks, view<S> o, view<S> lse) {
  const attention_shape& shape = of.shape;
  const view<const S> k_head = of.shared(k, shape.key_width);
  const view<const S> v_head = of.shared(v, shape.value_width);
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

  key_blocks(shape, of.tile, [&](const key_block& block) {
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

  for (position r = 0; r < of.present(); ++r) {
    const softmax_end<S> end =
        softmax_finish(maximum[r], sum[r], sinks ? sinks + of.head(r) : nullptr);
    scale_row<S>(o_tile.row(r), end.factor, o_tile.cols, of.part(o, r, o_tile.cols));
    lse(of.row(r), of.head(r)) = end.lse;
  }
}

// Adds xᵀ w (keys, width) to the block's rows of a head; rows that do not exist stay in scratch.
template <class S>
[[gnu::noinline]] void add_to_block(packing_space<S> packing, const key_block& block,
                                    view<const S> x, view<const S> w, view<S> head,
                                    view<S> scratch) {
  if (!block.ragged())
    return transposed_times<S>(packing, x, w, head.rows_in(block.memory), write::add);
  transposed_times<S>(packing, x, w, scratch.middle_rows(0, block.keys), write::assign);
  for (position i = 0; i < block.memory.rows(); ++i)
    for (position j = 0; j < head.cols; ++j) head(block.memory.first + i, j) += scratch(i, j);
}

// The forward's inputs and results, and the gradients: dq is assigned, dk, dv, dsinks are added to.
template <class S>
struct attention_gradient {
  view<const S> q, k, v;
  const S* sinks;
  view<const S> o, lse, d_o;
  view<S> dq, dk, dv;
  S* dsinks;
};

// dq of a tile, and what it adds to dk, dv and dsinks, for the heads that share one key and value
// head.
template <class S>
[[gnu::noinline]] void differentiate_tile(packing_space<S> packing, const tile_heads& of,
                                          attention_scratch<S> at,
                                          const attention_gradient<S>& in) {
  const attention_shape& shape = of.shape;
  const view<const S> k_head = of.shared(in.k, shape.key_width);
  const view<const S> v_head = of.shared(in.v, shape.value_width);
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
  for (position r = 0; r < of.present(); ++r) {
    lse[r] = in.lse(of.row(r), of.head(r));
    delta[r] = dot_row<S>(d_o_tile.row(r), of.part(in.o, r, d_o_tile.cols), d_o_tile.cols);
  }
  if (in.dsinks)
    for (position h = 0; h < shape.group(); ++h)
      in.dsinks[of.head(h)] +=
          sink_gradient(in.sinks[of.head(h)], lse + h, delta + h, of.tile.rows, shape.group());

  key_blocks(shape, of.tile, [&](const key_block& block) {
    const view<S> p = at.scores.middle_rows(0, of.rows()).middle_cols(0, block.keys);
    const view<S> ds = at.d_scores.middle_rows(0, of.rows()).middle_cols(0, block.keys);
    const view<const S> k_block = block_rows(block, k_head, at.k);
    times_transposed<S>(packing, q_tile, k_block, p, write::assign);
    times_transposed<S>(packing, d_o_tile, block_rows(block, v_head, at.v), ds, write::assign);
    for (position r = 0; r < of.rows(); ++r) {
      const row_range seen = r < of.present() ? visible(shape, block, of.place(r)) : row_range{};
      softmax_gradient(p.row(r), ds.row(r), seen, block.keys, lse[r], delta[r], S(shape.softcap));
      // P = 1 whatever S is; dP − delta would leave rounding.
      if (!in.sinks && seen.rows() == 1 && visible_keys(shape, of.tile.of, of.place(r)) == 1)
        std::fill_n(ds.row(r), block.keys, S(0));
    }
    times<S>(packing, ds, k_block, dq_tile, write::add);
    add_to_block<S>(packing, block, p, d_o_tile, dv_head, at.v);
    add_to_block<S>(packing, block, ds, q_tile, dk_head, at.k);
  });
  of.scatter<S>(dq_tile, S(shape.scale), in.dq);
}

template <class S>
void attention_forward(workers<S>& on, attention_shape shape, piece_list pieces, given<S> q,
                       given<S> k, given<S> v, std::type_identity_t<const S*> sinks, written<S> o,
                       written<S> lse, written<S> workspace) {
  // Tasks are slots of `tile` rows: a tile belongs to the slot that holds its first row.
  const position rows = pieces.rows().rows();
  on.parallel(ceil_div(rows, shape.tile) * shape.kv_heads, [&](position task, int thread) {
    const position first = task / shape.kv_heads * shape.tile;
    const attention_scratch<S> at(shape, workspace.row(thread));
    tiles_ascending(pieces, shape.tile, {first, std::min(first + shape.tile, rows)},
                    [&](const query_tile& tile) {
                      attend_tile<S>(on.packing(thread), {shape, tile, task % shape.kv_heads}, at,
                                     q, k, v, sinks, o, lse);
                    });
  });
}

template <class S>
void attention_backward(workers<S>& on, attention_shape shape, piece_list pieces, given<S> q,
                        given<S> k, given<S> v, std::type_identity_t<const S*> sinks, given<S> o,
                        given<S> lse, given<S> d_o, written<S> dq, written<S> dk, written<S> dv,
                        std::type_identity_t<S*> dsinks, written<S> workspace) {
  // A row of dk and dv adds over query tiles, last first, whatever the chunks; so one thread does a
  // whole key and value head.
  const attention_gradient<S> all{q, k, v, sinks, o, lse, d_o, dq, dk, dv, dsinks};
  on.parallel(shape.kv_heads, [&](position kv_head, int thread) {
    const attention_scratch<S> at(shape, workspace.row(thread));
    tiles_descending(pieces, shape.tile, [&](const query_tile& tile) {
      differentiate_tile<S>(on.packing(thread), {shape, tile, kv_head}, at, all);
    });
  });
}

}  // namespace STREAMBP_ISA
}  // namespace streambp::cpu
