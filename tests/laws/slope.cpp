#include <streambp/laws/slope.hpp>

#include <doctest/doctest.h>

using namespace streambp::laws;

TEST_CASE("slopes of smooth functions, also where plain central differences are far off") {
  CHECK(slope_at_0([](double h) { return std::exp(h); }) == doctest::Approx(1).epsilon(1e-10));
  // The third derivative is a million times the first: two points 2e-3 apart are wrong by 1e5.
  const auto steep = [](double h) { return std::sin(1e3 * h) + h; };
  CHECK((steep(2e-3) - steep(-2e-3)) / 4e-3 < 500);
  CHECK(slope_at_0(steep) == doctest::Approx(1001).epsilon(1e-8));
  // A norm of a small epsilon.
  const auto norm = [](double h) { return (h + 1e-4) / std::sqrt((h + 1e-4) * (h + 1e-4) + 1e-8); };
  CHECK(slope_at_0(norm) == doctest::Approx(1e-8 / std::pow(2e-8, 1.5)).epsilon(1e-5));
}

TEST_CASE("slopes from one side, at a kink") {
  const auto kink = [](double h) { return std::max(3 * h, -2 * h) + h * h; };
  CHECK(one_sided_slope(kink, 0, first_step, halvings).slope == doctest::Approx(3).epsilon(1e-9));
  CHECK(one_sided_slope(kink, 0, -first_step, halvings).slope == doctest::Approx(-2).epsilon(1e-9));
  // An infinite one does not converge.
  const auto root = [](double h) { return std::sqrt(std::max(h, 0.)); };
  const auto infinite = one_sided_slope(root, 0, first_step, halvings);
  CHECK(infinite.error > 1e-2 * std::abs(infinite.slope));
}
