// What the laws need of a layer or loss: plans to try, and steps under any of them. The laws know
// no type of model, so that they are compiled once.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>

#include "../schedule/parameters.hpp"
#include "../schedule/plan.hpp"
#include "outcome.hpp"
#include "report.hpp"
#include "setting.hpp"
#include "watch.hpp"

namespace streambp::laws {

// The data of one step.
struct given {
  packed samples;
  std::vector<std::uint64_t> ids;  // of samples
  std::vector<double> parameters;
  std::vector<double> rows;          // (tokens, features)
  std::vector<std::int32_t> tokens;  // instead of rows
  packed beside;                     // the other stream of a layer that crosses to one
  std::vector<double> context;       // its rows, (tokens, features)
  std::vector<double> c;             // (tokens, results): a layer's loss is Σ c ∘ y
  std::vector<std::int32_t> labels;  // of a loss under test
  std::vector<double> weights;
  double normaliser = 0;
  std::uint64_t seed = 11, step = 5;
  position prefix = 0;
  std::vector<double> initial;  // states and prefix memories
};

// A plan in an engine.
class stepper {
 public:
  virtual ~stepper() = default;
  virtual double value(const given& data) = 0;
  // Adds to `start`'s gradients; without it, to 0.
  virtual outcome step(const given& data, const outcome* start = nullptr) = 0;
};

struct plan_list {
  step_plan plain;     // one chunk, cuts only where they are forced, everything kept
  step_plan streamed;  // a chunk a grain, every cut, nothing kept; one thread
  std::vector<step_plan> others;
};

class subject {
 public:
  virtual ~subject() = default;
  virtual const parameter_table& parameters() const = 0;
  virtual position initial_size(position prefix) const = 0;
  virtual plan_list plans(const packed& samples, position prefix, const packed& beside = {}) = 0;
  virtual step_plan streamed(const packed& samples, position prefix, const packed& beside = {},
                             int threads = 1) = 0;
  virtual step_plan plain(const packed& samples, position prefix, const packed& beside = {}) = 0;
  virtual std::unique_ptr<stepper> run(const step_plan& plan) = 0;

  position results = 0;  // width of y
  position features = 0;
  dependency split{};
  bool single = false;  // fp32
  bool scores = false;  // a loss is on trial: labels count
  std::int32_t ignored = -100;
  bool reaches_rows = true;  // the host can watch what a layer's calls read and write
  bool couples = false;      // the value is no sum over samples
  bool owns_rows = false;    // a loss that may hold rows of its own, by their place in the batch
  watch watched{};           // of the layers inside
  report* into = nullptr;    // steps report broken promises here

  double epsilon() const {
    return single ? std::numeric_limits<float>::epsilon() : std::numeric_limits<double>::epsilon();
  }
  double rounded(double v) const { return single ? double(float(v)) : v; }
};

// Deterministic data, gains near 1 and everything else near 0.
inline given data_for(const subject& of, const setting& s, position prefix) {
  given d;
  d.samples = s.samples;
  d.prefix = prefix;
  const auto fill = [&](std::vector<double>& to, position n, int seed, double scale, double shift) {
    for (position i = 0; i < n; ++i)
      to.push_back(of.rounded(shift + scale * wave(i, 16 * (position(s.seed) % 100'000) + seed)));
  };
  const position n = s.samples.tokens();
  for (position k = 0; k < s.samples.segments(); ++k) d.ids.push_back(100 + std::uint64_t(k));
  for (const auto& entry : of.parameters().entries)
    fill(d.parameters, entry.size(), 100 + int(entry.offset % 1000),
         std::max(entry.initial.deviation, 0.3), entry.initial.mean);
  fill(d.rows, n * s.features, 1, 1.5, 0);
  fill(d.c, n * of.results, 2, 1, 0);
  if (of.split.crosses) {
    d.beside = beside(s.samples);
    fill(d.context, d.beside.tokens() * s.features, 5, 1.5, 0);
  }
  if (s.features == 0 && s.vocabulary == 0)
    throw shape_error(
        "laws: rows of 0 features; for a layer of tokens write laws::tokens(37, vocabulary)");
  if (s.features == 0)
    for (position t = 0; t < n; ++t)
      d.tokens.push_back(std::int32_t((7 * t * t + 3 * t) % s.vocabulary));
  if (of.scores) {
    for (position t = 0; t < n; ++t)
      d.labels.push_back(t % 5 == 2 ? of.ignored : std::int32_t((5 * t * t + t) % of.results));
    if (s.weights) fill(d.weights, n, 3, 0.5, 1);
  }
  if (const position size = of.initial_size(prefix); size > 0) fill(d.initial, size, 4, 0.7, 0);
  return d;
}

// A plan in words.
inline std::string words(const step_plan& p) {
  std::string text =
      sentence("chunks of ", p.choice.chunk, ", head chunks of ", p.choice.head_chunk,
               p.choice.fuses_head ? " (fused)" : "", ", a carry every ", p.choice.carry_interval,
               p.choice.carry_interval == 1 ? " chunk, " : " chunks, ", p.shape.threads,
               p.shape.threads == 1 ? " thread" : " threads");
  for (const stage_plan& s : p.choice.stages)
    text +=
        sentence(", stage ", s.first, "-", s.last, s.keeps_memory ? " keeps memory" : "",
                 s.keeps_outputs ? " keeps outputs" : "", s.keeps_chunk ? " keeps a chunk" : "");
  return text;
}

}  // namespace streambp::laws
