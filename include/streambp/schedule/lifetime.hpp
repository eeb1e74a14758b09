// What of a stage takes bytes, and how long it lives: the arena lays these out, the planner adds
// them up.
#pragma once

#include "stage.hpp"

namespace streambp {

enum class occupant : unsigned char {
  checkpoint,       // its input rows, of all tokens
  state,            // a section's memories and carries
  state_gradients,  // theirs
  kept_outputs,     // a section's keepable rows, of all tokens
  chunk,            // what a section's backward reads, of one chunk
  chunk_gradient,   // gradient rows of one chunk, where none of all tokens exist
  working,          // other values and gradients of a section, within one visit of a chunk
  head              // rows of the head and of the loss, of one head chunk
};

enum class tenure : unsigned char {
  step,   // keeps its addresses throughout
  stage,  // from here to the stage's end; then other stages take the addresses
  turn    // what comes next, of this stage or another one, takes the addresses
};

struct lifetime {
  occupant what{};
  tenure lives{};
  position section = 0;   // that it belongs to; a stage's first, of what is the stage's
  bool result = false;    // of chunk and working: the result stays in the chunk
  bool keepable = false;  // of chunk: keepable rows are kept outputs
  constexpr bool operator==(const lifetime&) const = default;
};

// Calls f(lifetime) in the order of their addresses.
template <class F>
constexpr void for_each_lifetime(const stage_facts& s, F&& f) {
  const position first = s.plan.first, last = s.plan.last;
  const auto each = [&](occupant what, tenure lives, position end) {
    const bool rows = what == occupant::chunk || what == occupant::working;
    for (position i = first; i < end; ++i)
      f(lifetime{what, lives, i, rows && s.hands_on(i),
                 what == occupant::chunk && s.keeps_outputs(i)});
  };
  const auto lives = [](bool kept) { return kept ? tenure::step : tenure::stage; };
  if (first > 0) f(lifetime{occupant::checkpoint, tenure::step, first});
  each(occupant::state, lives(s.plan.keeps_memory), s.own_last);
  if (s.plan.keeps_outputs) each(occupant::kept_outputs, tenure::step, s.own_last);
  // A head of its own comes between the forward and the backward sweeps.
  if (s.ends && !s.fuses_head) f(lifetime{occupant::head, tenure::turn, first});
  each(occupant::state_gradients, tenure::stage, s.own_last);
  if (!s.streams()) f(lifetime{occupant::chunk_gradient, tenure::stage, first});
  each(occupant::chunk, lives(s.plan.keeps_chunk), last);
  each(occupant::working, tenure::turn, last);
  if (s.fuses_head) f(lifetime{occupant::head, tenure::turn, first});
}

}  // namespace streambp
