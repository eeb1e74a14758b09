// A learning rate that rises, then falls along half a cosine (Loshchilov and Hutter 2017).
#pragma once

#include <algorithm>
#include <cmath>
#include <numbers>

#include "../core/position.hpp"

namespace streambp {

struct cosine_schedule {
  double peak = 1e-3;
  position steps = 0;    // of the whole training; 0: the rate stays at its peak
  position warm_up = 0;  // steps of a linear rise; the last of them is the first at the peak
  double floor = 0;      // rate at the end and after it

  // Of step 1, 2, ...
  double operator()(position step) const {
    if (step < warm_up && step >= 0) return peak * double(step) / double(warm_up);
    if (steps == 0) return peak;
    const double falling = double(std::max(steps - warm_up, position(1)));
    const double done = std::min(double(step - warm_up) / falling, 1.);
    return floor + (peak - floor) * (1 + std::cos(std::numbers::pi * done)) / 2;
  }
};

}  // namespace streambp
