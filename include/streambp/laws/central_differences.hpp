// Law: gradients are slopes. fp64; every parameter tensor, the input, prefix memories and initial
// states, each relative to its own largest entry.
#pragma once

#include "subject.hpp"

namespace streambp::laws {

// d value / d h at 0 of value(h), from five points.
template <class Value>
double slope_at_0(const Value& value, double h = difference_step) {
  return (8 * (value(h) - value(-h)) - (value(2 * h) - value(-2 * h))) / (12 * h);
}

// Along a direction of signs that moves every entry at once, and for ten entries one by one.
inline void check_differences(report& r, subject& of, const given& data, const step_plan& plan,
                              const outcome& gradients, const tolerance& allow) {
  const auto run = of.run(plan);
  for (const tensor& t : gradients.tensors) {
    if (t.kind == tensor_kind::output) continue;
    given moved = data;
    double* const at = (t.kind == tensor_kind::parameter ? moved.parameters
                        : t.kind == tensor_kind::input   ? moved.rows
                        : t.kind == tensor_kind::context ? moved.context
                                                         : moved.initial)
                           .data() +
                       t.offset;
    const std::size_t n = t.data.size();
    const std::vector<double> before(at, at + n);
    const double most = std::max(t.largest(), allow.smallest * gradients.largest_gradient());
    const auto compare = [&](double expected, double size, const std::string& where,
                             auto direction) {
      const double slope = slope_at_0([&](double h) {
        for (std::size_t i = 0; i < n; ++i) at[i] = before[i] + h * direction(i);
        return run->value(moved);
      });
      const double error = std::abs(slope - expected) / std::max(size, std::abs(slope));
      if (slope == expected) return;
      r.largest_error = std::max(r.largest_error, error);
      if (!(error <= allow.differences))
        r.add(law::central_differences, sentence(where, " is ", expected, ", the slope is ", slope,
                                                 " (largest entry ", most, "); ", words(plan)));
    };
    const auto sign = [&](std::size_t i) { return wave(position(i), 21) < 0 ? -1.0 : 1.0; };
    double along = 0;
    for (std::size_t i = 0; i < n; ++i) along += sign(i) * t.data[i];
    for (std::size_t k = 0; k < 10 && k < n; ++k) {
      const std::size_t entry = n <= 10 ? k : (k * n) / 10 + k % 3;
      compare(t.data[entry], most, place_of(t, entry, data.samples),
              [&](std::size_t i) { return i == entry ? 1.0 : 0.0; });
    }
    compare(along, most * std::sqrt(double(n)), sentence(t.name, " along all its entries' signs"),
            sign);
  }
}

}  // namespace streambp::laws
