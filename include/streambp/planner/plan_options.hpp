// What a user may ask of a plan.
#pragma once

#include <cstddef>
#include <limits>

#include "../core/grain.hpp"
#include "../core/packed.hpp"

namespace streambp {

// Not the largest number, which is what -1 becomes: a larger budget than this is refused.
inline constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max() / 2 + 1;

// All optional; 0 leaves a choice to the planner.
struct plan_options {
  std::size_t budget = unlimited;  // bytes for everything a step needs
  int threads = 1;
  position chunk = 0;  // rows at most; rounded to whole grains
  position head_chunk = 0;
  position stage = 0;     // blocks (repetitions) a stage
  position features = 0;  // of the input rows of a model that takes no tokens
  position prefix = 0;    // memory rows ahead of every sample
  bool input_gradient = false;
  bool keep = true;             // memories, outputs and chunks may be kept where the budget allows
  bool fuse_head = true;        // the head may run inside the last stage
  position carry_interval = 0;  // chunks between carries that are kept
  packed context{};             // the other stream, of a model that crosses to one
  position context_features = 0;
  geometry grains{};
};

}  // namespace streambp
