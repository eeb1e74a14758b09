// A language model: every plan gives the same bits, and they are the right ones.
#include <streambp/engine/default_engine.hpp>

#include "differences.hpp"
#include "models.hpp"
#include "packing.hpp"

using namespace streambp;

namespace {

const choice_space space{{1, 40, 235, 1000}, {1, 32, 1000}};

template <class Scalar>
auto usual() {
  return trial_of<Scalar>(language_model(), cross_entropy{}, ragged, {.grains = small_grains});
}

// Every option of attention and of the loss.
auto unusual(const packed& samples, plan_options options) {
  const attention_options attention{.heads = 3,
                                    .kv_heads = 1,
                                    .head_width = 6,
                                    .value_width = 5,
                                    .rotary = 1e4,
                                    .window = 21,
                                    .softcap = 4,
                                    .bias = true,
                                    .sinks = true};
  const cross_entropy loss{
      .label_smoothing = 0.1, .z_loss = 1e-3, .logits = {0.7, 8}, .average = over::samples};
  auto t = trial_of<double>(language_model(attention), loss, samples, options);
  for (std::size_t i = 0; i < t.labels.size(); ++i) t.weights.push_back(double(i % 4) / 2);
  return t;
}

}  // namespace

TEST_CASE("attention: plans, in fp64") {
  every_plan_has_the_same_bits(usual<double>(), space, 997);
}
TEST_CASE("attention: plans, in fp32") {
  every_plan_has_the_same_bits(usual<float>(), space, 1009);
}

TEST_CASE("attention with a window, softcap, sinks and bias: plans") {
  every_plan_has_the_same_bits(unusual(ragged, {.grains = small_grains}), space, 1511);
}

TEST_CASE("the usual grains and tiles: plans") {
  auto t = trial_of<float>(language_model({.heads = 2, .rotary = 1e4}), cross_entropy{},
                           packed_lengths({300, 1, 700}), {});
  every_plan_has_the_same_bits(t, {{1, 600, 2000}, {1, 512}}, 1201);
}

TEST_CASE("attention: central differences") {
  auto t = trial_of<double>(language_model(), cross_entropy{}, short_ragged,
                            {.chunk = 24, .grains = small_grains});
  equals_differences(t, *t.planner_for().search());
  auto u = unusual(short_ragged, {.chunk = 24, .grains = small_grains});
  equals_differences(u, *u.planner_for().search(true));
}

TEST_CASE("attention: packing") {
  packing_does_not_matter(usual<double>(), 1e-12);
  packing_does_not_matter(usual<float>(), 1e-5);
}
