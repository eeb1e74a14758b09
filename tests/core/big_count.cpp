#include <streambp/core/big_count.hpp>

#include <doctest/doctest.h>

#include <limits>
#include <sstream>
#include <string>

using namespace streambp;

namespace {

std::string printed(big_count n) {
  std::ostringstream out;
  out << n;
  return out.str();
}

}  // namespace

TEST_CASE("counts are whole numbers, beyond 64 bits too") {
  static_assert(big_count() == 0);
  static_assert(big_count(7) * 3 + 1 == 22 && big_count(7) - 9 == -2 && big_count(7) / 2 == 3);
  big_count n = position(1) << 40;
  n *= n;
  n += 1;
  CHECK(n > position(1) << 62);
  CHECK(double(n) == 0x1p80);
  CHECK(n / (position(1) << 40) == position(1) << 40);
  CHECK(position(n / (position(1) << 40)) == position(1) << 40);
  n -= 1;
  n /= position(1) << 40;
  CHECK(n == position(1) << 40);
  CHECK(big_count(2) < big_count(3));
  CHECK(big_count(-2) < 0);
}

TEST_CASE("counts are printed in decimal") {
  CHECK(printed(0) == "0");
  CHECK(printed(-1203) == "-1203");
  CHECK(printed(std::numeric_limits<position>::min()) == "-9223372036854775808");
  const big_count two_to_40 = position(1) << 40;
  CHECK(printed(two_to_40 * two_to_40) == "1208925819614629174706176");
  CHECK(printed(two_to_40 * two_to_40 * two_to_40 * -64) ==
        "-85070591730234615865843651857942052864");
}
