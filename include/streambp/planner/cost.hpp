// What sections cost: FLOPs, by sending shape-only rows through their layers once, and bytes, by
// laying them out on nothing.
#pragma once

#include <map>
#include <tuple>

#include "../engine/run_section.hpp"
#include "../engine/storage.hpp"

namespace streambp {

// FLOPs of sections over a range of rows. Repetitions of a section cost the same, so each type is
// asked once.
template <class Device, class Model>
class flop_counts {
 public:
  using scalar = typename Device::scalar;
  using list = instance_list<Model>;

  flop_counts(const list& model, const plan_shape& shape)
      : model_(model), shape_(shape), cells_(model) {
    arena nothing;
    const packed& samples = shape.samples;
    cells_.place_alone(nothing, model,
                       {samples.tokens(),
                        shape.prefix,
                        samples.tokens(),
                        {1, 1},
                        shape.threads,
                        samples.segments(),
                        samples.parent_count(),
                        shape.context.tokens()});
    for (position i = 0; i < position(model.count()); ++i)
      cells_.with(model, i, [&](const auto& section, auto& cell) {
        shape_parameters(section, model.sections[std::size_t(i)], cell);
      });
    if constexpr (storage<Device, Model>::has_head)
      shape_parameters(model.head_section, model.head, cells_.head.cell);
  }

  // Of one visit of a section.
  position of(position i, row_range rows, const visit& why) {
    const auto& instance = model_.sections[std::size_t(i)];
    if (rows.rows() <= 0) return 0;
    const question key{instance.type, rows.first, rows.last,
                       why.why,       why.result, why.keeps_outputs};
    if (const auto known = answers_.find(key); known != answers_.end()) return known->second;
    const chunk_place at = place(rows);
    const view<scalar> x{nullptr, rows.rows(), instance.in()},
        y{nullptr, rows.rows(), instance.out};
    on_.reset_flops();
    cells_.with(model_, i, [&](const auto& section, auto& cell) {
      if (why.why == purpose::backward)
        run_backward(on_, section, cell, at, 0, {tokens(rows), x}, y, y, why);
      else
        run_forward(on_, section, cell, at, 0, {tokens(rows), x}, y, why);
    });
    return answers_[key] = on_.flops();
  }
  // The other stream's memory of a section, written or taken through.
  position context(position i, bool backward) {
    position flops = 0;
    cells_.with(model_, i, [&](const auto& section, auto& cell) {
      if constexpr (std::decay_t<decltype(section)>::steps.crosses()) {
        chunk_place at = place({0, shape_.context.tokens()});
        at.samples = &shape_.context;
        const view<scalar> c{nullptr, at.rows.rows(), shape_.context_features};
        on_.reset_flops();
        run_context(on_, section, cell, at, 0, c, backward ? c : view<scalar>{});
        flops = on_.flops();
      }
    });
    return flops;
  }
  // Forward, or forward and backward, of the head over all rows.
  position head(bool backward) {
    if constexpr (!storage<Device, Model>::has_head) {
      return 0;
    } else {
      const chunk_place at = place({0, shape_.samples.tokens()});
      const view<scalar> x{nullptr, at.rows.rows(), model_.head.in()};
      const view<scalar> y{nullptr, at.rows.rows(), model_.head.out};
      on_.reset_flops();
      if (backward)
        run_backward(on_, model_.head_section, cells_.head.cell, at, 0, {{}, x}, y, y,
                     visit{purpose::backward});
      else
        run_forward(on_, model_.head_section, cells_.head.cell, at, 0, {{}, x}, y,
                    visit{purpose::forward_kept});
      return on_.flops();
    }
  }

 private:
  using question = std::tuple<int, position, position, purpose, bool, bool>;

  // No token is looked at: only their number counts.
  static std::span<const std::int32_t> tokens(row_range rows) {
    return {static_cast<const std::int32_t*>(nullptr), 0 * std::size_t(rows.rows())};
  }

  chunk_place place(row_range rows) const {
    chunk_place at;
    at.rows = rows;
    at.samples = &shape_.samples;
    at.prefix = shape_.prefix;
    at.tile = shape_.grains.tile;
    edges_[0] = rows.first;
    edges_[1] = rows.last;
    at.grains = edges_;
    at.context = &shape_.context;
    return at;
  }

  template <class Section, class Cell>
  void shape_parameters(const Section& section, const section_instance& instance, Cell& cell) {
    std::size_t next = 0;
    for_each_slot(section, instance, [&](auto op, auto k, const auto& slot) {
      constexpr slot_kind kind = std::decay_t<decltype(slot)>::kind;
      if constexpr (kind == slot_kind::parameter || kind == slot_kind::shared) {
        const int number = instance.parameters[next++];
        if (number < 0) return;
        const auto& entry = model_.table.entries[std::size_t(number)];
        auto& own = std::get<op>(cell.operators);
        own.value[k] = {nullptr, entry.rows, entry.cols};
        if (entry.gradient >= 0) own.gradient[k] = own.value[k];
      }
    });
  }

  const list& model_;
  const plan_shape& shape_;
  storage<Device, Model> cells_;
  Device on_;  // counts only
  std::map<question, position> answers_;
  mutable std::array<position, 2> edges_{};
};

}  // namespace streambp
