#include <streambp/optim/clip.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

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

TEST_CASE("a norm that is not finite gives a factor that the optimizer refuses") {
  for (const double norm : {std::nan(""), HUGE_VAL, -HUGE_VAL}) {
    CHECK(std::isnan(clip_factor(norm, 1)));
    CHECK(std::isnan(clip_factor(norm, 0)));
  }
}
