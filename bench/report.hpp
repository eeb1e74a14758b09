// A measurement for people, as a table, and for programs, as JSON.
#pragma once

#include <iomanip>
#include <iostream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <streambp/planner/print.hpp>

#include "measurement.hpp"

namespace bench {

using nlohmann::json;
using streambp::bytes_in_words;

inline json stages_of(const streambp::step_plan& p) {
  json all = json::array();
  for (const streambp::stage_plan& s : p.choice.stages)
    all.push_back({{"first", s.first},
                   {"last", s.last},
                   {"keeps_memory", s.keeps_memory},
                   {"keeps_outputs", s.keeps_outputs},
                   {"keeps_chunk", s.keeps_chunk}});
  return all;
}

inline json times_of(const measurement& m) {
  json all = json::object();
  for (std::size_t p = 0; p < m.times.size(); ++p)
    if (m.times[p].calls > 0)
      all[primitive_names[p]] = {{"seconds", m.times[p].seconds / m.timed()},
                                 {"calls", m.times[p].calls / m.timed()},
                                 {"flops", m.times[p].flops / m.timed()}};
  return all;
}

inline json to_json(const settings& s, const measurement& m) {
  const transformer_shape& shape = s.shape;
  return {{"width", shape.width},
          {"blocks", shape.blocks},
          {"heads", shape.heads},
          {"kv_heads", shape.kv_heads},
          {"inner", shape.inner},
          {"vocabulary", shape.vocabulary},
          {"parameters", m.parameters},
          {"tokens", s.tokens},
          {"samples", s.samples},
          {"precision", s.scalar == precision::fp32 ? "fp32" : "fp64"},
          {"threads", m.plan.shape.threads},
          {"instruction_set", streambp::cpu::isa},
          {"lanes", m.lanes},
          {"chunk", m.plan.largest_chunk()},
          {"head_chunk", m.plan.largest_head_chunk()},
          {"fuses_head", m.plan.choice.fuses_head},
          {"stages", stages_of(m.plan)},
          {"planning_seconds", m.planning},
          {"seconds", m.seconds},
          {"cpu_seconds", m.cpu_seconds},
          {"flops", m.flops},
          {"planned_flops", position(m.plan.flops)},
          {"plain_flops", position(m.plan.least_flops)},
          {"peak_flops", m.peak * m.plan.shape.threads},
          {"share_of_peak", m.share_of_peak()},
          {"share_of_peak_by_cpu", m.share_of_peak_by_cpu()},
          {"predicted_bytes", m.plan.peak()},
          {"arena_bytes", m.arena},
          {"malloc_bytes", m.malloced},
          {"resident_bytes", m.resident},
          {"loss", m.loss},
          {"gradient_bits", streambp::sentence(std::hex, m.gradient_bits)},
          {"primitives", times_of(m)}};
}

inline void print_profile(const measurement& m) {
  const double step =
      std::accumulate(m.seconds.begin() + (m.seconds.size() > 1), m.seconds.end(), 0.0) / m.timed();
  const double peak = m.peak * m.plan.shape.threads;
  double rest = step;
  std::cout << "\nprimitive                   seconds  of step   calls   GFLOP/s  of peak\n";
  const auto line = [&](const char* name, double seconds, position calls, double flops) {
    std::cout << std::left << std::setw(26) << name << std::right << std::setprecision(3)
              << std::setw(9) << seconds << std::setprecision(1) << std::setw(8)
              << 100 * seconds / step << " %";
    if (calls > 0) std::cout << std::setw(8) << calls;
    if (flops > 0)
      std::cout << std::setw(10) << flops / seconds * 1e-9 << std::setw(7)
                << 100 * flops / seconds / peak << " %";
    std::cout << "\n";
  };
  for (std::size_t p = 0; p < m.times.size(); ++p) {
    const double seconds = m.times[p].seconds / m.timed();
    rest -= seconds;
    if (m.times[p].calls > 0)
      line(primitive_names[p], seconds, m.times[p].calls / m.timed(),
           double(m.times[p].flops) / m.timed());
  }
  line("in no primitive", rest, 0, 0);
}

inline void print(const settings& s, const measurement& m) {
  const int threads = m.plan.shape.threads;
  const auto line = [](const char* name) -> std::ostream& {
    return std::cout << "\n" << std::left << std::setw(20) << name << std::right;
  };
  std::cout << m.plan << "\n"
            << std::fixed << std::setprecision(2) << double(m.parameters) * 1e-6
            << " M parameters, " << (s.scalar == precision::fp32 ? "fp32, " : "fp64, ")
            << streambp::cpu::isa << ", planned in " << m.planning << " s";
  line("seconds");
  for (const double t : m.seconds) std::cout << t << " ";
  line("CPU seconds");
  for (const double t : m.cpu_seconds) std::cout << t << " ";
  line("FLOPs counted") << m.flops;
  line("rate") << m.rate() * 1e-9 << " GFLOP/s, " << 100 * m.share_of_peak()
               << " % of an FMA peak of " << m.peak * threads * 1e-9 << "; "
               << 100 * m.share_of_peak_by_cpu() << " % by CPU seconds";
  line("bytes of the arena") << m.arena;
  line("bytes beside it") << m.malloced << " of malloc";
  line("process grew by") << (m.resident > 0 ? bytes_in_words(m.resident) : "an unknown amount");
  line("loss") << std::setprecision(6) << m.loss;
  line("gradient's bits") << std::hex << m.gradient_bits << std::dec << "\n";
  if (s.profile) print_profile(m);
}

}  // namespace bench
