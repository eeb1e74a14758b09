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

TEST_CASE("a layer that counts FLOPs and looks at rows in a loop of its own") {
  const laws::report r = laws::hold(counts_in_a_loop{}, laws::rows(37, 4));
  CHECK(laws::broken(r) == "a step runs to its end");
  CHECK(laws::text_of(r).find("counts_in_a_loop says counts_flops = true, but its own loop") !=
        std::string::npos);
}

}  // namespace
}  // namespace streambp
