// The cheapest run of stages that fits: a dynamic programme over the places where a stage may be cut.
#pragma once

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include "stages.hpp"

namespace streambp {

// Stages of sections [0, end), as a point that no other one beats in bytes and FLOPs at once.
struct partial_plan {
  std::size_t persistent = 0;
  std::size_t region = 0;
  position flops = 0;
  stage_plan stage{};       // the last one
  std::size_t from = 0;     // its predecessor among the points of stage.first
  std::size_t bytes() const { return persistent + region; }
};

// What the caller asks of stages.
struct stage_limits {
  std::size_t budget = std::numeric_limits<std::size_t>::max();
  position blocks = 0;    // repetitions a stage, when forced; 0: free
  bool keeps = true;      // memories and outputs may be kept
  bool plain_only = false;  // one stage between forced cuts, everything kept
};

// Where a stage may begin: anywhere between sections; with `blocks`, at every blocks-th repetition.
template <class List>
std::vector<bool> allowed_cuts(const List& model, const stage_limits& limits) {
  const position n = position(model.count());
  std::vector<bool> allowed(std::size_t(n) + 1, false);
  allowed[std::size_t(n)] = true;
  // Longer models are cut at repetitions only: the search stays short, and blocks are alike.
  const bool anywhere = limits.blocks == 0 && n <= 24;
  for (position i = 0; i < n; ++i) {
    const auto& s = model.sections[std::size_t(i)];
    const bool begins = i > 0 && (s.element != model.sections[std::size_t(i) - 1].element ||
                                  s.repetition != model.sections[std::size_t(i) - 1].repetition);
    const bool repeats = begins && s.repetition > 0;
    allowed[std::size_t(i)] =
        i == 0 || s.forced_cut || (!limits.plain_only && (anywhere || (limits.blocks == 0 && begins) ||
        (limits.blocks > 0 && repeats && s.repetition % limits.blocks == 0)));
  }
  return allowed;
}

// Adds a point unless another one is at least as good in everything; drops those that it beats.
inline void add_point(std::vector<partial_plan>& front, const partial_plan& p) {
  for (const auto& q : front)
    if (q.persistent <= p.persistent && q.region <= p.region && q.flops <= p.flops) return;
  std::erase_if(front, [&](const partial_plan& q) {
    return p.persistent <= q.persistent && p.region <= q.region && p.flops <= q.flops;
  });
  front.push_back(p);
}

// What may be kept of a stage.
inline std::vector<stage_plan> variants(position first, position last, bool final_stage, bool fused,
                                        const stage_limits& limits) {
  std::vector<stage_plan> all;
  if (limits.plain_only) return {{first, last, !final_stage, false, true}};
  for (const bool outputs : {false, true})
    for (const bool memory : {false, true})
      for (const bool chunk : {false, true}) {
        if ((outputs || memory || chunk) && !limits.keeps) continue;
        // The last stage's memories outlive its forward anyway; a fused head leaves it no forward.
        if (final_stage && (memory || (fused && (outputs || chunk)))) continue;
        if (!final_stage && chunk && !memory) continue;
        all.push_back({first, last, memory, outputs, chunk});
      }
  return all;
}

// The stages of fewest FLOPs whose bytes, with `fixed`, stay within the budget; nothing if none do.
// smallest: those of fewest bytes instead, whatever their FLOPs, which are then not added up.
template <class Device, class Model>
std::optional<std::vector<stage_plan>> search_stages(const stage_costs<Device, Model>& costs,
                                                     const instance_list<Model>& model, bool fuses,
                                                     const stage_limits& limits, bool smallest,
                                                     partial_plan& found) {
  const position n = position(model.count());
  const auto allowed = allowed_cuts(model, limits);
  std::vector<std::vector<partial_plan>> fronts(std::size_t(n) + 1);
  fronts[0].push_back({});
  for (position first = 0; first < n; ++first) {
    if (fronts[std::size_t(first)].empty()) continue;
    for (position last = first + 1; last <= n; ++last) {
      // With a number of blocks given, every cut that it allows is made.
      const bool forced = last < n && (model.sections[std::size_t(last)].forced_cut ||
                                       (limits.blocks > 0 && allowed[std::size_t(last)]));
      if (allowed[std::size_t(last)]) {
        const bool final_stage = last == n;
        // Two uses of one parameter are swept one after the other.
        const bool barred = final_stage && fuses && first <= model.shared_with_head;
        if (!barred)
          for (const stage_plan& s : variants(first, last, final_stage, fuses, limits)) {
            const stage_cost c = costs.of(s);
            const bool streams = !(fuses && first == 0 && final_stage);
            for (std::size_t from = 0; from < fronts[std::size_t(first)].size(); ++from) {
              const partial_plan& before = fronts[std::size_t(first)][from];
              partial_plan p{before.persistent + c.persistent, std::max(before.region, c.region),
                             before.flops + (smallest ? 0 : c.flops), s, from};
              if (final_stage) p.persistent += costs.fixed_bytes() + (streams ? costs.stream_bytes() : 0);
              if (p.bytes() <= limits.budget) add_point(fronts[std::size_t(last)], p);
            }
          }
      }
      if (forced) break;
    }
  }
  const auto& ends = fronts[std::size_t(n)];
  if (ends.empty()) return std::nullopt;
  const auto best = std::min_element(ends.begin(), ends.end(), [&](const auto& a, const auto& b) {
    if (smallest) return a.bytes() < b.bytes();
    return std::pair(a.flops, position(a.bytes())) < std::pair(b.flops, position(b.bytes()));
  });
  found = *best;
  std::vector<stage_plan> stages;
  for (const partial_plan* p = &*best;;) {
    stages.insert(stages.begin(), p->stage);
    if (p->stage.first == 0) break;
    p = &fronts[std::size_t(p->stage.first)][p->from];
  }
  return stages;
}

}  // namespace streambp
