#include <streambp/optim/clip.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <streambp/cpu/sums.hpp>
#include <vector>

#include "../unreachable_device.hpp"

using namespace streambp;

static_assert(clip_factor(8, 2) == 0.25);
static_assert(clip_factor(2, 2) == 1);
static_assert(clip_factor(0.5, 2) == 1);
static_assert(clip_factor(8, 0) == 1);

TEST_CASE("the norm of every length") {
  for (int n = 0; n < 40; ++n) {
    std::vector<float> gradient;
    double squares = 0;
    for (int i = 0; i < n; ++i) {
      gradient.push_back(float(i % 2 ? -i : i));
      squares += double(i) * i;  // exact, in any order
    }
    CHECK(gradient_norm<float>(gradient) == std::sqrt(squares));
  }
}

TEST_CASE("squares that a float cannot hold are summed") {
  CHECK(gradient_norm<float>(std::vector<float>(9, 1e30f)) == doctest::Approx(3e30));
  CHECK(gradient_norm<float>(std::vector<float>(9, 1e-30f)) == doctest::Approx(3e-30));
}

TEST_CASE("squares that a double cannot hold, and those that it cannot tell from 0, are summed") {
  CHECK(gradient_norm<double>(std::vector<double>(9, 1e300)) == doctest::Approx(3e300));
  CHECK(gradient_norm<double>(std::vector<double>(9, -1e-300)) == doctest::Approx(3e-300));
  CHECK(gradient_norm<double>(std::vector<double>(4, 5e-324)) == 1e-323);
  CHECK(gradient_norm<double>(std::vector<double>{3e300, 0, 4e300}) == doctest::Approx(5e300));
  CHECK(gradient_norm<double>(std::vector<double>{3e-200, 4e-200}) == doctest::Approx(5e-200));
  CHECK(gradient_norm<double>(std::vector<double>(5, 0.)) == 0);
  CHECK(std::isnan(gradient_norm<double>(std::vector<double>{1, std::nan(""), HUGE_VAL})));
  CHECK(gradient_norm<double>(std::vector<double>{1, -HUGE_VAL}) == HUGE_VAL);
}

TEST_CASE("of memory that the host cannot touch") {
  for (const double unit : {1., 1e200, 1e-200}) {
    std::vector<double> gradient;
    for (int i = 0; i < 37; ++i) gradient.push_back(unit * std::sin(i));
    const unreachable::buffer<double> far(std::span<const double>{gradient});
    CHECK(gradient_norm<double, unreachable::device<double>>(far.span()) ==
          gradient_norm<double>(gradient));
  }
}

TEST_CASE("a norm or a limit that cannot be is refused") {
  for (const double wrong : {std::nan(""), HUGE_VAL, -HUGE_VAL, -1.}) {
    CHECK_THROWS_AS(clip_factor(wrong, 1), data_error);
    CHECK_THROWS_AS(clip_factor(wrong, 0), data_error);
    CHECK_THROWS_AS(clip_factor(5, wrong), data_error);
  }
  CHECK_THROWS_WITH_AS(clip_factor(-1, 1),
                       "clip_factor: a norm of -1; it is finite and not negative: look for the "
                       "gradient's entries that are not, before parameters change",
                       data_error);
  CHECK_THROWS_WITH_AS(
      clip_factor(5, -1),
      "clip_factor: a limit of -1; it is finite and not negative, and 0 means none", data_error);
}
