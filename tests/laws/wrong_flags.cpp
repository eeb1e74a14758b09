#include "wrong_flags.hpp"

#include "broken.hpp"

namespace streambp {
namespace {

TEST_CASE("a layer that reads what it says it does not read") {
  CHECK(laws::broken(laws::hold(reads_input{}, laws::rows(37, 4))) == "the declaration is true");
}

TEST_CASE("a layer whose FLOPs are not those planned") {
  CHECK(laws::broken(laws::hold(counts_wrong{4}, laws::rows(37, 4))) ==
        "FLOPs are what was planned");
}

}  // namespace
}  // namespace streambp
