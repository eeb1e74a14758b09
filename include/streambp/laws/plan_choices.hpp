// The plans that the laws try.
#pragma once

#include "../planner/planner.hpp"
#include "subject.hpp"

namespace streambp::laws {

// Where stages begin: every set of the cuts that are free, or, of many, none, each and all.
inline std::vector<std::vector<position>> cut_sets(const section_list& model) {
  std::vector<position> forced{0}, free;
  for (position i = 1; i < position(model.count()); ++i)
    (model.sections[std::size_t(i)].forced_cut ? forced : free).push_back(i);
  const std::size_t n = free.size();
  std::vector<std::vector<position>> sets;
  for (std::size_t k = 0; k < (n <= 3 ? std::size_t(1) << n : n + 2); ++k) {
    std::vector<position> set = forced;
    for (std::size_t i = 0; i < n; ++i)
      if (n <= 3 ? (k >> i & 1) != 0 : k == i + 1 || k == n + 1) set.push_back(free[i]);
    std::sort(set.begin(), set.end());
    sets.push_back(set);
  }
  return sets;
}

// Every cut set and chunk size; head chunks, spacing of carries and what each stage keeps, in turn.
inline std::vector<plan_choice> plan_choices(const section_list& model, bool couples,
                                             position tokens, geometry g) {
  std::vector<plan_choice> all;
  std::size_t turn = 0;
  for (const auto& cuts : cut_sets(model))
    for (const bool fuses : {false, true}) {
      if (fuses && couples) continue;
      for (std::size_t kept = 0; kept < 8; ++kept)
        for (const position chunk : {g.grain, 2 * g.grain, tokens}) {
          plan_choice c;
          for (std::size_t s = 0; s < cuts.size(); ++s) {
            const bool ends = s + 1 == cuts.size();
            const position last = ends ? position(model.count()) : cuts[s + 1];
            const auto options = variants(cuts[s], last, ends, fuses, stage_limits{});
            c.stages.push_back(options[(kept + s * turn) % options.size()]);
          }
          c.chunk = chunk;
          c.head_chunk = turn % 3 == 0 ? tokens : g.grain;
          c.carry_interval = 1 + position(turn++ % 2);
          c.fuses_head = fuses;
          if (std::find(all.begin(), all.end(), c) == all.end()) all.push_back(c);
        }
    }
  return all;
}

// Nothing kept, everything cut.
inline plan_choice streamed_choice(const section_list& model, geometry g) {
  plan_choice c;
  for (position i = 0; i < position(model.count()); ++i) c.stages.push_back({i, i + 1});
  c.chunk = c.head_chunk = g.grain;
  return c;
}

// Completed by planners of one and of two threads, in turn.
template <class Device>
plan_list every_plan(plan_maker<Device>& one, bool couples, const packed& samples,
                     plan_options options) {
  options.threads = 2;
  plan_maker<Device> two = one.with(samples, options);
  plan_list plans{one.plain(), one.complete(streamed_choice(one.model(), options.grains)), {}};
  for (const plan_choice& c : plan_choices(one.model(), couples, samples.tokens(), options.grains))
    try {
      plans.others.push_back((plans.others.size() % 4 == 1 ? two : one).complete(c));
    } catch (const shape_error&) {
      if (!c.fuses_head) throw;  // a head that shares a parameter with its stage is not fused
    }
  return plans;
}

}  // namespace streambp::laws
