// What is asked of one step, and what was measured of it.
#pragma once

#include <algorithm>
#include <vector>

#include "timed_device.hpp"
#include "transformer.hpp"

namespace bench {

enum class precision { fp32, fp64 };

struct settings {
  transformer_shape shape;
  position tokens = 4096;
  position samples = 1;
  streambp::plan_options plan;
  bool no_keep = false;
  bool no_fuse = false;
  bool plain = false;
  bool checkpointing = false;
  int repetitions = 3;
  precision scalar = precision::fp32;
  std::uint64_t seed = 1;
  bool as_json = false;
  bool profile = false;
};

struct measurement {
  streambp::step_plan plan;
  position parameters = 0;
  double planning = 0;              // seconds
  std::vector<double> seconds;      // of each repetition
  std::vector<double> cpu_seconds;  // of all threads; fewer where others took the cores
  double loss = 0;
  std::uint64_t gradient_bits = 0;  // equal for equal bits
  position flops = 0;               // that the primitives of one step counted
  double peak = 0;                  // FLOPs a second of one core, in registers
  int lanes = 0;
  std::size_t arena = 0;     // handed out at most
  std::size_t malloced = 0;  // that the engine keeps outside the arena
  std::size_t resident = 0;  // growth of the whole process, in pages; 0: not known
  profile times{};           // of all repetitions but the first, or of the only one

  // The best repetition after the first, which touches fresh memory.
  static double best(const std::vector<double>& of) {
    return *std::min_element(of.begin() + (of.size() > 1), of.end());
  }
  double rate() const { return double(flops) / best(seconds); }
  int timed() const { return std::max(1, int(seconds.size()) - 1); }
  double share_of_peak() const { return rate() / (peak * plan.shape.threads); }
  // Of the time that the process had a core.
  double share_of_peak_by_cpu() const { return double(flops) / best(cpu_seconds) / peak; }
};

}  // namespace bench
