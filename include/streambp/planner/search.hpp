// The cheapest run of stages that fits: a dynamic programme over the places where a stage may be
// cut.
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
  big_count flops;
  stage_plan stage{};    // the last one
  std::size_t from = 0;  // its predecessor among the points of stage.first
  std::size_t bytes() const { return sum_of_bytes(persistent, region); }
};

// What the caller asks of stages.
struct stage_limits {
  std::size_t budget = std::numeric_limits<std::size_t>::max();
  position blocks = 0;      // repetitions a stage, when forced; 0: free
  position every = 0;       // cut at every so manieth place between blocks; 0: free
  bool keeps = true;        // memories and outputs may be kept
  bool plain_only = false;  // one stage between forced cuts, everything kept

  bool regular() const { return blocks > 0 || every > 0; }
};

// By section, whether a block begins with it: another element of the model, or another repetition.
// What stands before the first repetition belongs to it.
inline std::vector<bool> block_begins(const section_list& model) {
  std::vector<bool> begins(model.count(), false);
  bool repeats = false;  // the element does, by its last section
  for (position i = position(model.count()) - 1; i > 0; --i) {
    const auto &s = model[i], &before = model[i - 1];
    if (i + 1 == position(model.count()) || model[i + 1].element != s.element)
      repeats = s.repetition > 0;
    begins[std::size_t(i)] = s.repetition > 0 ? s.repetition != before.repetition
                                              : s.element != before.element && !repeats;
  }
  return begins;
}

// Where a stage may begin: anywhere between sections, or where the limits say.
inline std::vector<bool> allowed_cuts(const section_list& model, const stage_limits& limits) {
  const position n = position(model.count());
  std::vector<bool> allowed(std::size_t(n) + 1, false);
  allowed[std::size_t(n)] = true;
  const auto block = block_begins(model);
  position place = 0;
  for (position i = 0; i < n; ++i) {
    const auto& s = model.sections[std::size_t(i)];
    const bool begins = block[std::size_t(i)];
    place += begins;
    allowed[std::size_t(i)] =
        i == 0 || s.forced_cut ||
        (!limits.plain_only &&
         (limits.blocks > 0  ? begins && s.repetition > 0 && s.repetition % limits.blocks == 0
          : limits.every > 0 ? begins && place % limits.every == 0
                             : true));
  }
  return allowed;
}

// Which regular cuts are tried when those anywhere would be too many.
inline std::vector<position> strides(const section_list& model) {
  const auto block = block_begins(model);
  const position places = 1 + position(std::count(block.begin(), block.end(), true));
  std::vector<position> all;
  for (position power = 1; power < places; power *= 2)
    for (const position stride : {power, power + power / 2})
      if (stride < places && (all.empty() || stride > all.back())) all.push_back(stride);
  all.push_back(places);
  return all;
}

// Whether a is at least as good as b in everything; of points and of stages.
template <class Costs>
bool beats(const Costs& a, const Costs& b) {
  return a.persistent <= b.persistent && a.region <= b.region && a.flops <= b.flops;
}

// Adds a point unless another one is at least as good in everything; drops those that it beats.
inline void add_point(std::vector<partial_plan>& front, const partial_plan& p) {
  for (const auto& q : front)
    if (beats(q, p)) return;
  std::erase_if(front, [&](const partial_plan& q) { return beats(p, q); });
  front.push_back(p);
}

// Of many points those that stand for all: in each of `most` ranges of bytes the one of fewest
// FLOPs and the one of fewest persistent bytes.
inline void thin(std::vector<partial_plan>& front, std::size_t most) {
  if (front.size() <= 2 * most) return;
  const auto by_bytes = [](const auto& a, const auto& b) { return a.bytes() < b.bytes(); };
  std::sort(front.begin(), front.end(), by_bytes);
  const double least = double(front.front().bytes()),
               step = (double(front.back().bytes()) - least) / double(most) + 1;
  std::vector<partial_plan> kept;
  for (std::size_t i = 0; i < front.size();) {
    const auto range = std::size_t((double(front[i].bytes()) - least) / step);
    std::size_t fewest = i, smallest = i;
    for (; i < front.size() && std::size_t((double(front[i].bytes()) - least) / step) == range;
         ++i) {
      if (front[i].flops < front[fewest].flops) fewest = i;
      if (front[i].persistent < front[smallest].persistent) smallest = i;
    }
    kept.push_back(front[fewest]);
    if (smallest != fewest) kept.push_back(front[smallest]);
  }
  front = std::move(kept);
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
template <class Device>
std::optional<std::vector<stage_plan>> search_stages(stage_costs<Device>& costs,
                                                     const section_list& model, bool fuses,
                                                     const stage_limits& limits, bool smallest,
                                                     partial_plan& found) {
  const position n = position(model.count());
  const auto allowed = allowed_cuts(model, limits);
  std::vector<std::vector<partial_plan>> fronts(std::size_t(n) + 1);
  fronts[0].push_back({});
  std::vector<stage_cost> tried;
  for (position first = 0; first < n; ++first) {
    if (fronts[std::size_t(first)].empty()) continue;
    thin(fronts[std::size_t(first)], 128);
    for (position last = first + 1; last <= n; ++last) {
      // Regular cuts are all made.
      const bool forced = last < n && (model.sections[std::size_t(last)].forced_cut ||
                                       (limits.regular() && allowed[std::size_t(last)]));
      if (allowed[std::size_t(last)]) {
        const bool final_stage = last == n;
        // Two uses of one parameter are swept one after the other.
        const bool barred = final_stage && fuses && first <= model.shared_with_head;
        tried.clear();
        if (!barred)
          for (const stage_plan& s : variants(first, last, final_stage, fuses, limits)) {
            stage_cost c = costs.of(s);
            if (smallest) c.flops = 0;
            // Whatever comes before them, the points of a beaten variant are beaten.
            if (std::any_of(tried.begin(), tried.end(),
                            [&](const stage_cost& other) { return beats(other, c); }))
              continue;
            tried.push_back(c);
            for (std::size_t from = 0; from < fronts[std::size_t(first)].size(); ++from) {
              const partial_plan& before = fronts[std::size_t(first)][from];
              partial_plan p{sum_of_bytes(before.persistent, c.persistent),
                             std::max(before.region, c.region), before.flops + c.flops, s, from};
              if (final_stage)
                p.persistent = sum_of_bytes(
                    p.persistent,
                    sum_of_bytes(costs.fixed_bytes(), c.streams ? costs.stream_bytes() : 0));
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
    return std::pair(a.flops, a.bytes()) < std::pair(b.flops, b.bytes());
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
