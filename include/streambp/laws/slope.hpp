// Slopes of a function of one number, by differences that are halved and extrapolated.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "../core/language.hpp"

namespace streambp::laws {

struct slope_estimate {
  double slope = 0;
  double error = std::numeric_limits<double>::infinity();  // how far its two parents lie from it
  double step = 0;
};

// Richardson's table, Neville's way: an error of powers h^p, h^2p, ... loses one power a column.
class extrapolation {
 public:
  explicit extrapolation(int power) : power_(power) {}

  // The difference of half the step of the one before. Returns the row's best entry.
  slope_estimate add(double difference, double step) {
    row next{};
    next[0] = difference;
    slope_estimate best{difference, std::numeric_limits<double>::infinity(), step};
    double factor = 1;
    for (int j = 1; j <= std::min(rows_, columns - 1); ++j) {
      factor *= double(1 << power_);
      const auto k = std::size_t(j);
      next[k] = next[k - 1] + (next[k - 1] - last_[k - 1]) / (factor - 1);
      const double error =
          std::max(std::abs(next[k] - next[k - 1]), std::abs(next[k] - last_[k - 1]));
      if (error < best.error) best = {next[k], error, step};
    }
    last_ = next;
    ++rows_;
    return best;
  }

 private:
  static constexpr int columns = 6;
  using row = std::array<double, columns>;

  int power_;
  int rows_ = 0;
  row last_{};
};

inline constexpr double first_step = 2e-3;
inline constexpr int halvings = 16;

// d value / d h at 0 from both sides. `enough(estimate)` ends the search, else it goes to the least
// step and returns what converged best. Its first question comes after four values, of steps 2e-3
// and 1e-3: the classic five points.
template <class Value, class Enough>
slope_estimate central_slope(const Value& value, const Enough& enough, int times = halvings) {
  extrapolation table(2);
  slope_estimate best;
  double h = first_step;
  for (int i = 0; i <= times; ++i, h /= 2) {
    const slope_estimate e = table.add((value(h) - value(-h)) / (2 * h), h);
    if (e.error < best.error) best = e;
    if (i > 0 && enough(e)) return e;
  }
  return best;
}

// Of a smooth function.
template <class Value>
double slope_at_0(const Value& value) {
  return central_slope(value,
                       [](const slope_estimate& e) {
                         return e.error <= 1e-10 * std::max(1.0, std::abs(e.slope));
                       })
      .slope;
}

// From one side: the sign of `h`, the first step. `at_0` is value(0).
template <class Value>
slope_estimate one_sided_slope(const Value& value, double at_0, double h, int times) {
  extrapolation table(1);
  slope_estimate best;
  for (int i = 0; i <= times; ++i, h /= 2) {
    const slope_estimate e = table.add((value(h) - at_0) / h, h);
    if (e.error < best.error) best = e;
  }
  return best;
}

}  // namespace streambp::laws
