#include <streambp/core/overlap.hpp>

#include <doctest/doctest.h>

#include <vector>

using namespace streambp;

TEST_CASE("arrays overlap from their first byte to their last, whatever their types") {
  std::vector<double> numbers(24);
  const std::span<double> all(numbers);
  CHECK(overlap(bytes_of(all), bytes_of(all)));
  CHECK(overlap(bytes_of(all.first(10)), bytes_of(all.subspan(9))));
  CHECK_FALSE(overlap(bytes_of(all.first(10)), bytes_of(all.subspan(10))));
  CHECK_FALSE(overlap(bytes_of(all.subspan(10)), bytes_of(all.first(10))));
  CHECK_FALSE(overlap(bytes_of(all.subspan(5, 0)), bytes_of(all)));
  const std::span<float> halves(reinterpret_cast<float*>(numbers.data()) + 19, 2);
  CHECK(overlap(bytes_of(halves), bytes_of(all.subspan(9, 1))));
  CHECK(overlap(bytes_of(halves), bytes_of(all.subspan(10, 1))));
  CHECK_FALSE(overlap(bytes_of(halves), bytes_of(all.subspan(11, 1))));
}

TEST_CASE("rows overlap one row off, and from between each other") {
  std::vector<double> numbers(24);
  const view<double> rows(numbers.data(), 4, 3, 6);
  CHECK(overlap(bytes_of(rows), bytes_of(view<double>(numbers.data() + 6, 3, 3, 6))));
  CHECK(overlap(bytes_of(rows), bytes_of(view<double>(numbers.data() + 3, 4, 3, 6))));
  CHECK_FALSE(overlap(bytes_of(rows.middle_rows(0, 2)), bytes_of(rows.middle_rows(2, 2))));
  CHECK_FALSE(overlap(bytes_of(rows.middle_rows(0, 0)), bytes_of(rows)));
}
