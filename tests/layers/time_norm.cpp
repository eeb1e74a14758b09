#include <streambp/layers/time_norm.hpp>

#include "reference.hpp"

namespace streambp {
namespace {

// Of two in a row the second hides the first one's gain, so that its gradient is all rounding.
TEST_CASE("normalisation over time keeps the laws") {
  laws::setting once = laws::rows(53, 17);
  once.twice = false;
  CHECK(laws::hold(time_norm(17, 1e-2), once));
  CHECK(laws::hold(time_norm(8) | gelu(), laws::rows(37, 8)));
}

TEST_CASE("normalisation over time inside a residual keeps the laws") {
  CHECK(laws::hold(residual(linear(8, 8) | time_norm(8) | gelu()), laws::rows(37, 8)));
}

TEST_CASE("normalisation over time is PyTorch's") { check_against("time_norm", time_norm(16)); }

TEST_CASE("normalisation over time names the sizes that do not fit") {
  CHECK(words_of([] { laws::hold(time_norm(8), laws::rows(37, 6)); }) ==
        "time_norm: x has 6 features, the layer takes 8");
  CHECK(words_of([] { time_norm(0); }) == "time_norm: width is 0, it must be positive");
}

}  // namespace
}  // namespace streambp
