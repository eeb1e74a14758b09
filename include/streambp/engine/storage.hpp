// Where everything of a step lives in the arena: one function, run on nothing to predict the bytes
// and on the block to take them.
#pragma once

#include <cstdint>
#include <vector>

#include "../schedule/lifetime.hpp"
#include "../schedule/plan.hpp"
#include "cell.hpp"
#include "ledger.hpp"

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
          p.shape.context.tokens(),
          p.largest_head_chunk(),
          p.choice.fuses_head};
}

// Rows of a head for one head chunk.
template <class Scalar>
struct head_storage {
  section_cell<Scalar> cell;
  view<Scalar> result;  // its rows, which the loss turns into their gradient
};

template <class Device>
class storage {
 public:
  using scalar = typename Device::scalar;

  std::vector<section_cell<scalar>> cells;  // by section
  std::vector<head_storage<scalar>> heads;
  view<scalar> trunk_gradient;  // of a head chunk, where the trunk's rows stand in its place and
                                // another head still reads them
  std::vector<view<scalar>> checkpoints;  // by section: of a stage that begins there
  view<scalar> stream;  // gradient rows of all tokens; no rows: chunk_gradient serves
  view<scalar> chunk_gradient;
  view<scalar> stand_ins;  // a chunk of input rows, where some are not the caller's
  view<std::byte> packing;

  explicit storage(const section_list& model) {
    for (const section_instance& h : model.heads)
      heads.emplace_back().cell = section_cell<scalar>(h);
    for (const section_instance& s : model.sections) cells.emplace_back(s);
  }

  // Everything that lives as long as the step, by kind; then the region that stages share. Sums are
  // those that are not in the ledger.
  byte_table place(arena& from, const section_list& model, const step_plan& p);

  // One thing that lives for a while.
  void place(arena& from, const section_list& model, const layout_shape& shape, const lifetime& l) {
    const section_instance& own = model[l.section];
    switch (l.what) {
      case occupant::checkpoint:
        checkpoints[std::size_t(l.section)] = from.take<scalar>(shape.tokens, own.in());
        return;
      case occupant::state:
        return place_state(from, own, shape, true, false, cell(l.section));
      case occupant::state_gradients:
        return place_state(from, own, shape, false, true, cell(l.section));
      case occupant::kept_outputs:
        return place_kept(from, own, shape, cell(l.section));
      case occupant::chunk:
        return place_chunk(from, own, shape, l.result, l.keepable, cell(l.section));
      case occupant::chunk_gradient:
        chunk_gradient = from.take<scalar>(shape.chunk, model.widest());
        return;
      case occupant::working:
        return place_working(from, own, shape, l.result, cell(l.section));
      case occupant::head:
        return place_heads(from, model, shape);
    }
  }

  // Sections alone, for counting what they do: their chunk is all tokens.
  void place_alone(arena& from, const section_list& model, const layout_shape& shape) {
    for (position i = 0; i < position(model.count()); ++i) {
      for (const occupant what : {occupant::state, occupant::state_gradients, occupant::working,
                                  occupant::chunk, occupant::kept_outputs})
        place(from, model, shape, {.what = what, .section = i, .result = true});
    }
    place_tallies(from, model);
    for (position i = 1; i < position(model.count()); ++i) share_boundary(model, i);
    place_heads(from, model, shape);
  }

  void place_packing(arena& from, const section_list& model, int threads) {
    packing = from.take<std::byte>(
        1, position(Device::packing_bytes(threads, model.table.longest_side())));
  }
  void place_stream(arena& from, const section_list& model, const layout_shape& shape) {
    stream = from.take<scalar>(shape.tokens, model.widest());
  }

  // What the reads that see all look at, with gradients: it outlives the stage that writes it.
  void place_boundaries(arena& from, const section_list& model, const layout_shape& shape) {
    for (const position number : {0, 1}) {
      const std::size_t mark = from.used();
      std::size_t most = mark;
      for (position i = 1; i < position(model.count()); ++i) {
        if (model[i].part != half::read || boundary_of(model, i).place() != number) continue;
        from.rewind(mark);
        place_state(from, model[i - 1], shape, true, true, cell(i - 1));
        share_boundary(model, i);
        most = std::max(most, from.used());
      }
      from.advance(most);
    }
  }

  // Heads run one after the other: they share addresses.
  void place_heads(arena& from, const section_list& model, const layout_shape& shape) {
    trunk_gradient = {};
    if (model.head_count() > 1 && !shape.fuses_head)
      trunk_gradient = from.take<scalar>(shape.head_chunk, model.trunk_width());
    const std::size_t mark = from.used();
    std::size_t most = mark;
    for (position h = 0; h < model.head_count(); ++h) {
      from.rewind(mark);
      place_head(from, model, h, shape);
      most = std::max(most, from.used());
    }
    from.advance(most);
  }

  void place_head(arena& from, const section_list& model, position h, const layout_shape& step) {
    const section_instance& own = model.heads[std::size_t(h)];
    head_storage<scalar>& head = heads[std::size_t(h)];
    const position rows = step.head_chunk;
    layout_shape shape;
    shape.chunk = rows;
    shape.threads = step.threads;
    if (!own.empty()) {
      place_chunk(from, own, shape, true, false, head.cell);
      place_working(from, own, shape, true, head.cell);
      // The loss turns the result into its gradient in place, unless backward still reads it.
      const program& steps = *own.steps;
      head.result = steps.lasts(steps.result) ? from.take<scalar>(rows, own.out)
                                              : head.cell.value[steps.result];
    } else {
      head.result = from.take<scalar>(rows, model.trunk_width());
    }
  }

  // Sums of layers that add a side loss, by primitives: the one kind that the host does not keep.
  void place_tallies(arena& from, const section_list& model) {
    for (position i = 0; i < position(model.count()); ++i)
      streambp::place_tallies(from, model[i], cell(i));
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
  section_cell<scalar>& cell(position i) { return cells[std::size_t(i)]; }

  // The halves of an operator are sections next to each other.
  void share_boundary(const section_list& model, position read) {
    if (model[read].part == half::read) share_memory(model[read], cell(read - 1), cell(read));
  }
};

template <class Device>
byte_table storage<Device>::place(arena& from, const section_list& model, const step_plan& p) {
  const layout_shape shape = shape_of(p);
  std::size_t before = from.used();
  const auto since = [&] {
    const std::size_t taken = from.used() - before;
    before = from.used();
    return taken;
  };
  const auto stages = facts_of(model, p.choice.stages, p.choice.fuses_head, 0);
  // Of every stage, in order.
  const auto each = [&](const auto& f) {
    for (const stage_facts& s : stages) for_each_lifetime(s, f);
  };
  const auto place_lasting = [&](bool of_checkpoints) {
    each([&](const lifetime& l) {
      if (l.lives == tenure::step && (l.what == occupant::checkpoint) == of_checkpoints)
        place(from, model, shape, l);
    });
  };

  byte_table bytes;
  place_packing(from, model, shape.threads);
  bytes.packing = since();

  checkpoints.assign(model.count(), {});
  place_lasting(true);
  bytes.checkpoints = since();

  stream = {};
  if (stages.back().streams()) place_stream(from, model, shape);
  bytes.stream = since();

  place_boundaries(from, model, shape);
  place_lasting(false);
  bytes.kept = since();

  place_tallies(from, model);
  bytes.sums = since();

  place_stand_ins(from, model, p);
  chunk_gradient = {};
  const std::size_t region = from.used();
  std::size_t most = region;
  for (const stage_facts& s : stages) {
    from.rewind(region);
    for_each_lifetime(s, [&](const lifetime& l) {
      if (l.lives == tenure::step) return;
      const std::size_t mark = from.used();
      place(from, model, shape, l);
      most = std::max(most, from.used());
      if (l.lives == tenure::turn) from.rewind(mark);
    });
  }
  from.advance(most);
  bytes.region = since();
  return bytes;
}

// The bytes of a plan, of the device's memory and of the host's.
template <class Device>
byte_table planned_bytes(const section_list& model, const step_plan& p, coupled_heads couples) {
  arena device, host;
  byte_table bytes = storage<Device>(model).place(device, model, p);
  ledger().place(host, model, p, couples);
  bytes.sums = sum_of_bytes(bytes.sums, host.used());
  return bytes;
}

}  // namespace streambp
