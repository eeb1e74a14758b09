// A step: gradients are added; no call leaves traces, whatever ends it.
#include <streambp/engine/step.hpp>

#include <atomic>
#include <stdexcept>
#include <thread>

#include "models.hpp"
#include "trial.hpp"

using namespace streambp;

namespace {

auto tokens_trial() {
  return trial_of<double>(language_model(), cross_entropy{}, short_ragged,
                          {.grains = small_grains});
}
auto rows_trial(plan_options options) {
  options.features = 6;
  options.grains = small_grains;
  return trial_of<double>(causal_attention({.features = 6}) | linear(6, 5), cross_entropy{},
                          short_ragged, options);
}

}  // namespace

TEST_CASE("gradients are added to what stands there: parameters, rows, states") {
  const auto t = rows_trial({.prefix = 3, .input_gradient = true});
  const step_plan p = *t.planner_for().search(true);
  const outcome<double> once = t.step(p);
  outcome<double> out;
  auto b = t.data(out);
  out.gradient.assign(once.gradient.size(), 2.5);
  out.d_rows.assign(out.d_rows.size(), -1.5);
  out.d_initial.assign(out.d_initial.size(), 0.75);
  auto e = t.engine_for(p);
  e.add_gradient(t.parameters, b, out.gradient);
  const auto added = [](const auto& got, const auto& expected, double before) {
    for (std::size_t i = 0; i < got.size(); ++i)
      if (!(std::abs(got[i] - (before + expected[i])) < 1e-14)) return false;
    return !got.empty();
  };
  CHECK(added(out.gradient, once.gradient, 2.5));
  CHECK(added(out.d_rows, once.d_rows, -1.5));
  CHECK(added(out.d_initial, once.d_initial, 0.75));
}

TEST_CASE("no state outlives a call") {
  const auto t = tokens_trial();
  const step_plan p = *t.planner_for().search(true);
  const outcome<double> first = t.step(p);
  auto e = t.engine_for(p);
  auto other = t;
  for (auto& token : other.tokens) token = (token + 5) % 19;
  other.weights.assign(125, 0.5);
  std::vector<double> gradient(first.gradient.size()), logs(125), z(5 * 19);
  e.add_gradient(t.parameters, other.data(), gradient);
  e.log_probabilities(t.parameters, other.data(), logs);
  e.last_results(t.parameters, other.data(), {z.data(), 5, 19});
  auto wrong = t.data();
  wrong.labels = {};
  CHECK_THROWS_AS(e.value(t.parameters, wrong), shape_error);
  const auto [value, again] = e.value_and_gradient(t.parameters, t.data());
  CHECK(value == first.value);
  CHECK(same_bits(again, first.gradient));
}

TEST_CASE("a hook may not begin a step, and what it throws ends one") {
  const auto t = tokens_trial();
  const step_plan p = *t.planner_for().search(true);
  const outcome<double> first = t.step(p);
  auto e = t.engine_for(p);
  std::vector<double> gradient(first.gradient.size());
  std::string said;
  e.when_final([&](position, position) {
    try {
      e.value(t.parameters, t.data());
    } catch (const error& refused) {
      said = refused.what();
      throw;
    }
  });
  CHECK_THROWS_AS(e.add_gradient(t.parameters, t.data(), gradient), error);
  CHECK(said == "engine: a step is running already; a hook or another thread may not start one");
  e.when_final({});
  const auto [value, again] = e.value_and_gradient(t.parameters, t.data());
  CHECK(value == first.value);
  CHECK(same_bits(again, first.gradient));
}

namespace {

// Throws in the task of one row, in one of its functions.
struct throwing {
  static constexpr bool backward_reads_input = false, backward_reads_output = false;
  std::atomic<int>* forward_row;  // -1: none
  std::atomic<int>* backward_row;

  void forward(auto& at, auto x, auto y) const {
    for_rows(at.on, at.pieces(), 16384, [&](const piece& p, position r) {
      if (p.start + r - p.row == *forward_row) throw std::domain_error("forward");
      for (position j = 0; j < x.cols; ++j) y(r, j) = x(r, j);
    });
  }
  void backward(auto& at, auto, auto, auto dy, auto dx) const {
    for_rows(at.on, at.pieces(), 16384, [&](const piece& p, position r) {
      if (p.start + r - p.row == *backward_row) throw std::domain_error("backward");
      for (position j = 0; j < dx.cols; ++j) dx(r, j) += dy(r, j);
    });
  }
};

}  // namespace

TEST_CASE(
    "what a layer's loop throws on any thread arrives at the caller; the next step is right") {
  std::atomic<int> forward_row = -1, backward_row = -1;
  const auto t = trial_of<double>(
      repeat(1, causal_attention({.features = 6}) | throwing{&forward_row, &backward_row}) |
          linear(6, 5),
      cross_entropy{}, short_ragged, {.features = 6, .grains = small_grains});
  const step_plan p = *t.planner_for(3).search(true);
  auto e = t.engine_for(p);
  const auto [value, gradient] = e.value_and_gradient(t.parameters, t.data());
  for (int round = 0; round < 40; ++round) {
    std::atomic<int>& row = round % 2 == 0 ? forward_row : backward_row;
    row = round;
    std::vector<double> lost(gradient.size());
    std::string said;
    try {
      e.add_gradient(t.parameters, t.data(), lost);
    } catch (const std::domain_error& thrown) {
      said = thrown.what();
    }
    CHECK(said == (round % 2 == 0 ? "forward" : "backward"));
    row = -1;
    const auto [again, same] = e.value_and_gradient(t.parameters, t.data());
    CHECK(again == value);
    CHECK(same_bits(same, gradient));
  }
}

TEST_CASE("of two threads that start at the same moment, one runs and one gets the sentence") {
  const auto t = trial_of<double>(linear(2, 3), cross_entropy{}, packed::one(2),
                                  {.features = 2, .grains = small_grains});
  auto e = t.engine_for(*t.planner_for().search());
  const double right = e.value(t.parameters, t.data());
  constexpr int rounds = 100000;
  std::atomic<int> ready = 0, refused = 0, ran = 0, wrong = 0;
  const auto runner = [&] {
    for (int round = 1; round <= rounds; ++round) {
      ++ready;
      for (int look = 0; ready < 2 * round; ++look)
        if (look > 1000) std::this_thread::yield();
      try {
        wrong += e.value(t.parameters, t.data()) != right;
        ++ran;
      } catch (const error& said) {
        wrong +=
            said.what() !=
            std::string_view(
                "engine: a step is running already; a hook or another thread may not start one");
        ++refused;
      }
    }
  };
  std::thread other(runner);
  runner();
  other.join();
  CHECK(wrong == 0);
  CHECK(ran + refused == 2 * rounds);
  CHECK(ran >= rounds);  // when both are refused nobody holds the engine
}
