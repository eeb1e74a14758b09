#include <streambp/planner/sum_of_concave.hpp>

#include <doctest/doctest.h>

#include <algorithm>

using namespace streambp;

TEST_CASE("straight, bent once or at every place: the sum of the places one by one") {
  for (const position first : {0, 7})
    for (const position n : {1, 2, 3, 4, 5, 17, 64, 1000})
      for (const position bend : {0, 1, 2, 5, 500, 5000}) {
        const auto rises = [&](position i) { return big_count(3 * std::min(i, bend) + 11); };
        const auto curves = [&](position i) { return big_count(i * (2000 - i)); };
        big_count of_rises, of_curves;
        for (position i = first; i < first + n; ++i) of_rises += rises(i), of_curves += curves(i);
        CAPTURE(n);
        CAPTURE(bend);
        CHECK(sum_of_concave(first, first + n - 1, rises) == of_rises);
        CHECK(sum_of_concave(first, first + n - 1, curves) == of_curves);
      }
}

TEST_CASE("few places are asked for") {
  const position n = position(1) << 40, bend = 123456789012;
  position asked = 0;
  const auto f = [&](position i) {
    ++asked;
    return big_count(5) * std::min(i, bend);
  };
  // 5 (0 + ... + bend - 1) + 5 bend (n - bend)
  CHECK(sum_of_concave(0, n - 1, f) ==
        big_count(5) * bend * (bend - 1) / 2 + big_count(5) * bend * (n - bend));
  CHECK(asked < 100);
}
