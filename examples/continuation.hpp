// What a model of bytes writes after a prompt.
#pragma once

#include <streambp/streambp.hpp>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "byte_text.hpp"

// An index drawn from the softmax of logits / temperature; `at` in [0, 1) decides which.
inline std::int32_t drawn(const std::vector<float>& logits, double temperature, double at) {
  const float top = *std::max_element(logits.begin(), logits.end());
  std::vector<double> sums;
  double sum = 0;
  for (const float z : logits) sums.push_back(sum += std::exp(double(z - top) / temperature));
  return std::int32_t(std::upper_bound(sums.begin(), sums.end() - 1, at * sum) - sums.begin());
}

// Byte by byte, each from all that stands before it: every length has a plan and an engine of its
// own, and the forward pass of the training.
template <class Model>
std::string continuation(const Model& model, const std::vector<float>& parameters,
                         const std::string& prompt, streambp::position count, int threads,
                         std::uint64_t seed) {
  using namespace streambp;
  std::vector<std::int32_t> bytes = bytes_of(prompt);
  std::vector<float> logits(byte_vocabulary);
  for (position i = 0; i < count; ++i) {
    const auto sample = packed::one(position(bytes.size()));
    engine step(plan(model, cross_entropy{}, sample, {.threads = threads}), model, cross_entropy{});
    batch<float> data;
    data.tokens = bytes;
    step.last_results(parameters, data, {logits.data(), 1, byte_vocabulary});
    bytes.push_back(drawn(logits, 0.8, uniform(random_bits({.seed = seed}, 1, i))));
  }
  return {bytes.begin(), bytes.end()};
}
