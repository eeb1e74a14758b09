#include <streambp/cpu/look.hpp>

#include <doctest/doctest.h>

#include <algorithm>
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

TEST_CASE("rows to the host and back, without their gaps") {
  cpu::device<float> on(1);
  std::vector<float> numbers(40), other(40, -1);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = float(i);
  const view<float> rows(numbers.data() + 3, 4, 6, 9), back(other.data() + 1, 4, 6, 8);
  std::vector<float> host(24);
  read_rows(on, rows, host);
  write_rows(on, host, back);
  for (position i = 0; i < 4; ++i)
    for (position j = 0; j < 6; ++j) {
      const auto number = float(3 + 9 * i + j);
      CHECK(host[std::size_t(6 * i + j)] == number);
      CHECK(back(i, j) == number);
    }
  CHECK(std::count(other.begin(), other.end(), -1) == 40 - 24);
  const primitives::host_copy<cpu::device<float>> seen(on, host);
  CHECK(seen.entries().data() == host.data());
}
