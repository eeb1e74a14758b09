// What attention layers leave to their defaults: as many key and value heads as heads, which divide
// the features among themselves.
#pragma once

#include <cmath>

#include "check.hpp"

namespace streambp {

// Options has features, heads, kv_heads, head_width, value_width and scale; those after heads are
// filled in where they are 0. Throws shape_error when heads do not fit.
template <class Options>
void fill_in_heads(const char* layer, Options& a) {
  expect_positive(layer, "features", a.features);
  expect_positive(layer, "heads", a.heads);
  if (a.kv_heads == 0) a.kv_heads = a.heads;
  expect_positive(layer, "kv_heads", a.kv_heads);
  if (a.heads % a.kv_heads != 0)
    throw shape_error(sentence(layer, ": ", a.heads, " heads do not share ", a.kv_heads,
                               " key and value heads evenly"));
  if (a.head_width == 0) {
    if (a.features % a.heads != 0)
      throw shape_error(sentence(layer, ": ", a.features, " features do not divide into ", a.heads,
                                 " heads; give head_width"));
    a.head_width = a.features / a.heads;
  }
  expect_positive(layer, "head_width", a.head_width);
  if (a.value_width == 0) a.value_width = a.head_width;
  expect_positive(layer, "value_width", a.value_width);
  if (a.scale == 0) a.scale = 1 / std::sqrt(double(a.head_width));
  expect_finite(layer, "scale", a.scale);
}

}  // namespace streambp
