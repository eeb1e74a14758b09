// Trains a causal transformer on the bytes of a text, at a length whose plain backpropagation would
// not fit the memory it is given, and shows what the plan promised beside what was measured.
#include <streambp/streambp.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <numeric>
#include <thread>
#include <utility>

#include "byte_text.hpp"
#include "compare_plans.hpp"
#include "continuation.hpp"
#include "loss_plot.hpp"
#include "progress_bar.hpp"

using namespace streambp;

namespace {

struct experiment {
  std::string text = "examples/text/king_james.txt";
  std::string prompt = "And God said, ";
  std::string losses;  // file to write
  std::string state;   // file to write every ten steps, and to go on from
  position tokens = 8192;
  std::size_t budget = 80_MiB;
  position width = 256, blocks = 4, heads = 4;
  position steps = 40;
  double rate = 2e-3;
  position chunk = 0, head_chunk = 0, stage = 0;  // 0: the planner's choice
  int threads = int(std::max(std::thread::hardware_concurrency(), 1u));
  std::uint64_t seed = 1;
  // How much more than single bytes the end of the training may lose, in nats: all where nothing
  // but their shares can be learned, as of random bytes or of one byte again and again.
  double tolerance = 0.1;
};

// The whole path in well under a minute: the same length, a tenth of the work.
experiment quick_experiment() {
  experiment e;
  e.width = 64;
  e.blocks = 2;
  e.heads = 2;
  e.steps = 12;
  e.rate = 1e-2;
  e.budget = 24_MiB;
  e.tolerance = 0.3;
  return e;
}

auto transformer(const experiment& e) {
  const auto block =
      residual(rms_norm(e.width) |
               causal_attention({.features = e.width, .heads = e.heads, .rotary = 1e4})) |
      residual(rms_norm(e.width) | swiglu(e.width, 3 * e.width));
  return embedding(byte_vocabulary, e.width) | repeat(e.blocks, block) | rms_norm(e.width) |
         linear(e.width, byte_vocabulary);
}

using model_type = decltype(transformer(experiment{}));
using engine_type = engine<float, model_type, cross_entropy>;
using planner_type = planner<cpu::device<float>, model_type, cross_entropy>;

plan_options options_of(const experiment& e) {
  return {.budget = e.budget,
          .threads = e.threads,
          .chunk = e.chunk,
          .head_chunk = e.head_chunk,
          .stage = e.stage};
}

// Every byte is a token, and the label that the row before it predicts.
batch<float> batch_of(const std::vector<std::int32_t>& bytes) {
  batch<float> data;
  data.tokens = bytes;
  data.labels = bytes;
  return data;
}

void say(const std::string& label, const std::string& text) {
  std::cout << label << std::string(std::max(10 - int(label.size()), 1), ' ') << text << "\n";
}
std::string answer(bool holds) { return holds ? "yes" : "NO"; }
std::string rounded(const char* format, double value) {
  char text[48];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

// The most memory that the process has held so far, by the kernel's count.
std::string resident_peak() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (word == "VmHWM:") {
      std::size_t kibibytes = 0;
      status >> kibibytes;
      return bytes_in_words(kibibytes * 1_KiB);
    }
  return "unknown";
}

// The mean of the last five, or of all if there are fewer.
double mean_of_last(const std::vector<double>& losses) {
  const position n = std::min<position>(5, position(losses.size()));
  return std::accumulate(losses.end() - n, losses.end(), 0.) / double(n);
}

struct training {
  std::vector<float> parameters;
  std::vector<double> losses{};
  std::vector<double> of_single_bytes{};  // what knowing their shares of the text loses, by step
  double seconds = 0;
  position steps_before = 0;  // taken by the processes that this one goes on from
  std::string resident{};
};

// What a state must have been saved with for its training to go on.
progress progress_of(const experiment& e, const std::vector<std::int32_t>& text) {
  progress own;
  own.counts = {{"seed", e.seed},
                {"tokens", std::uint64_t(e.tokens)},
                {"steps of the schedule", std::uint64_t(e.steps)},
                {"bytes of the text", text.size()}};
  own.numbers = {{"rate", e.rate}};
  return own;
}

// Goes on from the state's file, if there is one.
void go_on(training& t, const engine_type& step, adamw<float>& optimizer, const experiment& e,
           const progress& own) {
  if (e.state.empty() || !std::filesystem::exists(e.state)) return;
  progress saved = load_training(e.state, step, t.parameters, optimizer).progress;
  const std::string losses = std::exchange(saved.bytes["losses"], "");
  saved.bytes.clear();
  if (saved != own || losses.size() != std::size_t(optimizer.steps()) * sizeof(double))
    throw std::runtime_error(
        e.state + ": was saved with another --seed, --tokens, --steps, --rate or --text");
  if (optimizer.steps() == e.steps)
    throw std::runtime_error(e.state + ": has all its steps; another --state starts anew");
  t.losses.resize(std::size_t(optimizer.steps()));
  std::memcpy(t.losses.data(), losses.data(), losses.size());
  t.steps_before = optimizer.steps();
  say("state", sentence("goes on from ", e.state, ", after ", t.steps_before, " steps"));
}
void save(const training& t, const engine_type& step, const adamw<float>& optimizer,
          const experiment& e, progress own) {
  own.bytes["losses"].assign(reinterpret_cast<const char*>(t.losses.data()),
                             t.losses.size() * sizeof(double));
  save_training(e.state, step, t.parameters, optimizer, own);
}

training train(engine_type& step, const experiment& e, const std::vector<std::int32_t>& text) {
  training t{.parameters = initial_parameters<float>(step.parameters(), e.seed)};
  std::vector<float> gradient(t.parameters.size());
  adamw<float> optimizer(step.parameters(), {.beta2 = 0.95, .decay = 0.1}, e.threads);
  const cosine_schedule rate{.peak = e.rate, .steps = e.steps, .warm_up = e.steps / 10};

  const std::vector<double> single = byte_losses(text);

  const progress own = progress_of(e, text);
  go_on(t, step, optimizer, e, own);
  for (position i = 1; i <= t.steps_before; ++i)
    t.of_single_bytes.push_back(mean_loss(single, window_of(text, e.tokens, e.seed, i)));

  progress_bar bar(e.steps, 5, t.steps_before);
  for (position i = t.steps_before + 1; i <= e.steps; ++i) {
    const std::vector<std::int32_t> bytes = window_of(text, e.tokens, e.seed, i);
    std::fill(gradient.begin(), gradient.end(), 0.f);
    t.losses.push_back(step.add_gradient(t.parameters, batch_of(bytes), gradient));
    t.of_single_bytes.push_back(mean_loss(single, bytes));
    const double norm = gradient_norm<float>(gradient);
    if (!std::isfinite(norm))
      throw std::runtime_error("the gradient is no longer finite; try a smaller --rate");
    optimizer.update(t.parameters, gradient, rate(i), clip_factor(norm, 1));

    char line[80];
    std::snprintf(line, sizeof line, "loss %.4f  %.0f tokens/s  %s", t.losses.back(),
                  double((i - t.steps_before) * e.tokens) / bar.seconds(),
                  bytes_in_words(step.high_water()).c_str());
    bar.show(i, line);
    if (!e.state.empty() && (i % 10 == 0 || i == e.steps)) save(t, step, optimizer, e, own);
  }
  t.seconds = bar.seconds();
  t.resident = resident_peak();
  return t;
}

void introduce(const experiment& e, const std::vector<std::int32_t>& text,
               const parameter_table& parameters, const typed_plan<float>& p) {
  say("text", sentence(e.text, ", ", text.size(), " bytes, entropy of a single byte ",
                       rounded("%.4f nats", byte_entropy(text))));
  say("model",
      sentence(parameters.parameters, " parameters: width ", e.width, ", ", e.blocks, " blocks of ",
               e.heads, " heads, ", byte_vocabulary, " tokens; ", cpu::isa));
  std::cout << p << std::endl;
}

// Whether it learned from exact gradients in the memory that was planned, said in full.
bool report(const experiment& e, const engine_type& step, const training& t,
            const plan_comparison& c, std::size_t plain, std::size_t checkpointing) {
  const step_plan& p = step.plan();
  const double last = mean_of_last(t.losses), single = mean_of_last(t.of_single_bytes),
               steps = double(e.steps - t.steps_before), tokens = double(e.tokens) * steps;
  const bool learned = last <= single + e.tolerance, exact = step.high_water() == p.peak(),
             needed = e.budget < plain;
  std::cout << "\n";
  say("loss", sentence("first ", rounded("%.4f", t.losses.front()), ", mean of the last five ",
                       rounded("%.4f", last), "; shares of single bytes give ",
                       rounded("%.4f", single), " there: ",
                       last < single ? "below it"
                       : learned     ? "not below it, but near"
                                     : "NOT NEAR IT"));
  say("speed", sentence(rounded("%.0f tokens/s", tokens / t.seconds), ", ",
                        rounded("%.1f GFLOP/s", double(p.flops) * steps / t.seconds * 1e-9), ", ",
                        rounded("%.0f s", t.seconds), " in all"));
  say("peak", sentence("predicted ", p.peak(), " bytes, measured ", step.high_water(),
                       "; equal: ", answer(exact)));
  say("", sentence("budget ", bytes_in_words(e.budget), ", checkpoint every block ",
                   bytes_in_words(checkpointing), ", unchunked ", bytes_in_words(plain),
                   needed ? "; only the plan fits" : "; unchunked fits, too"));
  say("", "the whole process with parameters, moments and text: " + t.resident);
  say("gradients",
      sentence("of ", c.tokens, " tokens: streamed (", bytes_in_words(c.streamed),
               "), checkpointed (", bytes_in_words(c.checkpointed), "), unchunked (",
               bytes_in_words(c.unchunked), "); the same bits: ", answer(c.same_bits)));
  return learned && exact && p.peak() <= e.budget && c.same_bits;
}

void save_losses(const experiment& e, const training& t, double entropy) {
  if (e.losses.empty()) return;
  write_losses(e.losses, t.losses);
  const std::string picture = e.losses + ".png";
  const bool drawn = draw_losses(e.losses, picture, entropy);
  say("losses", "in " + e.losses + (drawn ? ", drawn in " + picture : ""));
}

bool run(const experiment& e) {
  if (e.prompt.empty()) throw std::runtime_error("--prompt is empty; give it a byte or more");
  const auto text = read_text(e.text, e.tokens);
  const auto model = transformer(e);
  planner_type others(model, packed::one(e.tokens), options_of(e));
  const std::size_t plain = others.plain().peak(), checkpointing = others.checkpointing().peak();

  const auto p = plan(model, cross_entropy{}, packed::one(e.tokens), options_of(e));
  engine_type step(p, model, cross_entropy{});
  introduce(e, text, step.parameters(), p);
  if (!e.losses.empty()) write_losses(e.losses, {});  // what cannot be written is known before
  const training t = train(step, e, text);
  const plan_comparison c =
      compare_plans(model, p, t.parameters, window_of(text, e.tokens, e.seed, 0), 1_GiB);
  const bool holds = report(e, step, t, c, plain, checkpointing);

  std::string said = continuation(model, t.parameters, e.prompt, 80, e.threads, e.seed);
  for (char& letter : said)  // a byte that the text does not hold may be half one, or a bell
    if (std::find(text.begin(), text.end(), static_cast<unsigned char>(letter)) == text.end())
      letter = '?';
  std::cout << "\n" << said << "\n";
  save_losses(e, t, byte_entropy(text));
  return holds;
}

void add_options(CLI::App& app, experiment& e) {
  const auto number = [&](const char* name, auto& value, int least, const char* what) {
    app.add_option(name, value, what)
        ->check([least](const std::string& given) {
          const double value = std::strtod(given.c_str(), nullptr);
          return !(value >= least && std::isfinite(value))
                     ? sentence("is ", given, "; it must be ", least, " or more")
                     : "";
        })
        ->capture_default_str();
  };
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  app.add_flag("--quick")->description(
      "a small model, few steps: the whole path in under a minute");
  app.add_option("--text", e.text, "file whose bytes are learned")->capture_default_str();
  app.add_option("--budget", e.budget, "memory of a step, such as 80MiB")
      ->transform(CLI::AsSizeValue(false))
      ->transform(CLI::Validator(
          [](std::string& given) {
            return given.find('-') == given.npos ? "" : "is " + given + "; it must be positive";
          },
          "", ""))
      ->default_str(bytes_in_words(e.budget));
  number("--tokens", e.tokens, 2, "bytes a sample");
  number("--width", e.width, 1, "features of a token");
  number("--blocks", e.blocks, 1, "blocks of attention and MLP");
  number("--heads", e.heads, 1, "attention heads");
  number("--steps", e.steps, 1, "optimizer steps");
  number("--rate", e.rate, 0, "highest learning rate");
  number("--chunk", e.chunk, 0, "rows a chunk; 0: planned");
  number("--head-chunk", e.head_chunk, 0, "rows a chunk of the head; 0: planned");
  number("--stage", e.stage, 0, "blocks a stage; 0: planned");
  number("--threads", e.threads, 1, "threads");
  number("--seed", e.seed, 0, "of parameters, samples and the continuation");
  app.add_option("--prompt", e.prompt, "text to continue")->capture_default_str();
  app.add_option("--state", e.state, "file to save the training in, and to go on from");
  app.add_option("--losses", e.losses, "file for the losses; gnuplot draws them in FILE.png");
}

}  // namespace

int main(int count, char** arguments) {
  const bool quick = std::any_of(arguments, arguments + count,
                                 [](const char* a) { return std::strcmp(a, "--quick") == 0; });
  experiment e = quick ? quick_experiment() : experiment{};
  CLI::App app("Trains a causal transformer on the bytes of a text within a budget of memory.");
  app.footer(sentence(
      "Status 0: the arena held the bytes that were planned, gradients have the bits of plain\n"
      "backpropagation, and the last five losses are, on average, at most ",
      e.tolerance,
      " nats above what\nthe shares of single bytes in the text give for the same bytes."));
  add_options(app, e);
  try {
    app.parse(count, arguments);
    return run(e) ? 0 : 1;
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& problem) {
    std::cerr << "train_text: " << problem.what() << "; --help lists the options\n";
  } catch (const std::exception& problem) {
    std::cerr << "train_text: " << problem.what() << "\n";
  }
  return 1;
}
