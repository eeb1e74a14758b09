#include <streambp/primitives/rotary_shape.hpp>

#include <doctest/doctest.h>

using namespace streambp;

TEST_CASE("rotary frequencies: a geometric row from 1 down, by the features that turn") {
  const rotary_shape shape{.heads = 2, .width = 8, .rotated = 8, .base = 1e4};
  for (position pair = 0; pair < 4; ++pair)
    CHECK(rotary_frequency(shape, pair) ==
          doctest::Approx(std::pow(10., -double(pair))).epsilon(1e-14));
  CHECK(rotary_frequency(shape, 0) == 1);

  // Half of the head turns: its last pair is as slow as that of a whole narrower head.
  const rotary_shape half{.heads = 2, .width = 8, .rotated = 4, .base = 1e4};
  CHECK(rotary_frequency(half, 1) == rotary_frequency({1, 4, 4, 1e4}, 1));
  CHECK(rotary_frequency(half, 1) == doctest::Approx(1e-2).epsilon(1e-14));
}
