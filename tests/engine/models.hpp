// The models of the engine's tests.
#pragma once

#include <streambp/streambp.hpp>

#include "../core/lengths.hpp"

namespace streambp {

inline const geometry small_grains{8, 16};

// Of one row, of whole tiles, none, prime and long.
inline const packed ragged = packed_lengths({1, 64, 0, 37, 0, 130, 3});
inline const packed short_ragged = packed_lengths({1, 40, 0, 23, 61});

inline auto language_model(attention_options options = {.heads = 4, .kv_heads = 2, .rotary = 1e4}) {
  options.features = 16;
  const auto block =
      residual(rms_norm(16) | causal_attention(options)) | residual(rms_norm(16) | swiglu(16, 24));
  return embedding(19, 16) | repeat(2, block) | rms_norm(16) | linear(16, 19);
}

// Rows go in; a read that sees all comes first, another one stands behind a recurrence and causal
// attention, and one residual stands in another.
inline auto mixture() {
  const attention_options heads{.features = 12, .heads = 2};
  return bidirectional_attention(heads) | residual(rms_norm(12) | gated_recurrence(12, 6)) |
         residual(rms_norm(12) | causal_attention({.features = 12, .heads = 2, .rotary = 1e3})) |
         residual(layer_norm(12) | bidirectional_attention(heads) | linear(12, 12)) |
         residual(linear(12, 8) | residual(rms_norm(8) | gelu()) | linear(8, 12)) | rms_norm(12) |
         linear(12, 7);
}

// The table is used at both ends and once between them; a frozen part stands in the middle.
inline auto sharing_model() {
  return embedding(12, 12) |
         residual(rms_norm(12) | causal_attention({.features = 12, .heads = 2, .rotary = 1e3})) |
         residual(tied_linear{12, 12} | dropout(0.25)) |
         frozen(residual(layer_norm(12) | gated_recurrence(12, 6))) |
         residual(rms_norm(12) | dropout(0.5) | swiglu(12, 16) | dropout(0.1)) | rms_norm(12) |
         tied_linear{12, 12};
}

}  // namespace streambp
