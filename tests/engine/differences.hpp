// A trial's gradients against central differences of its value.
#pragma once

#include <cmath>

#include "trial.hpp"

namespace streambp {

// Of four points: the error is of order h^4 and of rounding / h.
template <class Value>
double slope(double& x, const Value& value) {
  const double at = x, h = 1e-3;
  const auto difference = [&](double step) {
    x = at + step;
    const double above = value();
    x = at - step;
    const double below = value();
    x = at;
    return above - below;
  };
  return (8 * difference(h) - difference(2 * h)) / (12 * h);
}

// Up to 24 entries of a tensor, relative to the largest entry of its own gradient.
template <class Value>
void agrees(const std::string& name, std::span<double> x, std::span<const double> gradient,
            const Value& value) {
  INFO("tensor: ", name);
  double largest = 0;
  for (const double g : gradient) largest = std::max(largest, std::abs(g));
  REQUIRE(largest > 0);
  const std::size_t stride = x.size() <= 24 ? 1 : x.size() / 24;
  for (std::size_t i = 0; i < x.size(); i += stride) {
    INFO("entry ", i);
    CHECK(std::abs(slope(x[i], value) - gradient[i]) < 1e-7 * largest);
  }
}

// Every named parameter that is trained, and the input's rows and states where the plan has them.
template <class Model, class Loss>
void equals_differences(trial<double, Model, Loss> t, const step_plan& p) {
  INFO("plan: ", in_words(p));
  REQUIRE(p.chunk_count() >= 2);
  REQUIRE(p.grains.size() > 3);
  const outcome<double> out = t.step(p);
  auto e = t.engine_for(p);
  const auto value = [&] { return e.value(t.parameters, t.data()); };
  for (const auto& entry : t.list.table.entries)
    if (entry.gradient >= 0)
      agrees(
          entry.name,
          std::span(t.parameters).subspan(std::size_t(entry.offset), std::size_t(entry.size())),
          std::span(out.gradient).subspan(std::size_t(entry.gradient), std::size_t(entry.size())),
          value);
  if (!out.d_rows.empty()) agrees("input rows", t.rows, out.d_rows, value);
  if (!out.d_initial.empty()) agrees("states and prefix", t.initial, out.d_initial, value);
}

}  // namespace streambp
