// Carries that are the last thing of the trunk, behind residuals that skip one value twice.
#include <streambp/engine/states.hpp>

#include "differences.hpp"
#include "models.hpp"

using namespace streambp;

namespace {

auto recurrent() {
  return residual(residual(rms_norm(12) | gated_recurrence(12, 5)) | linear(12, 12)) |
         residual(residual(linear(12, 12))) | gated_recurrence(12, 6) | linear(12, 7);
}

}  // namespace

TEST_CASE("recurrences: plans, carries kept at every chunk or in two levels") {
  choice_space space{{1, 40, 125}, {1, 32, 1000}};
  space.intervals = [](position) { return std::vector<position>{1, 2, 3, 100}; };
  every_plan_has_the_same_bits(
      trial_of<double>(recurrent(), cross_entropy{}, short_ragged,
                       {.features = 12, .input_gradient = true, .grains = small_grains}),
      space, 29);
}

TEST_CASE("recurrences: central differences, with states given") {
  for (const position interval : {1, 3}) {
    const auto t = trial_of<double>(recurrent(), cross_entropy{}, short_ragged,
                                    {.chunk = 24,
                                     .features = 12,
                                     .input_gradient = true,
                                     .carry_interval = interval,
                                     .grains = small_grains});
    equals_differences(t, *t.planner_for().search());
    equals_differences(t, *t.planner_for().search(true));
  }
}
