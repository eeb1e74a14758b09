#include <streambp/laws/central_differences.hpp>

#include <doctest/doctest.h>

namespace streambp::laws {
namespace {

TEST_CASE("slopes are exact for polynomials of degree four, near for others, steep ones too") {
  const auto error = [](auto f, double right) { return std::abs(slope_at_0(f) - right); };
  CHECK(error([](double h) { return 3 + 2 * h - h * h + h * h * h - 5 * h * h * h * h; }, 2) <
        1e-12);
  CHECK(error([](double h) { return std::exp(h); }, 1) < 1e-11);
  CHECK(error([](double h) { return std::sin(3 * h); }, 3) < 1e-10);
  CHECK(error([](double h) { return std::tanh(1e4 * h); }, 1e4) < 1e-5);
  CHECK(error([](double h) { return std::abs(h + 1e-4); }, 1) < 1e-8);  // a kink within the step
}

}  // namespace
}  // namespace streambp::laws
