#include <streambp/layers/gated_recurrence.hpp>

#include "reference.hpp"

namespace streambp {
namespace {

TEST_CASE("a gated recurrence keeps the laws") {
  CHECK(laws::hold(gated_recurrence(8, 8), laws::rows(37, 8)));
  CHECK(laws::hold(gated_recurrence(8, 5), laws::rows(97, 8)));
}

TEST_CASE("a gated recurrence is PyTorch's") {
  check_against("gated_recurrence", gated_recurrence(16, 12));
}

TEST_CASE("a gated recurrence names the sizes that do not fit") {
  CHECK(words_of([] { laws::hold(gated_recurrence(8, 5), laws::rows(37, 6)); }) ==
        "recurrence: x has 6 features, the layer takes 8");
  CHECK(words_of([] { gated_recurrence(8, 0); }) == "recurrence: states is 0, it must be positive");
  CHECK(words_of([] { gated_recurrence(0, 8); }) == "recurrence: width is 0, it must be positive");
}

}  // namespace
}  // namespace streambp
