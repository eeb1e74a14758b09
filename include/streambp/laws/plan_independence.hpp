// Law: a gradient does not depend on the plan. Value, results and every gradient have the bits of
// plain backpropagation, whatever the chunks, cuts, threads, and whatever is kept.
#pragma once

#include "subject.hpp"

namespace streambp::laws {

inline void check_plan_independence(report& r, subject& of, const given& data,
                                    const plan_list& plans, const outcome& plain,
                                    std::size_t stride) {
  const auto compare = [&](const step_plan& p) {
    const outcome o = of.run(p)->step(data);
    if (const auto where = other_bits(plain, o, data.samples); !where.empty())
      r.add(law::plan_independence, sentence(where, "; ", words(p), " against plain"));
  };
  compare(plans.streamed);
  std::size_t tried = 2;
  for (std::size_t i = 0; i < plans.others.size(); i += stride, ++tried) compare(plans.others[i]);
  r.count_plans(tried);
}

}  // namespace streambp::laws
