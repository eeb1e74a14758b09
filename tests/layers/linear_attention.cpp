#include <streambp/layers/linear_attention.hpp>

#include "families.hpp"

namespace streambp {
namespace {

linear_attention_options reference(double rotary) {
  return {.features = 16, .heads = 2, .key_width = 6, .value_width = 10, .rotary = rotary};
}

TEST_CASE("retention keeps the laws") {
  CHECK(laws::hold(retention({.features = 8, .heads = 2}), laws::rows(37, 8)));
  const linear_attention_options wide{
      .features = 8, .heads = 4, .key_width = 6, .value_width = 3, .rotary = 1e4};
  CHECK(laws::hold(retention(wide), laws::rows(97, 8)));
}

TEST_CASE("gated linear attention keeps the laws") {
  CHECK(laws::hold(gated_linear_attention({.features = 8, .heads = 2}), laws::rows(37, 8)));
  const linear_attention_options steep{
      .features = 8, .heads = 1, .key_width = 3, .value_width = 5, .root = 0.5};
  CHECK(laws::hold(gated_linear_attention(steep), laws::rows(37, 8)));
}

// Runs of 64 rows, whose states are kept, and chunks that cut them.
TEST_CASE(
    "linear attention keeps the laws over several runs, with the least and the largest tiles") {
  for (const geometry g : {geometry{8, 72}, geometry{64, 64}}) {
    CAPTURE(g.tile);
    laws::setting s = laws::rows(230, 8);
    s.grains = g;
    const linear_attention_options o{.features = 8, .heads = 2, .rotary = 1e4};
    CHECK(laws::hold(gated_linear_attention(o), s));
  }
}

TEST_CASE("linear attention goes on from a shared prompt") {
  CHECK(hold_in_families(retention({.features = 8, .heads = 2}), 8));
  const linear_attention_options o{.features = 8, .heads = 2, .value_width = 5};
  CHECK(hold_in_families(gated_linear_attention(o), 8));
}

TEST_CASE("linear attention is its formula's") {
  check_against("retention", retention(reference(1e4)));
  check_against("gated_linear_attention", gated_linear_attention(reference(0)));
}

TEST_CASE("linear attention names what does not fit") {
  CHECK(words_of([] { retention({.features = 13, .heads = 4}); }) ==
        "retention: 13 features do not divide into 4 heads; give key_width");
  CHECK(words_of([] { retention({.features = 12, .heads = 4, .rotary = 1e4}); }) ==
        "retention: rotary positions need an even key_width, not 3");
  CHECK(words_of([] { gated_linear_attention({.features = 12, .heads = 0}); }) ==
        "gated_linear_attention: heads is 0, it must be positive");
  for (const auto& [root, words] : {std::pair{0., "0"}, {-2., "-2"}, {double(NAN), "nan"}}) {
    const std::string said =
        words_of([root = root] { gated_linear_attention({.features = 8, .root = root}); });
    CHECK(said == sentence("gated_linear_attention: root is ", words, ", it must be positive"));
  }
  CHECK(words_of([] { gated_linear_attention({}); }) ==
        "gated_linear_attention: features is 0, it must be positive");
  CHECK(words_of([] { laws::hold(retention({.features = 8}), laws::rows(37, 6)); }) ==
        "retention: x has 6 features, the layer takes 8");
}

}  // namespace
}  // namespace streambp
