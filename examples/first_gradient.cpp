// The first gradient: compose a model, plan a step within a budget, take gradients, train a little.
#include <streambp/streambp.hpp>

#include <iostream>

using namespace streambp;

int main() {
  constexpr position vocabulary = 100, width = 64;

  const auto block =
      residual(rms_norm(width) |
               causal_attention({.features = width, .heads = 4, .kv_heads = 2, .rotary = 1e4})) |
      residual(rms_norm(width) | swiglu(width, 3 * width));
  const auto model =
      embedding(vocabulary, width) | repeat(2, block) | rms_norm(width) | linear(width, vocabulary);

  // Two samples, packed: 1500 and 500 tokens. Token t is t² mod 25.
  const packed samples({0, 1500, 2000});
  std::vector<std::int32_t> tokens;
  for (position t = 0; t < samples.tokens(); ++t) tokens.push_back(std::int32_t(t * t % 25));

  const auto p = plan(model, cross_entropy{}, samples, {.budget = 8_MiB, .threads = 2});
  std::cout << p;

  engine step(p, model, cross_entropy{});  // owns its arena and allocates nothing from here on
  std::vector<float> parameters = initial_parameters<float>(step.parameters(), 1);
  std::vector<float> gradient(parameters.size());
  adamw<float> optimizer(step.parameters());

  batch<float> data;
  data.tokens = tokens;
  data.labels = tokens;  // a label stands at its own token; the row before predicts it
  for (int i = 0; i < 10; ++i) {
    std::fill(gradient.begin(), gradient.end(), 0.f);
    const double loss = step.add_gradient(parameters, data, gradient);  // gradient +=
    optimizer.update(parameters, gradient, 3e-3);
    std::cout << "step " << i + 1 << "  loss " << loss << "\n";
  }
}
