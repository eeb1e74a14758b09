// The error of a layer that is given rows of another width.
#pragma once

#include "../core/error.hpp"
#include "../core/position.hpp"

namespace streambp {

// Throws shape_error unless x has the features that the layer takes.
inline void expect_features(const char* layer, position given, position taken) {
  if (given != taken)
    throw shape_error(sentence(layer, ": x has ", given, " features, the layer takes ", taken));
}

// Throws shape_error unless a size is positive.
inline void expect_positive(const char* layer, const char* what, position value) {
  if (value < 1) throw shape_error(sentence(layer, ": ", what, " is ", value, ", it must be positive"));
}

}  // namespace streambp
