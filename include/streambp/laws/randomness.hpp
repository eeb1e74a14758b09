// Law: what is drawn is drawn anew. A layer whose results follow any of seed, step and the samples'
// ids follows seed and step.
#pragma once

#include "subject.hpp"

namespace streambp::laws {

inline void check_randomness(report& r, subject& of, const given& data, const step_plan& plan) {
  const auto run = of.run(plan);
  const double before = run->value(data);
  const auto follows = [&](const auto& change) {
    given moved = data;
    change(moved);
    return !same_bits(before, run->value(moved));
  };
  const bool seed = follows([](given& d) { d.seed += 1; });
  const bool step = follows([](given& d) { d.step += 1; });
  const bool ids = follows([](given& d) {
    for (auto& id : d.ids) id += 1000;
  });
  if (!seed && !step && !ids) return;
  if (!seed)
    r.add(law::randomness, sentence("the results follow ", step ? "the step" : "the samples' ids",
                                    ", but not the seed: key draws by at.chunk.seed, too"));
  if (!step)
    r.add(law::randomness, sentence("the results follow ", seed ? "the seed" : "the samples' ids",
                                    ", but not the step: every step draws the same; key draws by "
                                    "at.chunk.step, too"));
}

}  // namespace streambp::laws
