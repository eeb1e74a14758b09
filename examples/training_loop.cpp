// A training loop as in PyTorch: batches of other lengths each time, every one planned; gradients
// accumulated over a window; clipping, a schedule; parameters by name; what is final early.
#include <streambp/streambp.hpp>

#include <algorithm>
#include <cmath>
#include <iostream>

using namespace streambp;

// [collate]
// What a collate_fn makes, without padding: samples one after another, and where each ends.
struct packed_data {
  std::vector<position> offsets{0};
  std::vector<std::int32_t> tokens, labels;

  // The first `prompt` tokens are read, and not scored.
  void add(const std::vector<std::int32_t>& sample, position prompt) {
    tokens.insert(tokens.end(), sample.begin(), sample.end());
    labels.insert(labels.end(), prompt, -100);                           // the ignore_index
    labels.insert(labels.end(), sample.begin() + prompt, sample.end());  // the tokens, NOT shifted
    offsets.push_back(position(tokens.size()));
  }
  packed samples() const { return packed(offsets); }
  batch<float> data() const {
    batch<float> b;  // spans: nothing is copied, so the vectors must outlive it
    b.tokens = tokens;
    b.labels = labels;
    return b;
  }
};
// [/collate]

// Two batches of five samples of 20 to 60 tokens, others at each step: token t is (t + start)²
// mod 25.
std::vector<packed_data> draw(position step) {
  std::vector<packed_data> window(2);
  for (packed_data& part : window)
    for (position s = 0; s < 5; ++s) {
      const random_key key{1, std::uint64_t(step), std::uint64_t(&part - window.data()), 0};
      const auto start = std::int32_t(random_bits(key, s, 0) % 25);
      std::vector<std::int32_t> sample(20 + random_bits(key, s, 1) % 41);
      for (std::int32_t t = 0; t < std::int32_t(sample.size()); ++t)
        sample[std::size_t(t)] = (t + start) * (t + start) % 25;
      part.add(sample, 3);
    }
  return window;
}

// The largest difference, relative to the largest entry.
double difference(const std::vector<float>& a, const std::vector<float>& b) {
  double most = 0, largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    most = std::max(most, std::abs(double(a[i]) - double(b[i])));
    largest = std::max(largest, std::abs(double(a[i])));
  }
  return most / largest;
}

int main() {
  constexpr position vocabulary = 25, width = 32, steps = 60;
  const auto block =
      residual(rms_norm(width) | causal_attention({.features = width, .heads = 4, .rotary = 1e4})) |
      residual(rms_norm(width) | swiglu(width, 3 * width));
  const auto model =
      embedding(vocabulary, width) | repeat(2, block) | rms_norm(width) | linear(width, vocabulary);

  // [before]
  const cross_entropy loss;
  // Names, shapes and places of parameters are the model's; any plan's engine knows them.
  const parameter_table table = engine(plan(model, loss, packed::one(1)), model, loss).parameters();

  std::vector<float> parameters = initial_parameters<float>(table, 1);  // seed 1
  std::vector<float> gradient(std::size_t(table.gradients));
  adamw<float> optimizer(table, {.beta2 = 0.95, .decay = 0.1});
  const cosine_schedule rate{.peak = 1e-2, .steps = steps, .warm_up = 4};
  // [/before]

  double first = 0, value = 0;
  // [loop]
  for (position i = 1; i <= steps; ++i) {
    const std::vector<packed_data> window = draw(i);  // the batches of one update
    double counted = 0;  // scored labels in all of them: what the mean divides by
    for (const packed_data& part : window)
      counted += normaliser_of(loss, part.samples(), part.data());

    std::fill(gradient.begin(), gradient.end(), 0.f);  // optimizer.zero_grad()
    value = 0;
    for (const packed_data& part : window) {
      const auto p = plan(model, loss, part.samples(), {.budget = 4_MiB});
      engine step(p, model, loss);
      batch<float> data = part.data();
      data.normaliser = counted;
      value += step.add_gradient(parameters, data, gradient);  // loss.backward()
    }
    const double norm = gradient_norm<float>(gradient);
    optimizer.update(parameters, gradient, rate(i), clip_factor(norm, 1));  // optimizer.step()
    if (i == 1) first = value;
    if (i % 10 == 0) std::cout << "step " << i << "  loss " << value << "  norm " << norm << "\n";
  }
  // [/loop]

  // [names]
  for (const parameter_info& p : table.entries)
    std::cout << p.name << "  " << p.rows << " x " << p.cols << "\n";
  const view<float> wq = table.value_of("blocks.0.attention.wq", parameters);  // (out, in)
  const view<float> d_wq = table.gradient_of("blocks.0.attention.wq", gradient);
  // [/names]
  std::cout << "wq(0, 0) is " << wq(0, 0) << ", its gradient " << d_wq(0, 0) << "\n";

  // The same samples in one batch: the window's gradient, to rounding.
  const std::vector<packed_data> window = draw(steps);
  packed_data whole;
  std::vector<float> in_parts(gradient.size());
  double counted = 0;
  for (const packed_data& part : window)
    counted += normaliser_of(loss, part.samples(), part.data());
  for (const packed_data& part : window) {
    for (position s = 0; s < part.samples().segments(); ++s) {
      const row_range own = part.samples().segment(s);
      whole.add({part.tokens.begin() + own.first, part.tokens.begin() + own.last}, 3);
    }
    engine step(plan(model, loss, part.samples()), model, loss);
    batch<float> data = part.data();
    data.normaliser = counted;
    step.add_gradient(parameters, data, in_parts);
  }
  engine step(plan(model, loss, whole.samples(), {.budget = 4_MiB}), model, loss);
  std::fill(gradient.begin(), gradient.end(), 0.f);
  // [final]
  // While the step runs: a range of the gradient that nothing more will be added to.
  std::vector<float> sent(gradient.size());
  step.when_final([&](position offset, position count) {
    std::copy_n(gradient.begin() + offset, count, sent.begin() + offset);
  });
  // [/final]
  step.add_gradient(parameters, whole.data(), gradient);
  const double apart = difference(gradient, in_parts);
  std::cout << "two batches of a window and one differ by " << apart << "\n";

  // [warnings]
  std::vector<std::string> said;
  set_warning_sink([&](std::string_view text) { said.emplace_back(text); });
  // [/warnings]
  std::rotate(whole.labels.begin(), whole.labels.begin() + 1, whole.labels.end());  // a mistake
  step.value(parameters, whole.data());
  step.value(parameters, whole.data());
  std::cout << "said: " << (said.empty() ? "nothing" : said.front()) << "\n";
  set_warning_sink({});  // none from here on

  return said.size() == 1 && value < first / 4 && apart < 1e-5 && sent == gradient ? 0 : 1;
}
