#include <streambp/cpu/sums.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

using namespace streambp;

// Whole numbers: sums are exact in any order.
TEST_CASE_TEMPLATE("sums of all entries", S, float, double) {
  cpu::device<S> on(1);
  std::vector<S> numbers;
  for (int i = 0; i < 60; ++i) numbers.push_back(S(i % 7 - 4));
  const view<S> rows(numbers.data() + 3, 4, 6, 9);
  std::vector<S> factors{1, 2, 3, 4, 5, 6};
  double products = 0, squares = 0;
  for (position i = 0; i < 4; ++i)
    for (position j = 0; j < 6; ++j)
      products += (1 + double(j)) * double(numbers[std::size_t(3 + 9 * i + j)]);
  CHECK(sum_of_products(on, view<S>(factors.data(), 4, 6, 0), rows) == products);
  for (std::size_t n = 0; n <= numbers.size(); ++n) {
    CHECK(sum_of_squares(on, std::span(numbers).first(n), 0.5) == 4 * squares);
    if (n < numbers.size()) squares += double(numbers[n]) * double(numbers[n]);
  }
  CHECK(largest_of(on, std::span<const S>{}) == 0);
  CHECK(largest_of(on, numbers) == 4);
  numbers[7] = S(NAN), numbers[50] = S(-9);
  CHECK(largest_of(on, numbers) == 9);
}
