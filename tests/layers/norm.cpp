#include <streambp/layers/norm.hpp>

#include "reference.hpp"

namespace streambp {
namespace {

TEST_CASE("norms keep the laws") {
  for (const position width : {1, 8, 17}) {
    CAPTURE(width);
    CHECK(laws::hold(rms_norm(width), laws::rows(37, width)));
  }
  for (const position width : {8, 17}) {
    CAPTURE(width);
    CHECK(laws::hold(layer_norm(width), laws::rows(37, width)));
  }
  CHECK(laws::hold(rms_norm(8, 0), laws::rows(37, 8)));
  CHECK(laws::hold(layer_norm(8, 0), laws::rows(37, 8)));
}

TEST_CASE("norms are PyTorch's") {
  check_against("rms_norm", rms_norm(16));
  check_against("layer_norm", layer_norm(16));
}

TEST_CASE("norms name the sizes that do not fit") {
  CHECK(words_of([] { laws::hold(rms_norm(8), laws::rows(37, 6)); }) ==
        "rms_norm: x has 6 features, the layer takes 8");
  CHECK(words_of([] { laws::hold(layer_norm(8), laws::rows(37, 6)); }) ==
        "layer_norm: x has 6 features, the layer takes 8");
  CHECK(words_of([] { rms_norm(0); }) == "rms_norm: width is 0, it must be positive");
  CHECK(words_of([] { layer_norm(0); }) == "layer_norm: width is 0, it must be positive");
  CHECK(words_of([] { rms_norm(8, -1); }) == "rms_norm: epsilon is -1, it must be at least 0");
  CHECK(words_of([] { layer_norm(8, std::nan("")); }) ==
        "layer_norm: epsilon is nan, it must be finite");
  CHECK(words_of([] { rms_norm(position(1) << 40); }) ==
        "rms_norm: width is 1099511627776, it must be at most 68719476736");
}

}  // namespace
}  // namespace streambp
