// What the head gives: values, log-probabilities, results; and what must not touch them.
#include <streambp/engine/head.hpp>

#include <cmath>

#include "differences.hpp"
#include "models.hpp"

using namespace streambp;

namespace {

using language = trial<double, decltype(language_model()), cross_entropy>;

language language_trial(cross_entropy loss = {}) {
  return {language_model(), loss, short_ragged, {.chunk = 24, .grains = small_grains}};
}

// Σ c ∘ y with c of its own for every entry.
struct linear_functional {
  double rows(auto&, position first_row, auto y) const {
    double value = 0;
    for (position i = y.rows; i-- > 0;)
      for (position j = 0; j < y.cols; ++j) {
        const double c = std::sin(double(7 * (first_row + i) + j));
        value += c * y(i, j);
        y(i, j) = c;
      }
    return value;
  }
};

// The logits of row `row`, by ending its sample there.
std::vector<double> logits_of(const language& t, position segment, position row) {
  language cut = t;
  const position first = t.samples.segment(segment).first;
  cut.samples = packed::one(row + 1 - first);
  cut.tokens.assign(t.tokens.begin() + first, t.tokens.begin() + row + 1);
  std::vector<double> z(19);
  auto e = cut.engine_for(*cut.planner_for().search());
  poison(e);
  e.last_results(cut.parameters, cut.data(), {z.data(), 1, 19});
  return z;
}

double log_softmax(const std::vector<double>& z, std::int32_t target) {
  double sum = 0;
  for (const double x : z) sum += std::exp(x);
  return z[std::size_t(target)] - std::log(sum);
}

}  // namespace

TEST_CASE("log-probabilities are those of a loop over samples and rows; the value is their mean") {
  const language t = language_trial();
  std::vector<double> expected(t.labels.size(), 0);
  double sum = 0, count = 0;
  for (position s = 0; s < t.samples.segments(); ++s) {
    const row_range own = t.samples.segment(s);
    for (position label = own.first + 1; label < own.last; ++label)
      if (const std::int32_t target = t.labels[std::size_t(label)]; target != -100) {
        expected[std::size_t(label)] = log_softmax(logits_of(t, s, label - 1), target);
        sum -= expected[std::size_t(label)];
        ++count;
      }
  }
  REQUIRE(count > 20);
  auto all = t.planner_for();
  for (const step_plan& p : {all.plain(), *all.search(), *all.search(true)}) {
    auto e = t.engine_for(p);
    std::vector<double> out(t.labels.size(), 7);
    e.log_probabilities(t.parameters, t.data(), out);
    for (std::size_t i = 0; i < out.size(); ++i)
      CHECK(std::abs(out[i] - expected[i]) <= 1e-13 * std::abs(expected[i]));
    CHECK(std::abs(e.value(t.parameters, t.data()) - sum / count) < 1e-13 * sum / count);
  }
}

TEST_CASE("results of each sample's last row, whatever the plan; of an empty sample none") {
  const language t = language_trial();
  auto all = t.planner_for();
  std::vector<double> first;
  for (const step_plan& p : {all.plain(), *all.search(), *all.search(true)}) {
    std::vector<double> z(5 * 19, -7);
    auto e = t.engine_for(p);
    poison(e);
    batch<double> b = t.data();
    b.labels = {};
    e.last_results(t.parameters, b, {z.data(), 5, 19});
    for (int j = 0; j < 19; ++j) CHECK(z[2 * 19 + std::size_t(j)] == -7);
    if (first.empty()) first = z;
    CHECK(same_bits(z, first));
  }
  const std::vector<double> last = logits_of(t, 4, t.samples.tokens() - 1);
  for (std::size_t j = 0; j < 19; ++j) CHECK(std::abs(last[j] - first[4 * 19 + j]) < 1e-13);
}

TEST_CASE("a batch with nothing to score has value 0 and gradient 0, for every mean") {
  for (const over average : {over::tokens, over::samples, over::nothing}) {
    language t = language_trial({.label_smoothing = 0.1, .z_loss = 0.1, .average = average});
    t.labels.assign(t.labels.size(), -100);
    auto all = t.planner_for();
    for (const step_plan& p : {all.plain(), *all.search(true)}) {
      const outcome<double> out = t.step(p);
      CHECK(out.value == 0);
      CHECK(out.gradient == std::vector<double>(out.gradient.size(), 0.0));
    }
    // A first label is never predicted: alone it is nothing to score.
    for (const position s : {0, 1, 3, 4}) t.labels[std::size_t(t.samples.segment(s).first)] = 3;
    CHECK(t.step(all.plain()).value == 0);
  }
}

TEST_CASE("weights of 0 are labels that do not count, bit for bit") {
  language masked = language_trial(), weighted = language_trial();
  for (std::size_t i = 0; i < masked.labels.size(); ++i) {
    weighted.weights.push_back(i % 3 == 0 ? 0 : 1);
    if (i % 3 == 0) masked.labels[i] = -100;
  }
  const step_plan p = *masked.planner_for().search();
  CHECK(same_bits(masked.step(p), weighted.step(p)));
}

TEST_CASE("means: over tokens, over samples, sums") {
  language t = language_trial();
  const step_plan p = t.planner_for().plain();
  std::vector<double> logs(t.labels.size());
  t.engine_for(p).log_probabilities(t.parameters, t.data(), logs);
  double sum = 0, count = 0, of_samples = 0, samples = 0;
  for (position s = 0; s < t.samples.segments(); ++s) {
    double own = 0, n = 0;
    for (position i = t.samples.segment(s).first + 1; i < t.samples.segment(s).last; ++i)
      if (t.labels[std::size_t(i)] != -100) {
        own -= logs[std::size_t(i)];
        ++n;
      }
    sum += own;
    count += n;
    if (n > 0) of_samples += own / n, ++samples;
  }
  REQUIRE(samples == 3);  // a sample of one row predicts nothing
  const auto value = [&](over average) {
    return language_trial({.average = average}).step(p).value;
  };
  CHECK(std::abs(value(over::tokens) - sum / count) < 1e-13 * sum);
  CHECK(std::abs(value(over::samples) - of_samples / samples) < 1e-13 * sum);
  CHECK(std::abs(value(over::nothing) - sum) < 1e-13 * sum);
}

TEST_CASE("two batches with one normaliser are the batch of both") {
  // Means of means are wrong: sums 10 over 10 tokens and 9 over 3 are 19 / 13.
  language t = language_trial();
  const step_plan p = *t.planner_for().search();
  const outcome<double> whole = t.step(p);
  t.normaliser = normaliser_of(t.loss, t.samples, t.data());
  language left = t, right = t;
  for (std::size_t i = 0; i < t.labels.size(); ++i) (i < 80 ? right : left).labels[i] = -100;
  auto e = t.engine_for(p);
  std::vector<double> gradient(whole.gradient.size(), 0);
  const double value = e.add_gradient(t.parameters, left.data(), gradient) +
                       e.add_gradient(t.parameters, right.data(), gradient);
  CHECK(std::abs(value - whole.value) < 1e-14 * whole.value);
  double largest = 0, error = 0;
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    largest = std::max(largest, std::abs(whole.gradient[i]));
    error = std::max(error, std::abs(gradient[i] - whole.gradient[i]));
  }
  CHECK(error < 1e-13 * largest);
}

TEST_CASE("rows that do not count are not touched: huge ones, and NaN in another sample") {
  const auto model = residual(linear(6, 6)) | linear(6, 5);
  auto t = trial_of<double>(model, cross_entropy{}, packed_lengths({9, 12, 20}),
                            {.features = 6, .input_gradient = true, .grains = small_grains});
  for (position i = 9; i < 21; ++i) t.labels[std::size_t(i)] = -100;  // nothing of sample 1 counts
  const auto rows_of_sample_1 = [&](double value) {
    for (position i = 9 * 6; i < 21 * 6; ++i) t.rows[std::size_t(i)] = value;
  };
  for (const step_plan& p : {t.planner_for().plain(), *t.planner_for().search(true)}) {
    rows_of_sample_1(0);
    const outcome<double> zero = t.step(p);
    // Its logits overflow: exp(z) would be infinite, and 0 times that NaN.
    rows_of_sample_1(1e300);
    CHECK(same_bits(t.step(p), zero));

    rows_of_sample_1(std::nan(""));
    auto e = t.engine_for(p);
    CHECK(e.value(t.parameters, t.data()) == zero.value);
    std::vector<double> logs(t.labels.size());
    e.log_probabilities(t.parameters, t.data(), logs);
    for (const double l : logs) CHECK(std::isfinite(l));
    CHECK(same_bits(t.step(p), zero));
  }
}

TEST_CASE("a coupled loss: plans, in fp64") {
  const direct_preference loss{{{0, 1}, {3, 2}}, {-3, -8, -1, -20}, 0.3};
  every_plan_has_the_same_bits(
      trial_of<double>(language_model(), loss, packed_lengths({30, 41, 9, 25}),
                       {.grains = small_grains}),
      {{1, 40, 1000}, {1, 32, 1000}, false, true, true}, 997);
}

TEST_CASE("one layer without a head, under a loss of its rows: plans and central differences") {
  const auto t = trial_of<double>(
      causal_attention({.features = 6, .heads = 3}), linear_functional{}, short_ragged,
      {.chunk = 24, .features = 6, .input_gradient = true, .grains = small_grains});
  every_plan_has_the_same_bits(t, {{1, 24, 40, 1000}, {1, 16, 32, 1000}}, 1);
  equals_differences(t, *t.planner_for().search());
  auto e = t.engine_for(t.planner_for().plain());
  step_runner<default_device<double>>& of_any_loss = e;
  std::vector<double> out(std::size_t(t.samples.tokens()));
  CHECK_THROWS_WITH_AS(of_any_loss.log_probabilities(t.parameters, t.data(), out),
                       "log_probabilities: the loss is of whole rows, and no label has one", error);
}
