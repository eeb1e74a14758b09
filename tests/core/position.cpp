#include <streambp/core/position.hpp>

#include <doctest/doctest.h>

using namespace streambp;

static_assert(sizeof(position) == 8 && position(-1) < 0);
static_assert(round_up(0, 8) == 0 && round_up(1, 8) == 8 && round_up(8, 8) == 8);
static_assert(ceil_div(0, 8) == 0 && ceil_div(1, 8) == 1 && ceil_div(8, 8) == 1 &&
              ceil_div(9, 8) == 2);
static_assert(row_range{3, 7}.rows() == 4 && row_range{3, 7} != row_range{3, 8});

// Tokens times vocabulary of a long sequence: past 2^31, and the next power too.
static_assert(position(16385) * 131072 == 2147614720);
static_assert(round_up(position(1) << 33, 64) == position(1) << 33);

TEST_CASE("positions past 2^31 round and divide") {
  const position n = (position(1) << 40) + 1;
  CHECK(round_up(n, 64) == (position(1) << 40) + 64);
  CHECK(ceil_div(n, 2) == (position(1) << 39) + 1);
}
