// Plans for one model, loss and packed batch: the search within a budget, and single plans asked
// for by hand. The model is behind a section_runner, so that this is compiled once a device.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "../schedule/seal.hpp"
#include "../traits/loss_list.hpp"
#include "own_loops.hpp"
#include "plan_options.hpp"
#include "search.hpp"

namespace streambp {

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

inline void set_sweeps(step_plan& p, const section_list& model, bool couples) {
  const position lowest = p.shape.input_gradient ? 0 : model.lowest_trained();
  p.sweeps = sweeps_of(facts_of(model, p.choice.stages, p.choice.fuses_head, lowest),
                       {model.tallies(), couples, p.chunk_count()});
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

// A model of more sections is cut at regular distances between its blocks, so that the search stays
// short.
inline constexpr position most_free_sections = 18;

template <class Device>
class plan_maker {
 public:
  plan_maker(std::shared_ptr<const section_runner<Device>> sections, coupled_heads couples,
             const packed& samples, const plan_options& options)
      : sections_(std::move(sections)),
        model_(sections_->list()),
        couples_(couples),
        options_(options) {
    check(samples, options);
    for (const packed* axis : {&samples, &options.context}) check_length(axis->tokens());
    frame_.model = model_.fingerprint();
    frame_.shape = {samples,         options.features,        options.prefix,
                    options.threads, options.grains,          options.input_gradient,
                    options.context, options.context_features};
    if (model_.crosses() != (options.context.tokens() > 0))
      throw shape_error(
          model_.crosses()
              ? "plan: the model reads another stream; give its offsets in options.context"
              : "plan: options.context is given, but no layer reads another stream");
    if (model_.crosses() && options.context.segments() != samples.segments())
      throw shape_error(sentence("plan: ", samples.segments(), " samples read the other stream's ",
                                 options.context.segments(), "; each has its own"));
    if (options.budget != unlimited) frame_.budget = options.budget;
    for (const section_instance& s : model_.sections) frame_.forced.push_back(s.forced_cut);
    frame_.grains = grain_edges(samples, options.grains.tile, options.grains.grain);
    frame_.head_grains =
        grain_edges(samples, options.grains.tile,
                    head_grain_of(options.grains, model_.widest_of_heads()), frame_.grains);
    if (model_.crosses())
      frame_.context_grains =
          grain_edges(options.context, options.grains.tile, options.grains.grain);
    flops_ = std::make_unique<flop_counts<Device>>(*sections_, frame_.shape);
  }

  const section_list& model() const { return model_; }
  const plan_shape& shape() const { return frame_.shape; }
  const section_runner<Device>& sections() const { return *sections_; }
  // The same for other samples and options; features stay.
  plan_maker with(const packed& samples, const plan_options& options) const {
    return {sections_, couples_, samples, options};
  }

  // Everything about one choice. Throws shape_error when the engine could not run it.
  step_plan complete(const plan_choice& choice) {
    step_plan p = frame_;
    p.choice = choice;
    for (const section_instance& s : model_.sections) p.names.push_back(s.label());
    for (const section_instance& h : model_.heads) p.heads.push_back(h.label());
    p.uncounted = model_.uncounted;
    set_chunks(p, choice.chunk, choice.head_chunk);
    check(choice);
    detail::set_sweeps(p, model_, couples_.any());
    stage_costs<Device> costs(model_, *flops_, p, couples_);
    for (const stage_plan& s : choice.stages) p.flops += costs.of(s).flops;
    p.flops += head_flops();
    p.bytes = planned_bytes<Device>(model_, p, couples_);
    p.cost = cost_of(p, p.flops - head_flops());
    p.seal = seal_of(p);
    return p;
  }

  // The cheapest plan within the budget; nothing if none fits.
  std::optional<step_plan> search(bool smallest = false, bool plain_only = false) {
    std::optional<step_plan> best;
    const auto better = [&](const step_plan& a, const step_plan& b) {
      if (smallest) return a.peak() < b.peak();
      return std::pair(a.cost, a.peak()) < std::pair(b.cost, b.peak());
    };
    stage_limits limits{.budget = smallest ? uncountable : options_.budget,
                        .blocks = options_.stage,
                        .keeps = options_.keep,
                        .plain_only = plain_only};
    const bool many = position(model_.count()) > most_free_sections;
    each_frame(plain_only, [&](step_plan& frame) {
      stage_costs<Device> costs(model_, *flops_, frame, couples_);
      for (const position every :
           many&& options_.stage == 0 && !plain_only ? strides(model_) : std::vector<position>{0}) {
        limits.every = every;
        partial_plan found;
        const auto stages =
            search_stages(costs, model_, frame.choice.fuses_head, limits, smallest, found);
        if (!stages) continue;
        frame.choice.stages = *stages;
        frame.flops = found.flops + head_flops();
        frame.cost = cost_of(frame, found.flops);
        frame.bytes.region = found.bytes();
        if (!best || better(frame, *best)) best = frame;
      }
    });
    if (best) best = complete(best->choice);
    return best;
  }

  // Plain backpropagation: one chunk, cuts only where they are forced, everything kept.
  step_plan plain() { return *plan_maker(*this, without_limits()).search(false, true); }
  // Layer checkpointing: one chunk, a stage a block.
  step_plan checkpointing() {
    plan_options o = without_limits();
    o.chunk = o.head_chunk = frame_.shape.samples.tokens();
    o.stage = 1;
    o.keep = o.fuse_head = false;
    return *plan_maker(*this, o).search();
  }

  big_count head_flops() {
    big_count total;
    for (position h = 0; h < model_.head_count(); ++h)
      total += flops_->head(h, false) * (couples_[h] ? 2 : 1) + flops_->head(h, true);
    return total;
  }

  // Of one axis that this model can be planned for: rows of all tokens have at most 2^60 numbers.
  position longest() const {
    return std::min(most_tokens, (position(1) << 60) / std::max(widest(), position(1)));
  }

 private:
  plan_maker(const plan_maker& other, const plan_options& options)
      : sections_(other.sections_),
        model_(other.model_),
        couples_(other.couples_),
        options_(options),
        frame_(other.frame_) {
    flops_ = std::make_unique<flop_counts<Device>>(*sections_, frame_.shape);
  }
  plan_options without_limits() const {
    plan_options o = options_;
    o.budget = uncountable;
    o.chunk = o.head_chunk = o.stage = 0;
    return o;
  }

  // Heads that share a parameter add to its gradient in turn: a grain at a time, so that the order
  // of its parts does not hang on chunks.
  void set_chunks(step_plan& p, position chunk, position head_chunk) const {
    detail::set_chunks(p, chunk, model_.heads_share ? 1 : head_chunk);
  }

  // Every choice but that of the stages.
  template <class F>
  void each_frame(bool plain_only, const F& f) const {
    const position tokens = frame_.shape.samples.tokens(),
                   head_grain = std::max(frame_.head_grains.largest(), position(1));
    const position only = plain_only && options_.chunk == 0 ? tokens : options_.chunk;
    for (const bool fuses : {false, true}) {
      if (fuses && (!options_.fuse_head || couples_.any() || plain_only)) continue;
      for (const position chunk : detail::sizes(options_.grains.grain, tokens, only))
        for (const position head_chunk :
             detail::sizes(head_grain, plain_only ? tokens : 4 * head_grain, options_.head_chunk))
          for (const position interval : intervals(chunk)) {
            step_plan frame = frame_;
            frame.choice.fuses_head = fuses;
            frame.choice.carry_interval = interval;
            set_chunks(frame, chunk, head_chunk);
            f(frame);
          }
    }
  }

  // Chunks between carries that are kept: every one, or in two levels.
  std::vector<position> intervals(position chunk) const {
    if (options_.carry_interval > 0)
      return {std::min(options_.carry_interval, frame_.shape.samples.tokens())};
    const bool carries = std::any_of(model_.sections.begin(), model_.sections.end(),
                                     [](const auto& s) { return s.split.carries; });
    const position chunks = ceil_div(frame_.shape.samples.tokens(), chunk);
    position root = 1;
    while (root * root < chunks) ++root;
    if (!carries || root < 3) return {1};
    return {1, root};
  }

  // Sections' FLOPs take longer in small chunks.
  double cost_of(const step_plan& p, big_count trunk_flops) {
    const auto slow = [](position rows, position chunks) {
      return 1 + detail::chunk_overhead * double(chunks) / double(std::max(rows, position(1)));
    };
    const position tokens = frame_.shape.samples.tokens();
    return double(trunk_flops) * slow(tokens, p.chunk_count()) +
           double(head_flops()) * slow(tokens, p.head_chunks.parts());
  }

  void check(const packed& samples, const plan_options& o) const {
    if (o.budget > unlimited)
      throw shape_error(
          sentence("plan: a budget of ", position(o.budget),
                   " bytes; it is not negative, and at most 2^63, which is unlimited"));
    if (samples.tokens() == 0) throw shape_error("plan: the packed samples hold no token");
    const position tile = o.grains.tile;
    if (tile != 8 && tile != 16 && tile != 32 && tile != largest_tile)
      throw shape_error(sentence("plan: a tile of ", tile, " rows; it is 8, 16, 32 or 64"));
    if (o.grains.grain > largest_size)
      throw shape_error(
          sentence("plan: a grain of ", o.grains.grain, " rows; at most ", largest_size));
    if (o.grains.grain < tile)
      throw shape_error(
          sentence("plan: a grain of ", o.grains.grain, " rows holds no tile of ", tile));
    if (o.threads < 1) throw shape_error(sentence("plan: ", o.threads, " threads; at least 1"));
    struct {
      const char* name;
      position size, most = largest_size;
    } sizes[] = {{"chunk", o.chunk, most_tokens},
                 {"head_chunk", o.head_chunk, most_tokens},
                 {"stage", o.stage},
                 {"carry_interval", o.carry_interval, most_tokens},
                 {"features", o.features},
                 {"context_features", o.context_features},
                 {"prefix", o.prefix}};
    for (const auto& [name, size, most] : sizes)
      if (size < 0 || size > most)
        throw shape_error(sentence("plan: ", name, " is ", size,
                                   "; it is 0, which leaves it out, or at most ", most));
    if (model_.takes_tokens() && o.features > 0)
      throw shape_error("plan: the model takes tokens; options.features is for rows");
  }
  // Of all rows that pass between operators.
  position widest() const {
    position w = model_.takes_tokens() ? 0 : options_.features;
    for (const section_instance& s : model_.sections)
      w = std::max({w, s.out, *std::max_element(s.widths.begin(), s.widths.end())});
    for (const section_instance& h : model_.heads) w = std::max(w, h.out);
    return std::max(w, model_.widest_of_heads());
  }
  void check_length(position tokens) const {
    if (!model_.takes_tokens() && options_.features == 0)
      throw shape_error("plan: the model takes rows; options.features says how wide they are");
    if (tokens > longest())
      throw shape_error(sentence("plan: ", tokens, " tokens of up to ", widest(),
                                 " features; at most ", longest(), " can be planned for"));
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
          throw shape_error(sentence("plan: ", model_.sections[std::size_t(i)].label(),
                                     ", section ", i, ", must begin a stage"));
      at = s.last;
    }
    if (at != n) throw shape_error(sentence("plan: stages end at section ", at, " of ", n));
    if (c.fuses_head && couples_.any())
      throw shape_error(
          "plan: a coupled loss needs all rows before its gradient; the head cannot be fused");
    if (c.fuses_head && c.stages.back().first <= model_.shared_with_head)
      throw shape_error("plan: the head shares a parameter with its own stage; it cannot be fused");
    const stage_plan& last = c.stages.back();
    if (c.fuses_head && (last.keeps_outputs || last.keeps_chunk))
      throw shape_error("plan: a fused head leaves the last stage no forward to keep");
    for (const stage_plan& s : c.stages)
      if (s.keeps_chunk && !s.keeps_memory && s.last != n)
        throw shape_error("plan: a stage that keeps its chunk keeps its memory");
  }

  std::shared_ptr<const section_runner<Device>> sections_;
  const section_list& model_;
  coupled_heads couples_;
  plan_options options_;
  step_plan frame_;
  std::unique_ptr<flop_counts<Device>> flops_;
};

template <class Device, class Model, class Loss>
class planner : public plan_maker<Device> {
 public:
  planner(const Model& model, const packed& samples, const plan_options& options)
      : plan_maker<Device>(std::make_shared<model_sections<Device, Model>>(model, options.features),
                           couples_of<Loss>(), samples, options) {
    expect_no_own_loops(this->sections(), this->shape());
  }
};

}  // namespace streambp
