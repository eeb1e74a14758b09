// From a budget in bytes to the fastest exact plan that fits.
#pragma once

#include "../core/bytes.hpp"
#include "../default_device.hpp"
#include "../engine/door.hpp"
#include "longest.hpp"
#include "planner.hpp"

namespace streambp {

// With what the plan is judged by: the FLOPs of plain backpropagation, the longest sequence that
// fits its budget.
template <class Device>
step_plan beside_others(step_plan p, plan_maker<Device>& search, const packed& samples,
                        const plan_options& options) {
  p.least_flops = search.plain().flops;
  if (p.budget != 0)
    p.limit = longest_sequence(
        samples, options.grains.grain, p.budget, search.longest(), [&](const packed& longer) {
          plan_options o = options;
          o.keep = false;  // what is kept costs bytes, and so does a larger head chunk
          o.head_chunk = 1;
          return search.with(longer, o).search(true)->bytes;
        });
  return p;
}

// What plan() does for a model and a loss that nothing is wrong with.
template <class Device>
step_plan fastest_plan(plan_maker<Device>& search, const packed& samples,
                       const plan_options& options) {
  const auto best = search.search();
  if (!best) {
    const step_plan least = *search.search(true);
    if (least.peak() == uncountable)
      throw budget_error(sentence("plan: any exact plan of ", samples.tokens(),
                                  " tokens takes 2^64 bytes or more; give fewer"),
                         least.peak());
    std::string said =
        sentence("plan: no exact plan of ", samples.tokens(), " tokens fits ", options.budget,
                 " bytes (", bytes_in_words(options.budget), "); the least is ", least.peak(),
                 " bytes (", bytes_in_words(least.peak()), ")",
                 options.chunk || options.stage || options.head_chunk
                     ? ", with the chunk and stage that were asked for"
                     : "");
    if (options.threads > 1) {
      plan_options alone = options;
      alone.threads = 1;
      const std::size_t bytes = search.with(samples, alone).search(true)->peak();
      said += bytes <= options.budget ? sentence("; with one thread ", bytes, " bytes would do")
                                      : sentence("; with one thread ", bytes);
    }
    throw budget_error(said, least.peak());
  }
  return beside_others(*best, search, samples, options);
}

// The fastest exact plan of `model` and `loss` for `samples` that fits options.budget. Throws
// budget_error, with the least that would do, when none fits; shape_error when layers do not fit
// together.
template <class Scalar = float, class Model, class Loss>
typed_plan<Scalar> plan(const Model& model, const Loss&, const packed& samples,
                        const plan_options& options = {}) {
  if constexpr (explain_step<default_device<Scalar>, Model, Loss>()) {
    planner<default_device<Scalar>, Model, Loss> search(model, samples, options);
    return {fastest_plan(search, samples, options)};
  } else {
    return {};
  }
}

}  // namespace streambp
