// Law: gradients are added. A step that starts from some gradient ends at the sum, to rounding; and
// a layer adds to the rows of dx, which hold another branch's gradient in a residual.
#pragma once

#include <cmath>

#include "subject.hpp"

namespace streambp::laws {

inline void check_accumulation(report& r, subject& of, const given& data, const step_plan& plan,
                               const outcome& from_zero, const tolerance& allow) {
  outcome start = from_zero, expected = from_zero;
  for (std::size_t k = 0; k < start.tensors.size(); ++k) {
    tensor& t = start.tensors[k];
    if (t.kind == tensor_kind::output) continue;
    const double size = std::max(t.largest(), 1.0);
    for (std::size_t i = 0; i < t.data.size(); ++i) {
      t.data[i] = of.rounded(2 * size * wave(position(i), 9));
      expected.tensors[k].data[i] += t.data[i];
    }
  }
  const outcome o = of.run(plan)->step(data, &start);
  const double allowed = allow.rounding * of.epsilon();
  for (std::size_t k = 0; k < o.tensors.size(); ++k)
    if (const auto where = beyond(expected.tensors[k], o.tensors[k], allowed, 0, data.samples);
        !where.empty())
      r.add(law::accumulation,
            sentence("from a gradient that is not 0, ", where, "; ", words(plan)));

  const double largest = from_zero.largest_gradient();  // the lift rounds by its size
  if (!(largest > 0)) return;
  of.watched = {.lift = std::exp2(std::floor(std::log2(largest)))};
  const outcome lifted = of.run(plan)->step(data);
  of.watched = {};
  for (std::size_t k = 0; k < o.tensors.size(); ++k)
    if (const auto where =
            beyond(from_zero.tensors[k], lifted.tensors[k], allowed, largest, data.samples);
        !where.empty())
      r.add(law::accumulation, sentence("where dx is not 0 before backward or release adds to it, ",
                                        where, "; ", words(plan)));
}

}  // namespace streambp::laws
