// Samples of which nothing counts: what their rows hold reaches nothing.
#include <streambp/engine/stand_in.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "models.hpp"
#include "trial.hpp"

using namespace streambp;

namespace {

const double not_a_number = std::numeric_limits<double>::quiet_NaN();

template <class Trial>
void forget(Trial& t, position segment) {
  for (position i = t.samples.segment(segment).first; i < t.samples.segment(segment).last; ++i)
    t.labels[std::size_t(i)] = -100;
}

template <class Trial>
void set_rows(Trial& t, position segment, double value) {
  const row_range own = t.samples.segment(segment);
  std::fill(t.rows.begin() + own.first * t.options.features,
            t.rows.begin() + own.last * t.options.features, value);
}

// In the gradient of the rows of a segment.
template <class Trial>
bool all_zero(const Trial& t, const outcome<double>& o, position segment) {
  const row_range own = t.samples.segment(segment);
  for (position i = own.first * t.options.features; i < own.last * t.options.features; ++i)
    if (o.d_rows[std::size_t(i)] != 0) return false;
  return true;
}

}  // namespace

TEST_CASE("the stand-in is the longest segment that counts, gone through over and over") {
  const packed axis({0, 3, 5, 5, 12, 13});
  std::vector<double> scales{0, 1, 1, 0, 1};
  const view<const double> of(scales.data(), 5, 1);
  const row_range stand_in = detail::stand_in_of(axis, of);
  CHECK(stand_in == row_range{3, 5});

  std::vector<position> from(9, -1);  // by row of the chunk [2, 11)
  detail::for_each_run(axis, {2, 11}, of, stand_in, [&](row_range to, row_range rows) {
    REQUIRE(to.rows() == rows.rows());
    for (position i = 0; i < to.rows(); ++i) from[std::size_t(to.first + i)] = rows.first + i;
  });
  CHECK(from == std::vector<position>{3, 3, 4, 3, 4, 3, 4, 3, 4});

  scales.assign(5, 0);
  CHECK(detail::stand_in_of(axis, of).rows() == 0);
  position rows = 0;
  detail::for_each_run(axis, {0, 13}, of, {}, [&](row_range to, row_range none) {
    CHECK(none.rows() == 0);
    rows += to.rows();
  });
  CHECK(rows == 13);
}

TEST_CASE("rows of samples that count nothing reach nothing, in every plan") {
  auto t = trial_of<double>(mixture(), cross_entropy{}, short_ragged,
                            {.features = 12, .input_gradient = true, .grains = small_grains});
  forget(t, 1);
  forget(t, 3);
  const outcome<double> finite = t.step(t.planner_for().plain());
  CHECK(all_zero(t, finite, 1));
  CHECK_FALSE(all_zero(t, finite, 4));
  auto one = t.planner_for(1), two = t.planner_for(2);
  for (const step_plan& p : {one.plain(), one.checkpointing(), *two.search(), *two.search(true)})
    for (const double value : {not_a_number, std::numeric_limits<double>::infinity(), 1e308}) {
      set_rows(t, 1, value);
      set_rows(t, 3, -value);
      CHECK(same_bits(t.step(p), finite));
    }
  set_rows(t, 4, not_a_number);
  auto e = t.engine_for(one.plain());
  std::vector<double> gradient(finite.gradient.size());
  CHECK_THROWS_AS(e.add_gradient(t.parameters, t.data(), gradient), data_error);

  // A weight of 0 is as good as a label that is ignored.
  t.weights.assign(t.labels.size(), 1);
  std::fill(t.weights.begin() + t.samples.segment(4).first, t.weights.end(), 0);
  t.labels.assign(t.labels.size(), 2);
  forget(t, 3);
  set_rows(t, 1, 0.25);
  const outcome<double> weighed = t.step(one.plain());
  CHECK(std::isfinite(weighed.value));
  CHECK(all_zero(t, weighed, 4));
  CHECK_FALSE(all_zero(t, weighed, 1));
}

TEST_CASE("what counts has the gradient that it has alone, to rounding: other grains") {
  auto t = trial_of<double>(mixture(), cross_entropy{}, packed_lengths({40, 23, 16}),
                            {.features = 12, .input_gradient = true, .grains = small_grains});
  forget(t, 2);
  auto alone = t;
  alone.samples = packed_lengths({40, 23});
  alone.labels.resize(63);
  alone.rows.resize(63 * 12);
  const outcome<double> expected = alone.step(alone.planner_for().plain());
  set_rows(t, 2, not_a_number);
  const outcome<double> beside = t.step(t.planner_for().plain());
  CHECK(beside.value == doctest::Approx(expected.value).epsilon(1e-13));
  double most = 0, error = 0;
  for (std::size_t i = 0; i < expected.gradient.size(); ++i) {
    most = std::max(most, std::abs(expected.gradient[i]));
    error = std::max(error, std::abs(expected.gradient[i] - beside.gradient[i]));
  }
  CHECK(error < 1e-13 * most);
  for (std::size_t i = 0; i < expected.d_rows.size(); ++i)
    CHECK(std::abs(expected.d_rows[i] - beside.d_rows[i]) < 1e-13);
}

TEST_CASE("where nothing counts nothing is looked at, and gradients are announced") {
  auto t = trial_of<double>(
      mixture(), cross_entropy{}, short_ragged,
      {.features = 12, .prefix = 3, .input_gradient = true, .grains = small_grains});
  for (position s = 0; s < t.samples.segments(); ++s) forget(t, s), set_rows(t, s, not_a_number);
  std::fill(t.initial.begin(), t.initial.end(), not_a_number);
  for (const step_plan& p : {t.planner_for().plain(), *t.planner_for(2).search(true)}) {
    const outcome<double> none = t.step(p);
    CHECK(none.value == 0);
    for (const auto* all : {&none.gradient, &none.d_rows, &none.d_initial})
      CHECK(*all == std::vector<double>(all->size(), 0));
    auto e = t.engine_for(p);
    position announced = 0;
    e.when_final([&](position, position count) { announced += count; });
    std::vector<double> gradient(none.gradient.size()), logs(t.labels.size(), 1);
    e.add_gradient(t.parameters, t.data(), gradient);
    CHECK(announced == position(gradient.size()));
    e.log_probabilities(t.parameters, t.data(), logs);
    CHECK(logs == std::vector<double>(logs.size(), 0));
  }
}

TEST_CASE("a parent counts where a child does") {
  auto t =
      trial_of<double>(residual(rms_norm(12) | gated_recurrence(12, 6)) |
                           residual(causal_attention({.features = 12, .heads = 2})) | linear(12, 7),
                       cross_entropy{}, packed({0, 20, 32, 45, 60}, {-1, 0, 0, -1}),
                       {.features = 12, .input_gradient = true, .grains = small_grains});
  forget(t, 0), forget(t, 1), forget(t, 3);
  const outcome<double> finite = t.step(t.planner_for().plain());
  CHECK_FALSE(all_zero(t, finite, 0));
  set_rows(t, 1, not_a_number);
  set_rows(t, 3, not_a_number);
  for (const step_plan& p : {t.planner_for().plain(), *t.planner_for().search(true)})
    CHECK(same_bits(t.step(p), finite));
  set_rows(t, 0, not_a_number);
  auto e = t.engine_for(t.planner_for().plain());
  std::vector<double> gradient(finite.gradient.size());
  CHECK_THROWS_AS(e.add_gradient(t.parameters, t.data(), gradient), data_error);
}
