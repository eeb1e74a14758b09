// The sweeps of a step over the chunks of a stage.
#pragma once

#include <algorithm>

#include "engine.hpp"

namespace streambp {

template <class Device, class Model, class Loss>
void basic_engine<Device, Model, Loss>::run(const sweep& s) {
  switch (s.kind) {
    case sweep_kind::forward:
    case sweep_kind::forward_state:
    case sweep_kind::rebuild:
      return ascend(s);
    case sweep_kind::remember:
      return remember(s.stage);
    case sweep_kind::tally:
      return add_side_losses();
    case sweep_kind::refill:
      return;  // descend asks for it when it needs it
    case sweep_kind::summarise:
      visit_heads(head_visit::summarise);
      return couple(true);
    case sweep_kind::head:
      visit_heads(head_visit::gradient);
      return announce(model_.head);
    case sweep_kind::descend:
      return descend(s.stage);
  }
}

template <class Device, class Model, class Loss>
chunk_place basic_engine<Device, Model, Loss>::place_of(row_range rows,
                                                        const std::vector<position>& grains) const {
  const auto first = std::lower_bound(grains.begin(), grains.end(), rows.first);
  const auto last = std::lower_bound(first, grains.end(), rows.last);
  chunk_place at;
  at.rows = rows;
  at.samples = &plan_.shape.samples;
  at.prefix = plan_.shape.prefix;
  at.tile = plan_.shape.grains.tile;
  at.context = &plan_.shape.context;
  at.snapshot = plan_.carry_snapshots();
  at.grains = {grains.data() + (first - grains.begin()), std::size_t(last - first) + 1};
  at.sample_ids = data_->sample_ids;
  at.seed = data_->seed;
  at.step = data_->step;
  return at;
}

template <class Device, class Model, class Loss>
chunk_place basic_engine<Device, Model, Loss>::place_of(position index) const {
  const auto i = std::size_t(index);
  chunk_place at = place_of({plan_.chunks[i], plan_.chunks[i + 1]}, plan_.grains);
  at.index = index;
  return at;
}

template <class Device, class Model, class Loss>
section_input<typename Device::scalar> basic_engine<Device, Model, Loss>::input_of_stage(
    position s, const chunk_place& at) {
  if (s == 0) {
    if constexpr (list::takes_tokens()) {
      return {data_->tokens.subspan(std::size_t(at.rows.first), std::size_t(at.rows.rows())), {}};
    } else {
      const view<const scalar> x = data_->rows.rows_in(at.rows);
      return {{}, {const_cast<scalar*>(x.data), x.rows, x.cols, x.stride}};
    }
  }
  return {{}, storage_.checkpoints[std::size_t(s)].rows_in(at.rows)};
}

// The input rows of a section: of its stage's checkpoint, or what the section before it left.
template <class Device, class Model, class Loss>
section_input<typename Device::scalar> basic_engine<Device, Model, Loss>::input_of(
    position section, const chunk_place& at) {
  for (position s = 0; s < stage_count(); ++s) {
    if (stage(s).first == section) return input_of_stage(s, at);
    // A remember half reads the rows that its read half, in the next stage, starts from.
    if (stage(s).last == section + 1 && instance(section).part == half::remember)
      return input_of_stage(s + 1, at);
  }
  return {{}, result_of(section - 1, at)};
}

template <class Device, class Model, class Loss>
view<typename Device::scalar> basic_engine<Device, Model, Loss>::result_of(position section,
                                                                           const chunk_place& at) {
  view<scalar> rows;
  storage_.with(model_, section, [&](const auto& s, const auto& cell) {
    rows = cell.value[std::decay_t<decltype(s)>::steps.result].middle_rows(0, at.rows.rows());
  });
  return rows;
}

// Forward, or again for the memories and carries that were given up.
template <class Device, class Model, class Loss>
void basic_engine<Device, Model, Loss>::ascend(const sweep& s) {
  const stage_plan& own = stage(s.stage);
  // A last chunk that is replayed with remember needs no rebuild.
  const position end = plan_.chunk_count() - (s.kind == sweep_kind::rebuild);
  for (position i = own.first; i < (s.kind == sweep_kind::rebuild ? own_last(own) : own.last); ++i)
    start_memory(i);
  ascend(s, 0, end);
}

template <class Device, class Model, class Loss>
void basic_engine<Device, Model, Loss>::ascend(const sweep& s, position first_chunk,
                                               position last_chunk) {
  const stage_plan& own = stage(s.stage);
  const bool forward = s.kind == sweep_kind::forward;
  const bool again = s.kind == sweep_kind::rebuild || s.kind == sweep_kind::refill;
  const position last = own_last(own), chunks = plan_.chunk_count();
  position last_state = own.first;  // behind the last section that holds a state
  for (position i = own.first; i < last; ++i)
    if (instance(i).holds_state || (instance(i).holds_tally && !again)) last_state = i + 1;

  for (position c = first_chunk; c < last_chunk; ++c) {
    const chunk_place at = place_of(c);
    if (trace_) trace_->push_back({s, at.rows});
    view<scalar> to = s.stage + 1 < stage_count() ? storage_.checkpoints[std::size_t(s.stage) + 1]
                                                  : storage_.stream;
    if (to.rows > 0) to = to.middle_cols(0, instance(own.last - 1).out).rows_in(at.rows);
    const bool saves = forward && own.keeps_chunk && c + 1 == chunks;
    for (position i = own.first; i < (forward ? last : last_state); ++i)
      storage_.with(model_, i, [&](const auto& section, auto& cell) {
        constexpr program p = std::decay_t<decltype(section)>::steps;
        const bool ends = i + 1 == last;
        // Again, the result is nobody's: where it would go, gradients may stand by now.
        const bool direct = forward && ends && to.rows > 0 && !p.lasts(p.result);
        const visit why{.remembers = s.kind != sweep_kind::refill,
                        .state_only = !forward && i + 1 == last_state,
                        .saves = saves,
                        .keeps_outputs = own.keeps_outputs,
                        .restored = again && own.keeps_outputs,
                        .first = !again};
        const view<scalar> out = direct ? to : result_of(i, at);
        run_forward(on_, section, cell, at, number_of(i), input_of(i, at), out, why);
        if (forward && ends && !direct && to.rows > 0) copy(on_, out, to);
      });
    if (forward && last < own.last) {
      if (last == own.first) copy(on_, input_of_stage(s.stage, at).rows, to);
      storage_.with(model_, last, [&](const auto& section, auto& cell) {
        run_forward(on_, section, cell, at, number_of(last), input_of(last, at), {},
                    visit{.first = true});
      });
    }
  }
}

// The memory of the read half that begins the stage, again from the stage's checkpoint.
template <class Device, class Model, class Loss>
void basic_engine<Device, Model, Loss>::remember(position s) {
  const position section = stage(s).first - 1;
  start_memory(section);
  for (position c = 0; c < plan_.chunk_count(); ++c) {
    const chunk_place at = place_of(c);
    if (trace_) trace_->push_back({{sweep_kind::remember, s}, at.rows});
    storage_.with(model_, section, [&](const auto& part, auto& cell) {
      run_forward(on_, part, cell, at, number_of(section), input_of(section, at), {}, visit{});
    });
  }
}

// Last chunk first: a row's gradient is final once every later reader is done.
template <class Device, class Model, class Loss>
void basic_engine<Device, Model, Loss>::descend(position s) {
  const stage_plan& own = stage(s);
  const position last = own_last(own), chunks = plan_.chunk_count();
  const position lowest = std::max(own.first, wants_input_gradient() ? 0 : model_.lowest_trained());
  const bool final_stage = s + 1 == stage_count();
  const bool fused = final_stage && plan_.choice.fuses_head;
  const bool rebuilt = !final_stage && !own.keeps_memory;

  // No rebuild sweep brought the other stream's memory back.
  if (rebuilt && !plan_.rebuilds(s))
    for (position i = own.first; i < last; ++i) start_memory(i);
  for (position i = own.first; i < last; ++i) clear_state_gradients(i);
  if (instance(own.first).part == half::read) clear_state_gradients(own.first - 1);
  auto head_edge = plan_.head_chunks.size() - 1;

  for (position c = chunks; c-- > 0;) {
    const chunk_place at = place_of(c);
    if (trace_) trace_->push_back({{sweep_kind::descend, s}, at.rows});
    const bool last_chunk = c + 1 == chunks;
    const snapshots kept = plan_.carry_snapshots();
    if (kept.two_levels() && !last_chunk && kept.begins_interval(c + 1) && carries(own))
      ascend({sweep_kind::refill, s}, c / kept.interval * kept.interval, c);
    visit why{.remembers = rebuilt && last_chunk,
              .saves = true,
              .keeps_outputs = own.keeps_outputs,
              .restored = own.keeps_outputs};
    if (!(own.keeps_chunk && last_chunk))
      for (position i = own.first; i < own.last; ++i)
        storage_.with(model_, i, [&](const auto& section, auto& cell) {
          why.result = i + 1 < last || (i + 1 == last && fused);
          if (i >= last) why.remembers = false;
          run_forward(on_, section, cell, at, number_of(i), input_of(i, at), result_of(i, at), why);
        });
    const view<scalar> rows = storage_.stream.rows > 0
                                  ? storage_.stream.rows_in(at.rows)
                                  : storage_.chunk_gradient.middle_rows(0, at.rows.rows());
    if (fused)
      for (; head_edge > 0 && plan_.head_chunks[head_edge - 1] >= at.rows.first; --head_edge) {
        const row_range h{plan_.head_chunks[head_edge - 1], plan_.head_chunks[head_edge]};
        const position local = h.first - at.rows.first, width = model_.trunk_width();
        visit_head(h, result_of(last - 1, at).middle_rows(local, h.rows()),
                   rows.middle_cols(0, width).middle_rows(local, h.rows()), head_visit::gradient);
      }
    for (position i = own.last; i-- > lowest;) {
      clear_handed_gradients(i, c);
      storage_.with(model_, i, [&](const auto& section, auto& cell) {
        using type = std::decay_t<decltype(section)>;
        constexpr bool tokens = type::steps.operators[0].takes_tokens;
        const section_input<scalar> in = input_of(i, at);
        const view<scalar> dy = rows.middle_cols(0, instance(i).out);
        const view<scalar> out =
            type::steps.lasts(type::steps.result) ? result_of(i, at) : view<scalar>{};
        const view<scalar> dx =
            run_backward(on_, section, cell, at, number_of(i), in, out, dy, why);
        if constexpr (!tokens) {
          if (dx.data != dy.data) copy(on_, dx, rows.middle_cols(0, instance(i).in()));
          if (i == 0 && data_->d_rows.rows > 0)
            add(on_, rows.middle_cols(0, instance(0).in()), data_->d_rows.rows_in(at.rows));
        }
      });
    }
  }
  for (position i = own.last; i-- > own.first;) finish_memory(i);
  if (!hook_) return;
  if (fused) announce(model_.head);
  // What both halves of an operator use is final when the first one is done, if it is run at all.
  const position end = wants_input_gradient() ? 0 : model_.lowest_trained();
  for (position i = own.last; i-- > lowest;)
    if (instance(i).part != half::read || i == end) announce(instance(i));
}

// Hands out the trunk's rows chunk by chunk, or head chunk by head chunk once they are all there.
template <class Device, class Model, class Loss>
template <class F>
void basic_engine<Device, Model, Loss>::forward_only(F&& consume) {
  for (position s = 0; s + 1 < stage_count(); ++s) ascend({sweep_kind::forward, s});
  const position last = position(model_.count()) - 1, width = model_.trunk_width();
  if (storage_.stream.rows > 0) {
    ascend({sweep_kind::forward, stage_count() - 1});
    for (std::size_t c = 0; c + 1 < plan_.head_chunks.size(); ++c) {
      const row_range rows{plan_.head_chunks[c], plan_.head_chunks[c + 1]};
      consume(rows, storage_.stream.middle_cols(0, width).rows_in(rows));
    }
    return;
  }
  const stage_plan& own = stage(stage_count() - 1);
  for (position i = own.first; i < own.last; ++i) start_memory(i);
  std::size_t edge = 0;
  for (position c = 0; c < plan_.chunk_count(); ++c) {
    const chunk_place at = place_of(c);
    for (position i = own.first; i < own.last; ++i)
      storage_.with(model_, i, [&](const auto& section, auto& cell) {
        run_forward(on_, section, cell, at, number_of(i), input_of(i, at), result_of(i, at),
                    visit{.keeps_outputs = own.keeps_outputs, .first = true});
      });
    for (; edge + 1 < plan_.head_chunks.size() && plan_.head_chunks[edge + 1] <= at.rows.last;
         ++edge) {
      const row_range rows{plan_.head_chunks[edge], plan_.head_chunks[edge + 1]};
      consume(rows, result_of(last, at).middle_rows(rows.first - at.rows.first, rows.rows()));
    }
  }
}

template <class Device, class Model, class Loss>
void basic_engine<Device, Model, Loss>::announce(const section_instance& instance) {
  if (!hook_) return;
  for (const int entry : instance.owned) {
    const auto& p = model_.table.entries[std::size_t(entry)];
    if (p.gradient >= 0) hook_(p.gradient, p.size());
  }
}

}  // namespace streambp
