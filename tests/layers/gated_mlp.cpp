#include <streambp/layers/gated_mlp.hpp>

#include "reference.hpp"

namespace streambp {
namespace {

TEST_CASE("gated MLPs keep the laws") {
  CHECK(laws::hold(swiglu(8, 12), laws::rows(37, 8)));
  CHECK(laws::hold(geglu(8, 5), laws::rows(53, 8)));
}

TEST_CASE("gated MLPs are PyTorch's") {
  check_against("swiglu", swiglu(16, 24));
  check_against("geglu", geglu(16, 24));
}

TEST_CASE("gated MLPs name the sizes that do not fit") {
  CHECK(words_of([] { laws::hold(swiglu(8, 12), laws::rows(37, 6)); }) ==
        "mlp: x has 6 features, the layer takes 8");
  CHECK(words_of([] { swiglu(8, 0); }) == "mlp: inner is 0, it must be positive");
  CHECK(words_of([] { geglu(0, 8); }) == "mlp: width is 0, it must be positive");
}

}  // namespace
}  // namespace streambp
