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

// Something of the user's that is called in a step, and throws the call that `at` says.
struct user_code {
  std::atomic<int> calls = 0, at = 0;
  void operator()() {
    if (++calls == at) throw std::domain_error("the user's");
  }
};

// A token's own memory row and a side loss of 0: y = x + m. Each function is the user's.
struct throwing {
  static constexpr tag<"m"> m{};
  static constexpr tag<"sums"> sums{};
  static constexpr reach sees = past;
  static constexpr bool backward_reads_input = false, backward_reads_output = false;
  user_code *remembers, *forwards, *backwards, *releases, *side_losses;

  auto slots(position in) const { return std::tuple{memory(m, in), tally(sums, 1)}; }
  // Tasks of one row.
  static void each_row(auto& at, user_code* mine, auto from, auto to, bool add) {
    for_rows(at.on, to.rows, 16384, [=](position r) {
      (*mine)();
      for (position j = 0; j < to.cols; ++j) to(r, j) = from(r, j) + (add ? to(r, j) : 0);
    });
  }
  void remember(auto& at, auto x) const { each_row(at, remembers, x, at.own(at[m]), false); }
  void forward(auto& at, auto x, auto y) const {
    if (!at.wants_output) return;
    each_row(at, forwards, x, y, false);
    each_row(at, forwards, at.own(at[m]), y, true);
  }
  void backward(auto& at, auto, auto, auto dy, auto dx) const {
    each_row(at, backwards, dy, dx, true);
    each_row(at, backwards, dy, at.own(at.d(m)), true);
  }
  void release(auto& at, auto, auto dx) const { each_row(at, releases, at.own(at.d(m)), dx, true); }
  double side_loss(auto&) const {
    (*side_losses)();
    return 0;
  }
};
// Derived: by entry, and by row.
struct throwing_entries {
  user_code* own;
  auto forward(auto x) const {
    (*own)();
    return 2 * x;
  }
};
struct throwing_rows {
  static constexpr tag<"gain"> gain{};
  user_code* own;
  auto slots(position in) const { return std::tuple{parameter(gain, 1, in, ones)}; }
  auto forward(auto& at, auto x) const {
    (*own)();
    return x * at[gain];
  }
};

struct throwing_couple {
  user_code *summaries, *couples;
  token_term summary(const row_statistics& r, const label_place&) const {
    (*summaries)();
    return {r.log_probability(), {-1, 1, 0}};
  }
  double couple(std::span<const double> sums, std::span<double> slopes) const {
    (*couples)();
    double value = 0;
    for (std::size_t s = 0; s < sums.size(); ++s) {
      value += sums[s] * sums[s];
      slopes[s] = 2 * sums[s];
    }
    return value;
  }
};
struct throwing_term {
  user_code* own;
  token_term term(const row_statistics& r, const label_place&) const {
    (*own)();
    return {-r.log_probability(), {1, -1, 0}};
  }
};
struct throwing_loss_rows {
  user_code* own;
  double rows(auto& on, position, auto y) const {
    for_rows(on, y.rows, 16384, [&](position r) {
      (*own)();
      for (position j = 0; j < y.cols; ++j) y(r, j) *= 2;  // of the sum of squares, whatever it is
    });
    return 1;
  }
};

// Throws in the first, the second, the last and some calls between of each function, on three
// threads, and then takes a step.
template <class Trial>
void next_step_is_right(const Trial& t, std::vector<std::pair<const char*, user_code*>> functions) {
  auto e = t.engine_for(*t.planner_for(3).search(true));
  user_code finals;
  e.when_final([&](position, position) { finals(); });
  functions.emplace_back("hook", &finals);
  for (auto& [name, own] : functions) own->calls = 0;
  const auto [value, gradient] = e.value_and_gradient(t.parameters, t.data());
  std::vector<int> calls_of;
  for (auto& [name, own] : functions) calls_of.push_back(own->calls);
  for (std::size_t f = 0; f < functions.size(); ++f) {
    user_code* const own = functions[f].second;
    const int calls = calls_of[f];
    INFO(std::string(functions[f].first), ", called ", calls, " times a step");
    CHECK(calls > 0);
    for (const int at : {1, 2, calls / 3, calls / 2, calls}) {
      if (at < 1 || at > calls) continue;
      own->calls = 0;
      own->at = at;
      std::vector<double> lost(gradient.size());
      CHECK_THROWS_WITH_AS(e.add_gradient(t.parameters, t.data(), lost), "the user's",
                           std::domain_error);
      own->at = 0;
      const auto [again, same] = e.value_and_gradient(t.parameters, t.data());
      CHECK(again == value);
      CHECK(same_bits(same, gradient));
    }
  }
}

}  // namespace

TEST_CASE("what a layer, a loss or a hook throws on any thread arrives; the next step is right") {
  user_code remember, forward, backward, release, side_loss, entries, rows, summary, couple;
  const plan_options options{.features = 6, .grains = small_grains};
  next_step_is_right(
      trial_of<double>(
          repeat(1, causal_attention({.features = 6}) |
                        throwing{&remember, &forward, &backward, &release, &side_loss} |
                        throwing_entries{&entries} | throwing_rows{&rows}) |
              linear(6, 5),
          throwing_couple{&summary, &couple}, short_ragged, options),
      {{"remember", &remember},
       {"forward", &forward},
       {"backward", &backward},
       {"release", &release},
       {"side_loss", &side_loss},
       {"entries", &entries},
       {"rows", &rows},
       {"summary", &summary},
       {"couple", &couple}});
  user_code term, loss_rows;
  next_step_is_right(trial_of<double>(linear(6, 5), throwing_term{&term}, short_ragged, options),
                     {{"term", &term}});
  next_step_is_right(
      trial_of<double>(linear(6, 5), throwing_loss_rows{&loss_rows}, short_ragged, options),
      {{"rows of a loss", &loss_rows}});
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
