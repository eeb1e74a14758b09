// Every plan of a chain of all kinds of operators: the sweeps, states and memories between chunks.
#include <streambp/engine/sweeps.hpp>

#include "trial.hpp"

using namespace streambp;

namespace {

const packed samples = packed_lengths({1, 40, 0, 23, 61});
const geometry small{8, 16};

// Rows go in; a read that sees all comes first, another one stands behind a recurrence and causal
// attention, and one residual stands in another.
auto mixture() {
  const attention_options heads{.features = 12, .heads = 2};
  return bidirectional_attention(heads) | residual(rms_norm(12) | gated_recurrence(12, 6)) |
         residual(rms_norm(12) | causal_attention({.features = 12, .heads = 2, .rotary = 1e3})) |
         residual(layer_norm(12) | bidirectional_attention(heads) | linear(12, 12)) |
         residual(linear(12, 8) | residual(rms_norm(8) | gelu()) | linear(8, 12)) | rms_norm(12) |
         linear(12, 7);
}

// Carries of every chunk are kept, or of every third.
choice_space space() {
  choice_space all{{1, 40, 125, 1000}, {1, 32, 1000}};
  all.intervals = [](position chunk) {
    return chunk < 1000 ? std::vector<position>{1, 3} : std::vector<position>{1};
  };
  return all;
}

// Announcements of a step: that none comes twice, and that none came early.
template <class Scalar, class Model, class Loss>
void announces_each_gradient_once(const trial<Scalar, Model, Loss>& t, const step_plan& p) {
  INFO("plan: ", in_words(p));
  auto e = t.engine_for(p);
  outcome<Scalar> out;
  out.gradient.assign(std::size_t(t.list.table.gradients), Scalar(0));
  std::vector<int> announced(out.gradient.size(), 0);
  std::vector<Scalar> then(out.gradient.size(), Scalar(0));
  e.when_final([&](position offset, position count) {
    for (position i = offset; i < offset + count; ++i) {
      ++announced[std::size_t(i)];
      then[std::size_t(i)] = out.gradient[std::size_t(i)];
    }
  });
  const batch<Scalar> b = t.data(out);
  e.add_gradient(t.parameters, b, out.gradient);
  CHECK(announced == std::vector<int>(out.gradient.size(), 1));
  CHECK(same_bits(then, out.gradient));
}

}  // namespace

TEST_CASE("all kinds of operators in a chain: plans, in fp64, with gradients of the input") {
  every_plan_has_the_same_bits(
      trial_of<double>(mixture(), cross_entropy{}, samples,
                       {.features = 12, .input_gradient = true, .grains = small}),
      space(), 5003);
}

TEST_CASE("all kinds of operators in a chain: plans, in fp32, with given states and a prefix") {
  every_plan_has_the_same_bits(
      trial_of<float>(mixture(), cross_entropy{}, samples,
                      {.features = 12, .prefix = 5, .input_gradient = true, .grains = small}),
      space(), 9001);
}

TEST_CASE("each gradient is announced once, and does not change any more") {
  const auto t =
      trial_of<double>(mixture(), cross_entropy{}, samples, {.features = 12, .grains = small});
  auto all = t.planner_for();
  announces_each_gradient_once(t, all.plain());
  announces_each_gradient_once(t, all.checkpointing());
  position number = 0;
  for_each_choice(t.list, space(), [&](const plan_choice& c) {
    if (number++ % 80021 == 0) announces_each_gradient_once(t, all.complete(c));
  });
}
