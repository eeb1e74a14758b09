// What a selective state space layer does to a token's heads around its recurrence: step sizes,
// decays, inputs, and the way past the state.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "../primitives/state_space.hpp"
#include "decay.hpp"
#include "gather.hpp"
#include "tile_heads.hpp"

namespace streambp::cpu {
inline namespace STREAMBP_ISA {

// e^(a_log), the largest number where it is more: it leaves nothing of a state, and a step of 0
// still leaves all.
inline double state_rate(double a_log) {
  return std::min(std::exp(a_log), std::numeric_limits<double>::max());
}

template <class S>
void state_steps(workers<S>& on, given<S> z, given<S> a_log, view<S> dt, written<S> la) {
  for_rows(on, dt.rows, dt.cols, [&](position i) {
    for (position h = 0; h < dt.cols; ++h) {
      const double step = softplus(double(z(i, h)));
      dt(i, h) = S(step);
      la(i, h) = S(-state_rate(double(a_log(0, h))) * step);
    }
  });
}

template <class S>
void state_steps_backward(workers<S>& on, given<S> z, given<S> a_log, given<S> la, given<S> ddt,
                          given<S> dla, view<S> dz, written<S> da_log,
                          std::span<const position> grains) {
  const lanes<S> lowest = std::numeric_limits<S>::lowest();
  if (da_log.rows > 0)
    add_row_sums(on, grains, la.cols, da_log.data, [&](position i, position j, auto n) {
      return load(dla.row(i) + j, n) * max(load(la.row(i) + j, n), lowest);
    });
  for_rows(on, dz.rows, dz.cols, [&](position i) {
    for (position h = 0; h < dz.cols; ++h) {
      const double slope = double(ddt(i, h)) - state_rate(double(a_log(0, h))) * double(dla(i, h));
      const double step_slope = sigmoid(double(z(i, h)));
      dz(i, h) = step_slope == 0 ? S(0) : S(slope * step_slope);
    }
  });
}

template <class S>
void state_inputs(workers<S>& on, given<S> dt, given<S> x, view<S> v) {
  const position width = v.cols / dt.cols;
  for_rows(on, v.rows, v.cols, [&](position i) {
    for (position h = 0; h < dt.cols; ++h)
      scale_row<S>(x.row(i) + h * width, dt(i, h), width, v.row(i) + h * width);
  });
}

template <class S>
void add_skip(workers<S>& on, given<S> skip, given<S> x, view<S> o) {
  const position width = o.cols / skip.cols;
  for_rows(on, o.rows, o.cols, [&](position i) {
    for (position h = 0; h < skip.cols; ++h)
      add_scaled_row<S>(x.row(i) + h * width, skip(0, h), width, o.row(i) + h * width);
  });
}

template <class S>
void state_inputs_backward(workers<S>& on, given<S> dt, given<S> skip, given<S> x, given<S> dv,
                           given<S> d_o, view<S> dx, view<S> ddt, view<S> dskip) {
  const position width = dx.cols / dt.cols;
  for_rows(on, dx.rows, dx.cols, [&](position i) {
    for (position h = 0; h < dt.cols; ++h) {
      const position j = h * width;
      ddt(i, h) = dot_row(x.row(i) + j, dv.row(i) + j, width);
      dskip(i, h) = dot_row(x.row(i) + j, d_o.row(i) + j, width);
      scale_row<S>(dv.row(i) + j, dt(i, h), width, dx.row(i) + j);
      add_scaled_row<S>(d_o.row(i) + j, skip(0, h), width, dx.row(i) + j);
    }
  });
}

}  // namespace STREAMBP_ISA
}  // namespace streambp::cpu
