#include <streambp/engine/section_runner.hpp>

#include <doctest/doctest.h>

using streambp::detail::said_of;

TEST_CASE("what a layer's call says is said of its place") {
  CHECK(said_of("blocks.3.linear", "project: w is 2 x 3") ==
        "blocks.3.linear: project: w is 2 x 3");
  CHECK(said_of("blocks.3.linear", "linear: x has 2 features") ==
        "blocks.3.linear: x has 2 features");
  CHECK(said_of("linear_2", "linear: x has 2 features") == "linear_2: x has 2 features");
  CHECK(said_of("linear", "no colon") == "linear: no colon");
}
