// Law: a step leaves nothing behind. Run again in the same engine, after a value alone, it gives
// the same bits; the arena is poisoned before each, so randomness and recomputation start from the
// data.
#pragma once

#include "subject.hpp"

namespace streambp::laws {

inline void check_recomputation(report& r, subject& of, const given& data, const step_plan& plan) {
  const auto run = of.run(plan);
  const outcome first = run->step(data);
  const double value = run->value(data);
  if (!same_bits(value, first.value))
    r.add(law::recomputation, sentence("the value alone is ", value, ", with its gradient ",
                                       first.value, "; ", words(plan)));
  const outcome again = run->step(data);
  if (const auto where = other_bits(first, again, data.samples); !where.empty())
    r.add(law::recomputation, sentence("in a second step ", where, "; ", words(plan)));
}

}  // namespace streambp::laws
