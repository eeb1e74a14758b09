// A step's beginning and end: parameters and states put in their places, sums at 0.
#pragma once

#include "../core/warning.hpp"
#include "step_runner.hpp"

namespace streambp {

template <class Device>
void step_runner<Device>::open(const parameter_list& parameters, const batch_type& data,
                               const gradient_list& gradient, bool labels, byte_range result,
                               row_range heads) {
  data_ = &data;
  reading_heads_ = heads.rows() > 0 ? heads : row_range{0, head_count()};
  open_heads();
  check(parameters, gradient, labels, result);
  find_what_counts(labels);
  check_finite(!gradient.empty());
  bind(parameters, gradient);
  bind_initial();
  for (position h = 0; h < head_count(); ++h) {
    head_ledger& head = sums(h);
    for (position g = 0; g < head.grain_values.rows; ++g) head.grain_values(g, 0) = 0;
    for (position s = 0; s < head.segment_sums.rows; ++s)
      head.segment_sums(s, 0) = head.segment_slopes(s, 0) = 0;
  }
  for (position i = 0; i < ledger_.section_values.rows; ++i) ledger_.section_values(i, 0) = 0;
  clear_tallies();
  // A second head may mean to predict the token after the next.
  const output_head& first = heads_.front();
  if (labels && !warned_ && reading_heads_.first == 0 && !first.facts.sees_rows &&
      labels_look_shifted(first.facts, samples(), first.data)) {
    warned_ = true;
    warn(
        "labels[t] is tokens[t + 1] nearly everywhere: these labels are shifted, and the model "
        "learns to predict the token after the next. Labels are the tokens themselves, not "
        "shifted: labels[t] belongs to tokens[t]");
  }
}

// What each head is trained on. Throws shape_error where the batch has other heads.
template <class Device>
void step_runner<Device>::open_heads() {
  if (!data_->heads.empty()) expect_size("batch: heads", data_->heads.size(), head_count());
  for (position h = 0; h < head_count(); ++h) {
    output_head& own = heads_[std::size_t(h)];
    own.facts = own.loss->facts();
    own.data = data_->of_head(h);
    own.factor = data_->factor_of(h);
  }
}

template <class Device>
double step_runner<Device>::close() {
  double value = 0;
  for (position h = head_count(); h-- > 0;) {
    double own = 0;  // grain by grain, last first, whatever order they were visited in
    const view<double>& values = sums(h).grain_values;
    for (position g = values.rows; g-- > 0;) own += values(g, 0);
    head_values_[std::size_t(h)] = own;
    value += own;
  }
  for (position i = ledger_.section_values.rows; i-- > 0;) value += ledger_.section_values(i, 0);
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
  for (position h = 0; h < head_count(); ++h)
    for_each_slot(model().heads[std::size_t(h)], stored(h).cell, bind_slot);
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
