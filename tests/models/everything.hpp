// One chain of everything: each kind of declaration stands before and behind others.
#pragma once

#include <streambp/streambp.hpp>

#include "../engine/models.hpp"
#include "../engine/packing.hpp"

namespace streambp::everything {

inline constexpr position width = 12;

inline mixture_of_experts experts(bool side_losses) {
  return mixture_of_experts({.features = width,
                             .inner = 6,
                             .experts = 4,
                             .top = 2,
                             .balance = side_losses ? 0.5 : 0.0,
                             .z_loss = side_losses ? 0.1 : 0.0});
}

// Rows go in, so that their gradient and given states are tried as well.
inline auto model(bool side_losses) {
  const attention_options heads{.features = width, .heads = 2, .rotary = 1e3};
  attention_options windowed = heads;
  windowed.window = 11;
  windowed.sinks = true;
  return residual(rms_norm(width) | causal_attention(heads)) |
         residual(causal_convolution(width, 4, true)) | residual(experts(side_losses)) |
         residual(linear(width, width) | time_norm(width) | gelu()) |
         residual(layer_norm(width) | causal_attention(windowed) | dropout(0.2)) |
         residual(rms_norm(width) | gated_recurrence(width, 7)) |
         residual(rms_norm(width) | bidirectional_attention(heads)) |
         residual(gated_linear_attention({.features = width, .heads = 2})) |
         residual(state_space({.features = width, .inner = 16, .head_width = 8, .states = 5})) |
         residual(gru(width, width)) | residual(lstm(width, width)) | residual(swiglu(width, 10)) |
         rms_norm(width) | linear(width, 11);
}

template <class Scalar>
auto trial_on(const packed& samples, bool side_losses, position prefix = 0) {
  return trial_of<Scalar>(
      model(side_losses), cross_entropy{}, samples,
      {.features = width, .prefix = prefix, .input_gradient = true, .grains = small_grains});
}

// Cuts, and what each stage keeps, by the dice: there are too many to try each.
template <class List>
plan_choice random_choice(dice& draw, const List& list) {
  constexpr position chunks[] = {1, 16, 40, 1000}, head_chunks[] = {1, 32, 1000};
  plan_choice c{{}, chunks[draw(4)], head_chunks[draw(3)], draw(2) == 0, 1 + draw(4)};
  const position n = position(list.count()), often = 1 + draw(6);
  for (position first = 0; first < n;) {
    position last = first + 1;
    while (last < n && !list.sections[std::size_t(last)].forced_cut && draw(often) != 0) ++last;
    const auto kept = variants(first, last, last == n, c.fuses_head, {});
    c.stages.push_back(kept[std::size_t(draw(position(kept.size())))]);
    first = last;
  }
  return c;
}

template <class Scalar>
void random_plans_have_the_same_bits(const packed& samples, position prefix, int count) {
  const auto t = trial_on<Scalar>(samples, true, prefix);
  auto one = t.planner_for(1), two = t.planner_for(2);
  const outcome<Scalar> plain = t.step(one.plain());
  REQUIRE(std::isfinite(plain.value));
  for (const Scalar g : plain.gradient) REQUIRE(std::isfinite(g));
  CHECK(same_bits(t.step(one.checkpointing()), plain));
  CHECK(same_bits(t.step(*two.search(true)), plain));
  dice draw(11);
  position stages = 0, most_chunks = 0;
  for (int i = 0; i < count; ++i) {
    const step_plan p = (i % 2 == 0 ? one : two).complete(random_choice(draw, t.list));
    INFO("plan: ", in_words(p));
    CHECK(same_bits(t.step(p), plain));
    stages += position(p.choice.stages.size());
    most_chunks = std::max(most_chunks, p.chunk_count());
  }
  CHECK(stages > 4 * count);
  CHECK(most_chunks > 5);
}

// A prompt with three completions, one of them empty, and another with one.
inline const packed family({0, 33, 34, 50, 50, 71, 90}, {-1, 0, 0, 0, -1, 4});

}  // namespace streambp::everything
