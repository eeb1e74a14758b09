#include <streambp/core/error.hpp>

#include <doctest/doctest.h>

#include <type_traits>

using namespace streambp;

static_assert(std::is_base_of_v<std::runtime_error, error>);
static_assert(std::is_base_of_v<error, shape_error> && std::is_base_of_v<error, data_error> &&
              std::is_base_of_v<error, budget_error>);

TEST_CASE("errors: a sentence from its parts") {
  CHECK(sentence("x has ", 512, " features, ", 0.5, " of ", std::string("w")) ==
        "x has 512 features, 0.5 of w");
}

TEST_CASE("errors: a budget that cannot be met says what would do") {
  try {
    throw budget_error("too little", 4096);
  } catch (const error& e) {
    CHECK(std::string(e.what()) == "too little");
    CHECK(dynamic_cast<const budget_error&>(e).least == 4096);
  }
}
