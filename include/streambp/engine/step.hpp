// A step's beginning and end: parameters and states put in their places, sums at 0.
#pragma once

#include "../core/warning.hpp"
#include "step_runner.hpp"

namespace streambp {

template <class Device>
void step_runner<Device>::open(const parameter_list& parameters, const batch_type& data,
                               const gradient_list& gradient, bool labels, byte_range result) {
  data_ = &data;
  facts_ = loss_->facts();
  check(parameters, gradient, labels, result);
  find_what_counts(labels);
  check_finite(!gradient.empty());
  bind(parameters, gradient);
  bind_initial();
  for (position g = 0; g < storage_.grain_values.rows; ++g) storage_.grain_values(g, 0) = 0;
  for (position i = 0; i < storage_.section_values.rows; ++i) storage_.section_values(i, 0) = 0;
  clear_tallies();
  if (!facts_.sees_rows) {
    if (labels && !warned_ && labels_look_shifted(facts_, samples(), data)) {
      warned_ = true;
      warn(
          "labels[t] is tokens[t + 1] nearly everywhere: these labels are shifted, and the model "
          "learns to predict the token after the next. Labels are the tokens themselves, not "
          "shifted: labels[t] belongs to tokens[t]");
    }
    for (position s = 0; s < storage_.segment_sums.rows; ++s) {
      storage_.segment_sums(s, 0) = 0;
      storage_.segment_slopes(s, 0) = 0;
    }
  }
}

template <class Device>
double step_runner<Device>::close() {
  double value = 0;  // grain by grain, last first, whatever order they were visited in
  for (position g = storage_.grain_values.rows; g-- > 0;) value += storage_.grain_values(g, 0);
  for (position i = storage_.section_values.rows; i-- > 0;) value += storage_.section_values(i, 0);
  return value;
}

// Points every parameter slot at the caller's rows.
template <class Device>
void step_runner<Device>::bind(const parameter_list& parameters, const gradient_list& gradient) {
  const auto bind_slot = [&](const slot_info& slot, slot_cell<scalar>& own) {
    if (slot.parameter < 0) return;
    const auto number = std::size_t(slot.parameter);
    const auto& entry = model().table.entries[number];
    own.given = parameters.at(number, entry.offset, entry);
    own.gradient = {};
    if (entry.gradient >= 0 && !gradient.empty())
      own.gradient = gradient.at(number, entry.gradient, entry);
  };
  for (position i = 0; i < position(model().count()); ++i)
    for_each_slot(instance(i), cell(i), bind_slot);
  for_each_slot(model().head, storage_.head.cell, bind_slot);
}

template <class Device>
void step_runner<Device>::bind_initial() {
  position offset = 0;
  for (position i = 0; i < position(model().count()); ++i)
    offset = model().for_each_initial(
        i, plan_.shape.prefix, offset,
        [&](const slot_info& slot, std::size_t k, position at, position size) {
          slot_cell<scalar>& own = cell(i).slots[k];
          const position rows = slot.kind == slot_kind::carry ? 1 : plan_.shape.prefix,
                         cols = rows == 0 ? 0 : size / rows;
          own.initial = {};
          own.d_initial = {};
          if (!data_->initial.empty()) own.initial = {data_->initial.data() + at, rows, cols};
          if (!data_->d_initial.empty()) own.d_initial = {data_->d_initial.data() + at, rows, cols};
        });
}

}  // namespace streambp
