// What a loss may use of a token's logits, and what it gives back.
#pragma once

#include "../core/language.hpp"

namespace streambp {

// z = c tanh(scale raw / c), or z = scale raw where the softcap c is 0.
struct logit_transform {
  double scale = 1;
  double softcap = 0;
};

// Of a row z of logits: log Σ exp (z_j - base), z - base at the target, the mean of z - base. The
// base is 0 but in a row whose largest entry is beyond ±2^20, where it is that entry: there
// differences of the three would be lost in rounding.
struct row_statistics {
  double lse = 0;
  double target = 0;
  double mean = 0;
  double base = 0;
  double log_probability() const { return target - lse; }
};

// The slopes of the loss in them.
struct row_gradient {
  double lse = 0;
  double target = 0;
  double mean = 0;
};

}  // namespace streambp
