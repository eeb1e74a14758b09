// What sections hold across chunks: memories, totals, tallies, the other stream; before, during and
// after the sweeps.
#pragma once

#include "step_runner.hpp"

namespace streambp {

// What stands in a section's memories before a sweep: prefix rows, empty totals, the other stream.
template <class Device>
void step_runner<Device>::start_memory(position i) {
  for_each_slot(instance(i), cell(i), [&](const slot_info& slot, slot_cell<scalar>& own) {
    if (slot.kind == slot_kind::total && instance(i).part != half::read) zero(on_, own.value);
  });
  const row_range prefix{0, plan_.shape.prefix};
  for_each_prefix(i, [&](slot_cell<scalar>& own) {
    const loan<scalar> rows(own.store, own.value, prefix, lent_for::assigning);
    copy(on_, own.initial, rows.rows());
  });
  if (!instance(i).crosses) return;
  for (position c = 0; c < plan_.context_chunks.parts(); ++c) {
    const chunk_place at = context_place(c);
    sections_->context(on_, i, cell(i), at, context_rows(at), {});
  }
}

// Gives the gradients of prefix rows and of the other stream's rows to the caller.
template <class Device>
void step_runner<Device>::finish_memory(position i) {
  const row_range prefix{0, plan_.shape.prefix};
  if (!data_->d_initial.empty())
    for_each_prefix(i, [&](slot_cell<scalar>& own) {
      const loan<scalar> rows(own.store, own.gradient, prefix, lent_for::reading);
      add(on_, rows.rows(), own.d_initial);
    });
  if (!instance(i).crosses) return;
  for (position c = plan_.context_chunks.parts(); c-- > 0;) {
    const chunk_place at = context_place(c);
    sections_->context(on_, i, cell(i), at, context_rows(at), data_->d_context.rows_in(at.rows));
  }
}

// Calls f(slot_cell) for every memory of a section that has rows of the prefix.
template <class Device>
template <class F>
void step_runner<Device>::for_each_prefix(position i, const F& f) {
  if (plan_.shape.prefix == 0) return;
  model().for_each_initial(i, plan_.shape.prefix, 0,
                           [&](const slot_info& slot, std::size_t k, position, position) {
                             if (slot.kind == slot_kind::memory) f(cell(i).slots[k]);
                           });
}

template <class Device>
chunk_place step_runner<Device>::context_place(position chunk) {
  chunk_place at = place_of(plan_.context_chunks.part(chunk), plan_.context_grains, listed_);
  at.samples = &plan_.shape.context;
  at.prefix = 0;
  return at;
}

template <class Device>
view<const typename Device::scalar> step_runner<Device>::context_rows(const chunk_place& at) {
  return given_rows(data_->context, at, context_stand_in_);
}

// Once every token has been added to the tallies: values, and the gradients that descend injects,
// both times the step's part of its accumulation window.
template <class Device>
void step_runner<Device>::add_side_losses() {
  if (none_counts_ || !model().tallies()) return;
  chunk_place all;
  all.samples = &plan_.shape.samples;
  const double share = share_of_window(*data_);
  for (position i = 0; i < position(model().count()); ++i) {
    if (!instance(i).holds_tally) continue;
    const double value = sections_->side_losses(on_, i, cell(i), all);
    ledger_.section_values(i, 0) = share == 0 ? 0 : share * value;
    if (share == 1) continue;
    for_each_slot(instance(i), cell(i), [&](const slot_info& slot, slot_cell<scalar>& own) {
      if (slot.kind != slot_kind::tally) return;
      share == 0 ? zero(on_, own.gradient) : scale(on_, share, own.gradient);
    });
  }
}

template <class Device>
void step_runner<Device>::clear_state_gradients(position i) {
  for_each_slot(instance(i), cell(i), [&](const slot_info& slot, slot_cell<scalar>& own) {
    if (slot.boundary) return;
    switch (slot.kind) {
      case slot_kind::carry:
        zero(on_, own.d_ends);
        [[fallthrough]];
      case slot_kind::total:
        return zero(on_, own.gradient);
      case slot_kind::memory:
      case slot_kind::context:
        return for_stored_rows(own.store, own.gradient, lent_for::assigning,
                               [&](view<scalar> rows) { zero(on_, rows); });
      default:
        return;
    }
  });
}

// Of the carries that the chunk hands down: what stands there has been used by the chunk behind it.
template <class Device>
void step_runner<Device>::clear_handed_gradients(position i, position chunk) {
  for_each_slot(instance(i), cell(i), [&](const slot_info& slot, slot_cell<scalar>& own) {
    if (slot.kind == slot_kind::carry) zero(on_, own.gradient.middle_rows(chunk % 2, 1));
  });
}

template <class Device>
void step_runner<Device>::clear_tallies() {
  for (position i = 0; i < position(model().count()); ++i)
    for_each_slot(instance(i), cell(i), [&](const slot_info& slot, slot_cell<scalar>& own) {
      if (slot.kind != slot_kind::tally) return;
      zero(on_, own.value);
      zero(on_, own.gradient);
    });
}

}  // namespace streambp
