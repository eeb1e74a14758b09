// What sections hold across chunks: memories, totals, tallies, the other stream; before, during and
// after the sweeps.
#pragma once

#include "engine.hpp"
#include "initial.hpp"

namespace streambp {

// What stands in a section's memories before a sweep: prefix rows, empty totals, the other stream.
template <class Device, class Model, class Loss>
void basic_engine<Device, Model, Loss>::start_memory(position i) {
  storage_.with(model_, i, [&](const auto& section, auto& cell) {
    using type = std::decay_t<decltype(section)>;
    for_each_slot(section, instance(i), [&](auto op, auto k, const auto& slot) {
      auto& own = std::get<op>(cell.operators);
      if constexpr (std::decay_t<decltype(slot)>::kind == slot_kind::total &&
                    type::part != half::read)
        zero(on_, own.value[k]);
    });
    if (plan_.shape.prefix > 0)
      detail::for_each_initial(section, instance(i), cell, plan_.shape.prefix, 0,
                               [&](auto& own, auto k, position, position, bool is_carry) {
                                 if (!is_carry)
                                   copy(on_, own.initial[k],
                                        own.value[k].middle_rows(0, plan_.shape.prefix));
                               });
    if constexpr (type::steps.crosses())
      for (std::size_t c = 0; c + 1 < plan_.context_chunks.size(); ++c) {
        const chunk_place at = context_place(c);
        run_context(on_, section, cell, at, number_of(i), context_rows(at), {});
      }
  });
}

// Gives the gradients of prefix rows and of the other stream's rows to the caller.
template <class Device, class Model, class Loss>
void basic_engine<Device, Model, Loss>::finish_memory(position i) {
  storage_.with(model_, i, [&](const auto& section, auto& cell) {
    if (plan_.shape.prefix > 0 && !data_->d_initial.empty())
      detail::for_each_initial(section, instance(i), cell, plan_.shape.prefix, 0,
                               [&](auto& own, auto k, position, position, bool is_carry) {
                                 if (!is_carry)
                                   add(on_, own.gradient[k].middle_rows(0, plan_.shape.prefix),
                                       own.d_initial[k]);
                               });
    if constexpr (std::decay_t<decltype(section)>::steps.crosses())
      for (std::size_t c = plan_.context_chunks.size() - 1; c-- > 0;) {
        const chunk_place at = context_place(c);
        run_context(on_, section, cell, at, number_of(i), context_rows(at),
                    data_->d_context.rows_in(at.rows));
      }
  });
}

template <class Device, class Model, class Loss>
chunk_place basic_engine<Device, Model, Loss>::context_place(std::size_t chunk) const {
  chunk_place at = place_of({plan_.context_chunks[chunk], plan_.context_chunks[chunk + 1]},
                            plan_.context_grains);
  at.samples = &plan_.shape.context;
  at.prefix = 0;
  return at;
}

template <class Device, class Model, class Loss>
view<typename Device::scalar> basic_engine<Device, Model, Loss>::context_rows(
    const chunk_place& at) {
  return given_rows(data_->context, at, context_stand_in_);
}

// Once every token has been added to the tallies: values, and the gradients that descend injects,
// both times the step's part of its accumulation window.
template <class Device, class Model, class Loss>
void basic_engine<Device, Model, Loss>::add_side_losses() {
  if (none_counts_) return;
  chunk_place all;
  all.samples = &plan_.shape.samples;
  double share = -1;  // not asked for yet
  for (position i = 0; i < position(model_.count()); ++i)
    storage_.with(model_, i, [&](const auto& section, auto& cell) {
      if constexpr (std::decay_t<decltype(section)>::steps.holds_tally()) {
        if (share < 0) share = share_of_window(loss_, samples(), *data_);
        const double value = side_losses(on_, section, cell, all, number_of(i));
        storage_.section_values(i, 0) = share == 0 ? 0 : share * value;
        if (share == 1) return;
        for_each_slot(section, instance(i), [&](auto op, auto k, const auto& slot) {
          if constexpr (std::decay_t<decltype(slot)>::kind == slot_kind::tally) {
            const auto slopes = std::get<op>(cell.operators).gradient[k];
            share == 0 ? zero(on_, slopes) : scale(on_, share, slopes);
          }
        });
      }
    });
}

template <class Device, class Model, class Loss>
void basic_engine<Device, Model, Loss>::clear_state_gradients(position i) {
  storage_.with(model_, i, [&](const auto& section, auto& cell) {
    for_each_slot(section, instance(i), [&](auto op, auto k, const auto& slot) {
      constexpr slot_kind kind = std::decay_t<decltype(slot)>::kind;
      using type = std::decay_t<decltype(section)>;
      constexpr bool boundary =
          type::part == half::read && type::steps.operators[op].split.forces_cut();
      if constexpr (!boundary && (kind == slot_kind::memory || kind == slot_kind::carry ||
                                  kind == slot_kind::total || kind == slot_kind::context)) {
        zero(on_, std::get<op>(cell.operators).gradient[k]);
        if (kind == slot_kind::carry) zero(on_, std::get<op>(cell.operators).d_ends[k]);
      }
    });
  });
}

// Of the carries that the chunk hands down: what stands there has been used by the chunk behind it.
template <class Device, class Model, class Loss>
void basic_engine<Device, Model, Loss>::clear_handed_gradients(position i, position chunk) {
  storage_.with(model_, i, [&](const auto& section, auto& cell) {
    for_each_slot(section, instance(i), [&](auto op, auto k, const auto& slot) {
      if constexpr (std::decay_t<decltype(slot)>::kind == slot_kind::carry)
        zero(on_, std::get<op>(cell.operators).gradient[k].middle_rows(chunk % 2, 1));
    });
  });
}

template <class Device, class Model, class Loss>
void basic_engine<Device, Model, Loss>::clear_tallies() {
  for (position i = 0; i < position(model_.count()); ++i)
    storage_.with(model_, i, [&](const auto& section, auto& cell) {
      for_each_slot(section, instance(i), [&](auto op, auto k, const auto& slot) {
        if constexpr (std::decay_t<decltype(slot)>::kind == slot_kind::tally) {
          zero(on_, std::get<op>(cell.operators).value[k]);
          zero(on_, std::get<op>(cell.operators).gradient[k]);
        }
      });
    });
}

}  // namespace streambp
