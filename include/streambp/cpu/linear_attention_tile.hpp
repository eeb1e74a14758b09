// A tile of linear attention as products (Yang et al. 2024, Dao and Gu 2024). With L the sums of
// ln a from the tile's first row on, D the decay from row s to row t, P[s][t] = scale D[s][t]
// k_s·q_t:
//   O = Pᵀ V + (scale e^L ∘ Q) S,   S' = e^(L_last) S + (e^(L_last - L) ∘ K)ᵀ V
#pragma once

#include <algorithm>

#include "../primitives/linear_attention_shape.hpp"
#include "block_product.hpp"
#include "decayed_scores.hpp"
#include "tile_heads.hpp"

namespace streambp::cpu {
inline namespace STREAMBP_ISA {

// What a thread holds of a tile.
template <class S>
struct linear_attention_scratch {
  position used = 0;     // scalars
  view<S> state;         // (key_width, value_width)
  view<S> d_state;       // the same
  view<S> run;           // states before the tiles of a run, one below the other
  view<S> q, k, dq, dk;  // (tile, key_width); q and k times decays
  view<S> dv;            // (tile, value_width)
  view<S> p, dp;         // (tile, tile): row s of k, column t of q
  S *high, *low, *weights, *crossing, *to_end;  // by row of the tile

  linear_attention_scratch(const linear_attention_shape& shape, S* data) {
    const auto take = [&](position rows, position cols) {
      const position stride = round_up(cols, 16);
      const view<S> taken(data + used, rows, cols, stride);
      used += rows * stride;
      return taken;
    };
    const position keys = shape.key_width, values = shape.value_width, tile = shape.tile;
    state = take(keys, values);
    d_state = take(keys, values);
    run = take(shape.run_tiles() * keys, values);
    for (view<S>* rows : {&q, &k, &dq, &dk}) *rows = take(tile, keys);
    dv = take(tile, values);
    p = take(tile, tile);
    dp = take(tile, tile);
    for (S** column : {&high, &low, &weights, &crossing, &to_end}) *column = take(1, tile).data;
  }
};

// One head on one thread.
template <class S>
class linear_attention_head {
 public:
  linear_attention_head(const linear_attention_shape& shape, position head,
                        packing_space<S> packing, S* workspace)
      : shape_(shape), head_(head), packing_(packing), scratch_(shape, workspace) {}

  struct inputs {
    view<const S> q, k, v, la;
  };
  // The head's rows of a tile.
  inputs at(const inputs& all, position row, position rows) const {
    const position key_head = head_ / shape_.group();
    const auto cut = [&](view<const S> m, position h, position width) {
      return m.middle_rows(row, rows).middle_cols(h * width, width);
    };
    return {cut(all.q, key_head, shape_.key_width), cut(all.k, key_head, shape_.key_width),
            cut(all.v, head_, shape_.value_width), cut(all.la, head_, 1)};
  }
  view<S> own(view<S> all, position row, position rows, position width) const {
    return all.middle_rows(row, rows).middle_cols(head_ * width, width);
  }
  // The head's part of a row of states; none stays none.
  template <class T>
  T* part(T* states) const {
    return states ? states + head_ * shape_.head_state() : nullptr;
  }

  view<S> state() const { return scratch_.state; }
  view<S> d_state() const { return scratch_.d_state; }
  // A state of the run; number 0 is the one that the run begins with.
  view<S> run(position number) const {
    return scratch_.run.middle_rows(number * shape_.key_width, shape_.key_width);
  }

  // Null: zero.
  static void load_state(const S* from, view<S> to) {
    for (position i = 0; i < to.rows; ++i)
      if (from)
        std::copy_n(from + i * to.cols, to.cols, to.row(i));
      else
        std::fill_n(to.row(i), to.cols, S(0));
  }
  static void store_state(view<const S> from, S* to) {
    for (position i = 0; i < from.rows; ++i)
      std::copy_n(from.row(i), from.cols, to + i * from.cols);
  }
  static void add_state(view<const S> from, S* to) {
    for (position i = 0; i < from.rows; ++i)
      sum_row<S>(to + i * from.cols, from.row(i), from.cols, to + i * from.cols);
  }

  // o = what the tile's rows read of themselves and of the state before them.
  void read(const inputs& x, view<const S> state, view<S> o) const {
    begin(x);
    const position n = o.rows;
    const view<S> p = scratch_.p.middle_rows(0, n).middle_cols(0, n);
    times_transposed<S>(packing_, x.k, x.q, p, write::assign);
    for (position s = 0; s < n; ++s) decay_row(sums(), s, S(shape_.scale), n, p.row(s));
    transposed_times<S>(packing_, p, x.v, o, write::assign);
    times<S>(packing_, scaled_q(x), state, o, write::add);
  }

  // after = the state before, taken through the tile; may be the same.
  void advance(const inputs& x, view<const S> before, view<S> after) const {
    begin(x);
    const view<S> k = scaled_k(x);
    const S whole = scratch_.weights[x.k.rows - 1];
    for (position i = 0; i < after.rows; ++i)
      scale_row<S>(before.row(i), whole, after.cols, after.row(i));
    transposed_times<S>(packing_, k, x.v, after, write::add);
  }

  struct gradients {
    view<S> dq, dk, dv;  // assigned; may stand where q, k, v do
    view<S> dla;         // no rows: not wanted
  };
  // Takes d_state() from after the tile to before it.
  //   dV = P dO + (e^(L_last - L) ∘ K) dS',      dP = V dOᵀ, dA = scale D ∘ dP
  //   dQ = dAᵀ K + scale e^L ∘ (dO Sᵀ),  dK = dA Q + e^(L_last - L) ∘ (V dS'ᵀ)
  //   dS = e^(L_last) dS' + (scale e^L ∘ Q)ᵀ dO
  // ln a_r has a part in every decay across r, from a row (or the state) before it to a row (or the
  // state) from it on. Those are summed as they are, never as differences of sums over more: a
  // strong decay leaves slopes far smaller than the slopes of what it does not touch.
  void backward(const inputs& x, view<const S> state, view<const S> d_o, const gradients& d) const {
    begin(x);
    const position n = d_o.rows;
    const view<S> p = scratch_.p.middle_rows(0, n).middle_cols(0, n);
    const view<S> dp = scratch_.dp.middle_rows(0, n).middle_cols(0, n);
    const view<S> dq = scratch_.dq.middle_rows(0, n), dk = scratch_.dk.middle_rows(0, n),
                  dv = scratch_.dv.middle_rows(0, n), after = scratch_.d_state;
    S *crossing = scratch_.crossing, *to_end = scratch_.to_end;

    const view<S> q = scaled_q(x);  // leaves scale e^L in weights
    times_transposed<S>(packing_, d_o, state, dq, write::assign);
    for (position t = 0; t < n; ++t) {
      scale_row<S>(dq.row(t), scratch_.weights[t], dq.cols, dq.row(t));
      crossing[t] = dot_row(x.q.row(t), dq.row(t), dq.cols);
    }
    const view<S> k = scaled_k(x);
    const S whole = scratch_.weights[n - 1];
    times_transposed<S>(packing_, x.v, after, dk, write::assign);
    S across = 0;  // from states and rows before r to the state after the tile
    for (position i = 0; i < after.rows; ++i)
      across += dot_row(state.row(i), after.row(i), after.cols);
    across *= whole;
    S* into_state = scratch_.weights;
    for (position s = 0; s < n; ++s) {
      scale_row<S>(dk.row(s), to_end[s], dk.cols, dk.row(s));
      into_state[s] = dot_row(x.k.row(s), dk.row(s), dk.cols);
    }
    times<S>(packing_, k, after, dv, write::assign);
    for (position i = 0; i < after.rows; ++i)
      scale_row<S>(after.row(i), whole, after.cols, after.row(i));
    transposed_times<S>(packing_, q, d_o, after, write::add);

    times_transposed<S>(packing_, x.k, x.q, p, write::assign);
    times_transposed<S>(packing_, x.v, d_o, dp, write::assign);
    for (position s = 0; s < n; ++s) {
      const S slope = sum_of_row(crossing, n) + across;
      decay_row_backward(sums(), s, S(shape_.scale), n, p.row(s), dp.row(s), crossing);
      across += into_state[s];
      into_state[s] = slope;
    }
    times<S>(packing_, p, d_o, dv, write::add);
    transposed_times<S>(packing_, dp, x.k, dq, write::add);
    times<S>(packing_, dp, x.q, dk, write::add);

    for (position t = 0; t < n; ++t) {
      std::copy_n(dq.row(t), dq.cols, d.dq.row(t));
      std::copy_n(dk.row(t), dk.cols, d.dk.row(t));
      std::copy_n(dv.row(t), dv.cols, d.dv.row(t));
      if (d.dla.rows > 0) d.dla(t, 0) = into_state[t];
    }
  }

 private:
  decay_sums<S> sums() const { return {scratch_.high, scratch_.low}; }
  void begin(const inputs& x) const { sums().assign(x.la.data, x.la.stride, x.la.rows); }
  // scale e^L ∘ Q
  view<S> scaled_q(const inputs& x) const {
    const view<S> q = scratch_.q.middle_rows(0, x.q.rows);
    decays_from_start(sums(), S(shape_.scale), q.rows, scratch_.weights);
    for (position t = 0; t < q.rows; ++t)
      scale_row<S>(x.q.row(t), scratch_.weights[t], q.cols, q.row(t));
    return q;
  }
  // e^(L_last - L) ∘ K; leaves e^L in weights and the factors in to_end.
  view<S> scaled_k(const inputs& x) const {
    const view<S> k = scratch_.k.middle_rows(0, x.k.rows);
    decays_from_start(sums(), S(1), k.rows, scratch_.weights);
    decays_to_end(sums(), k.rows, scratch_.to_end);
    for (position s = 0; s < k.rows; ++s)
      scale_row<S>(x.k.row(s), scratch_.to_end[s], k.cols, k.row(s));
    return k;
  }

  linear_attention_shape shape_;
  position head_;
  packing_space<S> packing_;
  linear_attention_scratch<S> scratch_;
};

}  // namespace STREAMBP_ISA
}  // namespace streambp::cpu
