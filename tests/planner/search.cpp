// The search against all choices there are, one by one.
#include <streambp/planner/search.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>

#include "choices.hpp"
#include "small_models.hpp"

using namespace streambp;
using namespace streambp::small;

namespace {

struct outcome {
  double cost;
  std::size_t peak;
  bool operator<(const outcome& other) const {
    return std::pair(cost, peak) < std::pair(other.cost, other.peak);
  }
};

// All outcomes; then, within several budgets, the least of them is what the search finds.
template <class Loss = cross_entropy, class Model>
void equals_exhaustive_search(const Model& model, plan_options options, bool carries = false) {
  if (options.grains == geometry{}) options.grains = grains;
  CAPTURE(options.features);
  planner_of<Model, Loss> all(model, samples, options);
  const position head_grain = options.grains.grain;
  choice_space space{detail::sizes(head_grain, samples.tokens(), options.chunk),
                     detail::sizes(head_grain, 4 * head_grain, options.head_chunk),
                     options.fuse_head, options.keep, loss_traits<Loss>::couples};
  if (carries)  // every carry is kept, or one in about the root of the number of chunks
    space.intervals = [](position chunk) {
      const position chunks = ceil_div(samples.tokens(), chunk);
      return chunks > 4 ? std::vector<position>{1, 3} : std::vector<position>{1};
    };
  std::vector<outcome> outcomes;
  for_each_choice(all.model(), space, [&](const plan_choice& c) {
    const step_plan p = all.complete(c);
    outcomes.push_back({p.cost, p.peak()});
  });
  REQUIRE(outcomes.size() > 100);

  std::vector<std::size_t> peaks;
  for (const outcome& o : outcomes) peaks.push_back(o.peak);
  std::sort(peaks.begin(), peaks.end());
  peaks.erase(std::unique(peaks.begin(), peaks.end()), peaks.end());
  REQUIRE(peaks.size() > 5);
  std::vector<std::size_t> budgets{peaks.front(), peaks.front() + 1, unlimited};
  for (const std::size_t share : {1, 2, 4, 8, 12, 15})
    budgets.push_back(peaks[peaks.size() * share / 16]);

  for (const std::size_t budget : budgets) {
    outcome best{std::numeric_limits<double>::max(), 0};
    for (const outcome& o : outcomes)
      if (o.peak <= budget) best = std::min(best, o);
    options.budget = budget;
    const auto found = planner_of<Model, Loss>(model, samples, options).search();
    REQUIRE(found);
    CHECK(found->cost == best.cost);
    CHECK(found->peak() == best.peak);
  }
  options.budget = peaks.front() - 1;
  planner_of<Model, Loss> none(model, samples, options);
  CHECK_FALSE(none.search());
  CHECK(none.search(true)->peak() == peaks.front());
  try {
    plan<double>(model, Loss{}, samples, options);
    FAIL("a budget that cannot be met was accepted");
  } catch (const budget_error& e) {
    CHECK(e.least == peaks.front());
  }
}

}  // namespace

TEST_CASE("search equals exhaustive search: attention") {
  equals_exhaustive_search(language_model(), {});
  equals_exhaustive_search(language_model(), {.keep = false});
  equals_exhaustive_search(language_model(), {.chunk = 24, .fuse_head = false});
}

TEST_CASE("search equals exhaustive search: recurrences, with a gradient of the input") {
  equals_exhaustive_search(
      recurrent(), {.threads = 2, .features = 8, .input_gradient = true, .grains = {8, 8}}, true);
}

TEST_CASE("search equals exhaustive search: two reads that see all, and a prefix") {
  equals_exhaustive_search(bidirectional(), {.features = 8, .prefix = 3});
}

TEST_CASE("search equals exhaustive search: a tied head") {
  equals_exhaustive_search(tied(), {});
  equals_exhaustive_search(used_thrice(), {});
}

TEST_CASE("search equals exhaustive search: frozen parts") {
  equals_exhaustive_search(partly_frozen(), {});
}

TEST_CASE("search equals exhaustive search: a coupled loss") {
  equals_exhaustive_search<direct_preference>(language_model(), {.head_chunk = 32});
}

// Models of many sections are cut at regular distances.
TEST_CASE("search: regular cuts cost little more than the best cuts there are") {
  const auto model = blocks(8);
  using model_type = std::decay_t<decltype(model)>;
  planner_of<model_type> all(model, samples, {.grains = grains});
  REQUIRE(position(all.model().count()) <= most_free_sections);
  const step_plan frame = all.complete({{{0, position(all.model().count())}}, 16, 16, false});
  flop_counts<cpu::device<double>> flops(all.sections(), frame.shape);
  stage_costs<cpu::device<double>> costs(all.model(), flops, frame, false);
  const auto best = [&](stage_limits limits, bool regular, bool smallest) {
    std::optional<partial_plan> least;
    for (const position every : regular ? strides(all.model()) : std::vector<position>{0}) {
      limits.every = every;
      partial_plan found;
      if (!search_stages(costs, all.model(), false, limits, smallest, found)) continue;
      if (!least || (smallest ? found.bytes() < least->bytes() : found.flops < least->flops))
        least = found;
    }
    return least;
  };
  CHECK(strides(all.model()) == std::vector<position>{1, 2, 3, 4, 6, 8});
  const std::size_t least = best({}, false, true)->bytes(), most = best({}, false, false)->bytes();
  CHECK(double(best({}, true, true)->bytes()) <= 1.02 * double(least));
  for (int share = 1; share <= 16; ++share) {
    const stage_limits limits{.budget = least + (most - least) * std::size_t(share) / 16};
    const auto free = best(limits, false, false), regular = best(limits, true, false);
    REQUIRE(free);
    REQUIRE(regular);
    CAPTURE(share);
    CHECK(regular->flops >= free->flops);
    CHECK(double(regular->flops) <= 1.05 * double(free->flops));
  }
}

TEST_CASE("search: a thinned front keeps its ends") {
  std::vector<partial_plan> front;
  for (std::size_t i = 0; i < 1000; ++i)
    front.push_back(
        {.persistent = 10 * i + i * i % 7, .region = i % 13, .flops = position(5000 - 5 * i)});
  const auto few = [&] {
    auto copy = front;
    thin(copy, 32);
    return copy;
  }();
  CHECK(few.size() <= 64);
  const auto by_flops = [](const auto& a, const auto& b) { return a.flops < b.flops; };
  const auto by_bytes = [](const auto& a, const auto& b) { return a.persistent < b.persistent; };
  CHECK(std::min_element(few.begin(), few.end(), by_flops)->flops == 5);
  CHECK(std::min_element(few.begin(), few.end(), by_bytes)->persistent == 0);
  auto short_one = std::vector(front.begin(), front.begin() + 60);
  thin(short_one, 32);
  CHECK(short_one.size() == 60);
}

TEST_CASE("a recurrence of 2^30 and 2^40 tokens: states in two levels, FLOPs by hand") {
  const auto model = recurrent();  // of width 8, with 4 states and an MLP of 12; 5 outputs
  for (const position T : {position(1) << 30, position(1) << 40, (position(1) << 40) - 12345}) {
    planner_of<decltype(model)> all(model, packed::one(T), {.features = 8});
    const auto of = [&](position interval) {
      return all.complete({{{0, 3}}, 4096, 4096, false, interval});
    };
    const position n = ceil_div(T, 4096), root = position(1) << (T < position(1) << 31 ? 9 : 14);
    const step_plan dense = of(1), p = of(root);
    REQUIRE(p.chunk_count() == n);
    // A recurrence has products of 8 x 4, two before its states and one behind; a state is kept
    // before each chunk, or of each interval and within one.
    const position before = 2 * 2 * 8 * 4, behind = 2 * 4 * 8, mlp = 3 * 2 * 8 * 12,
                   head = 2 * 8 * 5, forward = 2 * (before + behind) + mlp,
                   replayed = before + behind + mlp + before;
    CHECK(dense.flops == big_count(T) * (3 * forward + replayed + 3 * head));
    const position refilled = (n - 1) / root * (root - 1) * 4096;
    CHECK(p.flops == dense.flops + big_count(refilled) * replayed);
    const auto states = [&](position rows) { return std::size_t(rows * 4 * 8 + 63) / 64 * 64; };
    CHECK(dense.bytes.region - p.bytes.region ==
          2 * (states(n + 1) - states(ceil_div(n, root) + root)));
  }
  const step_plan found =
      *planner_of<decltype(model)>(model, packed::one(position(1) << 40), {.features = 8})
           .search(true);
  CHECK(found.choice.carry_interval > 1000);
}
