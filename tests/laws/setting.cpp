#include <streambp/laws/setting.hpp>

#include <doctest/doctest.h>

#include <cstdlib>
#include <string>

namespace streambp::laws {
namespace {

TEST_CASE("a setting has ragged samples: none, one token, and longer ones over three grains") {
  for (const position tokens : {37, 53, 97, 260}) {
    CAPTURE(tokens);
    const setting s = rows(tokens, 4);
    CHECK(s.samples.tokens() == tokens);
    CHECK(s.features == 4);
    position none = 0, one = 0, long_ones = 0;
    for (position k = 0; k < s.samples.segments(); ++k) {
      const position length = s.samples.segment(k).rows();
      none += length == 0;
      one += length == 1;
      long_ones += length > s.grains.tile;
    }
    CHECK(none == 3);
    CHECK(one == 1);
    CHECK(long_ones == 2);
    CHECK(grain_edges(s.samples, s.grains.tile, s.grains.grain).size() >= 4);
    CHECK(beside(s.samples).segments() == s.samples.segments());
    CHECK(beside(s.samples).segment(0).rows() == 0);
  }
  CHECK(tokens(37, 19).features == 0);
  CHECK(tokens(37, 19).vocabulary == 19);
}

TEST_CASE("a setting that cuts nothing is refused") {
  CHECK_THROWS_WITH_AS(rows(0, 4), "laws: 0 rows of 4 features; take 37 rows", shape_error);
  try {
    rows(12, 4);
    FAIL("no exception");
  } catch (const shape_error& e) {
    CHECK(std::string(e.what()) == "laws: 12 tokens make fewer than three grains; take 37");
  }
}

TEST_CASE("the environment gives a seed for all settings that name none") {
  const auto seed_of = [](const char* said) {
    ::setenv("STREAMBP_LAWS_SEED", said, 1);
    return rows(37, 4).seed;
  };
  const char* const before = std::getenv("STREAMBP_LAWS_SEED");
  const std::string restored = before ? before : "";
  CHECK(seed_of("7") == 7);
  CHECK(seed_of("-3") == -3);
  for (const std::string wrong : {"", "7x", "1.5", "99999999999"}) try {
      seed_of(wrong.c_str());
      FAIL("no exception");
    } catch (const shape_error& e) {
      CHECK(std::string(e.what()) ==
            "laws: STREAMBP_LAWS_SEED is \"" + wrong + "\", it must be a whole number");
    }
  ::unsetenv("STREAMBP_LAWS_SEED");
  CHECK(rows(37, 4).seed == 1);
  if (before) ::setenv("STREAMBP_LAWS_SEED", restored.c_str(), 1);
}

TEST_CASE("data stay away from 0") {
  for (int seed : {0, 1, 17, 103})
    for (position i = 0; i < 1000; ++i) {
      CHECK(std::abs(wave(i, seed)) >= 0.1);
      CHECK(std::abs(wave(i, seed)) <= 1);
    }
}

}  // namespace
}  // namespace streambp::laws
