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
template <class Device>
class stage_costs {
 public:
  using scalar = typename Device::scalar;

  // `frame`: a plan whose shape, chunks and head chunks are set, and choice.fuses_head.
  stage_costs(const section_list& model, flop_counts<Device>& flops, const step_plan& frame,
              bool couples)
      : model_(model),
        flops_(flops),
        tokens_(frame.shape.samples.tokens()),
        chunk_edges_(frame.chunks),
        states_(frame.carry_snapshots()),
        fuses_(frame.choice.fuses_head),
        lowest_(frame.shape.input_gradient ? 0 : model.lowest_trained()) {
    measure(frame, couples);
  }

  // Of the whole step, whatever its stages: packing, sums, memories of forced cuts, rows that stand
  // in for those of samples that count nothing.
  std::size_t fixed_bytes() const { return fixed_; }
  std::size_t stream_bytes() const { return stream_; }

  stage_cost of(const stage_plan& s) const {
    const stage_facts f = facts_of(model_, s, fuses_, lowest_);
    std::size_t state = 0, gradients = 0, chunk = 0, working = 0, kept = 0;
    for (position i = s.first; i < s.last; ++i) {
      const section_bytes& b = bytes_[std::size_t(i)];
      const bool hands_on = i + 1 < f.own_last || (i + 1 == f.own_last && f.fuses_head);
      if (i < f.own_last) {
        state += b.state;
        gradients += b.gradients;
      }
      chunk += b.chunk[hands_on] - (f.keeps_outputs(i) ? b.keepable : 0);
      kept += f.keeps_outputs(i) ? b.kept : 0;
      working = std::max(working, b.working[hands_on]);
    }
    stage_cost cost;
    cost.persistent = (s.first > 0 ? rounded(tokens_ * at(s.first).in()) : 0) + kept +
                      (s.keeps_memory ? state : 0) + (s.keeps_chunk ? chunk : 0);
    const std::size_t chunk_gradient = f.fuses_head && s.first == 0 ? chunk_gradient_ : 0;
    const std::size_t visit = gradients + chunk_gradient + (s.keeps_chunk ? 0 : chunk) +
                              std::max(working, f.fuses_head ? head_ : 0);
    cost.region =
        (s.keeps_memory ? 0 : state) + std::max(visit, f.ends && !f.fuses_head ? head_ : 0);
    cost.flops = flops_of(f);
    return cost;
  }

 private:
  struct section_bytes {
    std::size_t state = 0, gradients = 0, kept = 0, keepable = 0;
    std::size_t chunk[2] = {}, working[2] = {};  // without and with its result in the chunk
  };

  const section_instance& at(position i) const { return model_[i]; }
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
    storage<Device> cells(model_);
    const layout_shape shape = shape_of(frame);
    std::size_t alternate[2] = {};
    position boundary = 0;
    bytes_.resize(model_.count());
    for (position i = position(model_.count()); i-- > 0;) {
      section_bytes& b = bytes_[std::size_t(i)];
      auto& cell = cells.cells[std::size_t(i)];
      const auto state = [&](bool values) {
        return placed([&](arena& a) { place_state(a, at(i), shape, values, !values, cell); });
      };
      const auto chunk = [&](bool result, bool keeps) {
        return placed([&](arena& a) { place_chunk(a, at(i), shape, result, keeps, cell); });
      };
      b.state = state(true);
      b.gradients = state(false);
      b.kept = placed([&](arena& a) { place_kept(a, at(i), shape, cell); });
      b.keepable = chunk(false, false) - chunk(false, true);
      for (const bool result : {false, true}) {
        b.chunk[result] = chunk(result, false);
        b.working[result] = placed([&](arena& a) { place_working(a, at(i), shape, result, cell); });
      }
      if (at(i).part == half::remember) {
        std::size_t& place = alternate[boundary++ % 2];
        place = std::max(place, b.state + b.gradients);
      }
    }
    head_ = placed([&](arena& a) {
      cells.place_head(a, model_, frame.largest_head_chunk(), frame.shape.samples.child_count(),
                       frame.shape.threads);
    });
    fixed_ = alternate[0] + alternate[1] + placed([&](arena& a) {
               a.take<std::byte>(1, position(Device::packing_bytes(frame.shape.threads)));
               cells.place_sums(a, model_, frame, couples);
               cells.place_stand_ins(a, model_, frame);
             });
    chunk_gradient_ = rounded(shape.chunk * model_.widest());
    stream_ = rounded(tokens_ * model_.widest());
  }

  position flops_of(const stage_facts& f) const {
    position total = flops_of(forward_sweep(f), f);
    for_each_backward_sweep(f, states_.chunks,
                            [&](sweep_kind kind) { total += flops_of(kind, f); });
    return total;
  }
  position flops_of(sweep_kind kind, const stage_facts& f) const {
    position total = 0;
    for_each_pass(kind, f, states_, [&](const pass& p) {
      const row_range rows{chunk_edges_[std::size_t(p.chunks.first)],
                           chunk_edges_[std::size_t(p.chunks.last)]};
      for (position i = p.first; i < p.last; ++i)
        if (p.why == purpose::open || p.why == purpose::close)
          total += flops_.context(i, p.why == purpose::close);
        else if (runs_forward(p.why) || p.why == purpose::backward)
          total += flops_.of(i, rows, p.at(i, f));
    });
    return total;
  }

  const section_list& model_;
  flop_counts<Device>& flops_;
  position tokens_;
  std::vector<position> chunk_edges_;
  snapshots states_;
  bool fuses_;
  position lowest_;
  std::vector<section_bytes> bytes_;
  std::size_t fixed_ = 0, stream_ = 0, chunk_gradient_ = 0, head_ = 0;
};

}  // namespace streambp
