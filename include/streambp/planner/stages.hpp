// Bytes and FLOPs of any one stage, added up from its sections.
#pragma once

#include <vector>

#include "cost.hpp"

namespace streambp {

struct stage_cost {
  std::size_t persistent = 0;  // its checkpoint and what it keeps
  std::size_t region = 0;      // addresses that stages share
  position flops = 0;
};

// For one model under one choice of chunk, head chunk and fused head.
template <class Device, class Model>
class stage_costs {
 public:
  using scalar = typename Device::scalar;
  using list = instance_list<Model>;

  // `frame`: a plan whose shape, chunks and head chunks are set, and choice.fuses_head.
  stage_costs(const list& model, flop_counts<Device, Model>& flops, const step_plan& frame,
              bool couples)
      : model_(model),
        flops_(flops),
        tokens_(frame.shape.samples.tokens()),
        chunks_(frame.chunk_count()),
        last_chunk_{chunks_ < 1 ? 0 : frame.chunks[std::size_t(chunks_) - 1], tokens_},
        chunk_edges_(frame.chunks),
        states_(frame.carry_snapshots()),
        fuses_(frame.choice.fuses_head),
        lowest_(frame.shape.input_gradient ? 0 : model.lowest_trained()) {
    measure(frame, couples);
  }

  // Of the whole step, whatever its stages: packing, sums, memories of forced cuts.
  std::size_t fixed_bytes() const { return fixed_; }
  std::size_t stream_bytes() const { return stream_; }

  stage_cost of(const stage_plan& s) const {
    const bool final_stage = s.last == position(model_.count());
    const bool fused = final_stage && fuses_;
    const position own_last = s.last - (at(s.last - 1).part == half::remember);
    std::size_t state = 0, gradients = 0, chunk = 0, working = 0, kept = 0;
    for (position i = s.first; i < s.last; ++i) {
      const section_bytes& b = bytes_[std::size_t(i)];
      const bool hands_on = i + 1 < own_last || (i + 1 == own_last && fused);
      if (i < own_last) {
        state += b.state;
        gradients += b.gradients;
      }
      chunk += b.chunk[hands_on] - (s.keeps_outputs ? b.keepable : 0);
      kept += s.keeps_outputs ? b.kept : 0;
      working = std::max(working, b.working[hands_on]);
    }
    stage_cost cost;
    cost.persistent = (s.first > 0 ? rounded(tokens_ * at(s.first).in()) : 0) + kept +
                      (s.keeps_memory ? state : 0) + (s.keeps_chunk ? chunk : 0);
    const std::size_t chunk_gradient = fused && s.first == 0 ? chunk_gradient_ : 0;
    const std::size_t visit = gradients + chunk_gradient + (s.keeps_chunk ? 0 : chunk) +
                              std::max(working, fused ? head_ : 0);
    cost.region = (s.keeps_memory ? 0 : state) + std::max(visit, final_stage && !fused ? head_ : 0);
    cost.flops = flops_of(s, own_last, final_stage);
    return cost;
  }

 private:
  struct section_bytes {
    std::size_t state = 0, gradients = 0, kept = 0, keepable = 0;
    std::size_t chunk[2] = {}, working[2] = {};  // without and with its result in the chunk
  };

  const section_instance& at(position i) const { return model_.sections[std::size_t(i)]; }
  static std::size_t rounded(position scalars) {
    return (std::size_t(scalars) * sizeof(scalar) + 63) / 64 * 64;
  }
  template <class Place>
  static std::size_t placed(Place&& place) {
    arena nothing;
    place(nothing);
    return nothing.used();
  }

  void measure(const step_plan& frame, bool couples) {
    storage<Device, Model> cells(model_);
    const layout_shape shape = shape_of(frame);
    std::size_t alternate[2] = {};
    position boundary = 0;
    bytes_.resize(model_.count());
    for (position i = position(model_.count()); i-- > 0;)
      cells.with(model_, i, [&](const auto& section, auto& cell) {
        section_bytes& b = bytes_[std::size_t(i)];
        const auto state = [&](bool values) {
          return placed(
              [&](arena& a) { place_state(a, section, at(i), shape, values, !values, cell); });
        };
        const auto chunk = [&](bool result, bool keeps) {
          return placed(
              [&](arena& a) { place_chunk(a, section, at(i), shape, result, keeps, cell); });
        };
        b.state = state(true);
        b.gradients = state(false);
        b.kept = placed([&](arena& a) { place_kept(a, section, at(i), shape, cell); });
        b.keepable = chunk(false, false) - chunk(false, true);
        for (const bool result : {false, true}) {
          b.chunk[result] = chunk(result, false);
          b.working[result] =
              placed([&](arena& a) { place_working(a, section, at(i), shape, result, cell); });
        }
        if (at(i).part == half::remember) {
          std::size_t& place = alternate[boundary++ % 2];
          place = std::max(place, b.state + b.gradients);
        }
      });
    head_ = placed([&](arena& a) {
      cells.place_head(a, model_, frame.largest_head_chunk(), frame.shape.samples.child_count(),
                       frame.shape.threads);
    });
    fixed_ = alternate[0] + alternate[1] + placed([&](arena& a) {
               a.take<std::byte>(1, position(Device::packing_bytes(frame.shape.threads)));
               cells.place_sums(a, model_, frame, couples);
             });
    chunk_gradient_ = rounded(shape.chunk * model_.widest());
    stream_ = rounded(tokens_ * model_.widest());
  }

  // How often each section runs: the order that sweeps_of lays down, counted.
  position flops_of(const stage_plan& s, position own_last, bool final_stage) const {
    const row_range all{0, tokens_}, but_last{0, last_chunk_.first};
    position last_state = s.first, last_first = s.first, context = 0, total = 0;
    bool carries = false;
    for (position i = s.first; i < own_last; ++i) {
      if (at(i).holds_state) last_state = i + 1;
      if (at(i).holds_state || at(i).holds_tally) last_first = i + 1;
      carries = carries || at(i).split.carries;
      context += flops_.context(i, false);
    }
    const auto states = [&](row_range rows, position end, visit why) {
      position sum = 0;
      for (position i = s.first; i < end; ++i) {
        why.state_only = i + 1 == end;
        sum += over(i, rows, why);
      }
      return sum;
    };
    const bool fused = final_stage && fuses_, rebuilt = !final_stage && !s.keeps_memory;

    if (fused)
      total += states(all, last_first, {.first = true});
    else
      for (position i = s.first; i < s.last; ++i) total += over(i, all, {.first = true});
    total += context;
    if (s.last <= lowest_) return total;

    if (rebuilt) total += context;
    for (position i = s.first; i < own_last; ++i) total += flops_.context(i, true);
    if (carries && states_.two_levels())
      for (position c = states_.interval; c < chunks_; c += states_.interval)
        total += states(
            {chunk_edges_[std::size_t(c - states_.interval)], chunk_edges_[std::size_t(c - 1)]},
            last_state,
            {.remembers = false, .keeps_outputs = s.keeps_outputs, .restored = s.keeps_outputs});

    if (at(s.first).part == half::read && !memory_survives(s)) total += over(s.first - 1, all, {});
    if (rebuilt && last_state > s.first && chunks_ > 1)
      total += states(but_last, last_state, {.restored = s.keeps_outputs});
    for (position i = s.first; i < s.last; ++i) {
      visit replay{.remembers = false,
                   .result = i + 1 < own_last || (i + 1 == own_last && fused),
                   .saves = true,
                   .keeps_outputs = s.keeps_outputs,
                   .restored = s.keeps_outputs};
      total += over(i, but_last, replay);
      replay.remembers = rebuilt && i < own_last;
      if (!s.keeps_chunk) total += over(i, last_chunk_, replay);
      if (i >= lowest_) total += flops_.backward(i, all);
    }
    return total;
  }
  position over(position section, row_range rows, const visit& why) const {
    return flops_.forward(section, rows, why);
  }
  bool memory_survives(const stage_plan& s) const {
    position later = 0;
    for (position i = s.first + 1; i < position(model_.count()); ++i)
      later += at(i).part == half::read;
    return later < 2;
  }

  const list& model_;
  flop_counts<Device, Model>& flops_;
  position tokens_;
  position chunks_;
  row_range last_chunk_;
  std::vector<position> chunk_edges_;
  snapshots states_;
  bool fuses_;
  position lowest_;
  std::vector<section_bytes> bytes_;
  std::size_t fixed_ = 0, stream_ = 0, chunk_gradient_ = 0, head_ = 0;
};

}  // namespace streambp
