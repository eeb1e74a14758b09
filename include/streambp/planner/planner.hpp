// From a budget in bytes to the fastest exact plan that fits.
#pragma once

#include <limits>

#include "../core/bytes.hpp"
#include "../cpu/device.hpp"
#include "../engine/door.hpp"
#include "../traits/loss_traits.hpp"
#include "longest.hpp"
#include "search.hpp"

namespace streambp {

inline constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();

// All optional; 0 leaves a choice to the planner.
struct plan_options {
  std::size_t budget = unlimited;  // bytes for everything a step needs
  int threads = 1;
  position chunk = 0;       // rows at most; rounded to whole grains
  position head_chunk = 0;
  position stage = 0;       // blocks (repetitions) a stage
  position features = 0;    // of the input rows of a model that takes no tokens
  position prefix = 0;      // memory rows ahead of every sample
  bool input_gradient = false;
  bool keep = true;         // memories, outputs and chunks may be kept where the budget allows
  bool fuse_head = true;    // the head may run inside the last stage
  position carry_interval = 0;    // chunks between carries that are kept
  packed context{};               // the other stream, of a model that crosses to one
  position context_features = 0;
  geometry grains{};
};

// A plan for one scalar type.
template <class Scalar>
struct typed_plan : step_plan {};

namespace detail {

// Rows that a fixed cost per chunk (packing weights, starting threads) is worth.
inline constexpr double chunk_overhead = 20;

inline void set_chunks(step_plan& p, position chunk, position head_chunk) {
  p.choice.chunk = chunk;
  p.choice.head_chunk = head_chunk;
  p.chunks = chunk_edges(p.grains, chunk);
  p.context_chunks = chunk_edges(p.context_grains, chunk);
  p.head_chunks = head_chunk_edges(p.head_grains, p.chunks, head_chunk, p.choice.fuses_head);
}

template <class List>
void set_sweeps(step_plan& p, const List& model, bool couples) {
  sweep_facts f{p.choice.stages, {}, {}, p.choice.fuses_head, model.tallies(), couples,
                p.shape.input_gradient ? 0 : model.lowest_trained(), p.chunk_count()};
  for (const stage_plan& s : p.choice.stages) {
    f.begins_with_read.push_back(model.sections[std::size_t(s.first)].part == half::read);
    bool state = false;
    for (position i = s.first; i < s.last; ++i)
      state = state || model.sections[std::size_t(i)].holds_state;
    f.stateful.push_back(state);
  }
  p.sweeps = sweeps_of(f);
}

// 1, 2, 4, ... grains, then all rows.
inline std::vector<position> sizes(position grain, position all, position forced) {
  if (forced > 0) return {forced};
  std::vector<position> rows;
  for (position r = grain; r < all && r <= 16 * grain; r *= 2) rows.push_back(r);
  rows.push_back(std::max(all, position(1)));
  return rows;
}

}  // namespace detail

// Plans for one model, loss and packed batch: the search, and single plans asked for by hand.
template <class Device, class Model, class Loss>
class planner {
 public:
  using list = instance_list<Model>;
  static constexpr bool couples = loss_traits<Loss>::couples;

  planner(const Model& model, const packed& samples, const plan_options& options)
      : model_(model, options.features), options_(options) {
    if (samples.tokens() == 0)
      throw shape_error("plan: the packed samples hold no token");
    const position tile = options.grains.tile;
    if (tile != 8 && tile != 16 && tile != 32 && tile != largest_tile)
      throw shape_error(sentence("plan: a tile of ", tile, " rows; it is 8, 16, 32 or 64"));
    if (options.grains.grain < tile)
      throw shape_error(sentence("plan: a grain of ", options.grains.grain, " rows holds no tile of ", tile));
    if (options.threads < 1)
      throw shape_error(sentence("plan: ", options.threads, " threads; at least 1"));
    frame_.shape = {samples,         options.features, options.prefix, options.threads,
                    options.grains, options.input_gradient, options.context,
                    options.context_features};
    if (model_.crosses() != (options.context.tokens() > 0))
      throw shape_error(model_.crosses()
                            ? "plan: the model reads another stream; give its offsets in options.context"
                            : "plan: options.context is given, but no layer reads another stream");
    if (model_.crosses() && options.context.segments() != samples.segments())
      throw shape_error(sentence("plan: ", samples.segments(), " samples read the other stream's ",
                                 options.context.segments(), "; each has its own"));
    if (options.budget != unlimited) frame_.budget = options.budget;
    for (const section_instance& s : model_.sections) frame_.forced.push_back(s.forced_cut);
    frame_.grains = grain_edges(samples, options.grains.tile, options.grains.grain);
    const position widest =
        storage<Device, Model>::has_head
            ? *std::max_element(model_.head.widths.begin(), model_.head.widths.end())
            : model_.trunk_width();
    frame_.head_grains = grain_edges(samples, options.grains.tile,
                                     head_grain_of(options.grains, widest), frame_.grains);
    if (model_.crosses())
      frame_.context_grains = grain_edges(options.context, options.grains.tile, options.grains.grain);
    else
      frame_.context_grains = {0};
    flops_ = std::make_unique<flop_counts<Device, Model>>(model_, frame_.shape);
  }

  const list& model() const { return model_; }

  // Everything about one choice. Throws shape_error when the engine could not run it.
  step_plan complete(const plan_choice& choice) {
    step_plan p = frame_;
    p.choice = choice;
    detail::set_chunks(p, choice.chunk, choice.head_chunk);
    check(choice);
    detail::set_sweeps(p, model_, couples);
    const stage_costs<Device, Model> costs(model_, *flops_, p, couples);
    for (const stage_plan& s : choice.stages) p.flops += costs.of(s).flops;
    p.flops += head_flops();
    storage<Device, Model> cells(model_);
    arena nothing;
    p.bytes = cells.place(nothing, model_, p, couples);
    p.cost = cost_of(p, p.flops - head_flops());
    return p;
  }

  // The cheapest plan within the budget; nothing if none fits.
  std::optional<step_plan> search(bool smallest = false, bool plain_only = false) {
    std::optional<step_plan> best;
    const auto better = [&](const step_plan& a, const step_plan& b) {
      if (smallest) return a.peak() < b.peak();
      return std::pair(a.cost, a.peak()) < std::pair(b.cost, b.peak());
    };
    const stage_limits limits{
        smallest ? unlimited : options_.budget, options_.stage,
        options_.keep, plain_only};
    for (step_plan& frame : frames(plain_only)) {
      const stage_costs<Device, Model> costs(model_, *flops_, frame, couples);
      partial_plan found;
      const auto stages = search_stages(costs, model_, frame.choice.fuses_head, limits, smallest,
                                        found);
      if (!stages) continue;
      frame.choice.stages = *stages;
      frame.flops = found.flops + head_flops();
      frame.cost = cost_of(frame, found.flops);
      frame.bytes.region = found.bytes();
      if (!best || better(frame, *best)) best = frame;
    }
    if (best) best = complete(best->choice);
    return best;
  }

  // Plain backpropagation: one chunk, cuts only where they are forced, everything kept.
  step_plan plain() { return *planner(*this, without_limits()).search(false, true); }
  // Layer checkpointing: one chunk, a stage a block.
  step_plan checkpointing() {
    plan_options o = without_limits();
    o.chunk = o.head_chunk = frame_.shape.samples.tokens();
    o.stage = 1;
    o.keep = o.fuse_head = false;
    return *planner(*this, o).search();
  }

  position head_flops() {
    return flops_->head(false) * (couples ? 2 : 1) + flops_->head(true);
  }

 private:
  planner(const planner& other, const plan_options& options)
      : model_(other.model_), options_(options), frame_(other.frame_) {
    flops_ = std::make_unique<flop_counts<Device, Model>>(model_, frame_.shape);
  }
  plan_options without_limits() const {
    plan_options o = options_;
    o.budget = unlimited;
    o.chunk = o.head_chunk = o.stage = 0;
    return o;
  }

  // Every choice but that of the stages.
  std::vector<step_plan> frames(bool plain_only) const {
    std::vector<step_plan> all;
    const position tokens = frame_.shape.samples.tokens(), head_grain = largest_head_grain();
    const position only = plain_only && options_.chunk == 0 ? tokens : options_.chunk;
    for (const bool fuses : {false, true}) {
      if (fuses && (!options_.fuse_head || couples || plain_only)) continue;
      for (const position chunk : detail::sizes(options_.grains.grain, tokens, only))
        for (const position head_chunk :
             detail::sizes(head_grain, plain_only ? tokens : 4 * head_grain, options_.head_chunk))
          for (const position interval : intervals(chunk)) {
            step_plan frame = frame_;
            frame.choice.fuses_head = fuses;
            frame.choice.carry_interval = interval;
            detail::set_chunks(frame, chunk, head_chunk);
            all.push_back(std::move(frame));
          }
    }
    return all;
  }

  // Chunks between carries that are kept: every one, or in two levels.
  std::vector<position> intervals(position chunk) const {
    if (options_.carry_interval > 0) return {options_.carry_interval};
    const bool carries = std::any_of(model_.sections.begin(), model_.sections.end(),
                                     [](const auto& s) { return s.split.carries; });
    const position chunks = ceil_div(frame_.shape.samples.tokens(), chunk);
    position root = 1;
    while (root * root < chunks) ++root;
    if (!carries || root < 3) return {1};
    return {1, root};
  }

  position largest_head_grain() const {
    position most = 1;
    for (std::size_t g = 1; g < frame_.head_grains.size(); ++g)
      most = std::max(most, frame_.head_grains[g] - frame_.head_grains[g - 1]);
    return most;
  }

  // Sections' FLOPs take longer in small chunks.
  double cost_of(const step_plan& p, position trunk_flops) {
    const auto slow = [](position rows, position chunks) {
      return 1 + detail::chunk_overhead * double(chunks) / double(std::max(rows, position(1)));
    };
    const position tokens = frame_.shape.samples.tokens();
    return double(trunk_flops) * slow(tokens, p.chunk_count()) +
           double(head_flops()) * slow(tokens, position(p.head_chunks.size()) - 1);
  }

  void check(const plan_choice& c) const {
    const position n = position(model_.count());
    position at = 0;
    for (const stage_plan& s : c.stages) {
      if (s.first != at || s.last <= s.first || s.last > n)
        throw shape_error(sentence("plan: a stage of sections ", s.first, " to ", s.last,
                                   " does not follow ", at, " of ", n));
      for (position i = s.first + 1; i < s.last; ++i)
        if (model_.sections[std::size_t(i)].forced_cut)
          throw shape_error(sentence("plan: section ", i, " must begin a stage"));
      at = s.last;
    }
    if (at != n) throw shape_error(sentence("plan: stages end at section ", at, " of ", n));
    if (c.fuses_head && couples)
      throw shape_error("plan: a coupled loss needs all rows before its gradient; the head cannot be fused");
    if (c.fuses_head && c.stages.back().first <= model_.shared_with_head)
      throw shape_error("plan: the head shares a parameter with its own stage; it cannot be fused");
    const stage_plan& last = c.stages.back();
    if (c.fuses_head && (last.keeps_outputs || last.keeps_chunk))
      throw shape_error("plan: a fused head leaves the last stage no forward to keep");
    for (const stage_plan& s : c.stages)
      if (s.keeps_chunk && !s.keeps_memory && s.last != n)
        throw shape_error("plan: a stage that keeps its chunk keeps its memory");
  }

  list model_;
  plan_options options_;
  step_plan frame_;
  std::unique_ptr<flop_counts<Device, Model>> flops_;
};

// What plan() does for a model and a loss that nothing is wrong with.
template <class Scalar, class Model, class Loss>
typed_plan<Scalar> fastest_plan(const Model& model, const packed& samples,
                                const plan_options& options) {
  planner<cpu::device<Scalar>, Model, Loss> search(model, samples, options);
  const auto best = search.search();
  if (!best) {
    const step_plan least = *search.search(true);
    throw budget_error(
        sentence("plan: no exact plan of ", samples.tokens(), " tokens fits ", options.budget,
                 " bytes (", bytes_in_words(options.budget), "); the least is ", least.peak(),
                 " bytes (", bytes_in_words(least.peak()), ")",
                 options.chunk || options.stage || options.head_chunk
                     ? ", with the chunk and stage that were asked for"
                     : ""),
        least.peak());
  }
  typed_plan<Scalar> p{*best};
  p.least_flops = search.plain().flops;
  if (p.budget != 0)
    p.limit = longest_sequence(samples, options.grains.grain, p.budget, [&](const packed& longer) {
      plan_options o = options;
      o.keep = false;  // what is kept costs bytes, and so does a larger head chunk
      o.head_chunk = 1;
      return planner<cpu::device<Scalar>, Model, Loss>(model, longer, o).search(true)->bytes;
    });
  return p;
}

// The fastest exact plan of `model` and `loss` for `samples` that fits options.budget. Throws
// budget_error, with the least that would do, when none fits; shape_error when layers do not fit
// together.
template <class Scalar = float, class Model, class Loss>
typed_plan<Scalar> plan(const Model& model, const Loss&, const packed& samples,
                        const plan_options& options = {}) {
  if constexpr (explain_step<cpu::device<Scalar>, Model, Loss>())
    return fastest_plan<Scalar, Model, Loss>(model, samples, options);
  else
    return {};
}

}  // namespace streambp
