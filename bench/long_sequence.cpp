// One step, value and gradient, of a transformer on long samples: seconds, FLOPs, the share of the
// machine's FMA peak, bytes predicted and measured, and where the time goes.

#include <CLI/CLI.hpp>
#include <ctime>
#include <streambp/core/random.hpp>
#include <streambp/engine/initialise.hpp>

#include "fma_peak.hpp"
#include "process_bytes.hpp"
#include "report.hpp"

using namespace streambp;
using bench::measurement;
using bench::precision;
using bench::settings;

namespace {

class stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

packed equal_samples(position tokens, position samples) {
  if (samples < 1 || tokens % samples != 0)
    throw shape_error(
        sentence(tokens, " tokens do not make ", samples, " samples of equal length"));
  std::vector<position> offsets;
  for (position s = 0; s <= samples; ++s) offsets.push_back(s * (tokens / samples));
  return packed(offsets);
}

std::vector<std::int32_t> random_tokens(position count, position vocabulary, std::uint64_t seed) {
  std::vector<std::int32_t> tokens;
  const random_key key{.seed = seed};
  for (position t = 0; t < count; ++t)
    tokens.push_back(std::int32_t(random_bits(key, t, 0) % std::uint64_t(vocabulary)));
  return tokens;
}

template <class S>
std::uint64_t bits_of(const std::vector<S>& values) {
  std::uint64_t hash = 0;
  for (const S v : values) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, &v, sizeof v);
    hash = mixed(hash, bits);
  }
  return hash;
}

template <class Planner>
step_plan chosen(Planner& planner, const settings& s) {
  if (s.plain) return planner.plain();
  if (s.checkpointing) return planner.checkpointing();
  if (const auto best = planner.search()) return *best;
  const std::size_t least = planner.search(true)->peak();
  throw budget_error(
      sentence("no exact plan of ", s.tokens, " tokens fits ", bytes_in_words(s.plan.budget),
               "; the least is ", bytes_in_words(least)),
      least);
}

template <class S>
measurement measure(const settings& s) {
  using device = bench::timed_device<S>;
  const auto model = bench::transformer(s.shape);
  using model_type = std::remove_const_t<decltype(model)>;
  measurement result;
  {
    const stopwatch planning;
    planner<device, model_type, cross_entropy> planner(model, equal_samples(s.tokens, s.samples),
                                                       s.plan);
    result.plan = chosen(planner, s);
    result.planning = planning.seconds();
    result.plan.least_flops = planner.plain().flops;
  }
  const auto tokens = random_tokens(s.tokens, s.shape.vocabulary, s.seed);
  const instance_list<model_type> list(model, 0);
  const auto parameters = initial_parameters<S>(list.table, s.seed);
  std::vector<S> gradient(parameters.size());
  const batch<S> data{.tokens = tokens, .labels = tokens};
  result.parameters = list.table.parameters;
  result.peak = bench::fma_peak<S>().flops;
  result.lanes = bench::fma_peak<S>().lanes;

  // From here on: what a step needs beyond parameters, gradients, tokens and labels.
  const std::size_t malloced = bench::malloc_bytes();
  const bool restarted = bench::restart_most_resident();
  const std::size_t resident = bench::resident_bytes();
  basic_engine<device, model_type, cross_entropy> engine(result.plan, model, {});
  result.malloced = bench::malloc_bytes() - malloced;
  for (int r = 0; r < s.repetitions; ++r) {
    std::fill(gradient.begin(), gradient.end(), S(0));
    if (r == 1) device::times = {};
    engine.reset_flops();
    const std::clock_t cpu = std::clock();
    const stopwatch step;
    result.loss = engine.add_gradient(parameters, data, gradient);
    result.seconds.push_back(step.seconds());
    result.cpu_seconds.push_back(double(std::clock() - cpu) / CLOCKS_PER_SEC);
  }
  if (restarted) result.resident = bench::most_resident_bytes() - resident;
  result.flops = position(engine.flops());
  result.arena = engine.high_water();
  result.times = device::times;
  result.gradient_bits = bits_of(gradient);
  result.peak = std::max(result.peak, bench::fma_peak<S>().flops);
  return result;
}

void add_options(CLI::App& app, settings& s) {
  app.option_defaults()->always_capture_default();
  const auto count = [&](const char* name, auto& value, const char* what) {
    return app.add_option(name, value, what)->check(CLI::PositiveNumber);
  };
  count("--width", s.shape.width, "features of a token");
  count("--blocks", s.shape.blocks, "attention and MLP each");
  count("--heads", s.shape.heads, "of queries");
  count("--kv-heads", s.shape.kv_heads, "of keys and values");
  count("--inner", s.shape.inner, "features inside the MLP");
  count("--vocabulary", s.shape.vocabulary, "");
  count("--tokens", s.tokens, "of all samples together");
  count("--samples", s.samples, "of equal length");
  count("--threads", s.plan.threads, "");
  count("--repetitions", s.repetitions, "of the step; the first touches fresh memory");
  app.add_option("--precision", s.scalar, "")
      ->transform(CLI::CheckedTransformer(
          std::map<std::string, precision>{{"fp32", precision::fp32}, {"fp64", precision::fp64}}));
  app.add_option("--seed", s.seed, "of parameters and tokens");

  app.option_defaults()->always_capture_default(false);
  app.add_option("--budget", s.plan.budget, "bytes for a step, such as 200MiB; none: no limit")
      ->transform(CLI::AsSizeValue(true))
      ->transform(CLI::Validator(
          [](std::string& given) {
            return given.find('-') == given.npos ? "" : "is " + given + "; it must be positive";
          },
          "", ""));
  count("--chunk", s.plan.chunk, "forced: tokens handled together");
  count("--head-chunk", s.plan.head_chunk, "forced: tokens in the head");
  count("--stage", s.plan.stage, "forced: blocks in a stage");
  app.add_flag("--no-keep", s.no_keep, "keep nothing but checkpoints");
  app.add_flag("--no-fuse", s.no_fuse, "run the head on its own");
  CLI::Option* plain = app.add_flag("--plain", s.plain, "plain backpropagation, one chunk");
  app.add_flag("--checkpointing", s.checkpointing, "a checkpoint a block, one chunk")
      ->excludes(plain);
  app.add_flag("--profile", s.profile, "print the time of each primitive");
  app.add_flag("--json", s.as_json, "print one line of JSON instead");
}

}  // namespace

int main(int argc, char** argv) {
  settings s;
  CLI::App app("One step of a transformer on long samples: seconds, FLOPs and bytes.");
  add_options(app, s);
  CLI11_PARSE(app, argc, argv);
  s.plan.keep = !s.no_keep;
  s.plan.fuse_head = !s.no_fuse;
  try {
    const measurement m = s.scalar == precision::fp32 ? measure<float>(s) : measure<double>(s);
    if (s.as_json)
      std::cout << bench::to_json(s, m).dump() << "\n";
    else
      bench::print(s, m);
    if (!std::cout.flush()) throw std::runtime_error("the result cannot be written");
  } catch (const std::exception& problem) {
    std::cerr << "long_sequence: " << problem.what() << "\n";
    return 1;
  }
}
