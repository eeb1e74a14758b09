#include <streambp/optim/learning_rate.hpp>

#include <doctest/doctest.h>

using namespace streambp;

TEST_CASE("the rate rises in a line, then falls along half a cosine") {
  const cosine_schedule rate{.peak = 2, .steps = 14, .warm_up = 4, .floor = 0.5};
  CHECK(rate(1) == 0.5);
  CHECK(rate(2) == 1);
  CHECK(rate(3) == 1.5);
  CHECK(rate(4) == 2);
  CHECK(rate(9) == doctest::Approx(1.25));  // half way
  CHECK(rate(14) == doctest::Approx(0.5));
  CHECK(rate(1000) == doctest::Approx(0.5));
  for (position step = 4; step < 14; ++step) CHECK(rate(step + 1) < rate(step));
}

TEST_CASE("without a number of steps the rate stays at its peak") {
  const cosine_schedule rate{.peak = 3, .warm_up = 2};
  CHECK(rate(1) == 1.5);
  CHECK(rate(2) == 3);
  CHECK(rate(1000) == 3);
}

TEST_CASE("no warm-up, and a warm-up of the whole training") {
  const cosine_schedule straight{.peak = 1, .steps = 2};
  CHECK(straight(1) == doctest::Approx(0.5));
  CHECK(straight(2) == doctest::Approx(0));
  const cosine_schedule rising{.peak = 1, .steps = 4, .warm_up = 4};
  CHECK(rising(3) == 0.75);
  CHECK(rising(4) == 1);
}

TEST_CASE("members and steps that cannot be are refused") {
  CHECK_THROWS_WITH_AS(
      cosine_schedule{.peak = -1}(1),
      "cosine_schedule: a peak of -1 and a floor of 0; both are finite and not negative",
      data_error);
  CHECK_THROWS_AS((cosine_schedule{.floor = std::nan("")}(1)), data_error);
  CHECK_THROWS_WITH_AS((cosine_schedule{.steps = 5, .warm_up = -2}(1)),
                       "cosine_schedule: step 1 of 5 with a warm-up of -2; none is negative",
                       data_error);
  CHECK_THROWS_AS((cosine_schedule{.steps = -5}(1)), data_error);
  CHECK_THROWS_AS((cosine_schedule{.steps = 5}(-1)), data_error);
}
