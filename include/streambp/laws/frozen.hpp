// Law: a frozen layer costs no parameter gradient and its FLOPs, and leaves value, results and the
// input's gradient as they were.
#pragma once

#include <cmath>
#include <utility>

#include "subject.hpp"

namespace streambp::laws {

inline void check_frozen(report& r, subject& trained, subject& frozen, const given& data) {
  const step_plan plan = trained.streamed(data.samples, data.prefix, data.beside);
  const step_plan cheap = frozen.streamed(data.samples, data.prefix, data.beside);
  frozen.watched = {.on = frozen.reaches_rows, .poison = std::nan("")};
  frozen.run(cheap)->step(data);
  const std::string written = std::exchange(frozen.watched, {}).written;
  if (!written.empty()) {
    if (!r.breaks(law::memory)) r.add(law::frozen, written);
    return;
  }
  outcome full = trained.run(plan)->step(data);
  const outcome o = frozen.run(cheap)->step(data);
  if (frozen.parameters().gradients != 0)
    r.add(law::frozen, sentence(frozen.parameters().gradients, " gradient entries are left"));
  std::erase_if(full.tensors, [](const tensor& t) { return t.kind == tensor_kind::parameter; });
  if (const auto where = other_bits(full, o, data.samples); !where.empty())
    r.add(law::frozen, sentence("frozen, ", where));
  if (cheap.flops > plan.flops)
    r.add(law::frozen,
          sentence("frozen, a step takes ", cheap.flops, " FLOPs, trained ", plan.flops));
}

}  // namespace streambp::laws
