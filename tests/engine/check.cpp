// A step's door: what is refused, in which words, with nothing touched.
#include <streambp/engine/check.hpp>

#include <limits>

#include <streambp/core/warning.hpp>

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
        }) ==
        "parameter blocks.1.mlp.up is inf at row 3, column 5; parameters are finite: look at the "
        "update that changed it, or where it was loaded");
}

TEST_CASE("sizes that do not fit the plan are named") {
  CHECK(tokens_refused([](auto& t, auto&) { t.parameters.pop_back(); }) ==
        sentence("parameters has ", tokens_trial().parameters.size() - 1, " entries, the plan has ",
                 tokens_trial().parameters.size()));
  CHECK(tokens_refused([](auto& t, auto& b) { b.tokens = std::span(t.tokens).first(124); }) ==
        "batch: tokens has 124 entries, the plan has 125");
  CHECK(tokens_refused([](auto& t, auto& b) { b.labels = std::span(t.labels).first(124); }) ==
        "batch: 124 labels for 125 tokens; labels are the tokens, not shifted, one at each");
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
        }) == "last_results: out: 2 rows of 5 columns, the plan has 5 of 19");
  CHECK(complaint([&] {
          e.last_results(t.parameters, t.data(), {nullptr, 5, 19});
        }) == "last_results: out: 5 rows of 19 columns, but no data");
}

TEST_CASE("rows, states and their gradients") {
  CHECK(refused(rows_trial({}), [](auto& t, auto& b) {
          b.rows = {t.rows.data(), 125, 5};
        }) == "batch: rows: 125 rows of 5 columns, the plan has 125 of 6");
  CHECK(refused(rows_trial({}), [](auto&, auto& b) { b.rows = {}; }) ==
        "batch: rows: 0 rows of 0 columns, the plan has 125 of 6");
  CHECK(refused(rows_trial({}), [](auto& t, auto& b) {
          b.rows = {t.rows.data(), 125, 6, 5};
        }) == "batch: rows: 125 rows of 6 columns, 5 entries apart");
  std::vector<double> elsewhere(125 * 6);
  CHECK(refused(rows_trial({}), [&](auto&, auto& b) {
          b.d_rows = {elsewhere.data(), 125, 6};
        }) == "batch: d_rows needs a plan that asks for input_gradient");
  CHECK(refused(rows_trial({.input_gradient = true}), [](auto&, auto& b) {
          b.d_rows = b.d_rows.middle_rows(0, 124);
        }) == "batch: d_rows: 124 rows of 6 columns, the plan has 125 of 6");
  CHECK(refused(rows_trial({.input_gradient = true}),
                [](auto& t, auto& b) {
                  b.d_rows = {t.rows.data(), 125, 6};
                }) ==
        "batch: rows and batch: d_rows share memory; what a step adds to has memory of its own");
  CHECK(refused(rows_trial({.prefix = 3}), [](auto&, auto& b) { b.initial = {}; }) ==
        "batch: the plan has a prefix of 3 memory rows; give them in batch.initial");
  CHECK(refused(rows_trial({.prefix = 3}), [](auto&, auto& b) {
          b.initial = b.initial.first(7);
        }) == "batch: initial has 7 entries, the plan has 36");
  CHECK(refused(rows_trial({.prefix = 3}), [&](auto&, auto& b) {
          b.d_initial = std::span(elsewhere).first(36);
        }) == "batch: d_initial needs a plan that asks for input_gradient");
  CHECK(refused(rows_trial({.prefix = 3, .input_gradient = true}), [](auto&, auto& b) {
          b.d_initial = b.d_initial.first(7);
        }) == "batch: d_initial has 7 entries, the plan has 36");
}

TEST_CASE("normalisers, and options of the loss") {
  for (const double n : {-1., not_a_number, std::numeric_limits<double>::infinity()})
    CHECK(tokens_refused([n](auto&, auto& b) { b.normaliser = n; }) ==
          sentence("batch: a normaliser of ", n,
                   "; it is finite and positive, or 0 for what the batch counts"));
  const auto t = tokens_trial();
  const auto says = [&](const cross_entropy& loss) {
    auto with = t;
    with.loss = loss;
    auto e = with.engine_for(with.planner_for().plain());
    return complaint([&] { e.value(t.parameters, t.data()); });
  };
  CHECK(says({.label_smoothing = 2}) == "cross_entropy: label_smoothing is 2; it is 0 to 1");
  CHECK(says({.z_loss = -1}) == "cross_entropy: z_loss is -1; it is finite and not negative");
  CHECK(says({.logits = {1, -5}}) ==
        "loss: logits of scale 1 and softcap -5; both are finite, the softcap is not negative");
}

TEST_CASE("rows that are not finite have no gradient, states that are not no value either") {
  const auto t = rows_trial({.prefix = 3});
  auto e = t.engine_for(t.planner_for().plain());
  std::vector<double> gradient(std::size_t(t.list.table.gradients)), rows = t.rows;
  auto b = t.data();
  b.rows = {rows.data(), 125, 6};
  rows[124 * 6 + 2] = not_a_number;
  CHECK(complaint([&] { e.add_gradient(t.parameters, b, gradient); }) ==
        "batch: rows are nan at place 124, column 2; a gradient needs finite ones in all of a "
        "sample of which a label counts");
  b.rows = t.data().rows;
  std::vector<double> initial = t.initial;
  initial[4] = -std::numeric_limits<double>::infinity();
  b.initial = initial;
  const std::string said =
      "batch: initial is -inf at entry 4; states and prefix rows are finite: where there is none "
      "yet give zeros, or leave initial empty";
  CHECK(complaint([&] { e.add_gradient(t.parameters, b, gradient); }) == said);
  CHECK(complaint([&] { e.value(t.parameters, b); }) == said);
  CHECK(gradient == std::vector<double>(gradient.size(), 0));
}

TEST_CASE("a gradient has a buffer of its own") {
  const auto t = tokens_trial();
  auto e = t.engine_for(t.planner_for().plain());
  std::vector<double> both(t.parameters.size() + 5);
  std::copy(t.parameters.begin(), t.parameters.end(), both.begin());
  const std::span all(both);
  CHECK(complaint([&] {
          e.add_gradient(all.first(t.parameters.size()), t.data(), all.last(t.parameters.size()));
        }) == "parameters and gradient share memory; what a step adds to has memory of its own");
}

TEST_CASE("a list of views: one an entry, of its shape, none on another") {
  const auto t = tokens_trial();
  auto e = t.engine_for(t.planner_for().plain());
  const auto& entries = e.parameters().entries;
  std::vector<double> values = t.parameters, slopes(values.size(), 0.0);
  std::vector<view<double>> parameters, gradient;
  for (const auto& p : entries) {
    parameters.push_back({values.data() + p.offset, p.rows, p.cols});
    gradient.push_back({slopes.data() + p.offset, p.rows, p.cols});
  }
  const auto refused = [&](auto& list, std::size_t k, view<double> bad) {
    const view<double> good = std::exchange(list[k], bad);
    const std::string said = complaint([&] { e.add_gradient(parameters, t.data(), gradient); });
    list[k] = good;
    return said;
  };
  REQUIRE(entries.size() > 2);
  REQUIRE(refused(parameters, 0, parameters[0]) == "");
  view<double> bad = parameters[1];
  --bad.rows;
  CHECK(refused(parameters, 1, bad) ==
        sentence("parameters, view 1 (", entries[1].name, "): ", bad.rows, " rows of ", bad.cols,
                 " columns, the plan has ", bad.rows + 1, " of ", bad.cols));
  CHECK(refused(gradient, 1, {nullptr, gradient[1].rows, gradient[1].cols}) ==
        sentence("gradient, view 1 (", entries[1].name, "): ", gradient[1].rows, " rows of ",
                 gradient[1].cols, " columns, but no data"));
  CHECK(refused(gradient, 1, parameters[1]) ==
        "parameters and gradient share memory; what a step adds to has memory of its own");
  CHECK(refused(gradient, 1, gradient[0].middle_rows(0, 1)) ==
        "gradient: two of its views share memory; what a step adds to has memory of its own");
  values[std::size_t(entries[1].offset)] = std::nan("");
  CHECK(refused(parameters, 0, parameters[0])
            .starts_with("parameter " + entries[1].name + " is nan at row 0, column 0"));
  values[std::size_t(entries[1].offset)] = 0;
  parameters.pop_back();
  CHECK(complaint([&] { e.value(parameters, t.data()); }) ==
        sentence("parameters: a list of ", entries.size() - 1, " views, the table has ",
                 entries.size(), " entries"));
}

TEST_CASE("an engine refuses the plan of another model, and of none") {
  const auto t = tokens_trial();
  const auto refuses = [&](const step_plan& p) { return complaint([&] { t.engine_for(p); }); };
  CHECK(refuses(t.planner_for().plain()) == "");
  CHECK(refuses({}).starts_with("engine: the plan was made for another model"));
  const auto wider = language_model() | linear(19, 19);
  planner<cpu::device<double>, decltype(wider), cross_entropy> other(wider, short_ragged,
                                                                     {.grains = small_grains});
  CHECK(refuses(other.plain()).starts_with("engine: the plan was made for another model"));
  step_plan changed = t.planner_for().plain();
  changed.bytes.kept += 64;
  CHECK(refuses(changed).starts_with("engine: the plan was changed after it was made"));
}

TEST_CASE("an engine refuses the plan of another loss, and a gradient of nothing") {
  const auto t = trial_of<double>(linear(6, 5), cross_entropy{}, short_ragged,
                                  {.features = 6, .grains = small_grains});
  const step_plan p = t.planner_for().plain();
  using coupled = engine<double, linear, direct_preference>;
  const std::string said =
      complaint([&] { coupled(typed_plan<double>{p}, t.model, direct_preference{}); });
  CHECK(said.starts_with(sentence("engine: the plan says ", p.peak(), " bytes, the step needs ")));
  CHECK(said.ends_with("; it was made for another loss"));
  auto e = t.engine_for(p);
  CHECK(
      complaint([&] { e.add_gradient(t.parameters, t.data(), {}); }) ==
      sentence("add_gradient: no gradient is asked for; give a buffer of parameters().gradients = ",
               t.list.table.gradients, " numbers, or take value(), the loss alone"));
}

TEST_CASE("what a step adds to overlaps nothing else, by ranges of bytes") {
  const auto one_row_off = [](auto& t, auto& b) {
    t.rows.resize(t.rows.size() + 6);
    b.rows = {t.rows.data(), 125, 6};
    b.d_rows = {t.rows.data() + 6, 125, 6};
  };
  CHECK(refused(rows_trial({.input_gradient = true}), one_row_off) ==
        "batch: rows and batch: d_rows share memory; what a step adds to has memory of its own");
  CHECK(refused(rows_trial({.prefix = 3, .input_gradient = true}),
                [](auto& t, auto& b) {
                  t.initial.resize(37);
                  b.initial = std::span<const double>(t.initial).first(36);
                  b.d_initial = std::span(t.initial).last(36);
                }) ==
        "batch: initial and batch: d_initial share memory; what a step adds to has memory of "
        "its own");
  CHECK(
      refused(rows_trial({.input_gradient = true}), [](auto& t, auto& b) {
        t.parameters.reserve(125 * 6);  // what follows them is nobody's
        b.d_rows = {t.parameters.data(), 125, 6};
      }) == "parameters and batch: d_rows share memory; what a step adds to has memory of its own");
}

TEST_CASE("rows for a model of tokens, and tokens for one of rows") {
  CHECK(tokens_refused([](auto& t, auto& b) {
          b.rows = {t.parameters.data(), 125, 2};
        }) == "batch: rows are given, but the model takes tokens");
  std::vector<double> apart(250);
  CHECK(tokens_refused([&](auto&, auto& b) {
          b.d_rows = {apart.data(), 125, 2};
        }) == "batch: d_rows is given, but the model takes tokens");
  CHECK(refused(rows_trial({}), [](auto& t, auto& b) { b.tokens = t.labels; }) ==
        "batch: tokens are given, but the model takes rows");
}

TEST_CASE("a plan that was changed by hand is refused") {
  const auto t = tokens_trial();
  const step_plan made = t.planner_for().checkpointing();
  const auto refuses = [&](auto change) {
    step_plan p = made;
    change(p);
    return complaint([&] { t.engine_for(p); })
        .starts_with("engine: the plan was changed after it was made");
  };
  CHECK_FALSE(refuses([](step_plan&) {}));
  CHECK(refuses([](step_plan& p) { p.sweeps.clear(); }));
  CHECK(refuses([](step_plan& p) { p.choice.stages[0].last = 100000000; }));
  CHECK(refuses([](step_plan& p) { p.choice.stages[0].first = -100000000; }));
  CHECK(refuses([](step_plan& p) { p.sweeps.pop_back(); }));
  CHECK(refuses([](step_plan& p) { std::swap(p.sweeps[0], p.sweeps[1]); }));
  CHECK(refuses([](step_plan& p) { p.grains = edges{0, p.grains.back()}; }));
  CHECK(refuses([](step_plan& p) { p.choice.carry_interval = 3; }));
  CHECK(refuses([](step_plan& p) { p.shape.input_gradient = true; }));
  CHECK(refuses([](step_plan& p) { p.bytes.kept += 64, p.bytes.sums -= 64; }));
}

TEST_CASE("a weight of a label that is not finite is refused") {
  CHECK(tokens_refused([](auto&, auto& b) { b.normaliser = 1e-320; }) ==
        "batch: a label of sample 1 counts 1 / (9.99989e-321 * 1), which no number holds; "
        "the normaliser or the weights are too small or too large");
  CHECK(tokens_refused([](auto& t, auto& b) {
          t.weights.assign(125, 0);
          t.weights[100] = 1e-320;
          t.labels[100] = 1;
          b.weights = t.weights;
        }).find("which no number holds") != std::string::npos);
}

TEST_CASE("weights that add up to more than a number holds are refused") {
  CHECK(tokens_refused([](auto& t, auto& b) {
          t.weights.assign(125, 1e308);
          b.weights = t.weights;
        }) == "batch: the weights of the labels that count add up to inf; scale them down");
}

TEST_CASE("results are not written into what is read") {
  const auto t = rows_trial({});
  auto e = t.engine_for(t.planner_for().plain());
  auto numbers = t.parameters;
  numbers.resize(1000);
  const std::span<const double> parameters(numbers.data(), t.parameters.size());
  CHECK(complaint([&] {
          e.log_probabilities(parameters, t.data(), std::span(numbers).subspan(50, 125));
        }) == "parameters and the result share memory; what a step adds to has memory of its own");
  CHECK(complaint([&] {
          e.last_results(parameters, t.data(), {numbers.data() + 20, 5, 5});
        }).starts_with("parameters and the result share memory"));
}

TEST_CASE("labels that were shifted beforehand are warned of once; unshifted ones are not") {
  std::vector<std::string> said;
  const warning_sink before =
      set_warning_sink([&](std::string_view text) { said.emplace_back(text); });
  auto t = tokens_trial();
  auto e = t.engine_for(t.planner_for().plain());
  t.labels = t.tokens;
  e.value(t.parameters, t.data());
  CHECK(said.empty());
  for (position s = 0; s < t.samples.segments(); ++s)
    for (position i = t.samples.segment(s).first; i + 1 < t.samples.segment(s).last; ++i)
      t.labels[std::size_t(i)] = t.tokens[std::size_t(i) + 1];
  for (int i = 0; i < 3; ++i) e.value(t.parameters, t.data());
  CHECK(said.size() == 1);
  CHECK(said.at(0).starts_with("labels[t] is tokens[t + 1] nearly everywhere: these labels are "));
  // A text of one token is its own shift.
  auto same = t.engine_for(t.planner_for().plain());
  std::fill(t.tokens.begin(), t.tokens.end(), 3);
  t.labels = t.tokens;
  same.value(t.parameters, t.data());
  CHECK(said.size() == 1);
  set_warning_sink(before);
}
