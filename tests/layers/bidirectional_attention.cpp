#include <streambp/layers/attention.hpp>

#include "reference.hpp"

namespace streambp {
namespace {

TEST_CASE("bidirectional attention keeps the laws") {
  CHECK(laws::hold(bidirectional_attention({.features = 12, .heads = 4, .kv_heads = 2}),
                   laws::rows(37, 12)));
  CHECK(laws::hold(bidirectional_attention({.features = 12,
                                            .heads = 3,
                                            .kv_heads = 1,
                                            .value_width = 5,
                                            .rotary = 1e4,
                                            .softcap = 3,
                                            .bias = true,
                                            .sinks = true}),
                   laws::rows(53, 12)));
}

TEST_CASE("bidirectional attention is PyTorch's") {
  check_against(
      "attention_bidirectional",
      bidirectional_attention({.features = 16, .heads = 4, .kv_heads = 2, .head_width = 8}));
}

TEST_CASE("bidirectional attention has no window") {
  CHECK(words_of([] { bidirectional_attention({.features = 12, .window = 5}); }) ==
        "attention: a window is for causal attention, and not negative");
}

}  // namespace
}  // namespace streambp
