// A learning rate that rises, then falls along half a cosine (Loshchilov and Hutter 2017).
#pragma once

#include <algorithm>
#include <cmath>
#include <numbers>

#include "../core/error.hpp"
#include "../core/position.hpp"

namespace streambp {

struct cosine_schedule {
  double peak = 1e-3;
  position steps = 0;    // of the whole training; 0: the rate stays at its peak
  position warm_up = 0;  // steps of a linear rise; the last of them is the first at the peak
  double floor = 0;      // rate at the end and after it

  // Of step 1, 2, ... Throws data_error when a member or the step cannot be.
  double operator()(position step) const {
    if (!(peak >= 0 && std::isfinite(peak) && floor >= 0 && std::isfinite(floor)))
      throw data_error(sentence("cosine_schedule: a peak of ", peak, " and a floor of ", floor,
                                "; both are finite and not negative"));
    if (steps < 0 || warm_up < 0 || step < 0)
      throw data_error(sentence("cosine_schedule: step ", step, " of ", steps,
                                " with a warm-up of ", warm_up, "; none is negative"));
    if (step < warm_up && step >= 0) return peak * double(step) / double(warm_up);
    if (steps == 0) return peak;
    const double falling = double(std::max(steps - warm_up, position(1)));
    const double done = std::min(double(step - warm_up) / falling, 1.);
    return floor + (peak - floor) * (1 + std::cos(std::numbers::pi * done)) / 2;
  }
};

}  // namespace streambp
