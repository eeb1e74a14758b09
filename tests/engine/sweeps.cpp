// Every plan of a chain of all kinds of operators: the sweeps, states and memories between chunks.
#include <streambp/engine/sweeps.hpp>

#include "announcements.hpp"
#include "differences.hpp"
#include "models.hpp"
#include "packing.hpp"

using namespace streambp;

namespace {

// Carries of every chunk are kept, or of every third.
choice_space space() {
  choice_space all{{1, 40, 125, 1000}, {1, 32, 1000}};
  all.intervals = [](position chunk) {
    return chunk < 1000 ? std::vector<position>{1, 3} : std::vector<position>{1};
  };
  return all;
}

}  // namespace

TEST_CASE("all kinds of operators in a chain: plans, in fp64, with gradients of the input") {
  every_plan_has_the_same_bits(
      trial_of<double>(mixture(), cross_entropy{}, short_ragged,
                       {.features = 12, .input_gradient = true, .grains = small_grains}),
      space(), 5003);
}

TEST_CASE("all kinds of operators in a chain: plans, in fp32, with given states and a prefix") {
  every_plan_has_the_same_bits(
      trial_of<float>(
          mixture(), cross_entropy{}, short_ragged,
          {.features = 12, .prefix = 5, .input_gradient = true, .grains = small_grains}),
      space(), 9001);
}

TEST_CASE("each gradient is announced once, and does not change any more") {
  const auto t = trial_of<double>(mixture(), cross_entropy{}, short_ragged,
                                  {.features = 12, .grains = small_grains});
  auto all = t.planner_for();
  announces_each_gradient_once(t, all.plain());
  announces_each_gradient_once(t, all.checkpointing());
  position number = 0;
  for_each_choice(t.list, space(), [&](const plan_choice& c) {
    if (number++ % 80021 == 0) announces_each_gradient_once(t, all.complete(c));
  });
}

TEST_CASE(
    "all kinds of operators in a chain: central differences, with given states and a prefix") {
  const auto t = trial_of<double>(
      mixture(), cross_entropy{}, short_ragged,
      {.chunk = 24, .features = 12, .prefix = 5, .input_gradient = true, .grains = small_grains});
  equals_differences(t, *t.planner_for().search());
}

TEST_CASE("all kinds of operators in a chain: packing") {
  const plan_options options{.features = 12, .prefix = 2, .grains = small_grains};
  packing_does_not_matter(trial_of<double>(mixture(), cross_entropy{}, short_ragged, options),
                          1e-12);
  packing_does_not_matter(trial_of<float>(mixture(), cross_entropy{}, short_ragged, options), 1e-5);
}
