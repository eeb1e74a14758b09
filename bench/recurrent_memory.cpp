// A recurrent model's activation bytes from sixteen thousand to a million tokens, and training it
// on one sample of that length: no checkpoint, no gradient stream, states in two levels.

#include <CLI/CLI.hpp>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <iostream>
#include <iterator>
#include <streambp/streambp.hpp>

#include "process_bytes.hpp"

using namespace streambp;

namespace {

struct settings {
  position width = 64, states = 0, blocks = 2;  // states 0: the width
  position first = 1 << 14, last = 1 << 20;
  int threads = 1;
  bool train = false;
  std::vector<std::string> texts{"examples/text/king_james.txt"};
  position tokens = 0;  // 0: the whole text
  int steps = 3;
  double rate = 3e-3;
  std::uint64_t seed = 1;
};

constexpr position bytes = 256;  // a token is a byte

auto recurrent_model(const settings& s) {
  return embedding(bytes, s.width) |
         repeat(s.blocks, residual(rms_norm(s.width) | gated_recurrence(s.width, s.states))) |
         rms_norm(s.width) | linear(s.width, bytes);
}
using model_type = decltype(recurrent_model(settings{}));

// Of fewest bytes.
step_plan least_plan(const settings& s, position tokens) {
  const plan_options options{.threads = s.threads, .keep = false};
  planner<cpu::device<float>, model_type, cross_entropy> plans(recurrent_model(s),
                                                               packed::one(tokens), options);
  return *plans.search(true);
}

// What grows with the tokens: all but the operands that products pack.
std::size_t activations(const step_plan& p) { return p.peak() - p.bytes.packing; }

void print_growth(const settings& s) {
  std::printf("width %ld, %ld states, %ld blocks, fp32, %s\n", long(s.width), long(s.states),
              long(s.blocks), cpu::isa);
  std::printf("%10s %7s %9s %8s %12s %11s %9s %9s\n", "tokens", "chunk", "interval", "states",
              "activations", "and packing", "growth", "of root");
  std::size_t before = 0;
  position shorter = 0;
  for (position tokens = s.first; tokens <= s.last; tokens *= 2) {
    const step_plan p = least_plan(s, tokens);
    std::printf("%10ld %7ld %9ld %8ld %12s %11s", long(tokens), long(p.largest_chunk()),
                long(p.choice.carry_interval), long(p.carry_snapshots().rows()),
                bytes_in_words(activations(p)).c_str(), bytes_in_words(p.peak()).c_str());
    if (before > 0) {
      const double growth = double(activations(p)) / double(before);
      std::printf(" %9.3f %9.3f", growth, growth / std::sqrt(double(tokens) / double(shorter)));
    }
    std::printf("\n");
    before = activations(p);
    shorter = tokens;
  }
}

// The files one after another, as many bytes as asked for. Throws std::runtime_error when one
// cannot be read.
std::vector<std::int32_t> read_texts(const settings& s) {
  std::string text;
  for (const std::string& path : s.texts) {
    std::ifstream file(path, std::ios::binary);
    const std::string own{std::istreambuf_iterator<char>(file), {}};
    if (own.empty()) throw std::runtime_error("the text '" + path + "' cannot be read or is empty");
    text += own;
  }
  if (s.tokens > position(text.size()))
    std::printf("%ld tokens were asked for, the text has %zu: all of it is taken\n", long(s.tokens),
                text.size());
  if (s.tokens > 0 && s.tokens < position(text.size())) text.resize(std::size_t(s.tokens));
  const auto* first = reinterpret_cast<const unsigned char*>(text.data());
  return {first, first + text.size()};
}

const char* outcome(bool holds) { return holds ? "yes" : "NO"; }

// True if the plan is what it should be and the loss fell.
bool train(const settings& s) {
  const std::vector<std::int32_t> text = read_texts(s);
  const step_plan p = least_plan(s, position(text.size()));
  const auto model = recurrent_model(s);
  const std::size_t resident = bench::resident_bytes();
  bench::restart_most_resident();
  engine<float, model_type, cross_entropy> step(typed_plan<float>{p}, model, cross_entropy{});
  std::vector<float> parameters = initial_parameters<float>(step.parameters(), s.seed);
  std::vector<float> gradient(parameters.size());
  adamw<float> optimizer(step.parameters(), {}, s.threads);

  std::printf("\none sample of %zu tokens, %zu parameters, chunks of %ld, a state kept every %ld\n",
              text.size(), parameters.size(), long(p.largest_chunk()),
              long(p.choice.carry_interval));
  batch<float> data;
  data.tokens = data.labels = text;
  double first = 0, loss = 0;
  for (int i = 1; i <= s.steps; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    const std::clock_t cpu = std::clock();
    std::fill(gradient.begin(), gradient.end(), 0.f);
    loss = step.add_gradient(parameters, data, gradient);
    const double norm = gradient_norm<float>(gradient);
    optimizer.update(parameters, gradient, s.rate, clip_factor(norm, 1));
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    const double cpu_seconds = double(std::clock() - cpu) / CLOCKS_PER_SEC;
    std::printf("step %2d  loss %.5f  gradient %.4f  %.2f s, %.2f of the CPU  %.0f tokens/s\n", i,
                loss, norm, seconds.count(), cpu_seconds, double(text.size()) / seconds.count());
    std::fflush(stdout);
    if (i == 1) first = loss;
  }
  const bool exact = step.high_water() == p.peak();
  const bool fell = std::isfinite(loss) && loss < first;
  const bool bare = p.bytes.checkpoints == 0 && p.bytes.stream == 0;
  std::printf("peak predicted %zu bytes, measured %zu: equal: %s\n", p.peak(), step.high_water(),
              outcome(exact));
  std::printf("the process grew by %s, parameters and gradients included\n",
              bytes_in_words(bench::most_resident_bytes() - resident).c_str());
  std::printf("checkpoints %zu bytes, gradient stream %zu bytes; none: %s\nthe loss fell: %s\n",
              p.bytes.checkpoints, p.bytes.stream, outcome(bare), outcome(fell));
  return exact && fell && bare;
}

void add_options(CLI::App& app, settings& s) {
  app.option_defaults()->always_capture_default();
  const auto count = [&](const char* name, auto& value, const char* what) {
    app.add_option(name, value, what)->check(CLI::PositiveNumber);
  };
  count("--width", s.width, "features of a token");
  count("--blocks", s.blocks, "recurrences");
  count("--first", s.first, "tokens of the first plan; each next one has twice as many");
  count("--last", s.last, "tokens of the last plan at most");
  count("--threads", s.threads, "");
  count("--steps", s.steps, "of the optimizer");
  count("--rate", s.rate, "learning rate");
  app.add_option("--states", s.states, "of a recurrence; 0: the width")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--tokens", s.tokens, "bytes of the text to train on; 0: all")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--text", s.texts, "files, one after another");
  app.add_option("--seed", s.seed, "of parameters");
  app.add_flag("--train", s.train, "train on one sample, all of the text");
}

}  // namespace

int main(int argc, char** argv) {
  settings s;
  CLI::App app("A recurrent model's bytes over its length, and training on one long sample.");
  add_options(app, s);
  CLI11_PARSE(app, argc, argv);
  if (s.states == 0) s.states = s.width;
  try {
    print_growth(s);
    return !s.train || train(s) ? 0 : 1;
  } catch (const std::exception& problem) {
    std::cerr << "recurrent_memory: " << problem.what() << "\n";
    return 1;
  }
}
