// A trial's samples, packed in another way.
#pragma once

#include "trial.hpp"

namespace streambp {

// The trial of some of its samples, in the order given.
template <class Scalar, class Model, class Loss>
trial<Scalar, Model, Loss> only(const trial<Scalar, Model, Loss>& t,
                                const std::vector<position>& segments) {
  std::vector<position> lengths;
  for (const position s : segments) lengths.push_back(t.samples.segment(s).rows());
  trial<Scalar, Model, Loss> some = t;
  some.samples = packed_lengths(lengths);
  const auto take = [&](auto& to, const auto& from, position width) {
    to.clear();
    if (from.empty()) return;
    for (const position s : segments) {
      const row_range own = t.samples.segment(s);
      to.insert(to.end(), from.begin() + own.first * width, from.begin() + own.last * width);
    }
  };
  take(some.tokens, t.tokens, 1);
  take(some.labels, t.labels, 1);
  take(some.weights, t.weights, 1);
  take(some.rows, t.rows, t.options.features);
  some.sample_ids.assign(segments.begin(), segments.end());
  return some;
}

template <class Scalar, class Model, class Loss>
std::vector<double> log_probabilities(const trial<Scalar, Model, Loss>& t, const step_plan& p) {
  std::vector<double> out(std::size_t(t.samples.tokens()), 1);
  auto e = t.engine_for(p);
  poison(e);
  e.log_probabilities(t.parameters, t.data(), out);
  return out;
}

// Outputs of a sample are the same bits alone, and among others in another order; the gradient of
// all is the sum of the samples' own to rounding.
template <class Scalar, class Model, class Loss>
void packing_does_not_matter(trial<Scalar, Model, Loss> t, double tolerance) {
  t.normaliser = normaliser_of(t.loss, t.samples, t.data());
  const step_plan all = *t.planner_for().search();
  const std::vector<double> together = log_probabilities(t, all);
  const outcome<Scalar> whole = t.step(all);

  std::vector<position> backwards;
  for (position s = t.samples.segments(); s-- > 0;) backwards.push_back(s);
  const auto reversed = only(t, backwards);
  const std::vector<double> again =
      log_probabilities(reversed, *reversed.planner_for(2).search(true));

  std::vector<double> sum(whole.gradient.size(), 0);
  double value = 0;
  for (position s = 0; s < t.samples.segments(); ++s) {
    INFO("sample ", s);
    const row_range own = t.samples.segment(s);
    const std::vector<double> expected(together.begin() + own.first, together.begin() + own.last);
    const position first = reversed.samples.segment(t.samples.segments() - 1 - s).first;
    CHECK(same_bits(expected, {again.begin() + first, again.begin() + first + own.rows()}));
    if (own.rows() == 0) continue;

    const auto alone = only(t, {s});
    const step_plan p = alone.planner_for().plain();
    CHECK(same_bits(expected, log_probabilities(alone, p)));
    const outcome<Scalar> part = alone.step(p);
    value += part.value;
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += double(part.gradient[i]);
  }
  CHECK(std::abs(value - whole.value) <= tolerance * std::abs(whole.value));
  double largest = 0, error = 0;
  for (std::size_t i = 0; i < sum.size(); ++i) {
    largest = std::max(largest, std::abs(sum[i]));
    error = std::max(error, std::abs(sum[i] - double(whole.gradient[i])));
  }
  CHECK(error <= tolerance * largest);
}

}  // namespace streambp
