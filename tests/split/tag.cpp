#include <streambp/split/tag.hpp>

#include <doctest/doctest.h>

#include <string>
#include <type_traits>

using streambp::tag;

static_assert(std::is_same_v<tag<"keys">, tag<"keys">>);
static_assert(!std::is_same_v<tag<"keys">, tag<"key">> && !std::is_same_v<tag<"">, tag<"k">>);
static_assert(std::is_empty_v<tag<"keys">>);

TEST_CASE("tag: a type says its name") {
  CHECK(std::string(tag<"keys">::name) == "keys");
  CHECK(std::string(tag<"">::name).empty());
}
