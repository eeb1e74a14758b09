// Bytes and FLOPs of a stage, added up, are those of the whole.
#include <streambp/planner/stages.hpp>

#include <doctest/doctest.h>

#include "choices.hpp"
#include "small_models.hpp"

using namespace streambp;
using namespace streambp::small;

namespace {

template <class Loss = cross_entropy, class Model>
void sums_are_placements(const Model& model, plan_options options) {
  options.grains = grains;
  planner_of<Model, Loss> all(model, samples, options);
  const auto& list = all.model();
  position number = 0;
  choice_space space{{1, 32, 100}, {1, 100}, true, true, loss_traits<Loss>::couples};
  space.intervals = [](position) { return std::vector<position>{1, 2}; };
  for_each_choice(list, space, [&](const plan_choice& c) {
    const step_plan p = all.complete(c);
    flop_counts<cpu::device<double>> flops(all.sections(), p.shape);
    stage_costs<cpu::device<double>> costs(list, flops, p, loss_traits<Loss>::couples);
    std::size_t persistent = 0, region = 0;
    big_count total = all.head_flops();
    for (const stage_plan& s : c.stages) {
      const stage_cost own = costs.of(s);
      persistent += own.persistent;
      region = std::max(region, own.region);
      total += own.flops;
    }
    const std::size_t fixed =
        costs.fixed_bytes() + (c.stages.size() > 1 || !c.fuses_head ? costs.stream_bytes() : 0);
    REQUIRE(fixed + persistent + region == p.peak());
    REQUIRE(total == p.flops);
    ++number;
  });
  CHECK(number > 500);
}

}  // namespace

TEST_CASE("stage costs add up to what the storage places: attention") {
  sums_are_placements(language_model(), {});
}

TEST_CASE("stage costs add up to what the storage places: all kinds of operators in one chain") {
  sums_are_placements(mixed(), {.threads = 2, .features = 8, .prefix = 2, .input_gradient = true});
}

TEST_CASE("stage costs: what is kept is paid once and saves FLOPs") {
  const auto model = blocks(2);
  planner_of<decltype(model)> all(model, samples, {.grains = grains});
  const position n = position(all.model().count());
  const auto with = [&](bool memory, bool outputs, bool chunk) {
    return all.complete({{{0, 3, memory, outputs, chunk}, {3, n}}, 16, 16, false});
  };
  const step_plan none = with(false, false, false), memory = with(true, false, false),
                  outputs = with(false, true, false), chunk = with(true, false, true);
  CHECK(none.bytes.kept == 0);
  // k and v of one attention: 2 x (61 x 8) doubles.
  CHECK(memory.bytes.kept == 2 * 61 * 8 * 8);
  // o and lse of all tokens: (61 x 8) and (61 x 2) doubles.
  CHECK(outputs.bytes.kept == 61 * 8 * 8 + round_up(61 * 2 * 8, 64));
  CHECK(memory.flops < none.flops);
  CHECK(outputs.flops < none.flops);
  CHECK(chunk.flops < memory.flops);
}
