// What sections cost: FLOPs, by sending shape-only rows through their layers once, and bytes, by
// laying them out on nothing.
#pragma once

#include <map>
#include <tuple>

#include "../engine/section_runner.hpp"
#include "../engine/storage.hpp"
#include "../schedule/visit.hpp"
#include "sum_of_concave.hpp"

namespace streambp {

// FLOPs of sections over a range of rows. Repetitions of a section cost the same, so each type is
// asked once.
template <class Device>
class flop_counts {
 public:
  using scalar = typename Device::scalar;

  flop_counts(const section_runner<Device>& sections, const plan_shape& shape)
      : sections_(sections), model_(sections.list()), shape_(shape), cells_(model_) {
    arena nothing;
    place(nothing);
  }
  // Of rows that have addresses, in `from`. Parameters share theirs.
  flop_counts(const section_runner<Device>& sections, const plan_shape& shape, arena& from)
      : sections_(sections), model_(sections.list()), shape_(shape), cells_(model_) {
    place(from);
  }
  // Where parameters begin in it.
  std::size_t parameters_at() const { return parameters_at_; }

  // Of one visit of a section.
  big_count of(position i, row_range rows, const visit& why) {
    if (rows.rows() <= 0) return 0;
    const question key{model_[i].type, rows.first, rows.last,
                       why.why,        why.result, why.keeps_outputs};
    if (const auto known = answers_.find(key); known != answers_.end()) return known->second;
    return answers_[key] = ask(i, rows, why);
  }
  // Of visits of the frame's chunks but each interval's last one, in a pass of intervals.
  big_count of_intervals(position i, const step_plan& frame, const pass& p, const visit& why) {
    const question key{model_[i].type, frame.choice.chunk, p.interval,
                       why.why,        why.result,         why.keeps_outputs};
    if (const auto known = of_intervals_.find(key); known != of_intervals_.end())
      return known->second;
    const edges& chunks = frame.chunks;
    const position n = p.interval, intervals = p.chunks.last / n;
    big_count total;
    for (position k = 0, alike = 0; k < intervals; k += alike) {
      const position first = chunks[k * n], rows = chunks[(k + 1) * n] - first,
                     segment = shape_.samples.segment(shape_.samples.segment_at(first)).last;
      alike = std::min({chunks.repetition_at(first).times(first, rows),
                        std::max((segment - first) / rows, position(1)), intervals - k});
      // A row takes more FLOPs the more rows it sees, up to a window: of equal intervals in one
      // segment they are concave in the interval's place.
      total += sum_of_concave(k, k + alike - 1, [&](position at) {
        return ask(i, {chunks[at * n], chunks[(at + 1) * n - 1]}, why);
      });
    }
    return of_intervals_[key] = total;
  }
  // The other stream's memory of a section, written or taken through.
  big_count context(position i, bool backward) {
    if (!model_[i].crosses) return 0;
    chunk_place at = place({0, shape_.context.tokens()});
    at.samples = &shape_.context;
    const view<scalar> c{row_.data, at.rows.rows(), shape_.context_features};
    on_.reset_flops();
    sections_.context(on_, i, cells_.cells[std::size_t(i)], at, c, backward ? c : view<scalar>{});
    return on_.flops();
  }
  // Forward, or backward, of a head over all rows.
  big_count head(position h, bool backward) {
    const section_instance& own = model_.heads[std::size_t(h)];
    if (own.empty()) return 0;
    const chunk_place at = place({0, shape_.samples.tokens()});
    const view<scalar> x{row_.data, at.rows.rows(), own.in()};
    const view<scalar> y{row_.data, at.rows.rows(), own.out};
    const position i = model_.section_of_head(h);
    auto& cell = cells_.heads[std::size_t(h)].cell;
    on_.reset_flops();
    if (backward)
      sections_.backward(on_, i, cell, at, {{}, x}, y, y, visit{purpose::backward});
    else
      sections_.forward(on_, i, cell, at, {{}, x}, y, visit{purpose::forward_kept});
    return on_.flops();
  }

 private:
  void place(arena& from) {
    const packed& samples = shape_.samples;
    cells_.place_alone(from, model_,
                       {samples.tokens(),
                        shape_.prefix,
                        samples.tokens(),
                        {1, 1},
                        shape_.threads,
                        samples.segments(),
                        samples.parent_count(),
                        shape_.context.tokens(),
                        samples.tokens()});
    row_ = from.take<scalar>(1, widest());
    parameters_at_ = from.used();
    const auto shape_parameter = [&](const slot_info& slot, slot_cell<scalar>& own) {
      if (slot.parameter < 0) return;
      const auto& entry = model_.table.entries[std::size_t(slot.parameter)];
      from.rewind(parameters_at_);
      const auto all = from.take<scalar>(entry.rows, entry.cols);
      own.given = all;
      if (entry.gradient >= 0) own.gradient = all;
    };
    for (position i = 0; i < position(model_.count()); ++i)
      for_each_slot(model_[i], cells_.cells[std::size_t(i)], shape_parameter);
    for (position h = 0; h < model_.head_count(); ++h)
      for_each_slot(model_.heads[std::size_t(h)], cells_.heads[std::size_t(h)].cell,
                    shape_parameter);
  }

  big_count ask(position i, row_range rows, const visit& why) {
    const auto& instance = model_[i];
    const chunk_place at = place(rows);
    const view<scalar> x{row_.data, rows.rows(), instance.in()},
        y{row_.data, rows.rows(), instance.out};
    on_.reset_flops();
    auto& cell = cells_.cells[std::size_t(i)];
    if (why.why == purpose::backward)
      sections_.backward(on_, i, cell, at, {tokens(), x}, y, y, why);
    else
      sections_.forward(on_, i, cell, at, {tokens(), x}, y, why);
    return on_.flops();
  }

  using question = std::tuple<int, position, position, purpose, bool, bool>;

  // No token is looked at.
  std::span<const std::int32_t> tokens() const {
    return {reinterpret_cast<const std::int32_t*>(row_.data), 0};
  }
  position widest() const {
    position w = shape_.context_features;
    for (const section_instance& h : model_.heads) w = std::max(w, h.out);
    for (const section_instance& s : model_.sections) w = std::max({w, s.in(), s.out});
    return w;
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

  const section_runner<Device>& sections_;
  const section_list& model_;
  const plan_shape& shape_;
  storage<Device> cells_;
  std::size_t parameters_at_ = 0;
  view<scalar> row_;  // stands for every input, result and gradient
  Device on_;         // counts only
  std::map<question, big_count> answers_, of_intervals_;
  mutable std::array<position, 2> edges_{};
};

}  // namespace streambp
