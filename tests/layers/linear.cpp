#include <streambp/layers/linear.hpp>

#include "reference.hpp"

namespace streambp {
namespace {

TEST_CASE("linear keeps the laws") {
  CHECK(laws::hold(linear(8, 8), laws::rows(37, 8)));
  CHECK(laws::hold(linear(8, 8, true), laws::rows(37, 8)));
  CHECK(laws::hold(linear(16, 5, true), laws::rows(53, 16)));
  CHECK(laws::hold(linear(3, 11), laws::rows(97, 3)));
}

TEST_CASE("linear is PyTorch's") {
  check_against("linear", linear(16, 12));
  check_against("linear_bias", linear(16, 12, true));
}

TEST_CASE("linear names the sizes that do not fit") {
  CHECK(words_of([] { laws::hold(linear(8, 8), laws::rows(37, 6)); }) ==
        "linear: x has 6 features, the layer takes 8");
  CHECK(words_of([] { linear(0, 8); }) == "linear: in is 0, it must be positive");
  CHECK(words_of([] { linear(8, -1); }) == "linear: out is -1, it must be positive");
}

}  // namespace
}  // namespace streambp
