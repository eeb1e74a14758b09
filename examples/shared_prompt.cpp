// Completions behind a prompt that they share, which is computed once; and what is read out of a
// model: its loss, log-probabilities, the logits after the last tokens.
#include <streambp/streambp.hpp>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <numeric>

using namespace streambp;

int main() {
  constexpr position vocabulary = 32, width = 32;
  const auto model =
      embedding(vocabulary, width) |
      residual(rms_norm(width) | causal_attention({.features = width, .heads = 4, .rotary = 1e4})) |
      residual(rms_norm(width) | swiglu(width, 2 * width)) | rms_norm(width) |
      linear(width, vocabulary);

  // [prompt]
  // A prompt of 400 tokens, and two completions, of 20 and of 30, that both go on where it ends.
  const packed samples({0, 400, 420, 450}, {-1, 0, 0});
  // [/prompt]
  std::vector<std::int32_t> tokens;
  for (position t = 0; t < 400; ++t) tokens.push_back(std::int32_t(t % 7));
  for (position t = 0; t < 20; ++t) tokens.push_back(std::int32_t(8 + t % 5));
  for (position t = 0; t < 30; ++t) tokens.push_back(std::int32_t(16 + t % 3));
  // [labels]
  std::vector<std::int32_t> labels = tokens;
  std::fill_n(labels.begin(), 400, -100);  // completions alone are scored
  // [/labels]

  const auto p = plan(model, cross_entropy{}, samples, {.budget = 4_MiB});
  engine step(p, model, cross_entropy{});
  auto parameters = initial_parameters<float>(step.parameters(), 1);
  std::vector<float> gradient(parameters.size());
  adamw<float> optimizer(step.parameters());
  batch<float> data;
  data.tokens = tokens;
  data.labels = labels;
  const double first = step.value(parameters, data);
  for (int i = 0; i < 60; ++i) {
    std::fill(gradient.begin(), gradient.end(), 0.f);
    step.add_gradient(parameters, data, gradient);
    optimizer.update(parameters, gradient, 3e-3);
  }

  // [read]
  const double loss = step.value(parameters, data);  // the forward pass alone

  std::vector<double> log_p(std::size_t(samples.tokens()));
  step.log_probabilities(parameters, data, log_p);  // of each label; 0 where none is scored

  std::vector<float> logits(std::size_t(samples.segments() * vocabulary));
  const view<float> last(logits.data(), samples.segments(), vocabulary);
  step.last_results(parameters, data, last);  // after each segment's last token; needs no labels
  // [/read]

  std::cout << "loss " << first << " to " << loss << "\n";
  for (position s = 1; s < samples.segments(); ++s) {
    const row_range own = samples.segment(s);
    std::cout << "completion " << s << ": log-probability "
              << std::accumulate(&log_p[std::size_t(own.first)], log_p.data() + own.last, 0.)
              << ", next token "
              << std::max_element(last.row(s), last.row(s) + vocabulary) - last.row(s) << "\n";
  }
  const double mean = -std::accumulate(log_p.begin(), log_p.end(), 0.) / 50;
  return loss < first / 4 && std::abs(mean - loss) < 1e-5 ? 0 : 1;
}
