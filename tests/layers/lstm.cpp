#include <streambp/layers/lstm.hpp>

#include "families.hpp"

namespace streambp {
namespace {

TEST_CASE("an LSTM keeps the laws") {
  CHECK(laws::hold(lstm(7, 7), laws::rows(37, 7)));
  CHECK(laws::hold(lstm(8, 5), laws::rows(97, 8)));
}

// Five samples side by side, and more units than a thread takes at once.
TEST_CASE("an LSTM keeps the laws on many samples of many units") {
  laws::setting s = laws::rows(53, 6);
  s.samples = packed({0, 7, 16, 17, 33, 42, 42, 53});
  CHECK(laws::hold(lstm(6, 70), s));
}

TEST_CASE("an LSTM goes on from a shared prompt") {
  CHECK(hold_in_families(lstm(8, 8), 8));
  CHECK(hold_in_families(lstm(6, 70), 6));
}

TEST_CASE("an LSTM is PyTorch's") { check_against("lstm", lstm(16, 12)); }

TEST_CASE("an LSTM names the sizes that do not fit") {
  CHECK(words_of([] { laws::hold(lstm(8, 5), laws::rows(37, 6)); }) ==
        "lstm: x has 6 features, the layer takes 8");
  CHECK(words_of([] { lstm(8, 0); }) == "lstm: units is 0, it must be positive");
  CHECK(words_of([] { lstm(0, 8); }) == "lstm: width is 0, it must be positive");
}

}  // namespace
}  // namespace streambp
