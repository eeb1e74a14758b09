// The order of a step: which sweeps over the chunks, of which stages. The engine iterates this
// list.
#pragma once

#include <vector>

#include "../core/position.hpp"

namespace streambp {

// A run of sections streamed together, and what of it outlives its forward sweep.
struct stage_plan {
  position first = 0;  // sections [first, last)
  position last = 0;
  bool keeps_memory = false;   // memories and carries: no rebuild sweep
  bool keeps_outputs = false;  // keepable slots of all tokens: attention is not computed again
  bool keeps_chunk = false;    // the last chunk's values: it is not replayed
  constexpr bool operator==(const stage_plan&) const = default;
};

enum class sweep_kind : unsigned char {
  forward,        // ascending: results to the next checkpoint, memories and carries on the way
  forward_state,  // ascending: memories and carries only; the head follows inside descend
  tally,          // side losses, once every token has been added to their tallies
  summarise,      // head, for coupled losses: the sums that the loss couples
  head,           // descending: loss, head gradients, gradient of the trunk's result
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

// What decides the order.
struct sweep_facts {
  std::vector<stage_plan> stages;
  std::vector<bool>
      begins_with_read;        // by stage: its first section is the read half of an operator
  std::vector<bool> stateful;  // by stage: it carries or remembers
  bool fuses_head = false;
  bool tallies = false;  // some layer adds a side loss
  bool couples = false;  // the loss needs sums of all tokens before it has a gradient
  position lowest = 0;   // first section whose backward is wanted
  position chunks = 1;
};

// Memories of reads that see all live in two alternating places: the last two survive the forward.
inline bool survives_forward(const sweep_facts& f, position stage) {
  position later = 0;
  for (std::size_t s = std::size_t(stage) + 1; s < f.stages.size(); ++s)
    later += f.begins_with_read[s];
  return later < 2;
}

inline std::vector<sweep> sweeps_of(const sweep_facts& f) {
  std::vector<sweep> order;
  const position stages = position(f.stages.size());
  for (position s = 0; s < stages; ++s)
    order.push_back(
        {s + 1 == stages && f.fuses_head ? sweep_kind::forward_state : sweep_kind::forward, s});
  if (f.tallies) order.push_back({sweep_kind::tally, stages - 1});
  if (f.couples) order.push_back({sweep_kind::summarise, stages - 1});
  if (!f.fuses_head) order.push_back({sweep_kind::head, stages - 1});
  for (position s = stages; s-- > 0 && f.stages[std::size_t(s)].last > f.lowest;) {
    const auto i = std::size_t(s);
    if (f.begins_with_read[i] && !survives_forward(f, s))
      order.push_back({sweep_kind::remember, s});
    if (s + 1 < stages && f.stateful[i] && !f.stages[i].keeps_memory && f.chunks > 1)
      order.push_back({sweep_kind::rebuild, s});
    order.push_back({sweep_kind::descend, s});
  }
  return order;
}

// A forward pass alone.
inline std::vector<sweep> forward_sweeps_of(const sweep_facts& f) {
  std::vector<sweep> order;
  for (position s = 0; s < position(f.stages.size()); ++s)
    order.push_back({sweep_kind::forward, s});
  return order;
}

}  // namespace streambp
