// Carries kept in two levels: fewer bytes, some chunks again, the same bits.
#include <streambp/schedule/snapshots.hpp>

#include "../engine/models.hpp"
#include "../engine/trial.hpp"

using namespace streambp;

namespace {

constexpr position states = 6, width = 12;

// Two states a block, and a memory that a refill must leave alone.
auto recurrent() {
  return embedding(19, width) |
         repeat(2, residual(rms_norm(width) | gated_recurrence(width, states)) |
                       residual(causal_convolution(width, 3))) |
         residual(rms_norm(width) | causal_attention({.features = width, .heads = 2})) |
         residual(gated_recurrence(width, 5)) | rms_norm(width) | linear(width, 19);
}

// A prompt that is long, one that is short, their completions, and a sample of its own.
const packed family({0, 61, 64, 80, 81, 81, 120, 131}, {-1, -1, 0, 1, 0, 1, -1});

choice_space space(position root) {
  choice_space all{{1, 16, 24, 1000}, {1000}};
  all.fuses_head = true;
  all.intervals = [root](position chunk) {
    return chunk < 1000 ? std::vector<position>{1, 2, 3, root} : std::vector<position>{1};
  };
  return all;
}

template <class Scalar>
auto trial_on(const packed& samples) {
  return trial_of<Scalar>(recurrent(), cross_entropy{}, samples, {.grains = small_grains});
}

position refills_of(const std::vector<trace_event>& events) {
  return std::count_if(events.begin(), events.end(),
                       [](const trace_event& e) { return e.what.kind == sweep_kind::refill; });
}

// One stage, nothing kept, the head on its own.
template <class List>
plan_choice one_stage(const List& list, position chunk, position interval) {
  return {{{0, position(list.count())}}, chunk, 1000, false, interval};
}

}  // namespace

TEST_CASE("carries in two levels: plans, in fp64") {
  every_plan_has_the_same_bits(trial_on<double>(short_ragged), space(5), 30011);
}

TEST_CASE("carries in two levels: plans, in fp32, with completions that share prompts") {
  every_plan_has_the_same_bits(trial_on<float>(family), space(4), 30011);
}

TEST_CASE("carries in two levels: what is kept, and how often a chunk is visited again") {
  const auto t = trial_on<double>(packed::one(23 * 16));
  auto planner = t.planner_for();
  const auto rounded = [](position scalars) {
    return (std::size_t(scalars) * sizeof(double) + 63) / 64 * 64;
  };
  // By hand: in `rows` places, the states of two blocks and of the last recurrence.
  const auto bytes_of = [&](position rows) {
    return 2 * (rounded(rows * states) + rounded(rows * 2 * width)) + rounded(rows * 5);
  };
  const step_plan dense = planner.complete(one_stage(t.list, 16, 1));
  REQUIRE(dense.chunk_count() == 23);
  const outcome<double> expected = t.step(dense);
  for (const position interval : {2, 3, 5, 22, 23, 40}) {
    const step_plan p = planner.complete(one_stage(t.list, 16, interval));
    const position coarse = (23 + interval - 1) / interval + 1;
    CHECK(p.carry_snapshots().rows() == coarse + interval - 1);
    CHECK(dense.peak() + bytes_of(coarse + interval - 1) == p.peak() + bytes_of(24));

    CHECK(same_bits(t.step(p), expected));
    auto e = t.engine_for(p);
    std::vector<trace_event> events;
    e.trace(&events);
    std::vector<double> gradient(std::size_t(t.list.table.gradients));
    e.add_gradient(t.parameters, t.data(), gradient);
    CHECK(refills_of(events) == 22 / interval * (interval - 1));
    CHECK((p.flops > dense.flops) == (refills_of(events) > 0));
  }
}

// A stage without a carry has nothing to refill.
TEST_CASE("carries in two levels: only stages that carry are visited again") {
  const auto t = trial_on<double>(packed::one(100));
  plan_choice choice = one_stage(t.list, 16, 3);
  // Embedding; two blocks; attention; the last recurrence.
  choice.stages = {{0, 1}, {1, 5}, {5, 6}, {6, 7}};
  const step_plan p = t.planner_for().complete(choice);
  auto e = t.engine_for(p);
  std::vector<trace_event> events;
  e.trace(&events);
  std::vector<double> gradient(std::size_t(t.list.table.gradients));
  e.add_gradient(t.parameters, t.data(), gradient);
  std::vector<position> refilled(4, 0);
  for (const trace_event& event : events)
    if (event.what.kind == sweep_kind::refill) ++refilled[std::size_t(event.what.stage)];
  CHECK(refilled == std::vector<position>{0, 4, 0, 4});
}

TEST_CASE(
    "carries in two levels: the least plan of a recurrent model grows as the root of tokens") {
  const auto model =
      embedding(19, 32) | repeat(2, residual(gated_recurrence(32, 32))) | linear(32, 19);
  const auto least = [&](position tokens, bool two_levels) {
    plan_options o{.chunk = 16, .keep = false, .grains = small_grains};
    if (!two_levels) o.carry_interval = 1;
    planner<cpu::device<float>, std::remove_const_t<decltype(model)>, cross_entropy> all(
        model, packed::one(tokens), o);
    return *all.search(true);
  };
  const auto states_of = [](const step_plan& p) { return p.carry_snapshots().rows(); };
  const auto bytes_of = [](const step_plan& p) { return p.peak() - p.bytes.packing; };
  const step_plan some = least(1 << 12, true), more = least(1 << 16, true);
  CHECK(more.bytes.checkpoints == 0);
  CHECK(more.bytes.stream == 0);
  CHECK(states_of(some) == 2 * 16);
  CHECK(states_of(more) == 2 * 64);
  CHECK(bytes_of(least(1 << 12, false)) > 2 * bytes_of(some));
  CHECK(bytes_of(least(1 << 16, false)) > 8 * bytes_of(more));
}
