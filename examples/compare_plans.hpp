// The gradients of a model by three plans: streamed, checkpoint every block, unchunked.
#pragma once

#include <streambp/streambp.hpp>

#include <cstring>
#include <vector>

struct plan_comparison {
  streambp::position tokens = 0;
  std::size_t streamed = 0, checkpointed = 0, unchunked = 0;  // peaks in bytes
  bool same_bits = false;
};

template <class Model>
std::vector<float> gradient_by(const streambp::step_plan& p, const Model& model,
                               const std::vector<float>& parameters,
                               const std::vector<std::int32_t>& tokens) {
  streambp::engine step(streambp::typed_plan<float>{p}, model, streambp::cross_entropy{});
  streambp::batch<float> data;
  data.tokens = tokens;
  data.labels = tokens;
  return step.value_and_gradient(parameters, data).second;
}

// Of the sample, or of its first half, quarter, ... where the unchunked step would take more than
// `memory`. `streamed`: the plan of the whole sample.
template <class Model>
plan_comparison compare_plans(const Model& model, const streambp::step_plan& streamed,
                              const std::vector<float>& parameters,
                              std::vector<std::int32_t> tokens, std::size_t memory) {
  using namespace streambp;
  using plans = planner<cpu::device<float>, Model, cross_entropy>;
  const plan_options options{.threads = streamed.shape.threads};
  const auto unchunked = [&] {
    return plans(model, packed::one(position(tokens.size())), options).plain();
  };
  const std::size_t whole = tokens.size();
  while (unchunked().peak() > memory && tokens.size() > 1) tokens.resize(tokens.size() / 2);

  const packed sample = packed::one(position(tokens.size()));
  const step_plan plain = unchunked(),
                  checkpointing = plans(model, sample, options).checkpointing();
  const position grain = streamed.shape.grains.grain;
  const step_plan chunked =
      tokens.size() == whole
          ? streamed
          : plan(model, cross_entropy{}, sample,
                 {.threads = options.threads, .chunk = grain, .stage = 1, .keep = false});

  plan_comparison c{sample.tokens(), chunked.peak(), checkpointing.peak(), plain.peak(), true};
  const auto expected = gradient_by(plain, model, parameters, tokens);
  for (const step_plan* p : {&checkpointing, &chunked}) {
    const auto gradient = gradient_by(*p, model, parameters, tokens);
    c.same_bits = c.same_bits && std::memcmp(gradient.data(), expected.data(),
                                             expected.size() * sizeof(float)) == 0;
  }
  return c;
}
