// A number over everything that the planner derives: a plan that was changed since has another.
#pragma once

#include <cstdint>

#include "../core/random.hpp"
#include "plan.hpp"

namespace streambp {

inline std::uint64_t seal_of(const step_plan& p) {
  std::uint64_t hash = p.model;
  const auto add = [&](auto number) { hash = mixed(hash, std::uint64_t(number)); };
  const auto add_samples = [&](const packed& samples) {
    for (const position o : samples.offsets()) add(o);
    for (position s = 0; samples.tokens() > 0 && s < samples.segments(); ++s)
      add(samples.parent(s));
  };
  add_samples(p.shape.samples);
  add_samples(p.shape.context);
  for (const auto n : {p.shape.features, p.shape.prefix, position(p.shape.threads),
                       p.shape.grains.tile, p.shape.grains.grain, p.shape.context_features,
                       p.choice.chunk, p.choice.head_chunk, p.choice.carry_interval})
    add(n);
  add(p.shape.input_gradient);
  add(p.choice.fuses_head);
  for (const stage_plan& s : p.choice.stages)
    for (const position n : {s.first, s.last, position(s.keeps_memory), position(s.keeps_outputs),
                             position(s.keeps_chunk)})
      add(n);
  for (const auto* edges :
       {&p.grains, &p.head_grains, &p.chunks, &p.head_chunks, &p.context_grains, &p.context_chunks})
    add(edges->hash());
  for (const sweep& s : p.sweeps) add(position(s.kind) << 32 | s.stage);
  for (const std::size_t n : {p.bytes.packing, p.bytes.checkpoints, p.bytes.stream, p.bytes.kept,
                              p.bytes.sums, p.bytes.region})
    add(n);
  return hash;
}

}  // namespace streambp
