// The order of a step: which sweeps over the chunks, of which stages. The engine iterates this
// list; visit.hpp says what a sweep does at a chunk.
#pragma once

#include <vector>

#include "stage.hpp"

namespace streambp {

enum class sweep_kind : unsigned char {
  forward,        // ascending: results to the next checkpoint, memories and carries on the way
  forward_state,  // ascending: memories and carries only; the head follows inside descend
  forward_value,  // ascending: forward, and the head of each chunk, which is only read
  tally,          // side losses, once every token has been added to their tallies
  summarise,      // head, for coupled losses: the sums that the loss couples
  head,           // descending: loss, head gradients, gradient of the trunk's result
  value,          // head, which is only read
  remember,       // ascending: memory of a read that sees all, again from its checkpoint
  rebuild,        // ascending: memories and carries again, but for the last chunk
  descend,        // descending: replay a chunk, then its backward
  refill          // inside descend, ascending: the carries of the interval that it reaches
};

struct sweep {
  sweep_kind kind{};
  position stage = 0;
  constexpr bool operator==(const sweep&) const = default;
};

// What decides the order, beside the stages.
struct step_facts {
  bool tallies = false;  // some layer adds a side loss
  bool couples = false;  // the loss needs sums of all tokens before it has a gradient
  position chunks = 1;
};

// Calls f(kind) for the sweeps that take the stage's gradients, in order.
template <class F>
constexpr void for_each_backward_sweep(const stage_facts& s, position chunks, F&& f) {
  if (!s.descends()) return;
  if (s.begins_with_read && !s.read_survives) f(sweep_kind::remember);
  if (s.rebuilds(chunks)) f(sweep_kind::rebuild);
  f(sweep_kind::descend);
}

// Of one that takes the loss's value on the way, or leaves it to its descending sweep.
constexpr sweep_kind forward_sweep(const stage_facts& s) {
  return s.fuses_head ? sweep_kind::forward_state : sweep_kind::forward;
}

// Value and gradient.
inline std::vector<sweep> sweeps_of(const std::vector<stage_facts>& stages, const step_facts& f) {
  std::vector<sweep> order;
  const position last = position(stages.size()) - 1;
  for (position s = 0; s <= last; ++s) order.push_back({forward_sweep(stages[std::size_t(s)]), s});
  if (f.tallies) order.push_back({sweep_kind::tally, last});
  if (f.couples) order.push_back({sweep_kind::summarise, last});
  if (!stages.back().fuses_head) order.push_back({sweep_kind::head, last});
  for (position s = last; s >= 0; --s)
    for_each_backward_sweep(stages[std::size_t(s)], f.chunks, [&](sweep_kind kind) {
      order.push_back({kind, s});
    });
  return order;
}

// The forward pass and what is read off the head.
inline std::vector<sweep> reading_sweeps_of(const std::vector<stage_facts>& stages) {
  const bool streams = stages.back().streams();
  std::vector<sweep> order;
  const position last = position(stages.size()) - 1;
  for (position s = 0; s < last; ++s) order.push_back({sweep_kind::forward, s});
  order.push_back({streams ? sweep_kind::forward : sweep_kind::forward_value, last});
  if (streams) order.push_back({sweep_kind::value, last});
  return order;
}

}  // namespace streambp
