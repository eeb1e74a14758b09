// Several completions of one prompt: packed behind the prompt that they share, against full samples
// that each repeat it. The same gradients, for the work of one prompt.

#include <CLI/CLI.hpp>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <iostream>

#include "transformer.hpp"

using namespace streambp;

namespace {

struct settings {
  bench::transformer_shape shape{
      .width = 128, .blocks = 2, .heads = 4, .kv_heads = 2, .inner = 384, .vocabulary = 1024};
  position prompt = 4000, completions = 8, length = 200;
  std::size_t budget = unlimited;
  int threads = 1, repetitions = 3;
  bool fp64 = false;
  std::uint64_t seed = 1;
};

// Samples, their tokens and labels; those of the prompt do not count.
struct text {
  std::vector<position> offsets{0}, parents;
  std::vector<std::int32_t> tokens, labels;

  void add(const settings& s, std::uint64_t sample, position count, bool counts) {
    for (position i = 0; i < count; ++i) {
      const random_key key{.seed = s.seed, .sample = sample};
      tokens.push_back(std::int32_t(random_bits(key, i, 0) % std::uint64_t(s.shape.vocabulary)));
      labels.push_back(counts ? tokens.back() : -100);
    }
  }
  void close(position parent) {
    offsets.push_back(position(tokens.size()));
    parents.push_back(parent);
  }
  packed samples() const { return {offsets, parents}; }
};

text behind_one_prompt(const settings& s) {
  text t;
  t.add(s, 0, s.prompt, false);
  t.close(-1);
  for (position c = 1; c <= s.completions; ++c) {
    t.add(s, std::uint64_t(c), s.length, true);
    t.close(0);
  }
  return t;
}

text full_samples(const settings& s) {
  text t;
  for (position c = 1; c <= s.completions; ++c) {
    t.add(s, 0, s.prompt, false);
    t.add(s, std::uint64_t(c), s.length, true);
    t.close(-1);
  }
  return t;
}

using model_type = decltype(bench::transformer({}));

template <class S>
planner<cpu::device<S>, model_type, cross_entropy> planner_for(const settings& s,
                                                               const packed& samples,
                                                               position prefix = 0) {
  return {bench::transformer(s.shape), samples,
          plan_options{.budget = s.budget, .threads = s.threads, .prefix = prefix}};
}

template <class S>
struct run {
  engine<S, model_type, cross_entropy> step;
  const text& data;
  std::vector<S> gradient;
  double value = 0, seconds = 1e300, cpu_seconds = 1e300;

  run(const settings& s, const text& t)
      : step(plan<S>(bench::transformer(s.shape), cross_entropy{}, t.samples(),
                     {.budget = s.budget, .threads = s.threads}),
             bench::transformer(s.shape), {}),
        data(t) {}

  void repeat(const std::vector<S>& parameters) {
    batch<S> b;
    b.tokens = data.tokens;
    b.labels = data.labels;
    gradient.assign(std::size_t(step.parameters().gradients), S(0));
    step.reset_flops();
    const auto begin = std::chrono::steady_clock::now();
    const std::clock_t cpu = std::clock();
    value = step.add_gradient(parameters, b, gradient);
    cpu_seconds = std::min(cpu_seconds, double(std::clock() - cpu) / CLOCKS_PER_SEC);
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    seconds = std::min(seconds, taken.count());
  }
};

// The largest difference of two gradients, relative to the largest entry of its tensor.
template <class S>
double difference(const parameter_table& table, const std::vector<S>& a, const std::vector<S>& b) {
  double worst = 0;
  for (const auto& e : table.entries) {
    double most = 0, apart = 0;
    for (auto i = std::size_t(e.gradient); i < std::size_t(e.gradient + e.size()); ++i) {
      most = std::max(most, std::abs(double(a[i])));
      apart = std::max(apart, std::abs(double(a[i]) - double(b[i])));
    }
    worst = std::max(worst, apart / most);
  }
  return worst;
}

// True if the gradients are equal to rounding, and the FLOPs those of one prompt.
template <class S>
bool measure(const settings& s) {
  const text one = behind_one_prompt(s), many = full_samples(s);
  run<S> shared(s, one), full(s, many);
  const std::vector<S> parameters = initial_parameters<S>(shared.step.parameters(), s.seed);
  for (int r = 0; r < s.repetitions; ++r) {
    shared.repeat(parameters);
    full.repeat(parameters);
  }

  // Without recomputation: the prompt alone, and completions that find its memory ready.
  std::vector<position> alone;
  for (position c = 0; c <= s.completions; ++c) alone.push_back(c * s.length);
  const big_count of_prompt = planner_for<S>(s, packed::one(s.prompt)).plain().flops,
                 of_completions = planner_for<S>(s, packed(alone), s.prompt).plain().flops,
                 of_shared = planner_for<S>(s, one.samples()).plain().flops,
                 of_full = planner_for<S>(s, many.samples()).plain().flops;

  std::printf("%ld completions of %ld tokens behind a prompt of %ld; width %ld, %ld blocks, %s\n\n",
              long(s.completions), long(s.length), long(s.prompt), long(s.shape.width),
              long(s.shape.blocks), s.fp64 ? "fp64" : "fp32");
  std::printf("%-26s %12s %12s %8s\n", "", "shared", "full", "ratio");
  const auto line = [](const char* name, double a, double b) {
    std::printf("%-26s %12.4g %12.4g %8.3f\n", name, a, b, b / a);
  };
  line("rows", double(one.tokens.size()), double(many.tokens.size()));
  line("FLOPs, plain", double(of_shared), double(of_full));
  line("FLOPs counted", double(shared.step.flops()), double(full.step.flops()));
  line("seconds", shared.seconds, full.seconds);
  line("CPU seconds", shared.cpu_seconds, full.cpu_seconds);
  line("bytes of the arena", double(shared.step.high_water()), double(full.step.high_water()));

  const double apart = difference(shared.step.parameters(), full.gradient, shared.gradient);
  const bool equal = apart < (s.fp64 ? 1e-12 : 1e-4) &&
                     std::abs(shared.value - full.value) < 1e-5 * std::abs(full.value);
  const bool once = of_shared == of_prompt + of_completions;
  std::printf("\nloss %.9f and %.9f; gradients differ by %.2g of their largest entries: %s\n",
              shared.value, full.value, apart, equal ? "equal to rounding" : "NOT EQUAL");
  std::printf("FLOPs of one prompt and %ld completions that see it: %.6g + %.6g; shared's: %s\n",
              long(s.completions), double(of_prompt), double(of_completions),
              once ? "equal" : "NOT EQUAL");
  return equal && once;
}

void add_options(CLI::App& app, settings& s) {
  app.option_defaults()->always_capture_default();
  const auto count = [&](const char* name, auto& value, const char* what) {
    app.add_option(name, value, what)->check(CLI::PositiveNumber);
  };
  count("--width", s.shape.width, "features of a token");
  count("--blocks", s.shape.blocks, "attention and MLP each");
  count("--heads", s.shape.heads, "of queries");
  count("--kv-heads", s.shape.kv_heads, "of keys and values");
  count("--inner", s.shape.inner, "features inside the MLP");
  count("--vocabulary", s.shape.vocabulary, "");
  count("--prompt", s.prompt, "tokens");
  count("--completions", s.completions, "");
  count("--length", s.length, "tokens of a completion");
  count("--threads", s.threads, "");
  count("--repetitions", s.repetitions, "of both steps, in turns; the best counts");
  app.add_option("--seed", s.seed, "of parameters and tokens");
  app.add_flag("--fp64", s.fp64, "");
  app.option_defaults()->always_capture_default(false);
  app.add_option("--budget", s.budget, "bytes for a step, such as 200MiB; none: no limit")
      ->transform(CLI::AsSizeValue(true));
}

}  // namespace

int main(int argc, char** argv) {
  settings s;
  CLI::App app("Completions behind a shared prompt against full samples.");
  add_options(app, s);
  CLI11_PARSE(app, argc, argv);
  try {
    return (s.fp64 ? measure<double>(s) : measure<float>(s)) ? 0 : 1;
  } catch (const std::exception& problem) {
    std::cerr << "shared_prompt: " << problem.what() << "\n";
    return 1;
  }
}
