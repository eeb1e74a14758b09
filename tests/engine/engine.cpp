// Every plan of a language model gives the same bits.
#include <streambp/engine/cpu_engine.hpp>

#include "trial.hpp"

using namespace streambp;

namespace {

auto language_model(attention_options options) {
  options.features = 16;
  const auto block =
      residual(rms_norm(16) | causal_attention(options)) | residual(rms_norm(16) | swiglu(16, 24));
  return embedding(19, 16) | repeat(2, block) | rms_norm(16) | linear(16, 19);
}

// Of one row, of whole tiles, none, prime and long.
const packed samples = packed_lengths({1, 64, 0, 37, 0, 130, 3});
const geometry small{8, 16};
const choice_space space{{1, 40, 235, 1000}, {1, 32, 1000}};

}  // namespace

TEST_CASE("attention: plans, in fp64") {
  every_plan_has_the_same_bits(
      trial_of<double>(language_model({.heads = 4, .kv_heads = 2, .rotary = 1e4}), cross_entropy{},
                       samples, {.grains = small}),
      space, 997);
}

TEST_CASE("attention: plans, in fp32") {
  every_plan_has_the_same_bits(
      trial_of<float>(language_model({.heads = 4, .kv_heads = 2, .rotary = 1e4}), cross_entropy{},
                      samples, {.grains = small}),
      space, 1009);
}

TEST_CASE("attention with a window, softcap, sinks and bias: plans") {
  const attention_options options{.heads = 3,
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
  auto t = trial_of<double>(language_model(options), loss, samples, {.grains = small});
  for (std::size_t i = 0; i < t.labels.size(); ++i) t.weights.push_back(double(i % 4) / 2);
  every_plan_has_the_same_bits(t, space, 1511);
}

TEST_CASE("the usual grains and tiles: plans") {
  auto t = trial_of<float>(language_model({.heads = 2, .rotary = 1e4}), cross_entropy{},
                           packed_lengths({300, 1, 700}), {});
  every_plan_has_the_same_bits(t, {{1, 600, 2000}, {1, 512}}, 1201);
}
