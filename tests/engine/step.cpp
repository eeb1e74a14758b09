// A step's door: what is refused, in which words; that gradients are added; that no call leaves
// traces.
#include <streambp/engine/step.hpp>

#include <limits>

#include "models.hpp"
#include "trial.hpp"

using namespace streambp;

namespace {

const double not_a_number = std::numeric_limits<double>::quiet_NaN();

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

template <class F>
std::string complaint(F f) {
  try {
    f();
  } catch (const error& e) {
    return e.what();
  }
  return "";
}

// What the engine says to data that `spoil` has changed.
template <class Trial, class Spoil>
std::string refused(Trial t, const Spoil& spoil) {
  auto e = t.engine_for(t.planner_for().plain());
  outcome<double> out;
  out.gradient.assign(std::size_t(t.list.table.gradients), 0);
  auto b = t.data(out);
  spoil(t, b);
  const std::string said = complaint([&] { e.add_gradient(t.parameters, b, out.gradient); });
  CHECK(out.gradient == std::vector<double>(out.gradient.size(), 0));
  CHECK(complaint([&] { e.value(t.parameters, b); }) == said);
  return said;
}
template <class Spoil>
std::string tokens_refused(const Spoil& spoil) {
  return refused(tokens_trial(), spoil);
}

}  // namespace

TEST_CASE("tokens, labels, weights and parameters that cannot be used are named with their place") {
  CHECK(tokens_refused([](auto& t, auto&) { t.tokens[7] = 19; }) ==
        "batch: token 19 at place 7 is outside the vocabulary of 19");
  CHECK(tokens_refused([](auto& t, auto&) { t.tokens[0] = -1; }) ==
        "batch: token -1 at place 0 is outside the vocabulary of 19");
  CHECK(
      tokens_refused([](auto& t, auto&) { t.labels[43] = 19; }) ==
      "batch: label 19 at token 43 (sample 3, position 2) is outside the vocabulary of 19; labels "
      "that do not count are -100");
  CHECK(tokens_refused([](auto& t, auto&) {
          t.labels[0] = -99;
        }).starts_with("batch: label -99 at token 0 (sample 0, position 0)"));
  CHECK(tokens_refused([](auto& t, auto& b) {
          t.weights.assign(125, 1);
          t.weights[5] = -1;
          b.weights = t.weights;
        }) == "batch: weight -1 at token 5; weights are finite and not negative");
  CHECK(tokens_refused([](auto& t, auto& b) {
          t.weights.assign(125, 1);
          t.weights[6] = not_a_number;
          b.weights = t.weights;
        }).starts_with("batch: weight "));
  CHECK(tokens_refused([](auto& t, auto&) {
          t.parameters[std::size_t(t.list.table["blocks.1.mlp.up"].offset + 16 * 3 + 5)] =
              std::numeric_limits<double>::infinity();
        }) == "parameter blocks.1.mlp.up is inf at row 3, column 5");
}

TEST_CASE("sizes that do not fit the plan are named") {
  CHECK(tokens_refused([](auto& t, auto&) { t.parameters.pop_back(); }) ==
        sentence("parameters has ", tokens_trial().parameters.size() - 1, " entries, the plan has ",
                 tokens_trial().parameters.size()));
  CHECK(tokens_refused([](auto& t, auto& b) { b.tokens = std::span(t.tokens).first(124); }) ==
        "batch: tokens has 124 entries, the plan has 125");
  CHECK(tokens_refused([](auto& t, auto& b) { b.labels = std::span(t.labels).first(124); }) ==
        "batch: 124 labels for 125 tokens; labels stand unshifted, one at each token");
  CHECK(tokens_refused([](auto& t, auto& b) {
          t.weights.assign(124, 1);
          b.weights = t.weights;
        }) == "batch: 124 weights for 125 labels");
  CHECK(tokens_refused([](auto& t, auto& b) {
          t.sample_ids = {1, 2};
          b.sample_ids = t.sample_ids;
        }) == "batch: sample_ids has 2 entries, the plan has 5");

  const auto t = tokens_trial();
  auto e = t.engine_for(t.planner_for().plain());
  std::vector<double> few(10);
  CHECK(complaint([&] {
          e.add_gradient(t.parameters, t.data(), few);
        }).starts_with("gradient has 10 entries, the plan has "));
  CHECK(complaint([&] { e.log_probabilities(t.parameters, t.data(), few); }) ==
        "log_probabilities: places has 10 entries, the plan has 125");
  CHECK(complaint([&] {
          e.last_results(t.parameters, t.data(), {few.data(), 2, 5});
        }) == "last_results: a view of 2 x 5 for 5 samples of 19 results");
}

TEST_CASE("rows, states and their gradients") {
  CHECK(refused(rows_trial({}), [](auto& t, auto& b) {
          b.rows = {t.rows.data(), 125, 5};
        }) == "batch: rows are 125 x 5, the plan has 125 tokens of 6 features");
  CHECK(refused(rows_trial({}), [](auto&, auto& b) { b.rows = {}; }) ==
        "batch: rows are 0 x 0, the plan has 125 tokens of 6 features");
  CHECK(refused(rows_trial({}), [](auto& t, auto& b) {
          b.d_rows = {t.rows.data(), 125, 6};
        }) == "batch: d_rows has the shape of rows, and the plan asks for input_gradient");
  CHECK(refused(rows_trial({.input_gradient = true}), [](auto&, auto& b) {
          b.d_rows = b.d_rows.middle_rows(0, 124);
        }) == "batch: d_rows has the shape of rows, and the plan asks for input_gradient");
  CHECK(refused(rows_trial({.prefix = 3}), [](auto&, auto& b) { b.initial = {}; }) ==
        "batch: the plan has a prefix of 3 memory rows; give them in batch.initial");
  CHECK(refused(rows_trial({.prefix = 3}), [](auto&, auto& b) {
          b.initial = b.initial.first(7);
        }) == "batch: initial has 7 entries, the plan has 36");
  CHECK(refused(rows_trial({.prefix = 3}), [](auto& t, auto& b) { b.d_initial = t.initial; }) ==
        "batch: d_initial needs a plan that asks for input_gradient");
  CHECK(refused(rows_trial({.prefix = 3, .input_gradient = true}), [](auto&, auto& b) {
          b.d_initial = b.d_initial.first(7);
        }) == "batch: d_initial has 7 entries, the plan has 36");
}

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
