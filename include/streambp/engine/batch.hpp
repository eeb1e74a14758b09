// The data of one step, owned by the caller.
#pragma once

#include <cstdint>
#include <span>

#include "../core/view.hpp"

namespace streambp {

// Lengths are those of the plan's packed axis. Labels are the tokens, NOT SHIFTED: labels[t]
// belongs to tokens[t], row t - 1 predicts it, and the first label of a sample without a parent is
// never scored. Weights, if any, belong to the label at the same place.
template <class Scalar>
struct batch {
  std::span<const std::int32_t> tokens{};  // of a model that takes tokens
  view<const Scalar> rows{};               // of any other: (tokens, features)
  view<Scalar> d_rows{};                   // their gradient is added here, if the plan wants it
  std::span<const std::int32_t> labels{};  // tokens, not shifted; the loss ignores some
  std::span<const Scalar> weights{};       // empty: 1
  std::span<const std::uint64_t> sample_ids{};  // by segment; empty: its number. Keys randomness
  std::uint64_t seed = 0;
  std::uint64_t step = 0;
  // 0: what this batch counts; else what a larger accumulation window does, the sum of
  // normaliser_of its batches. A layer's side loss is the step's own value times what the step
  // counts over it: nothing where no label counts.
  double normaliser = 0;
  view<const Scalar> context{};       // rows of the other stream: (its tokens, features)
  view<Scalar> d_context{};           // their gradient is added here
  std::span<const Scalar> initial{};  // states and prefix memories: see initial_size()
  std::span<Scalar> d_initial{};      // their gradient is added here
};

}  // namespace streambp
