// Attention over packed segments; no buffer is tokens x tokens.
//   S = scale q kᵀ [softcap c: c tanh(S / c)],  P = softmax of S over what is visible,  o = P v
//   delta = rowsum(d_o ∘ o),  dS = P ∘ (d_o vᵀ − delta) [∘ (1 − (S / c)²)]
//   dv += Pᵀ d_o,  dq = scale dS k,  dk += scale dSᵀ q
#pragma once

#include "attention_shape.hpp"
#include "device.hpp"
#include "expect_shape.hpp"

namespace streambp::primitives {

namespace detail {

template <device D>
void expect_attention(const char* primitive, D& on, const attention_shape& shape,
                      const piece_list& pieces, given<D> q, given<D> k, given<D> v, given<D> o,
                      given<D> lse, given<D> workspace) {
  const side rows{"rows", pieces.rows().rows()};
  expect_shape(primitive, "q", q, rows, {"heads x key width", shape.heads * shape.key_width});
  expect_shape(primitive, "k", k, {"memory rows", k.rows},
               {"key/value heads x key width", shape.kv_heads * shape.key_width});
  expect_shape(primitive, "v", v, {"memory rows", k.rows},
               {"key/value heads x value width", shape.kv_heads * shape.value_width});
  expect_shape(primitive, "o", o, rows, {"heads x value width", shape.heads * shape.value_width});
  expect_shape(primitive, "lse", lse, rows, {"heads", shape.heads});
  expect_at_least(primitive, "workspace", workspace, {"threads", threads_of(on)},
                  {"numbers", attention_workspace(shape)});
}

}  // namespace detail

// o (rows, heads * value_width) and lse (rows, heads), the natural log of the softmax denominator,
// are assigned; a row that sees nothing gets 0 and -inf. q (rows, heads * key_width) holds the
// chunk's rows, k and v (memory rows, kv_heads * width) all memory rows, of which those that the
// pieces do not see are never read. sinks: null, or one logit per head that joins the denominator
// only. workspace: (threads, attention_workspace). Requires chunk edges at tile edges of segments.
template <device D>
void attention_forward(D& on, attention_shape shape, piece_list pieces, given<D> q, given<D> k,
                       given<D> v, const scalar_of<D>* sinks, written<D> o, written<D> lse,
                       written<D> workspace) {
  detail::expect_attention<D>("attention_forward", on, shape, pieces, q, k, v, o, lse, workspace);
  on.count(2 * visible_pairs(shape, pieces) * shape.heads * (shape.key_width + shape.value_width));
  if (const auto with = on.enter("attention_forward"))
    attention_forward(*with, shape, pieces, q, k, v, sinks, o, lse, workspace);
}

// dq is assigned; dk and dv are added to, for all rows seen, and dsinks (null: not wanted). o and
// lse are the forward's. The rest as in the forward.
template <device D>
void attention_backward(D& on, attention_shape shape, piece_list pieces, given<D> q, given<D> k,
                        given<D> v, const scalar_of<D>* sinks, given<D> o, given<D> lse,
                        given<D> d_o, written<D> dq, written<D> dk, written<D> dv,
                        scalar_of<D>* dsinks, written<D> workspace) {
  detail::expect_attention<D>("attention_backward", on, shape, pieces, q, k, v, o, lse, workspace);
  expect_alike("attention_backward", "d_o", d_o, o);
  expect_alike("attention_backward", "dq", dq, q);
  expect_alike("attention_backward", "dk", dk, k);
  expect_alike("attention_backward", "dv", dv, v);
  on.count(2 * visible_pairs(shape, pieces) * shape.heads *
           (3 * shape.key_width + 2 * shape.value_width));
  if (const auto with = on.enter("attention_backward"))
    attention_backward(*with, shape, pieces, q, k, v, sinks, o, lse, d_o, dq, dk, dv, dsinks,
                       workspace);
}

}  // namespace streambp::primitives
