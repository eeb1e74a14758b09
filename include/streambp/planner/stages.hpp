// Bytes and FLOPs of any one stage, added up from its sections.
#pragma once

#include <vector>

#include "../core/bytes.hpp"
#include "cost.hpp"

namespace streambp {

struct stage_cost {
  std::size_t persistent = 0;  // its checkpoint and what it keeps
  std::size_t region = 0;      // addresses that stages share
  bool streams = true;         // see stage_facts
  big_count flops;
};

// For one model under one choice of chunk, head chunk and fused head.
template <class Device>
class stage_costs {
 public:
  using scalar = typename Device::scalar;

  // `frame`: a plan whose shape, chunks and head chunks are set, and choice.fuses_head; it outlives
  // this.
  stage_costs(const section_list& model, flop_counts<Device>& flops, const step_plan& frame,
              coupled_heads couples)
      : model_(model),
        flops_(flops),
        cells_(model),
        shape_(shape_of(frame)),
        frame_(frame),
        states_(frame.carry_snapshots()),
        fuses_(frame.choice.fuses_head),
        lowest_(frame.shape.input_gradient ? 0 : model.lowest_trained()) {
    bytes_.assign(model.count() * occupants * 4, unknown);
    cells_.checkpoints.resize(model.count());
    stream_ = placed([&](arena& a) { cells_.place_stream(a, model, shape_); });
    fixed_ = placed([&](arena& a) {
      cells_.place_packing(a, model, shape_.threads);
      cells_.place_boundaries(a, model, shape_);
      cells_.place_tallies(a, model);
      ledger().place(a, model, frame, couples);
      cells_.place_stand_ins(a, model, frame);
    });
  }

  // Of the whole step, whatever its stages: packing, sums, memories of forced cuts, rows that stand
  // in for those of samples that count nothing.
  std::size_t fixed_bytes() const { return fixed_; }
  std::size_t stream_bytes() const { return stream_; }

  stage_cost of(const stage_plan& s) {
    const stage_facts f = facts_of(model_, s, fuses_, lowest_);
    stage_cost cost;
    cost.streams = f.streams();
    std::size_t stands = 0;
    for_each_lifetime(f, [&](const lifetime& l) {
      const std::size_t bytes = bytes_of(l);
      if (l.lives == tenure::step) {
        cost.persistent = sum_of_bytes(cost.persistent, bytes);
      } else {
        const std::size_t through = sum_of_bytes(stands, bytes);
        cost.region = std::max(cost.region, through);
        if (l.lives == tenure::stage) stands = through;
      }
    });
    cost.flops = flops_of(f);
    return cost;
  }

 private:
  // As the storage places it, asked once.
  std::size_t bytes_of(const lifetime& l) {
    std::size_t& known = bytes_[((std::size_t(l.section) * occupants + std::size_t(l.what)) * 2 +
                                 std::size_t(l.result)) *
                                    2 +
                                std::size_t(l.keepable)];
    if (known == unknown) known = placed([&](arena& a) { cells_.place(a, model_, shape_, l); });
    return known;
  }
  template <class Place>
  static std::size_t placed(Place&& place) {
    arena nothing;
    place(nothing);
    return nothing.used();
  }

  big_count flops_of(const stage_facts& f) const {
    big_count total = flops_of(forward_sweep(f), f);
    for_each_backward_sweep(f, states_.chunks,
                            [&](sweep_kind kind) { total += flops_of(kind, f); });
    return total;
  }
  big_count flops_of(sweep_kind kind, const stage_facts& f) const {
    big_count total;
    for_each_pass(kind, f, states_, [&](const pass& p) {
      const row_range rows{frame_.chunks[p.chunks.first], frame_.chunks[p.chunks.last]};
      for (position i = p.first; i < p.last; ++i)
        if (p.why == purpose::open || p.why == purpose::close)
          total += flops_.context(i, p.why == purpose::close);
        else if (p.interval > 0)
          total += flops_.of_intervals(i, frame_, p, p.at(i, f));
        else if (runs_forward(p.why) || p.why == purpose::backward)
          total += flops_.of(i, rows, p.at(i, f));
    });
    return total;
  }

  static constexpr std::size_t occupants = std::size_t(occupant::head) + 1, unknown = ~0ull;

  const section_list& model_;
  flop_counts<Device>& flops_;
  storage<Device> cells_;
  layout_shape shape_;
  const step_plan& frame_;
  snapshots states_;
  bool fuses_;
  position lowest_;
  std::vector<std::size_t> bytes_;  // by lifetime
  std::size_t fixed_ = 0, stream_ = 0;
};

}  // namespace streambp
