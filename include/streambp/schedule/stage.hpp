// A stage: a run of sections streamed together, and what its sections make of its sweeps.
#pragma once

#include <algorithm>
#include <vector>

#include "section_list.hpp"

namespace streambp {

// A run of sections, and what of it outlives its forward sweep.
struct stage_plan {
  position first = 0;  // sections [first, last)
  position last = 0;
  bool keeps_memory = false;   // memories and carries: no rebuild sweep
  bool keeps_outputs = false;  // keepable slots of all tokens: attention is not computed again
  bool keeps_chunk = false;    // the last chunk's values: it is not replayed
  constexpr bool operator==(const stage_plan&) const = default;
};

// What decides a stage's sweeps and what they visit, read off its sections once.
struct stage_facts {
  stage_plan plan;
  bool ends = false;              // the last stage of the model
  bool fuses_head = false;        // the head runs inside it
  bool begins_with_read = false;  // its first section is the read half of an operator
  bool read_survives = true;      // the memory that it reads then outlives the forward
  bool carries = false;
  position own_last = 0;    // behind its own sections: a trailing remember half serves the next one
  position last_state = 0;  // behind the last section that carries or remembers; first: none does
  position last_first = 0;  // behind the last one that carries, remembers or tallies
  position lowest = 0;      // the first section whose backward is wanted; last: none

  constexpr bool stateful() const { return last_state > plan.first; }
  constexpr bool descends() const { return lowest < plan.last; }
  // Gradient rows of all tokens exist: not where the only stage takes them from its own head.
  constexpr bool streams() const { return !(fuses_head && plan.first == 0); }
  // Its memories and carries were given up after the forward.
  constexpr bool gave_up_state() const { return !ends && !plan.keeps_memory; }
  // A last chunk that is replayed with its memories needs no rebuild.
  constexpr bool rebuilds(position chunks) const {
    return gave_up_state() && stateful() && chunks > 1;
  }
  // Of section i: a trailing remember half has its rows again from the checkpoint.
  constexpr bool keeps_outputs(position i) const { return plan.keeps_outputs && i < own_last; }
  // Section i leaves its result in the chunk, for the section behind it or a fused head. What
  // stands before a trailing remember half writes to the checkpoint.
  constexpr bool hands_on(position i) const {
    return i + 1 < own_last || (i + 1 == own_last && fuses_head);
  }
};

// Memories of reads that see all outlive the stage that writes them. They alternate between two
// places, so that the last two of the model survive the forward.
struct boundary {
  position behind = 0;  // reads that see all, behind this one
  constexpr position place() const { return behind % 2; }
  constexpr bool survives() const { return behind < 2; }
};
inline boundary boundary_of(const section_list& model, position read) {
  boundary b;
  for (position i = read + 1; i < position(model.count()); ++i)
    b.behind += model[i].part == half::read;
  return b;
}

// `lowest`: the first section of the model whose backward is wanted.
inline stage_facts facts_of(const section_list& model, const stage_plan& s, bool fuses_head,
                            position lowest) {
  const position sections = position(model.count());
  stage_facts f;
  f.plan = s;
  f.ends = s.last == sections;
  f.fuses_head = f.ends && fuses_head;
  f.begins_with_read = model[s.first].part == half::read;
  f.own_last = s.last - (model[s.last - 1].part == half::remember);
  f.last_state = f.last_first = s.first;
  for (position i = s.first; i < f.own_last; ++i) {
    f.carries = f.carries || model[i].split.carries;
    if (model[i].holds_state) f.last_state = i + 1;
    if (model[i].holds_state || model[i].holds_tally) f.last_first = i + 1;
  }
  f.lowest = std::clamp(lowest, s.first, s.last);
  f.read_survives = !f.begins_with_read || boundary_of(model, s.first).survives();
  return f;
}

inline std::vector<stage_facts> facts_of(const section_list& model,
                                         const std::vector<stage_plan>& stages, bool fuses_head,
                                         position lowest) {
  std::vector<stage_facts> all;
  for (const stage_plan& s : stages) all.push_back(facts_of(model, s, fuses_head, lowest));
  return all;
}

}  // namespace streambp
