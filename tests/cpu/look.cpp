#include <streambp/cpu/look.hpp>

#include <doctest/doctest.h>

#include <limits>
#include <vector>

using namespace streambp;

TEST_CASE("the first entry that is not finite, wherever it stands") {
  cpu::device<float> on(1);
  std::vector<float> entries(10000, 1e30f);
  const view<float> flat(entries.data(), 100, 100), apart(entries.data(), 50, 199, 200);
  CHECK(first_not_finite(on, flat) == 10000);
  for (const position at : {9999, 9998, 8192, 4096, 4095, 199, 17, 0}) {
    entries[std::size_t(at)] =
        at % 2 ? std::numeric_limits<float>::infinity() : std::numeric_limits<float>::quiet_NaN();
    CHECK(first_not_finite(on, flat) == at);
    CHECK(!(entry(on, flat, at / 100, at % 100) < 1e38f));
    const auto found = find_not_finite(on, apart);
    const bool between = at == 9999;  // the last entry of each 200 belongs to no row
    CHECK(found.has_value() != between);
    if (found) CHECK(200 * found->row + found->column == (at == 199 ? 4095 : at));
  }
}
