// The rows of attention's products: a query tile's rows of all heads that share a key and value
// head.
#pragma once

#include <algorithm>

#include "../core/view.hpp"
#include "../primitives/attention_shape.hpp"
#include "elementwise.hpp"
#include "query_tile.hpp"

namespace streambp::cpu {
inline namespace STREAMBP_ISA {

// Σ x y
template <class S>
[[gnu::noinline]] S dot_row(const S* x, const S* y, position d) {
  lanes<S> total = 0;
  along<S>(d, [&](position j, auto n) { total = fma(load(x + j, n), load(y + j, n), total); });
  return sum(total);
}

// Row r = i * group + h of a product is query row i of the group's head h.
struct tile_heads {
  attention_shape shape;
  query_tile tile;
  position kv_head = 0;

  constexpr position present() const { return tile.rows * shape.group(); }
  constexpr position rows() const { return round_up(present(), 8); }  // of the products
  constexpr position row(position r) const { return tile.row + r / shape.group(); }
  constexpr position place(position r) const { return tile.place() + r / shape.group(); }
  constexpr position head(position r) const { return kv_head * shape.group() + r % shape.group(); }

  // Row r's part of a matrix (chunk rows, heads * width).
  template <class T>
  T* part(view<T> all, position r, position width) const {
    return all.row(row(r)) + head(r) * width;
  }

  // The shared head's columns of a matrix (memory rows, kv_heads * width).
  template <class T>
  view<T> shared(view<T> memory, position width) const {
    return memory.middle_cols(kv_head * width, width);
  }

  // to (rows(), width) = factor times the rows of `all`, then rows of zeros.
  template <class S>
  void gather(view<const S> all, S factor, view<S> to) const {
    for (position r = 0; r < present(); ++r)
      scale_row<S>(part(all, r, to.cols), factor, to.cols, to.row(r));
    for (position r = present(); r < rows(); ++r) std::fill_n(to.row(r), to.cols, S(0));
  }

  // The rows of `all` = factor times `from`.
  template <class S>
  void scatter(view<const S> from, S factor, view<S> all) const {
    for (position r = 0; r < present(); ++r)
      scale_row<S>(from.row(r), factor, from.cols, part(all, r, from.cols));
  }
};

// What a thread holds of a tile.
template <class S>
struct attention_scratch {
  position used = 0;         // scalars
  view<S> q;                 // (tile_rows, key_width), times scale
  view<S> o;                 // (tile_rows, value_width): o, or d_o in the backward
  view<S> dq;                // (tile_rows, key_width)
  view<S> scores, d_scores;  // (tile_rows, block_keys): S then P; dP then dS
  view<S> k, v;              // (block_keys, width): a ragged block, then its gradient
  view<S> maximum, sum;      // (1, tile_rows): of a row's softmax; lse and delta in the backward

  // In attention_workspace(shape) scalars.
  constexpr attention_scratch(const attention_shape& shape, S* data) {
    const auto take = [&](position rows, position cols) {
      const position stride = round_up(cols, 16);
      const view<S> taken(data ? data + used : nullptr, rows, cols, stride);
      used += rows * stride;
      return taken;
    };
    const position rows = shape.tile_rows(), keys = shape.block_keys();
    q = take(rows, shape.key_width);
    o = take(rows, shape.value_width);
    dq = take(rows, shape.key_width);
    scores = take(rows, keys);
    d_scores = take(rows, keys);
    k = take(keys, shape.key_width);
    v = take(keys, shape.value_width);
    maximum = take(1, rows);
    sum = take(1, rows);
  }
};

}  // namespace STREAMBP_ISA
}  // namespace streambp::cpu
