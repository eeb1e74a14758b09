// Attention over packed segments; no buffer is tokens x tokens.
//   S = scale q kᵀ [softcap c: c tanh(S / c)],  P = softmax of S over what is visible,  o = P v
//   delta = rowsum(d_o ∘ o),  dS = P ∘ (d_o vᵀ − delta) [∘ (1 − (S / c)²)]
//   dv += Pᵀ d_o,  dq = scale dS k,  dk += scale dSᵀ q
#pragma once

#include "device.hpp"
#include "expect_shape.hpp"
#include "memory_block.hpp"

namespace streambp::primitives {

template <device D>
using given_memory = memory_block<scalar_of<D>>;

namespace detail {

template <device D>
void expect_attention(const char* primitive, D& on, const attention_shape& shape,
                      const piece_list& pieces, given<D> q, const given_memory<D>& memory,
                      given<D> o, given<D> lse, given<D> workspace) {
  const side rows{"rows", pieces.rows().rows()};
  expect_shape(primitive, "q", q, rows, {"heads x key width", shape.heads * shape.key_width});
  expect_shape(primitive, "k", memory.k, {"memory rows", memory.k.rows},
               {"key/value heads x key width", shape.kv_heads * shape.key_width});
  expect_shape(primitive, "v", memory.v, {"memory rows", memory.k.rows},
               {"key/value heads x value width", shape.kv_heads * shape.value_width});
  expect_rows_in(primitive, "k", memory.k, {0, memory.rows.rows()});
  expect_shape(primitive, "o", o, rows, {"heads x value width", shape.heads * shape.value_width});
  expect_shape(primitive, "lse", lse, rows, {"heads", shape.heads});
  expect_at_least(primitive, "workspace", workspace, {"threads", threads_of(on)},
                  {"numbers", attention_workspace(shape)});
}

}  // namespace detail

// o (rows, heads * value_width) and lse (rows, heads), the natural log of the softmax denominator,
// are assigned once the walk has come to the last memory row that a row sees; a row that sees
// nothing gets 0 and -inf. Until then they, and sum (rows, heads), hold what the walk's next block
// goes on from: they are left alone between its blocks. A walk of one block needs no sum.
// q (rows, heads * key_width) holds the chunk's rows, k and v (lent rows, kv_heads * width) memory
// rows, of which those that the pieces do not see are never read. sinks: null, or one logit per
// head that joins the denominator only. workspace: (threads, attention_workspace). Requires chunk
// edges at tile edges of segments. The bits are the same for any blocks.
template <device D>
void attention_forward(D& on, attention_shape shape, piece_list pieces, given<D> q,
                       std::type_identity_t<given_memory<D>> memory, const scalar_of<D>* sinks,
                       written<D> o, written<D> lse, written<D> sum, written<D> workspace) {
  constexpr auto name = "attention_forward";
  detail::expect_attention<D>(name, on, shape, pieces, q, memory, o, lse, workspace);
  expect_alike_if_any(name, "sum", sum, lse);
  on.count(2 * visible_pairs(shape, pieces, memory.rows) * shape.heads *
           (shape.key_width + shape.value_width));
  if (const auto with = on.enter(name))
    attention_forward(*with, shape, pieces, q, memory, sinks, o, lse, sum, workspace);
}

// dk and dv (the block's rows, kv_heads * width) are added to, for all rows seen. dq is assigned
// once the walk is done, and until then left alone between blocks; dsinks (null: not wanted) is
// added to by its first. o and lse are the forward's. The rest as in the forward.
template <device D>
void attention_backward(D& on, attention_shape shape, piece_list pieces, given<D> q,
                        std::type_identity_t<given_memory<D>> memory, const scalar_of<D>* sinks,
                        given<D> o, given<D> lse, given<D> d_o, written<D> dq, written<D> dk,
                        written<D> dv, scalar_of<D>* dsinks, written<D> workspace) {
  constexpr auto name = "attention_backward";
  detail::expect_attention<D>(name, on, shape, pieces, q, memory, o, lse, workspace);
  expect_alike(name, "d_o", d_o, o);
  expect_alike(name, "dq", dq, q);
  expect_alike(name, "dk", dk, memory.k.middle_rows(0, memory.rows.rows()));
  expect_alike(name, "dv", dv, memory.v.middle_rows(0, memory.rows.rows()));
  on.count(2 * visible_pairs(shape, pieces, memory.rows) * shape.heads *
           (3 * shape.key_width + 2 * shape.value_width));
  if (const auto with = on.enter(name))
    attention_backward(*with, shape, pieces, q, memory, sinks, o, lse, d_o, dq, dk, dv, dsinks,
                       workspace);
}

// All memory rows at once.
template <device D>
void attention_forward(D& on, attention_shape shape, piece_list pieces, given<D> q, given<D> k,
                       given<D> v, const scalar_of<D>* sinks, written<D> o, written<D> lse,
                       written<D> workspace) {
  attention_forward(on, shape, pieces, q, {{0, k.rows}, k, v}, sinks, o, lse, {}, workspace);
}
template <device D>
void attention_backward(D& on, attention_shape shape, piece_list pieces, given<D> q, given<D> k,
                        given<D> v, const scalar_of<D>* sinks, given<D> o, given<D> lse,
                        given<D> d_o, written<D> dq, written<D> dk, written<D> dv,
                        scalar_of<D>* dsinks, written<D> workspace) {
  attention_backward(on, shape, pieces, q, {{0, k.rows}, k, v}, sinks, o, lse, d_o, dq, dk, dv,
                     dsinks, workspace);
}

}  // namespace streambp::primitives
