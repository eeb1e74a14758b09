// The sweeps of a step over the chunks of a stage.
#pragma once

#include <algorithm>

#include "step_runner.hpp"

namespace streambp {

template <class Device>
void step_runner<Device>::run(const sweep& s) {
  switch (s.kind) {
    case sweep_kind::tally:
      return add_side_losses();
    case sweep_kind::summarise:
      sweep_heads(s);
      return couple(true);
    case sweep_kind::head:
      sweep_heads(s);
      return announce_heads();
    case sweep_kind::value:
      return sweep_heads(s);
    default:
      return run_over_chunks(s);
  }
}

// The forward pass and what is read off the head.
template <class Device>
void step_runner<Device>::read(head_visit what) {
  reading_ = what;
  for (const sweep& s : reading_sweeps_) run(s);
  if (couples().any() && what == head_visit::value)
    sweep_heads({sweep_kind::summarise, stage_count() - 1});
}

// The grains of the rows are listed in `listed`, which lives as long as the place.
template <class Device>
chunk_place step_runner<Device>::place_of(row_range rows, const edges& grains,
                                          std::vector<position>& listed) const {
  const position first = grains.lower_bound(rows.first), last = grains.lower_bound(rows.last);
  for (position i = first; i <= last; ++i) listed[std::size_t(i - first)] = grains[i];
  chunk_place at;
  at.rows = rows;
  at.samples = &plan_.shape.samples;
  at.prefix = plan_.shape.prefix;
  at.tile = plan_.shape.grains.tile;
  at.context = &plan_.shape.context;
  at.snapshot = plan_.carry_snapshots();
  at.grains = {listed.data(), std::size_t(last - first) + 1};
  at.sample_ids = data_->sample_ids;
  at.seed = data_->seed;
  at.step = data_->step;
  return at;
}

template <class Device>
chunk_place step_runner<Device>::place_of(position index) {
  chunk_place at = place_of(plan_.chunks.part(index), plan_.grains, listed_);
  at.index = index;
  return at;
}

template <class Device>
section_input<typename Device::scalar> step_runner<Device>::input_of_stage(position s,
                                                                           const chunk_place& at) {
  if (s == 0) {
    if (model().takes_tokens()) {
      return {data_->tokens.subspan(std::size_t(at.rows.first), std::size_t(at.rows.rows())), {}};
    } else {
      return {{}, given_rows(data_->rows, at, stand_in_)};
    }
  }
  return {{}, storage_.checkpoints[std::size_t(stage(s).plan.first)].rows_in(at.rows)};
}

// The input rows of a section: of its stage's checkpoint, or what the section before it left.
template <class Device>
section_input<typename Device::scalar> step_runner<Device>::input_of(position section,
                                                                     const chunk_place& at) {
  for (position s = 0; s < stage_count(); ++s) {
    const stage_plan& own = stage(s).plan;
    if (own.first == section) return input_of_stage(s, at);
    // A remember half reads the rows that its read half, in the next stage, starts from.
    if (own.last == section + 1 && instance(section).part == half::remember)
      return input_of_stage(s + 1, at);
  }
  return {{}, result_of(section - 1, at)};
}

template <class Device>
view<typename Device::scalar> step_runner<Device>::result_of(position section,
                                                             const chunk_place& at) {
  return cell(section).value[instance(section).steps->result].middle_rows(0, at.rows.rows());
}

template <class Device>
void step_runner<Device>::run_over_chunks(const sweep& s) {
  const snapshots states = plan_.carry_snapshots();
  const auto at_moment = [&](moment when, const auto& f) {
    for_each_pass(s.kind, stage(s.stage), states, [&](const pass& p) {
      if (moment_of(p.why) == when) f(p);
    });
  };
  if (none_counts_) {
    at_moment(moment::after, [&](const pass& p) {
      if (p.why == purpose::announce) run_once(s, p);
    });
    return;
  }
  const row_range chunks = chunks_of(s.kind, states.chunks);

  at_moment(moment::before, [&](const pass& p) { run_once(s, p); });
  for (position i = chunks.first; i < chunks.last; ++i) {
    // Last chunk first: a row's gradient is final once every later reader is done.
    const position c = descends(s.kind) ? chunks.last - 1 - i : i;
    if (trace_) trace_->push_back({s, plan_.chunks.part(c)});
    at_moment(moment::at_chunk, [&](const pass& p) {
      if (p.comes_at(c)) run_at(s, p, c);
    });
  }
  at_moment(moment::after, [&](const pass& p) { run_once(s, p); });
}

// Before a sweep's first chunk, or after its last.
template <class Device>
void step_runner<Device>::run_once(const sweep& s, const pass& p) {
  if (p.why == purpose::announce && stage(s.stage).fuses_head) announce_heads();
  for (position i = p.last; i-- > p.first;) switch (p.why) {
      case purpose::open:
        start_memory(i);
        break;
      case purpose::clear:
        clear_state_gradients(i);
        break;
      case purpose::close:
        finish_memory(i);
        break;
      default:
        // What both halves of an operator use is final when the first one is done, if it is run.
        if (instance(i).part != half::read || i == lowest_) announce(instance(i));
    }
}

template <class Device>
void step_runner<Device>::run_at(const sweep& s, const pass& p, position chunk) {
  if (p.why == purpose::refill) {
    const row_range chunks = p.run_at(chunk);
    for (position c = chunks.first; c < chunks.last; ++c) {
      const chunk_place at = place_of(c);
      if (trace_) trace_->push_back({{sweep_kind::refill, s.stage}, at.rows});
      run_sections_forward(s, p, at);
    }
    return;
  }
  const chunk_place at = place_of(chunk);
  if (runs_forward(p.why))
    run_sections_forward(s, p, at);
  else if (p.why == purpose::backward)
    run_sections_backward(s, p, at);
  else
    run_heads_of(s, at, p.why == purpose::head);
}

template <class Device>
void step_runner<Device>::run_sections_forward(const sweep& s, const pass& p,
                                               const chunk_place& at) {
  const stage_facts& own = stage(s.stage);
  // Only a first forward hands rows on; when they are computed again, gradients may stand there.
  const bool hands_on = p.why == purpose::forward || p.why == purpose::forward_kept;
  view<scalar> to;
  if (hands_on) to = own.ends ? storage_.stream : storage_.checkpoints[std::size_t(own.plan.last)];
  if (to.rows > 0) to = to.middle_cols(0, instance(own.plan.last - 1).out).rows_in(at.rows);
  // A remember half alone starts from its stage's input, and so does what comes after it.
  if (to.rows > 0 && own.own_last == p.first) copy(on_, input_of_stage(s.stage, at).rows, to);

  for (position i = p.first; i < p.last; ++i) {
    const program& steps = *instance(i).steps;
    const bool leaves = i + 1 == own.own_last && to.rows > 0,
               direct = leaves && !steps.lasts(steps.result);
    const view<scalar> out = direct ? to : result_of(i, at);
    sections_->forward(on_, i, cell(i), at, input_of(i, at), out, p.at(i, own));
    if (hands_on && steps.part != half::remember) look_at(out, at.rows, i);
    if (leaves && !direct) copy(on_, out, to);
  }
}

// The gradient of the sections' results, in place turned into that of their inputs.
template <class Device>
void step_runner<Device>::run_sections_backward(const sweep& s, const pass& p,
                                                const chunk_place& at) {
  const view<scalar> rows = gradient_rows(at.rows);
  for (position i = p.last; i-- > p.first;) {
    clear_handed_gradients(i, at.index);
    const program& steps = *instance(i).steps;
    const view<scalar> dy = rows.middle_cols(0, instance(i).out);
    const view<scalar> out = steps.lasts(steps.result) ? result_of(i, at) : view<scalar>{};
    const view<scalar> dx =
        sections_->backward(on_, i, cell(i), at, input_of(i, at), out, dy, p.at(i, stage(s.stage)));
    if (steps.operators[0].takes_tokens) continue;
    if (dx.data != dy.data) copy(on_, dx, rows.middle_cols(0, instance(i).in()));
    if (i == 0 && data_->d_rows.rows > 0)
      add(on_, rows.middle_cols(0, instance(0).in()), data_->d_rows.rows_in(at.rows));
  }
}

// The head chunks inside a chunk: last one first for their gradient, first one first to read.
template <class Device>
void step_runner<Device>::run_heads_of(const sweep& s, const chunk_place& at, bool gradient) {
  const auto& edges = plan_.head_chunks;
  const view<scalar> results = result_of(stage(s.stage).own_last - 1, at),
                     d = gradient ? gradient_rows(at.rows) : view<scalar>{};
  const position begin = edges.lower_bound(at.rows.first), end = edges.lower_bound(at.rows.last);
  for (position i = begin; i < end; ++i) {
    const row_range rows = edges.part(gradient ? begin + end - 1 - i : i);
    const position local = rows.first - at.rows.first;
    visit_heads(rows, results.middle_rows(local, rows.rows()),
                gradient ? d.middle_cols(0, model().trunk_width()).middle_rows(local, rows.rows())
                         : view<scalar>{},
                gradient ? head_visit::gradient : reading_);
  }
}

// Where the gradient of a chunk's rows stands.
template <class Device>
view<typename Device::scalar> step_runner<Device>::gradient_rows(row_range rows) const {
  return storage_.stream.rows > 0 ? storage_.stream.rows_in(rows)
                                  : storage_.chunk_gradient.middle_rows(0, rows.rows());
}

// What several heads use is final when all of them are done.
template <class Device>
void step_runner<Device>::announce_heads() {
  for (position h = head_count(); h-- > 0;) announce(model().heads[std::size_t(h)]);
}

template <class Device>
void step_runner<Device>::announce(const section_instance& instance) {
  if (!hook_) return;
  for (const int entry : instance.owned) {
    const auto& p = model().table.entries[std::size_t(entry)];
    if (p.gradient >= 0) hook_(p.gradient, p.size());
  }
}

}  // namespace streambp
