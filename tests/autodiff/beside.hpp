// Two layers with the same parameters: one with a backward written by hand, one that gives a
// forward.
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <streambp/laws/hold.hpp>
#include <streambp/streambp.hpp>

namespace streambp {

// What one step gives, and its plan.
struct one_step {
  double value = 0;
  std::vector<double> gradient, d_rows;
  step_plan plan;
};

template <class Layer>
one_step step_of(const Layer& layer, position features) {
  const auto model = linear(features, features) | repeat(2, residual(layer)) | linear(features, 9);
  const packed samples = laws::ragged(60);
  const auto p = plan<double>(
      model, cross_entropy{}, samples,
      {.chunk = 16, .stage = 1, .features = features, .input_gradient = true, .grains = {8, 16}});
  engine e(p, model, cross_entropy{});
  const auto fill = [](position n, int seed, double scale) {
    std::vector<double> all;
    for (position i = 0; i < n; ++i) all.push_back(scale * laws::wave(i, seed));
    return all;
  };
  const auto parameters = fill(e.parameters().parameters, 1, 0.4),
             rows = fill(samples.tokens() * features, 2, 1);
  std::vector<std::int32_t> labels;
  for (position t = 0; t < samples.tokens(); ++t) labels.push_back(std::int32_t(t * t % 9));
  one_step s;
  s.plan = p;
  s.gradient.resize(parameters.size());
  s.d_rows.resize(rows.size());
  batch<double> data;
  data.rows = {rows.data(), samples.tokens(), features};
  data.d_rows = {s.d_rows.data(), samples.tokens(), features};
  data.labels = labels;
  s.value = e.add_gradient(parameters, data, s.gradient);
  CHECK(e.flops() == p.flops);
  CHECK(e.high_water() == p.peak());
  return s;
}

inline double difference(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  double off = 0, most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double d = std::abs(a[i] - b[i]);
    off = d <= off ? off : d;
    most = std::max(most, std::abs(b[i]));
  }
  return off / most;
}

// Gradients agree to rounding, the same products are done, and no more bytes are taken than that.
template <class Derived, class Written>
void same_as_by_hand(const Derived& derived, const Written& by_hand, position features,
                     std::size_t more_bytes = 0) {
  const one_step ours = step_of(derived, features), theirs = step_of(by_hand, features);
  CHECK(std::abs(ours.value - theirs.value) < 1e-13 * std::abs(theirs.value));
  CHECK(difference(ours.gradient, theirs.gradient) < 1e-12);
  CHECK(difference(ours.d_rows, theirs.d_rows) < 1e-12);
  CHECK(ours.plan.flops == theirs.plan.flops);
  CHECK(ours.plan.peak() <= theirs.plan.peak() + more_bytes);
}

}  // namespace streambp
