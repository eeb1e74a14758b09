// The measured model: a causal transformer shaped like Qwen3, head and embedding untied.
#pragma once

#include <streambp/streambp.hpp>

namespace bench {

using streambp::position;

struct transformer_shape {
  position width = 512;
  position blocks = 8;
  position heads = 8;
  position kv_heads = 2;
  position inner = 1536;
  position vocabulary = 32000;
};

inline auto transformer(const transformer_shape& s) {
  using namespace streambp;
  const auto block = residual(rms_norm(s.width) | causal_attention({.features = s.width,
                                                                    .heads = s.heads,
                                                                    .kv_heads = s.kv_heads,
                                                                    .rotary = 1e6})) |
                     residual(rms_norm(s.width) | swiglu(s.width, s.inner));
  return embedding(s.vocabulary, s.width) | repeat(s.blocks, block) | rms_norm(s.width) |
         linear(s.width, s.vocabulary);
}

}  // namespace bench
