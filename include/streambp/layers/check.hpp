// What layers say of sizes and numbers that cannot be theirs.
#pragma once

#include <cmath>
#include <limits>

#include "../core/error.hpp"
#include "../core/position.hpp"

namespace streambp {

// Throws shape_error unless x has the features that the layer takes.
inline void expect_features(const char* layer, position given, position taken) {
  if (given != taken)
    throw shape_error(
        sentence(layer, ": x has ", given, " features, the layer takes ", taken,
                 given == 0 ? "; a model of rows wants plan_options.features, one of tokens begins "
                              "with an embedding"
                            : ""));
}

// Throws shape_error unless a size is positive, and small enough for products of sizes to be
// counted.
inline void expect_positive(const char* layer, const char* what, position value) {
  if (value < 1)
    throw shape_error(sentence(layer, ": ", what, " is ", value, ", it must be positive"));
  if (value > largest_size)
    throw shape_error(
        sentence(layer, ": ", what, " is ", value, ", it must be at most ", largest_size));
}

// Throws shape_error unless a number is finite and at least `least`.
inline void expect_finite(const char* layer, const char* what, double value,
                          double least = -std::numeric_limits<double>::infinity()) {
  if (!std::isfinite(value))
    throw shape_error(sentence(layer, ": ", what, " is ", value, ", it must be finite"));
  if (value < least)
    throw shape_error(sentence(layer, ": ", what, " is ", value, ", it must be at least ", least));
}

}  // namespace streambp
