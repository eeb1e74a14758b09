// Where everything of a step lives in the arena: one function, run on nothing to predict the bytes
// and on the block to take them.
#pragma once

#include <cstdint>
#include <vector>

#include "../primitives/row_terms.hpp"
#include "../schedule/plan.hpp"
#include "../traits/loss_traits.hpp"
#include "cell.hpp"

namespace streambp {

inline layout_shape shape_of(const step_plan& p) {
  const packed& samples = p.shape.samples;
  return {samples.tokens(),
          p.shape.prefix,
          std::max(p.largest_chunk(), p.largest_context_chunk()),
          p.carry_snapshots(),
          p.shape.threads,
          samples.segments(),
          samples.parent_count(),
          p.shape.context.tokens()};
}

// Rows of the head and of the loss for one head chunk.
template <class Scalar>
struct head_storage {
  section_cell<Scalar> cell;
  view<Scalar> result;         // its rows, which the loss turns into their gradient
  view<std::int32_t> first;    // by row, and one more: its first target
  view<std::int32_t> targets;  // by target, as all below
  view<token> tokens;
  view<double> weights;
  view<row_statistics> statistics;
  view<row_gradient> slopes;
};

template <class Device>
class storage {
 public:
  using scalar = typename Device::scalar;

  std::vector<section_cell<scalar>> cells;  // by section
  head_storage<scalar> head;
  std::vector<view<scalar>> checkpoints;  // by stage; [0] is the caller's
  view<scalar> stream;  // gradient rows of all tokens; no rows: chunk_gradient serves
  view<scalar> chunk_gradient;
  view<double> grain_values;    // of the loss, by head grain
  view<double> section_values;  // of side losses
  view<double> segment_scales;  // what a counted token of a segment weighs
  view<double> segment_sums;    // of a coupled loss
  view<double> segment_slopes;
  view<scalar> stand_ins;  // a chunk of input rows, where some are not the caller's
  view<std::byte> packing;

  explicit storage(const section_list& model) {
    head.cell = section_cell<scalar>(model.head);
    for (const section_instance& s : model.sections) cells.emplace_back(s);
  }

  byte_table place(arena& from, const section_list& model, const step_plan& p, bool couples);

  // Sections alone, for counting what they do: their chunk is all tokens.
  void place_alone(arena& from, const section_list& model, const layout_shape& shape) {
    for (position i = 0; i < position(model.count()); ++i) {
      place_states(from, model, {i, i + 1}, shape, true, true);
      place_working_of(from, model, {i, i + 1}, shape, true);
      place_chunks(from, model, {i, i + 1}, shape, true, {});
      place_kept(from, model[i], shape, cell(i));
      place_tallies(from, model[i], cell(i));
    }
    for (position i = 1; i < position(model.count()); ++i) share_boundary(model, i);
    place_head(from, model, shape.tokens, 0, shape.threads);
  }

  void place_head(arena& from, const section_list& model, position rows, position children,
                  int threads) {
    layout_shape shape;
    shape.chunk = rows;
    shape.threads = threads;
    if (model.has_head()) {
      place_chunk(from, model.head, shape, true, false, head.cell);
      place_working(from, model.head, shape, true, head.cell);
      // The loss turns the result into its gradient in place, unless backward still reads it.
      const program& steps = *model.head.steps;
      head.result = steps.lasts(steps.result) ? from.take<scalar>(rows, model.head.out)
                                              : head.cell.value[steps.result];
    } else {
      head.result = from.take<scalar>(rows, model.trunk_width());
    }
    // A row predicts the next token, and the last row of a parent the first one of each child.
    const position targets = rows + children;
    head.first = from.take<std::int32_t>(rows + 1, 1);
    head.targets = from.take<std::int32_t>(targets, 1);
    head.tokens = from.take<token>(targets, 1);
    head.weights = from.take<double>(targets, 1);
    head.statistics = from.take<row_statistics>(targets, 1);
    head.slopes = from.take<row_gradient>(targets, 1);
  }

  void place_sums(arena& from, const section_list& model, const step_plan& p, bool couples) {
    for (position i = 0; i < position(model.count()); ++i) place_tallies(from, model[i], cell(i));
    if (model.tallies()) section_values = from.take<double>(position(model.count()), 1);
    grain_values = from.take<double>(position(p.head_grains.size()), 1);
    segment_scales = from.take<double>(p.shape.samples.segments(), 1);
    if (!couples) return;
    segment_sums = from.take<double>(p.shape.samples.segments(), 1);
    segment_slopes = from.take<double>(p.shape.samples.segments(), 1);
  }

  // The loss's rows and sums in memory of the host's own, where the arena is out of its reach.
  void keep_sums_on_host() {
    const auto move = [&](auto& of) {
      using entry = std::remove_pointer_t<decltype(of.data)>;
      host_.emplace_back(std::size_t(of.rows) * std::size_t(of.cols) * sizeof(entry) / 8 + 1);
      of.data = reinterpret_cast<entry*>(host_.back().data());
    };
    move(head.first), move(head.targets), move(head.tokens), move(head.weights);
    move(head.statistics), move(head.slopes);
    move(section_values), move(grain_values);
    move(segment_scales), move(segment_sums), move(segment_slopes);
  }

  // None of a single sample, which counts or nothing does, nor under a side loss, which counts all.
  void place_stand_ins(arena& from, const section_list& model, const step_plan& p) {
    stand_ins = {};
    if (p.shape.samples.segments() == 1 || model.tallies()) return;
    const position rows = model.takes_tokens() ? 0 : p.largest_chunk() * p.shape.features,
                   context = p.largest_context_chunk() * p.shape.context_features;
    stand_ins = from.take<scalar>(1, std::max(rows, context));
  }

 private:
  std::vector<std::vector<double>> host_;

  section_cell<scalar>& cell(position i) { return cells[std::size_t(i)]; }

  // The same placement for each section of a run.
  void place_states(arena& from, const section_list& model, row_range sections,
                    const layout_shape& shape, bool values, bool gradients) {
    for (position i = sections.first; i < sections.last; ++i)
      place_state(from, model[i], shape, values, gradients, cell(i));
  }
  // A result stays in the chunk for the section after it; `last_result`: for the head, too.
  void place_chunks(arena& from, const section_list& model, row_range sections,
                    const layout_shape& shape, bool last_result, const stage_plan& keeps) {
    for (position i = sections.first; i < sections.last; ++i)
      place_chunk(from, model[i], shape, hands_on(model, i + 1, sections.last, last_result),
                  keeps.keeps_outputs && model[i].part != half::remember, cell(i));
  }
  // Whether the section before `next` hands its result to another one of the same chunk. What
  // stands before a trailing remember half writes to the checkpoint.
  static bool hands_on(const section_list& model, position next, position last, bool last_result) {
    if (next == last) return last_result;
    return !(next == last - 1 && model[next].part == half::remember);
  }
  // Sections take turns, so they share addresses.
  void place_working_of(arena& from, const section_list& model, row_range sections,
                        const layout_shape& shape, bool last_result) {
    const std::size_t mark = from.used();
    std::size_t most = mark;
    for (position i = sections.first; i < sections.last; ++i) {
      from.rewind(mark);
      place_working(from, model[i], shape, hands_on(model, i + 1, sections.last, last_result),
                    cell(i));
      most = std::max(most, from.used());
    }
    from.advance(most);
  }

  // The halves of an operator are sections next to each other.
  void share_boundary(const section_list& model, position read) {
    if (model[read].part == half::read) share_memory(model[read], cell(read - 1), cell(read));
  }
};

template <class Device>
byte_table storage<Device>::place(arena& from, const section_list& model, const step_plan& p,
                                  bool couples) {
  const position tokens = p.shape.samples.tokens();
  const layout_shape shape = shape_of(p);
  const auto& stages = p.choice.stages;
  byte_table bytes;
  std::size_t before = from.used();
  const auto since = [&] {
    const std::size_t taken = from.used() - before;
    before = from.used();
    return taken;
  };

  packing = from.take<std::byte>(1, position(Device::packing_bytes(p.shape.threads)));
  bytes.packing = since();

  checkpoints.assign(stages.size(), {});
  for (std::size_t s = 1; s < stages.size(); ++s)
    checkpoints[s] = from.take<scalar>(tokens, model[stages[s].first].in());
  bytes.checkpoints = since();

  stream = {};
  chunk_gradient = {};
  if (streams(p.choice)) stream = from.take<scalar>(tokens, model.widest());
  bytes.stream = since();

  const auto sections = [](const stage_plan& s) { return row_range{s.first, s.last}; };
  const auto own = [&](const stage_plan& s) {
    return row_range{s.first, facts_of(model, s, false, 0).own_last};
  };
  // A trailing remember half leaves its memory to the next stage: both alternate between two
  // places.
  std::size_t boundaries = from.used();
  for (position parity = 0; parity < 2; ++parity) {
    std::size_t most = boundaries;
    for (position s = position(stages.size()) - 1, number = 0; s-- > 0;) {
      const stage_plan& stage = stages[std::size_t(s)];
      if (own(stage).last == stage.last) continue;
      if (number++ % 2 != parity) continue;
      from.rewind(boundaries);
      place_states(from, model, {stage.last - 1, stage.last}, shape, true, true);
      share_boundary(model, stage.last);
      most = std::max(most, from.used());
    }
    from.advance(most);
    boundaries = most;
  }
  for (const stage_plan& stage : stages) {
    if (stage.keeps_memory) place_states(from, model, own(stage), shape, true, false);
    if (stage.keeps_outputs)
      for (position i = own(stage).first; i < own(stage).last; ++i)
        place_kept(from, model[i], shape, cell(i));
    if (stage.keeps_chunk) place_chunks(from, model, sections(stage), shape, false, stage);
  }
  bytes.kept = since();

  place_sums(from, model, p, couples);
  bytes.sums = since();

  const std::size_t region = from.used();
  place_stand_ins(from, model, p);
  const std::size_t stages_begin = from.used();
  std::size_t most = stages_begin;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const stage_plan& stage = stages[s];
    const bool fused = s + 1 == stages.size() && p.choice.fuses_head;
    from.rewind(stages_begin);
    if (!stage.keeps_memory) place_states(from, model, own(stage), shape, true, false);
    const std::size_t state = from.used();
    place_states(from, model, own(stage), shape, false, true);
    if (!streams(p.choice)) chunk_gradient = from.take<scalar>(shape.chunk, model.widest());
    if (!stage.keeps_chunk) place_chunks(from, model, sections(stage), shape, fused, stage);
    const std::size_t working = from.used();
    place_working_of(from, model, sections(stage), shape, fused);
    most = std::max(most, from.used());
    if (s + 1 == stages.size()) {
      // A fused head works between a chunk's replay and its backward, any other before the chunks.
      from.rewind(fused ? working : state);
      place_head(from, model, p.largest_head_chunk(), p.shape.samples.child_count(),
                 p.shape.threads);
      most = std::max(most, from.used());
    }
  }
  from.advance(most);
  bytes.region = most - region;
  return bytes;
}

}  // namespace streambp
