#include <streambp/layers/causal_convolution.hpp>

#include "families.hpp"

namespace streambp {
namespace {

// More taps than a tile has rows reach through several chunks.
TEST_CASE("a causal convolution keeps the laws") {
  for (const bool silu : {false, true})
    for (const position taps : {1, 2, 4, 19}) {
      CAPTURE(silu);
      CAPTURE(taps);
      CHECK(laws::hold(causal_convolution(5, taps, silu), laws::rows(37, 5)));
    }
  CHECK(laws::hold(causal_convolution(70, 3), laws::rows(53, 70)));
}

TEST_CASE("a causal convolution goes on from a shared prompt") {
  CHECK(hold_in_families(causal_convolution(5, 4), 5));
  CHECK(hold_in_families(causal_convolution(5, 19, true), 5));
}

TEST_CASE("a causal convolution is PyTorch's") {
  check_against("convolution", causal_convolution(16, 4));
  check_against("convolution_silu", causal_convolution(16, 11, true));
}

TEST_CASE("a causal convolution names the sizes that do not fit") {
  CHECK(words_of([] { laws::hold(causal_convolution(8, 4), laws::rows(37, 6)); }) ==
        "convolution: x has 6 features, the layer takes 8");
  CHECK(words_of([] { causal_convolution(8, 0); }) ==
        "convolution: taps is 0, it must be positive");
  CHECK(words_of([] { causal_convolution(0, 4); }) ==
        "convolution: width is 0, it must be positive");
}

}  // namespace
}  // namespace streambp
