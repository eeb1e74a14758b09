// Law: the tasks of a layer's loops are independent. In any order, one row each, they give the same
// bits, and no two of them write to one place.
#pragma once

#include "ordered_tasks.hpp"
#include "subject.hpp"

namespace streambp::laws {

inline void check_task_order(report& r, subject& of, const given& data, const outcome& in_order) {
  using order = ordered_tasks::order;
  const step_plan plan = of.streamed(data.samples, data.prefix, data.beside, 2);
  const auto run = of.run(plan);
  for (const auto& [o, name] :
       {std::pair{order::ascending, "first to last"}, std::pair{order::descending, "last to first"},
        std::pair{order::odd_first, "odd ones first"}}) {
    ordered_tasks tasks(o);
    of.watched = {.tasks = &tasks};
    const outcome result = run->step(data);
    of.watched = {};
    if (!tasks.race().empty()) r.add(law::task_order, tasks.race());
    if (const auto where = other_bits(in_order, result, data.samples); !where.empty())
      r.add(law::task_order, sentence("with a task a row, ", name, ", ", where, "; ", words(plan)));
  }
}

}  // namespace streambp::laws
