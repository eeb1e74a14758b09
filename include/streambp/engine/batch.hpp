// The data of one step, owned by the caller.
#pragma once

#include <cstdint>
#include <span>

#include "../core/view.hpp"

namespace streambp {

// What one head of several is trained on. What is left empty, or 0, is the batch's.
template <class Scalar>
struct head_batch {
  std::span<const std::int32_t> labels{};
  std::span<const Scalar> weights{};
  double normaliser = 0;
  double factor = 1;  // of the head's loss in the step's value
};

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
  // counts over it: nothing where no label counts. Of several heads the first one's loss says that.
  double normaliser = 0;
  view<const Scalar> context{};       // rows of the other stream: (its tokens, features)
  view<Scalar> d_context{};           // their gradient is added here
  std::span<const Scalar> initial{};  // states and prefix memories: see initial_size()
  std::span<Scalar> d_initial{};      // their gradient is added here
  // By head, of a model that ends in heads(...). Empty: all have the labels and weights above.
  std::span<const head_batch<Scalar>> heads{};

  // As a model of this head alone would be given it. Requires heads to be empty or to have it.
  batch of_head(position head) const {
    batch own = *this;
    own.heads = {};
    if (heads.empty()) return own;
    const head_batch<Scalar>& given = heads[std::size_t(head)];
    if (!given.labels.empty()) own.labels = given.labels;
    if (!given.weights.empty()) own.weights = given.weights;
    if (given.normaliser != 0) own.normaliser = given.normaliser;
    return own;
  }
  double factor_of(position head) const {
    return heads.empty() ? 1 : heads[std::size_t(head)].factor;
  }
};

}  // namespace streambp
