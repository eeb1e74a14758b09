// Several output heads on one trunk, each with its loss and labels.
#include <streambp/engine/head.hpp>

#include <cmath>

#include "../engine/announcements.hpp"
#include "../engine/differences.hpp"
#include "../engine/models.hpp"

using namespace streambp;

namespace {

const choice_space space{{1, 40, 125, 1000}, {1, 32, 1000}};
const choice_space coupled_space{{1, 40, 125, 1000}, {1, 32, 1000}, false, true, true};

auto trunk() {
  const attention_options attend{.features = 12, .heads = 2, .rotary = 1e3};
  return embedding(19, 12) | repeat(2, residual(rms_norm(12) | causal_attention(attend)) |
                                           residual(rms_norm(12) | gated_recurrence(12, 6)));
}

// Every third label does not count, others than in the trial's own.
std::vector<std::int32_t> labels_below(position vocabulary, position tokens, unsigned seed) {
  dice draw(seed);
  std::vector<std::int32_t> labels;
  for (position t = 0; t < tokens; ++t)
    labels.push_back(draw(3) == 0 ? -100 : std::int32_t(draw(vocabulary)));
  return labels;
}

// Labels of the first head are the trial's; the second has its own.
template <class Scalar, class Model, class Loss>
trial<Scalar, Model, Loss> two_heads(Model model, Loss loss, double first = 1, double second = 1,
                                     packed samples = short_ragged) {
  auto t = trial_of<Scalar>(std::move(model), std::move(loss), std::move(samples),
                            {.grains = small_grains});
  t.heads = {{{}, first}, {labels_below(t.list.heads[1].out, t.samples.tokens(), 11), second}};
  return t;
}

// Two of one type with losses of one type.
auto twins() { return trunk() | heads(linear(12, 19), linear(12, 19)); }
const auto two_losses = losses(cross_entropy{}, cross_entropy{});

// A head alone, with the parameters and labels that it has among the others.
template <class Scalar, class Model, class Loss, class Together>
outcome<Scalar> alone(Model model, Loss loss, position head, const Together& all) {
  auto one = trial_of<Scalar>(std::move(model), std::move(loss), all.samples, all.options);
  const auto& own = all.heads[std::size_t(head)].labels;
  one.tokens = all.tokens;
  one.initial = all.initial;
  one.labels = own.empty() ? all.labels : own;
  std::size_t from = 0;
  for (const auto& e : one.list.table.entries) {
    // Those of the trunk have one place; what comes then is the head's.
    const bool of_trunk =
        std::any_of(one.list.sections.begin(), one.list.sections.end(),
                    [&](const auto& s) { return s.uses(int(&e - one.list.table.entries.data())); });
    if (!of_trunk && from == 0)
      for (; !all.list.heads[std::size_t(head)].uses(int(from));) ++from;
    const auto number = of_trunk ? std::size_t(&e - one.list.table.entries.data()) : from++;
    const auto& same = all.list.table.entries[number];
    REQUIRE(same.size() == e.size());
    std::copy_n(all.parameters.begin() + same.offset, e.size(), one.parameters.begin() + e.offset);
  }
  return one.step(one.planner_for().plain());
}

struct error_of {
  double largest = 0, error = 0;
  void add(double got, double wanted) {
    largest = std::max(largest, std::abs(wanted));
    error = std::max(error, std::abs(got - wanted));
  }
};

// Σ c ∘ y with c of its own for every entry.
struct linear_functional {
  double rows(auto&, position first_row, auto y) const {
    double value = 0;
    for (position i = y.rows; i-- > 0;)
      for (position j = 0; j < y.cols; ++j) {
        const double c = std::sin(double(7 * (first_row + i) + j));
        value += c * double(y(i, j));
        y(i, j) = std::decay_t<decltype(y(i, j))>(c);
      }
    return value;
  }
};

}  // namespace

TEST_CASE("two heads of one type: plans, in fp64") {
  every_plan_has_the_same_bits(two_heads<double>(twins(), two_losses), space, 251);
}

TEST_CASE("two heads of one type: plans, in fp32") {
  every_plan_has_the_same_bits(two_heads<float>(twins(), two_losses), space, 299);
}

TEST_CASE("two heads of one type: central differences") {
  auto t = two_heads<double>(twins(), two_losses, 1, 0.25);
  t.options.chunk = 24;
  equals_differences(t, *t.planner_for().search());
}

TEST_CASE("two heads are the sum of two steps of one head each, in the value and all gradients") {
  for (const double factor : {1.0, 0.375, -2.0}) {
    const auto t = two_heads<double>(twins(), two_losses, 1, factor);
    const auto a = alone<double>(trunk() | linear(12, 19), cross_entropy{}, 0, t),
               b = alone<double>(trunk() | linear(12, 19), cross_entropy{}, 1, t);
    CHECK(std::abs(a.value - b.value) > 0.01);
    auto all = t.planner_for();
    for (const step_plan& p : {all.plain(), *all.search(), *all.search(true)}) {
      const outcome<double> both = t.step(p);
      const auto e = [&] {
        auto engine = t.engine_for(p);
        engine.value(t.parameters, t.data());
        return std::vector<double>(engine.head_values().begin(), engine.head_values().end());
      }();
      CHECK(std::abs(e[0] - a.value) < 1e-14 * a.value);
      CHECK(std::abs(e[1] - factor * b.value) < 1e-14 * std::abs(factor) * b.value);
      CHECK(std::abs(both.value - (a.value + factor * b.value)) < 1e-14 * (a.value + b.value) * 2);
      const auto head = t.list.heads[0].owned.front();
      const auto begin = std::size_t(t.list.table.entries[std::size_t(head)].gradient),
                 size = std::size_t(t.list.table.entries[std::size_t(head)].size());
      REQUIRE(both.gradient.size() == begin + 2 * size);
      error_of trunk_error, first, second;
      for (std::size_t i = 0; i < begin; ++i)
        trunk_error.add(both.gradient[i], a.gradient[i] + factor * b.gradient[i]);
      for (std::size_t i = begin; i < begin + size; ++i) {
        first.add(both.gradient[i], a.gradient[i]);
        second.add(both.gradient[i + size], factor * b.gradient[i]);
      }
      for (const error_of& e : {trunk_error, first, second}) CHECK(e.error < 1e-14 * e.largest);
    }
  }
}

TEST_CASE("heads of other widths and depths, on a trunk of rows: plans and central differences") {
  auto t = trial_of<double>(
      residual(layer_norm(8) | gated_recurrence(8, 5)) | linear(8, 10) |
          heads(named("policy", rms_norm(10) | linear(10, 40)),
                named("value", linear(10, 6) | gelu() | linear(6, 3)),
                named("next", linear(10, 7))),
      losses(cross_entropy{.label_smoothing = 0.1}, cross_entropy{.average = over::samples},
             cross_entropy{.logits = {.softcap = 3}}),
      short_ragged, {.features = 8, .input_gradient = true, .grains = small_grains});
  t.heads = {{},
             {labels_below(3, t.samples.tokens(), 3), 0.5},
             {labels_below(7, t.samples.tokens(), 4), 2}};
  CHECK(t.list.table["value.linear_2.weight"].rows == 3);
  every_plan_has_the_same_bits(t, {{1, 40, 125, 1000}, {1, 32, 1000}}, 2);
  t.options.chunk = 24;
  equals_differences(t, *t.planner_for().search(true));
}

TEST_CASE("a coupled loss on one head and a plain one on the other, either way round") {
  const packed samples = packed_lengths({30, 41, 9, 25});
  const direct_preference preference{{{0, 1}, {3, 2}}, {-3, -8, -1, -20}, 0.3};
  const auto first = two_heads<double>(twins(), losses(preference, cross_entropy{}), 1, 3, samples);
  every_plan_has_the_same_bits(first, coupled_space, 499);
  auto second = two_heads<double>(twins(), losses(cross_entropy{}, preference), 3, 0.5, samples);
  every_plan_has_the_same_bits(second, coupled_space, 499);
  second.options.chunk = 24;
  equals_differences(second, *second.planner_for().search());
  const auto one = alone<double>(trunk() | linear(12, 19), cross_entropy{}, 0, second),
             other = alone<double>(trunk() | linear(12, 19), preference, 1, second);
  const auto both = second.step(second.planner_for().plain());
  CHECK(std::abs(both.value - (3 * one.value + 0.5 * other.value)) < 1e-14 * both.value);
}

TEST_CASE("a loss of rows on one head and one of tokens on the other") {
  auto t = two_heads<double>(trunk() | heads(linear(12, 19), linear(12, 5)),
                             losses(cross_entropy{}, linear_functional{}), 1, 0.125);
  every_plan_has_the_same_bits(t, space, 499);
  t.options.chunk = 24;
  equals_differences(t, *t.planner_for().search());
  auto e = t.engine_for(t.planner_for().plain());
  std::vector<double> out(t.labels.size());
  e.log_probabilities(t.parameters, t.data(), out);
  CHECK_THROWS_WITH_AS(e.log_probabilities(t.parameters, t.data(), out, 1),
                       "log_probabilities: the loss is of whole rows, and no label has one", error);
}

TEST_CASE("a frozen head gives the trunk its gradient and has none") {
  const auto model = trunk() | heads(frozen(linear(12, 19)), linear(12, 19));
  const auto t = two_heads<double>(model, two_losses);
  const auto whole = two_heads<double>(twins(), two_losses);
  const step_plan p = *t.planner_for().search(true);
  const outcome<double> some = t.step(p), all = whole.step(*whole.planner_for().search(true));
  CHECK(some.value == all.value);
  const std::size_t size = 12 * 19, begin = all.gradient.size() - 2 * size;
  REQUIRE(some.gradient.size() == begin + size);
  std::vector<double> expected(all.gradient.begin(), all.gradient.begin() + position(begin));
  expected.insert(expected.end(), all.gradient.end() - position(size), all.gradient.end());
  CHECK(same_bits(some.gradient, expected));
  const auto frozen_heads =
      two_heads<double>(trunk() | frozen(heads(linear(12, 19), linear(12, 19))), two_losses);
  expected.resize(begin);
  CHECK(same_bits(frozen_heads.step(*frozen_heads.planner_for().search()).gradient, expected));
}

TEST_CASE("heads that share a parameter with the trunk and each other: plans, differences, hooks") {
  auto t = two_heads<double>(
      trunk() | heads(rms_norm(12) | tied_linear{12, 19}, tied_linear{12, 19}), two_losses);
  REQUIRE(t.list.heads_share);
  every_plan_has_the_same_bits(t, space, 251);
  announces_each_gradient_once(t, t.planner_for().plain());
  announces_each_gradient_once(t, *t.planner_for().search(true));
  t.options.chunk = 24;
  equals_differences(t, *t.planner_for().search());
}

TEST_CASE("gradients of heads are announced once, when all of them are done") {
  const auto t = two_heads<double>(twins(), two_losses);
  for (const bool fuses : {false, true})
    announces_each_gradient_once(t, t.planner_for().complete({{{0, 5}}, 24, 8, fuses}));
}

TEST_CASE("log-probabilities and last results are of the head that is asked for") {
  const auto t = two_heads<double>(twins(), two_losses);
  auto e = t.engine_for(*t.planner_for().search(true));
  const auto tokens = std::size_t(t.samples.tokens());
  for (const position head : {0, 1}) {
    std::vector<double> logs(tokens, 7), z(5 * 19, -7);
    batch<double> data = t.data();
    e.log_probabilities(t.parameters, data, logs, head);
    const auto& labels = head == 0 ? t.labels : t.heads[1].labels;
    double sum = 0, n = 0;
    for (position s = 0; s < t.samples.segments(); ++s)
      for (position row = t.samples.segment(s).first + 1; row < t.samples.segment(s).last; ++row)
        if (labels[std::size_t(row)] != -100) sum -= logs[std::size_t(row)], ++n;
    e.value(t.parameters, data);
    CHECK(std::abs(e.head_values()[std::size_t(head)] - sum / n) < 1e-13 * sum / n);
    data.labels = {};  // other heads' are not looked at
    data.heads = {};
    e.last_results(t.parameters, data, {z.data(), 5, 19}, head);
    // The last rows' results are those of a model of this head alone.
    auto one = trial_of<double>(trunk() | linear(12, 19), cross_entropy{}, t.samples, t.options);
    one.parameters.assign(t.parameters.begin(), t.parameters.end() - 12 * 19);
    if (head == 1)
      std::copy(t.parameters.end() - 12 * 19, t.parameters.end(), one.parameters.end() - 12 * 19);
    std::vector<double> expected(5 * 19, -7);
    one.engine_for(one.planner_for().plain())
        .last_results(one.parameters, data, {expected.data(), 5, 19});
    CHECK(same_bits(z, expected));
  }
  batch<double> second = t.data();
  second.labels = {};
  std::vector<double> logs(tokens);
  e.log_probabilities(t.parameters, second, logs, 1);
  std::vector<double> z(5 * 19);
  CHECK_THROWS_WITH_AS(e.last_results(t.parameters, second, {z.data(), 5, 19}, 2),
                       "last_results: there is no head 2; the model has 2, counted from 0",
                       shape_error);
  CHECK_THROWS_WITH_AS(e.log_probabilities(t.parameters, second, logs, -1),
                       "log_probabilities: there is no head -1; the model has 2, counted from 0",
                       shape_error);
}

TEST_CASE("a sample counts where some head counts something of it; elsewhere it is not looked at") {
  auto t = trial_of<double>(residual(linear(6, 6)) | heads(linear(6, 5), linear(6, 4)), two_losses,
                            packed_lengths({9, 12, 20}),
                            {.features = 6, .input_gradient = true, .grains = small_grains});
  t.heads = {{}, {labels_below(4, t.samples.tokens(), 2), 1}};
  for (position i = 0; i < 41; ++i) {
    if (i >= 9) t.labels[std::size_t(i)] = -100;           // the first head: of sample 0 alone
    if (i < 21) t.heads[1].labels[std::size_t(i)] = -100;  // the second one: of sample 2
  }
  for (const step_plan& p : {t.planner_for().plain(), *t.planner_for().search(true)}) {
    for (position i = 9 * 6; i < 21 * 6; ++i) t.rows[std::size_t(i)] = 0;
    const outcome<double> zero = t.step(p);
    for (const position row : {2, 30}) {
      bool moved = false;
      for (position j = 0; j < 6; ++j) moved = moved || zero.d_rows[std::size_t(row * 6 + j)] != 0;
      CHECK(moved);
    }
    for (position i = 9 * 6; i < 21 * 6; ++i) t.rows[std::size_t(i)] = std::nan("");
    CHECK(same_bits(t.step(p), zero));
  }
}

TEST_CASE("where no head counts anything nothing runs") {
  auto t = two_heads<double>(twins(), two_losses);
  t.labels.assign(t.labels.size(), -100);
  t.heads[1].labels = t.labels;
  const outcome<double> out = t.step(t.planner_for().plain());
  CHECK(out.value == 0);
  CHECK(out.gradient == std::vector<double>(out.gradient.size(), 0.0));
}

TEST_CASE("a head without labels of its own has the batch's") {
  auto t = two_heads<double>(twins(), two_losses);
  t.heads.clear();
  auto named_twice = t;
  named_twice.heads = {{t.labels, 1}, {t.labels, 1}};
  const step_plan p = *t.planner_for().search();
  CHECK(same_bits(t.step(p), named_twice.step(p)));
}

TEST_CASE("what does not fit a head is said of it") {
  auto t = two_heads<double>(twins(), two_losses);
  const step_plan p = t.planner_for().plain();
  auto e = t.engine_for(p);
  std::vector<double> gradient(std::size_t(t.list.table.gradients));
  const auto refuses = [&](const auto& what, const batch<double>& data, const std::string& words) {
    CHECK_THROWS_WITH_AS(e.add_gradient(t.parameters, data, gradient), words.c_str(),
                         std::decay_t<decltype(what)>);
  };
  batch<double> data = t.data();
  data.heads = data.heads.first(1);
  refuses(shape_error(""), data, "batch: heads has 1 entries, the plan has 2");
  t.head_batches[1].factor = INFINITY;
  data = t.data();
  t.head_batches[1].factor = INFINITY;
  refuses(data_error(""), data, "head 1: batch: a factor of inf; it is finite");
  data = t.data();
  t.head_batches[0].weights = {gradient.data(), gradient.size()};
  refuses(shape_error(""), data,
          "batch: weights of a head and gradient share memory; what a step adds to has memory of "
          "its own");
  data = t.data();
  t.head_batches[1].labels = t.head_batches[1].labels.first(3);
  refuses(
      shape_error(""), data,
      "head 1: batch: 3 labels for 125 tokens; labels are the tokens, not shifted, one at each");
  t.heads[1].labels[7] = 19;
  refuses(data_error(""), t.data(),
          "head 1: batch: label 19 at token 7 (sample 1, position 6) is outside the vocabulary of "
          "19; labels that do not count are -100");
}

TEST_CASE("a result that is not finite is said to be of its head") {
  auto t = two_heads<double>(twins(), two_losses);
  for (std::size_t i = t.parameters.size() - 12 * 19; i < t.parameters.size(); ++i)
    t.parameters[i] = 1.7e308;
  auto e = t.engine_for(t.planner_for().plain());
  try {
    e.value(t.parameters, t.data());
    FAIL("nothing was refused");
  } catch (const numeric_error& found) {
    INFO(found.what());
    CHECK(std::string(found.what()).find("that linear_2 gives (stage 0, head 1)") !=
          std::string::npos);
  }
}

TEST_CASE("a plan names its heads") {
  const auto t = two_heads<double>(trunk() | heads(named("policy", linear(12, 19)), linear(12, 19)),
                                   two_losses);
  std::ostringstream out;
  out << t.planner_for().plain();
  CHECK(out.str().find("heads     policy.linear, linear\n") != std::string::npos);
}
