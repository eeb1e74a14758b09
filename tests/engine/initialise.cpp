#include <streambp/engine/initialise.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

using namespace streambp;

namespace {

parameter_table table_of(const std::vector<std::string>& names) {
  parameter_table table;
  for (const auto& name : names)
    table.add({.name = name, .rows = 40, .cols = 25, .initial = {0, 0.5}}, true);
  return table;
}

}  // namespace

// Every machine must agree on it; the number is from a second program, in integers of any size.
static_assert(near_normal(random_row({1, 0, 0, random_name("embedding.table")}, 2), 3) ==
              107341 / 65536.);

TEST_CASE("mean, deviation and tails of the normal") {
  const int rows = 400, columns = 500;
  const double n = double(rows) * columns;
  double mean = 0, square = 0, fourth = 0, beside = 0;
  int beyond_two = 0;
  for (int i = 0; i < rows; ++i) {
    const std::uint64_t row = random_row({7}, i);
    for (int j = 0; j < columns; ++j) {
      const double z = near_normal(row, j);
      mean += z / n;
      square += z * z / n;
      fourth += z * z * z * z / n;
      beside += z * near_normal(row, j + 1) / n;
      beyond_two += std::abs(z) > 2;
    }
  }
  const double deviations = 4 / std::sqrt(n);
  CHECK(std::abs(mean) < deviations);
  CHECK(std::abs(square - 1) < deviations * std::sqrt(1.9));
  CHECK(std::abs(fourth - 2.9) < deviations * 9);  // 3 - 6 / (5 · 12) of twelve uniforms
  CHECK(std::abs(beside) < deviations);
  CHECK(beyond_two / n == doctest::Approx(0.0455).epsilon(0.05));
}

TEST_CASE("means and deviations are the layers'") {
  parameter_table table;
  table.add({.name = "gain", .rows = 1, .cols = 3, .initial = ones}, true);
  table.add({.name = "bias", .rows = 1, .cols = 5, .initial = zeros}, false);
  table.add({.name = "weight", .rows = 40, .cols = 25, .initial = {-3, 0.25}}, true);
  const auto parameters = initial_parameters<double>(table, 1);
  REQUIRE(parameters.size() == 1008);
  CHECK(std::all_of(parameters.begin(), parameters.begin() + 3, [](double x) { return x == 1; }));
  CHECK(
      std::all_of(parameters.begin() + 3, parameters.begin() + 8, [](double x) { return x == 0; }));
  double mean = 0, square = 0;
  for (std::size_t i = 8; i < parameters.size(); ++i) {
    mean += parameters[i] / 1000;
    square += (parameters[i] + 3) * (parameters[i] + 3) / 1000;
  }
  CHECK(std::abs(mean + 3) < 4 * 0.25 / std::sqrt(1000));
  CHECK(std::sqrt(square) == doctest::Approx(0.25).epsilon(0.1));
}

TEST_CASE("a parameter's start is its name's and the seed's") {
  const auto alone = initial_parameters<float>(table_of({"b"}), 5);
  const auto among = initial_parameters<float>(table_of({"a", "b", "c"}), 5);
  CHECK(std::equal(alone.begin(), alone.end(), among.begin() + 1000));
  CHECK_FALSE(std::equal(alone.begin(), alone.end(), among.begin()));
  CHECK_FALSE(std::equal(alone.begin(), alone.end(), among.begin() + 2000));
  CHECK(alone != initial_parameters<float>(table_of({"b"}), 6));
  // Single precision rounds the same numbers.
  const auto exact = initial_parameters<double>(table_of({"b"}), 5);
  for (std::size_t i = 0; i < alone.size(); ++i) CHECK(alone[i] == float(exact[i]));
}
