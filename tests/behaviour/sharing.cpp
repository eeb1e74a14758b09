// Parameters used twice, not trained, and layers that draw random numbers: every plan, the same
// bits.
#include <streambp/engine/run_section.hpp>

#include "../engine/announcements.hpp"
#include "../engine/differences.hpp"
#include "../engine/models.hpp"
#include "../engine/packing.hpp"

using namespace streambp;

TEST_CASE("tied table, dropout, frozen recurrence: plans, in fp64") {
  every_plan_has_the_same_bits(
      trial_of<double>(sharing_model(), cross_entropy{}, short_ragged, {.grains = small_grains}),
      {{1, 40, 125, 1000}, {1, 32, 1000}}, 251);
}

TEST_CASE("tied table, dropout, frozen recurrence: plans, in fp32") {
  every_plan_has_the_same_bits(
      trial_of<float>(sharing_model(), cross_entropy{}, short_ragged, {.grains = small_grains}),
      {{1, 40, 125, 1000}, {1, 32, 1000}}, 299);
}

TEST_CASE("tied table, dropout, frozen recurrence: central differences") {
  const auto t = trial_of<double>(sharing_model(), cross_entropy{}, short_ragged,
                                  {.chunk = 24, .grains = small_grains});
  equals_differences(t, *t.planner_for().search());
}

TEST_CASE("tied table, dropout, frozen recurrence: packing, by the samples' ids") {
  packing_does_not_matter(
      trial_of<double>(sharing_model(), cross_entropy{}, short_ragged, {.grains = small_grains}),
      1e-12);
}

TEST_CASE("tied table, dropout, frozen recurrence: gradients are announced once") {
  const auto t =
      trial_of<double>(sharing_model(), cross_entropy{}, short_ragged, {.grains = small_grains});
  announces_each_gradient_once(t, t.planner_for().plain());
  announces_each_gradient_once(t, *t.planner_for().search(true));
}
