// Attention without softmax, by a state a head: S_t = a_t S_{t-1} + k_t v_tᵀ, o_t = scale S_tᵀ q_t.
#pragma once

#include "carry_rows.hpp"
#include "device.hpp"
#include "expect_shape.hpp"
#include "linear_attention_shape.hpp"

namespace streambp::primitives {

namespace detail {

// FLOPs of products of a tile of n rows: squares n² c_k, n² c_v, and n c_k c_v, so many of each.
inline big_count linear_attention_flops(const linear_attention_shape& shape,
                                        const piece_list& pieces, position key_squares,
                                        position value_squares, position states) {
  big_count squares, rows;
  for (const piece p : pieces) {
    rows += p.rows;
    squares += p.rows / shape.tile * shape.tile * shape.tile +
               (p.rows % shape.tile) * (p.rows % shape.tile);
  }
  return 2 * shape.heads *
         (squares * (key_squares * shape.key_width + value_squares * shape.value_width) +
          states * rows * shape.head_state());
}

template <device D>
void expect_linear_attention(const char* primitive, D& on, const linear_attention_shape& shape,
                             const piece_list& pieces, const carry_rows<scalar_of<D>>& states,
                             given<D> q, given<D> k, given<D> v, given<D> la, given<D> o,
                             given<D> kept, given<D> workspace) {
  const side rows{"rows", pieces.rows().rows()},
      keys{"key heads x key width", shape.key_heads * shape.key_width},
      values{"heads x value width", shape.heads * shape.value_width};
  expect_shape(primitive, "q", q, rows, keys);
  expect_shape(primitive, "k", k, rows, keys);
  expect_shape(primitive, "v", v, rows, values);
  expect_shape(primitive, "la", la, rows, {"heads", shape.heads});
  expect_shape(primitive, "o", o, rows, values);
  expect_shape(primitive, "kept", kept, rows, {"kept columns", shape.kept_columns()});
  expect_states(primitive, states, {"heads x key width x value width", shape.state()});
  expect_at_least(primitive, "workspace", workspace, {"threads", threads_of(on)},
                  {"numbers", linear_attention_workspace(shape)});
}

}  // namespace detail

// q, k (rows, key_heads * key_width); v, o (rows, heads * value_width); la (rows, heads): ln a.
// States are (1, shape.state()); `kept` (rows, shape.kept_columns()) is for the backward;
// `workspace`: a row of linear_attention_workspace(shape) a thread. Chunk edges never cut a tile.
template <device D>
void linear_attention_forward(D& on, const linear_attention_shape& shape, const piece_list& pieces,
                              const carry_rows<scalar_of<D>>& states, given<D> q, given<D> k,
                              given<D> v, given<D> la, written<D> o, written<D> kept,
                              written<D> workspace) {
  detail::expect_linear_attention<D>("linear_attention_forward", on, shape, pieces, states, q, k, v,
                                     la, o, kept, workspace);
  on.count(detail::linear_attention_flops(shape, pieces, 1, 1, 2));
  if (const auto with = on.enter("linear_attention_forward"))
    linear_attention_forward(*with, shape, pieces, states, q, k, v, la, o, kept, workspace);
}

// Assigns dq, dk (rows, heads * key_width: a part for every head, also of shared q and k), dv and
// dla (no rows: not wanted), from d_o. dv may be v, dla may be la, and unless heads share them dq
// may be q, dk k. States inside a run of largest_tile rows that smaller tiles need are computed
// again, uncounted.
template <device D>
void linear_attention_backward(D& on, const linear_attention_shape& shape, const piece_list& pieces,
                               const carry_rows<scalar_of<D>>& states, given<D> q, given<D> k,
                               given<D> v, given<D> la, given<D> d_o, written<D> dq, written<D> dk,
                               written<D> dv, written<D> dla, given<D> kept, written<D> workspace) {
  constexpr auto name = "linear_attention_backward";
  detail::expect_linear_attention<D>(name, on, shape, pieces, states, q, k, v, la, d_o, kept,
                                     workspace);
  const side keys{"heads x key width", shape.heads * shape.key_width};
  expect_shape(name, "dq", dq, {"rows", q.rows}, keys);
  expect_shape(name, "dk", dk, {"rows", q.rows}, keys);
  expect_alike(name, "dv", dv, v);
  expect_alike_if_any(name, "dla", dla, la);
  on.count(detail::linear_attention_flops(shape, pieces, 3, 2, 4));
  if (const auto with = on.enter("linear_attention_backward"))
    linear_attention_backward(*with, shape, pieces, states, q, k, v, la, d_o, dq, dk, dv, dla, kept,
                              workspace);
}

// y_g = the sum over a group's heads of x_h, in order: x (rows, heads * width), y (rows, key_heads
// * width).
template <device D>
void sum_over_group(D& on, const linear_attention_shape& shape, given<D> x, written<D> y) {
  const position width = x.cols / shape.heads;
  expect_shape("sum_over_group", "x", x, {"rows", y.rows}, {"heads x width", shape.heads * width});
  expect_shape("sum_over_group", "y", y, {"rows", x.rows},
               {"key heads x width", shape.key_heads * width});
  if (const auto with = on.enter("sum_over_group")) sum_over_group(*with, shape, x, y);
}

}  // namespace streambp::primitives
