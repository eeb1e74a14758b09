// Carries that are the last thing of the trunk, behind residuals that skip one value twice; side
// losses in an accumulation window.
#include <streambp/engine/states.hpp>

#include "differences.hpp"
#include "models.hpp"

using namespace streambp;

namespace {

auto recurrent() {
  return residual(residual(rms_norm(12) | gated_recurrence(12, 5)) | linear(12, 12)) |
         residual(residual(linear(12, 12))) | gated_recurrence(12, 6) | linear(12, 7);
}

// y = x, and the square of each feature's mean over the step's rows is added to the loss.
struct centred {
  static constexpr tag<"sums"> sums{};
  static constexpr const char* name = "centred";

  auto slots(position in) const { return std::tuple{tally(sums, in)}; }
  void forward(auto& at, auto x, auto y) const {
    copy(at.on, x, y);
    if (!at.tallies) return;
    for (position i = 0; i < x.rows; ++i)
      for (position j = 0; j < x.cols; ++j) at[sums](0, j) += x(i, j);
  }
  void backward(auto& at, auto, auto, auto dy, auto dx) const {
    for (position i = 0; i < dx.rows; ++i)
      for (position j = 0; j < dx.cols; ++j) dx(i, j) += dy(i, j) + at.d(sums)(0, j);
  }
  double side_loss(auto& at) const {
    const double n = double(at.chunk.samples->tokens());
    double value = 0;
    for (position j = 0; j < at[sums].cols; ++j) {
      const double mean = at[sums](0, j) / n;
      value += mean * mean;
      at.d(sums)(0, j) = 2 * mean / n;
    }
    return value;
  }
};

auto with_side_losses(position top) {
  return residual(rms_norm(6) | mixture_of_experts({.features = 6,
                                                    .inner = 4,
                                                    .experts = 4,
                                                    .top = top,
                                                    .balance = 2,
                                                    .z_loss = 0.3})) |
         centred{} | linear(6, 7);
}
using side_trial = trial<double, decltype(with_side_losses(1)), cross_entropy>;

side_trial side_trial_on(packed samples, position top = 2) {
  return {with_side_losses(top),
          cross_entropy{},
          std::move(samples),
          {.chunk = 24, .features = 6, .input_gradient = true, .grains = small_grains}};
}

bool near(const std::vector<double>& a, const std::vector<double>& b) {
  double most = 0, apart = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    most = std::max(most, std::abs(a[i]));
    apart = std::max(apart, std::abs(a[i] - b[i]));
  }
  return most > 0 && apart < 1e-13 * most;
}

}  // namespace

TEST_CASE("recurrences: plans, carries kept at every chunk or in two levels") {
  choice_space space{{1, 40, 125}, {1, 32, 1000}};
  space.intervals = [](position) { return std::vector<position>{1, 2, 3, 100}; };
  every_plan_has_the_same_bits(
      trial_of<double>(recurrent(), cross_entropy{}, short_ragged,
                       {.features = 12, .input_gradient = true, .grains = small_grains}),
      space, 29);
}

TEST_CASE("recurrences: central differences, with states given") {
  for (const position interval : {1, 3}) {
    const auto t = trial_of<double>(recurrent(), cross_entropy{}, short_ragged,
                                    {.chunk = 24,
                                     .features = 12,
                                     .input_gradient = true,
                                     .carry_interval = interval,
                                     .grains = small_grains});
    equals_differences(t, *t.planner_for().search());
    equals_differences(t, *t.planner_for().search(true));
  }
}

TEST_CASE("side losses: two identical halves of a window are the whole") {
  const side_trial half = side_trial_on(packed_lengths({23, 0, 40}));
  side_trial whole = side_trial_on(packed_lengths({23, 0, 40, 23, 0, 40}));
  for (const over average : {over::tokens, over::samples})
    for (const bool weighted : {false, true}) {
      CAPTURE(weighted);
      side_trial part = half;
      part.loss.average = whole.loss.average = average;
      if (weighted)
        for (std::size_t t = 0; t < part.labels.size(); ++t)
          part.weights.push_back(double(t % 3) / 2);
      whole.parameters = part.parameters;
      const auto twice = [](auto& to, const auto& from) {
        to = from;
        to.insert(to.end(), from.begin(), from.end());
      };
      twice(whole.rows, part.rows);
      twice(whole.labels, part.labels);
      twice(whole.weights, part.weights);
      part.normaliser = 2 * normaliser_of(part.loss, part.samples, part.data());
      const auto right = whole.step(whole.planner_for().plain());
      auto both = part.step(*part.planner_for().search());
      for (double& g : both.gradient) g *= 2;
      CHECK(2 * both.value == doctest::Approx(right.value).epsilon(1e-13));
      CHECK(near(right.gradient, both.gradient));
    }
}

TEST_CASE("side losses: none where nothing counts; the window's own count changes no bit") {
  side_trial t = side_trial_on(short_ragged);
  const step_plan p = *t.planner_for().search();
  const auto alone = t.step(p);
  t.normaliser = normaliser_of(t.loss, t.samples, t.data());
  CHECK(same_bits(t.step(p), alone));
  side_trial smooth = side_trial_on(short_ragged, 4);  // of 4: no choice jumps
  smooth.normaliser = 3 * t.normaliser;
  equals_differences(smooth, *smooth.planner_for().search());
  for (const double normaliser : {0., 50.}) {
    t.normaliser = normaliser;
    for (auto& label : t.labels) label = -100;
    const auto nothing = t.step(p);
    CHECK(nothing.value == 0);
    CHECK(std::all_of(nothing.gradient.begin(), nothing.gradient.end(),
                      [](double g) { return g == 0; }));
    CHECK(
        std::all_of(nothing.d_rows.begin(), nothing.d_rows.end(), [](double g) { return g == 0; }));
  }
}
