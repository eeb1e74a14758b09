// Two heads on one trunk: the next token, and whether it repeats the last one.
#include <iostream>
#include <streambp/streambp.hpp>

using namespace streambp;

int main() {
  // Tokens below 16, of which every third repeats the one before it.
  std::vector<std::int32_t> tokens{0}, repeats{-100};
  for (position t = 1; t < 600; ++t) {
    const auto last = tokens.back();
    tokens.push_back(t % 3 == 0 ? last : (5 * last + 3) % 16);
    repeats.push_back(t % 3 == 0);
  }
  const packed samples({0, 200, 600});

  // [heads]
  const auto block = residual(rms_norm(32) | causal_attention({.features = 32, .heads = 4})) |
                     residual(rms_norm(32) | swiglu(32, 64));
  const auto model = embedding(16, 32) | repeat(2, block) | rms_norm(32) |
                     heads(named("next", linear(32, 16)), named("repeat", linear(32, 2)));
  const auto loss = losses(cross_entropy{}, cross_entropy{});

  const auto p = plan(model, loss, samples, {.budget = 2_MiB});
  engine step(p, model, loss);
  std::vector<float> parameters = initial_parameters<float>(step.parameters(), 1);
  std::vector<float> gradient(parameters.size());

  batch<float> data;
  data.tokens = data.labels = tokens;
  const std::vector<head_batch<float>> own{{}, {.labels = repeats, .factor = 0.5}};
  data.heads = own;  // the first head has the batch's labels
  step.add_gradient(parameters, data, gradient);
  std::cout << step.head_values()[0] << " + " << step.head_values()[1] << "\n";
  // [/heads]

  adamw<float> optimizer(step.parameters());
  for (int i = 0; i < 40; ++i) {
    optimizer.update(parameters, gradient, 1e-2);
    std::fill(gradient.begin(), gradient.end(), 0.f);
    step.add_gradient(parameters, data, gradient);
  }
  std::cout << step.head_values()[0] << " + " << step.head_values()[1] << "\n";
}
