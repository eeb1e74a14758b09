// Every choice that a planner has for a small model, one by one.
#pragma once

#include <functional>
#include <streambp/schedule/plan.hpp>
#include <vector>

namespace streambp {

// What is enumerated.
struct choice_space {
  std::vector<position> chunks;
  std::vector<position> head_chunks;
  bool fuses_head = true;  // with and without, where the engine can
  bool keeps = true;       // every combination of flags of every stage
  bool couples = false;    // the loss
  // Chunks between carries that are kept, for a size of chunk.
  std::function<std::vector<position>(position)> intervals = [](position) {
    return std::vector<position>{1};
  };
};

namespace detail {

// The flags that stage [first, last) may have; `fused`: with the head inside it.
inline std::vector<stage_plan> flagged(position first, position last, bool final_stage, bool fused,
                                       bool keeps) {
  std::vector<stage_plan> all;
  for (const bool memory : {false, true})
    for (const bool outputs : {false, true})
      for (const bool chunk : {false, true}) {
        if (!keeps && (memory || outputs || chunk)) continue;
        if (fused && (outputs || chunk)) continue;       // no forward to keep them from
        if (chunk && !memory && !final_stage) continue;  // replay would need the memory again
        all.push_back({first, last, memory, outputs, chunk});
      }
  return all;
}

template <class List, class F>
void stages_from(const List& model, const choice_space& space, plan_choice& choice, const F& f) {
  const position n = position(model.count());
  const position first = choice.stages.empty() ? 0 : choice.stages.back().last;
  if (first == n) return f(choice);
  for (position last = first + 1; last <= n; ++last) {
    const bool fused = choice.fuses_head && last == n;
    if (!(fused && first <= model.shared_with_head))  // two uses of one parameter are two sweeps
      for (const stage_plan& s : flagged(first, last, last == n, fused, space.keeps)) {
        choice.stages.push_back(s);
        stages_from(model, space, choice, f);
        choice.stages.pop_back();
      }
    if (last < n && model.sections[std::size_t(last)].forced_cut) break;
  }
}

}  // namespace detail

// Calls f(choice) for every legal one: all sets of cuts, flags, chunks, head chunks, intervals.
template <class List, class F>
void for_each_choice(const List& model, const choice_space& space, const F& f) {
  for (const bool fuses : {false, true}) {
    if (fuses && (!space.fuses_head || space.couples)) continue;
    for (const position chunk : space.chunks)
      for (const position head_chunk : space.head_chunks)
        for (const position interval : space.intervals(chunk)) {
          plan_choice choice{{}, chunk, head_chunk, fuses, interval};
          detail::stages_from(model, space, choice, f);
        }
  }
}

}  // namespace streambp
