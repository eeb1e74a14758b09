// A step's beginning and end: parameters and states put in their places, sums at 0.
#pragma once

#include "../core/warning.hpp"
#include "engine.hpp"
#include "initial.hpp"

namespace streambp {

template <class Device, class Model, class Loss>
void basic_engine<Device, Model, Loss>::open(std::span<const scalar> parameters,
                                             const batch_type& data, std::span<scalar> gradient,
                                             bool labels, byte_range result) {
  data_ = &data;
  check(parameters, gradient, labels, result);
  find_what_counts(labels);
  check_finite(!gradient.empty());
  bind(parameters, gradient);
  bind_initial();
  for (position g = 0; g < storage_.grain_values.rows; ++g) storage_.grain_values(g, 0) = 0;
  for (position i = 0; i < storage_.section_values.rows; ++i) storage_.section_values(i, 0) = 0;
  clear_tallies();
  if constexpr (!loss_traits<Loss>::sees_rows) {
    if (labels && !warned_ && labels_look_shifted(loss_, samples(), data)) {
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

template <class Device, class Model, class Loss>
double basic_engine<Device, Model, Loss>::close() {
  double value = 0;  // grain by grain, last first, whatever order they were visited in
  for (position g = storage_.grain_values.rows; g-- > 0;) value += storage_.grain_values(g, 0);
  for (position i = storage_.section_values.rows; i-- > 0;) value += storage_.section_values(i, 0);
  return value;
}

// Points every parameter slot at its rows in the caller's buffers.
template <class Device, class Model, class Loss>
void basic_engine<Device, Model, Loss>::bind(std::span<const scalar> parameters,
                                             std::span<scalar> gradient) {
  const auto bind_section = [&](const auto& section, const section_instance& instance, auto& cell) {
    std::size_t next = 0;
    for_each_slot(section, instance, [&](auto op, auto k, const auto& slot) {
      constexpr slot_kind kind = std::decay_t<decltype(slot)>::kind;
      if constexpr (kind == slot_kind::parameter || kind == slot_kind::shared) {
        const int number = instance.parameters[next++];
        if (number < 0) return;
        const auto& entry = model_.table.entries[std::size_t(number)];
        auto& own = std::get<op>(cell.operators);
        // Layers read parameters through the same views as everything else.
        own.value[k] = {const_cast<scalar*>(parameters.data()) + entry.offset, entry.rows,
                        entry.cols};
        own.gradient[k] = {};
        if (entry.gradient >= 0 && !gradient.empty())
          own.gradient[k] = {gradient.data() + entry.gradient, entry.rows, entry.cols};
      }
    });
  };
  for (position i = 0; i < position(model_.count()); ++i)
    storage_.with(model_, i,
                  [&](const auto& s, auto& cell) { bind_section(s, instance(i), cell); });
  if constexpr (storage<Device, Model>::has_head)
    bind_section(model_.head_section, model_.head, storage_.head.cell);
}

template <class Device, class Model, class Loss>
position basic_engine<Device, Model, Loss>::initial_size_of(const list& model, position prefix) {
  storage<Device, Model> nothing(model);
  position offset = 0;
  for (position i = 0; i < position(model.count()); ++i)
    nothing.with(model, i, [&](const auto& section, auto& cell) {
      offset = detail::for_each_initial(section, model.sections[std::size_t(i)], cell, prefix,
                                        offset, [](auto&, auto, position, position, bool) {});
    });
  return offset;
}

template <class Device, class Model, class Loss>
void basic_engine<Device, Model, Loss>::bind_initial() {
  position offset = 0;
  for (position i = 0; i < position(model_.count()); ++i)
    storage_.with(model_, i, [&](const auto& section, auto& cell) {
      offset = detail::for_each_initial(
          section, instance(i), cell, plan_.shape.prefix, offset,
          [&](auto& own, auto k, position at, position size, bool is_carry) {
            const position rows = is_carry ? 1 : plan_.shape.prefix;
            own.initial[k] = {};
            own.d_initial[k] = {};
            if (!data_->initial.empty())
              own.initial[k] = {data_->initial.data() + at, rows, rows == 0 ? 0 : size / rows};
            if (!data_->d_initial.empty())
              own.d_initial[k] = {data_->d_initial.data() + at, rows, rows == 0 ? 0 : size / rows};
          });
    });
}

}  // namespace streambp
