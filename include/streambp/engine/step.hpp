// A step's beginning and end: checks at the door, parameters and states put in their places.
#pragma once

#include <cmath>

#include "engine.hpp"
#include "initial.hpp"

namespace streambp {

template <class Device, class Model, class Loss>
void basic_engine<Device, Model, Loss>::check(std::span<const scalar> parameters,
                                              std::span<scalar> gradient, bool labels) const {
  const position tokens = samples().tokens();
  expect_size("parameters", parameters.size(), model_.table.parameters);
  if (!gradient.empty()) expect_size("gradient", gradient.size(), model_.table.gradients);
  for (const auto& entry : model_.table.entries)
    for (position i = 0; i < entry.size(); ++i)
      if (!std::isfinite(parameters[std::size_t(entry.offset + i)]))
        throw data_error(sentence("parameter ", entry.name, " is ",
                                  parameters[std::size_t(entry.offset + i)], " at row ",
                                  i / entry.cols, ", column ", i % entry.cols));
  if constexpr (list::takes_tokens()) {
    expect_size("batch: tokens", data_->tokens.size(), tokens);
    const position vocabulary = model_.table.entries.front().rows;
    for (position t = 0; t < tokens; ++t)
      if (data_->tokens[std::size_t(t)] < 0 || data_->tokens[std::size_t(t)] >= vocabulary)
        throw data_error(sentence("batch: token ", data_->tokens[std::size_t(t)], " at place ", t,
                                  " is outside the vocabulary of ", vocabulary));
  } else if (data_->rows.rows != tokens || data_->rows.cols != plan_.shape.features) {
    throw shape_error(sentence("batch: rows are ", data_->rows.rows, " x ", data_->rows.cols,
                               ", the plan has ", tokens, " tokens of ", plan_.shape.features,
                               " features"));
  }
  if (data_->d_rows.rows != 0 && (data_->d_rows.rows != data_->rows.rows ||
                                  data_->d_rows.cols != data_->rows.cols || !wants_input_gradient()))
    throw shape_error("batch: d_rows has the shape of rows, and the plan asks for input_gradient");
  if (model_.crosses()) {
    const position rows = plan_.shape.context.tokens(), cols = plan_.shape.context_features;
    if (data_->context.rows != rows || data_->context.cols != cols)
      throw shape_error(sentence("batch: context rows are ", data_->context.rows, " x ",
                                 data_->context.cols, ", the plan has ", rows, " tokens of ", cols,
                                 " features"));
    if (!gradient.empty() && (data_->d_context.rows != rows || data_->d_context.cols != cols))
      throw shape_error("batch: d_context has the shape of context");
  }
  if (!data_->initial.empty()) expect_size("batch: initial", data_->initial.size(), initial_size());
  if (!data_->d_initial.empty()) {
    expect_size("batch: d_initial", data_->d_initial.size(), initial_size());
    if (!wants_input_gradient())
      throw shape_error("batch: d_initial needs a plan that asks for input_gradient");
  }
  if (plan_.shape.prefix > 0 && data_->initial.empty())
    throw shape_error(sentence("batch: the plan has a prefix of ", plan_.shape.prefix,
                               " memory rows; give them in batch.initial"));
  if (!data_->sample_ids.empty())
    expect_size("batch: sample_ids", data_->sample_ids.size(), samples().segments());
  if constexpr (!loss_traits<Loss>::sees_rows) {
    if (labels) {
      check_labels(loss_, samples(), *data_, model_.head.out);
      loss_traits<Loss>::check(loss_, samples().segments());
    }
  }
}

template <class Device, class Model, class Loss>
void basic_engine<Device, Model, Loss>::open(std::span<const scalar> parameters,
                                             const batch_type& data, std::span<scalar> gradient,
                                             bool labels) {
  data_ = &data;
  check(parameters, gradient, labels);
  bind(parameters, gradient);
  bind_initial();
  for (position g = 0; g < storage_.grain_values.rows; ++g) storage_.grain_values(g, 0) = 0;
  for (position i = 0; i < storage_.section_values.rows; ++i) storage_.section_values(i, 0) = 0;
  clear_tallies();
  if constexpr (!loss_traits<Loss>::sees_rows) {
    if (labels) fill_segment_scales(loss_, samples(), data, storage_.segment_scales);
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
  data_ = nullptr;
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
        own.value[k] = {const_cast<scalar*>(parameters.data()) + entry.offset, entry.rows, entry.cols};
        own.gradient[k] = {};
        if (entry.gradient >= 0 && !gradient.empty())
          own.gradient[k] = {gradient.data() + entry.gradient, entry.rows, entry.cols};
      }
    });
  };
  for (position i = 0; i < position(model_.count()); ++i)
    storage_.with(model_, i, [&](const auto& s, auto& cell) { bind_section(s, instance(i), cell); });
  if constexpr (storage<Device, Model>::has_head)
    bind_section(model_.head_section, model_.head, storage_.head.cell);
}

template <class Device, class Model, class Loss>
position basic_engine<Device, Model, Loss>::initial_size_of(const list& model, position prefix) {
  storage<Device, Model> nothing(model);
  position offset = 0;
  for (position i = 0; i < position(model.count()); ++i)
    nothing.with(model, i, [&](const auto& section, auto& cell) {
      offset = detail::for_each_initial(section, model.sections[std::size_t(i)], cell, prefix, offset,
                                        [](auto&, auto, position, position, bool) {});
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
