#include <streambp/layers/gru.hpp>

#include "families.hpp"

namespace streambp {
namespace {

TEST_CASE("a GRU keeps the laws") {
  CHECK(laws::hold(gru(7, 7), laws::rows(37, 7)));
  CHECK(laws::hold(gru(8, 5), laws::rows(97, 8)));
}

// Five samples side by side, and more units than a thread takes at once.
TEST_CASE("a GRU keeps the laws on many samples of many units") {
  laws::setting s = laws::rows(53, 6);
  s.samples = packed({0, 7, 16, 17, 33, 42, 42, 53});
  CHECK(laws::hold(gru(6, 70), s));
}

TEST_CASE("a GRU goes on from a shared prompt") {
  CHECK(hold_in_families(gru(8, 8), 8));
  CHECK(hold_in_families(gru(6, 70), 6));
}

TEST_CASE("a GRU is PyTorch's") { check_against("gru", gru(16, 12)); }

TEST_CASE("a GRU names the sizes that do not fit") {
  CHECK(words_of([] { laws::hold(gru(8, 5), laws::rows(37, 6)); }) ==
        "gru: x has 6 features, the layer takes 8");
  CHECK(words_of([] { gru(8, 0); }) == "gru: units is 0, it must be positive");
  CHECK(words_of([] { gru(0, 8); }) == "gru: width is 0, it must be positive");
}

}  // namespace
}  // namespace streambp
