// The two halves of a read that sees all are one operator.
#include <streambp/engine/engine.hpp>

#include <algorithm>

#include "../engine/announcements.hpp"
#include "../engine/differences.hpp"
#include "../engine/models.hpp"

using namespace streambp;

namespace {

using numbers = std::vector<std::uint64_t>;

// Notes the number that keys what a layer draws.
struct numbered {
  static constexpr const char* name = "numbered";
  static constexpr bool backward_reads_input = false, backward_reads_output = false;
  numbers* seen;
  void forward(auto& at, auto x, auto y) const {
    seen->push_back(at.instance);
    copy(at.on, x, y);
  }
  void backward(auto& at, auto, auto, auto dy, auto dx) const {
    seen->push_back(at.instance);
    add(at.on, dy, dx);
  }
};

// Nothing is trained before the first read that sees all.
auto model_with(numbers& first, numbers& second) {
  const auto attend_all = frozen(bidirectional_attention({.features = 12, .heads = 2}));
  return residual(numbered{&first} | attend_all | linear(12, 12)) | residual(numbered{&second}) |
         residual(attend_all) | linear(12, 7);
}

bool all_one(const numbers& seen) {
  return !seen.empty() &&
         std::all_of(seen.begin(), seen.end(), [&](std::uint64_t n) { return n == seen.front(); });
}

}  // namespace

TEST_CASE("a layer has one number in every plan and in both halves") {
  numbers first, second;
  first.reserve(10000);
  second.reserve(10000);
  const auto t = trial_of<double>(model_with(first, second), cross_entropy{}, short_ragged,
                                  {.features = 12, .grains = small_grains});
  auto all = t.planner_for();
  for (const step_plan& p : {all.plain(), all.checkpointing(), *all.search(true)}) t.step(p);
  CHECK(all_one(first));
  CHECK(all_one(second));
  CHECK(first.front() != second.front());
}

TEST_CASE("gradients behind a half that is not run are announced") {
  numbers first, second;
  for (const bool input_gradient : {false, true}) {
    const auto t = trial_of<double>(
        model_with(first, second), cross_entropy{}, short_ragged,
        {.features = 12, .input_gradient = input_gradient, .grains = small_grains});
    announces_each_gradient_once(t, t.planner_for().plain());
    announces_each_gradient_once(t, *t.planner_for().search(true));
  }
}

// The first of three memories does not survive the forward.
TEST_CASE("three reads that see all, states and causal attention behind one in its residual") {
  const attention_options heads{.features = 12, .heads = 2};
  const auto t = trial_of<double>(
      residual(bidirectional_attention(heads) | gated_recurrence(12, 5) | causal_attention(heads)) |
          residual(bidirectional_attention(heads)) | bidirectional_attention(heads) | linear(12, 7),
      cross_entropy{}, short_ragged,
      {.chunk = 24, .features = 12, .prefix = 3, .input_gradient = true, .grains = small_grains});
  CHECK(t.initial.size() == 3 * 24 + 5 + 3 * 24 + 2 * 3 * 24);
  const step_plan p = *t.planner_for().search();
  CHECK(std::count(p.sweeps.begin(), p.sweeps.end(), sweep{sweep_kind::remember, 1}) == 1);
  equals_differences(t, p);
  every_plan_has_the_same_bits(t, {{1, 40, 1000}, {1, 1000}}, 1999);
}
