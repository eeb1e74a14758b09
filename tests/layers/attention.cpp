#include <streambp/layers/attention.hpp>

#include "reference.hpp"

namespace streambp {
namespace {

const attention_options plain{.features = 12, .heads = 4, .kv_heads = 2, .head_width = 6};

attention_options with(void (*change)(attention_options&)) {
  attention_options o = plain;
  change(o);
  return o;
}

TEST_CASE("causal attention keeps the laws with every option") {
  const attention_options cases[] = {plain,
                                     {.features = 12, .heads = 6, .kv_heads = 2},
                                     {.features = 12, .heads = 3, .kv_heads = 1, .rotary = 1e4},
                                     {.features = 12, .heads = 1},
                                     with([](attention_options& o) { o.window = 1; }),
                                     with([](attention_options& o) { o.window = 5; }),
                                     with([](attention_options& o) { o.window = 33; }),
                                     with([](attention_options& o) { o.softcap = 3; }),
                                     with([](attention_options& o) { o.sinks = true; }),
                                     with([](attention_options& o) { o.bias = true; }),
                                     with([](attention_options& o) { o.rotary = 1e4; }),
                                     with([](attention_options& o) { o.value_width = 5; }),
                                     with([](attention_options& o) { o.scale = 0.7; }),
                                     {.features = 12,
                                      .heads = 4,
                                      .kv_heads = 2,
                                      .head_width = 6,
                                      .value_width = 3,
                                      .rotary = 1e4,
                                      .window = 5,
                                      .softcap = 3,
                                      .bias = true,
                                      .sinks = true}};
  for (const attention_options& o : cases) {
    CAPTURE(&o - cases);
    CHECK(laws::hold(causal_attention(o), laws::rows(37, 12)));
  }
}

TEST_CASE("causal attention keeps the laws over several blocks of keys") {
  CHECK(laws::hold(causal_attention(plain), laws::rows(260, 12)));
}

attention_options reference(position value_width = 8) {
  return {.features = 16,
          .heads = 4,
          .kv_heads = 2,
          .head_width = 8,
          .value_width = value_width,
          .rotary = 1e4};
}
attention_options reference(void (*change)(attention_options&)) {
  attention_options o = reference();
  change(o);
  return o;
}

TEST_CASE("causal attention is PyTorch's") {
  check_against("attention", causal_attention(reference()));
  check_against("attention_value_width", causal_attention(reference(4)));
  check_against("attention_bias", causal_attention(reference([](auto& o) { o.bias = true; })));
  check_against("attention_window", causal_attention(reference([](auto& o) { o.window = 5; })));
  check_against("attention_softcap", causal_attention(reference([](auto& o) { o.softcap = 20; })));
  check_against("attention_sinks", causal_attention(reference([](auto& o) { o.sinks = true; })));
  check_against("attention_window_sinks", causal_attention(reference([](auto& o) {
                  o.window = 5;
                  o.sinks = true;
                })));
}

TEST_CASE("attention names what does not fit") {
  const auto words = [](attention_options o) { return words_of([&] { causal_attention(o); }); };
  CHECK(words({.features = 12, .heads = 4, .kv_heads = 3}) ==
        "attention: 4 heads do not share 3 key and value heads evenly");
  CHECK(words({.features = 13, .heads = 4}) ==
        "attention: 13 features do not divide into 4 heads; give head_width");
  CHECK(words({.features = 12, .heads = 4, .rotary = 1e4}) ==
        "attention: rotary positions need an even head width, not 3");
  CHECK(words({.features = 12, .heads = 2, .kv_heads = -2}) ==
        "attention: kv_heads is -2, it must be positive");
  CHECK(words({.features = 12, .head_width = -4}) ==
        "attention: head_width is -4, it must be positive");
  CHECK(words({.features = 12, .softcap = -1}) ==
        "attention: softcap is -1, it must be at least 0");
  CHECK(words({.features = 12, .scale = std::nan("")}) ==
        "attention: scale is nan, it must be finite");
  CHECK(words({.features = 12, .window = -1}) ==
        "attention: a window is for causal attention, and not negative");
  CHECK(words({}) == "attention: features is 0, it must be positive");
  CHECK(words({.features = 12, .heads = 0}) == "attention: heads is 0, it must be positive");
  CHECK(words_of([] { laws::hold(causal_attention(plain), laws::rows(37, 8)); }) ==
        "attention: x has 8 features, the layer takes 12");
}

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
