// Trains a model with a layer of its own, saves every ten steps, and goes on where it stopped:
//   resume FILE STEPS
#include <streambp/streambp.hpp>

#include <cstdlib>
#include <filesystem>
#include <iostream>

using namespace streambp;

namespace {

// y = x ∘ sigmoid(x gateᵀ)
struct self_gate {
  static constexpr tag<"gate"> gate{};

  auto slots(position in) const { return std::tuple{parameter(gate, in, in, {0, 0.1})}; }
  auto forward(auto& at, auto x) const { return x * sigmoid(matmul(x, at[gate])); }
};

int train(const std::string& file, std::uint64_t steps) {
  constexpr position vocabulary = 50, width = 32;
  const auto model = embedding(vocabulary, width) |
                     named("recurrence", residual(rms_norm(width) | gated_recurrence(width, 48))) |
                     named("gate", residual(rms_norm(width) | dropout(0.1) | self_gate{})) |
                     named("head", linear(width, vocabulary));
  const auto samples = packed::one(500);
  engine step(plan(model, cross_entropy{}, samples, {.budget = 4_MiB}), model, cross_entropy{});
  // [resume]
  std::vector<float> parameters = initial_parameters<float>(step.parameters(), 1);
  std::vector<float> gradient(std::size_t(step.parameters().gradients));
  adamw<float> optimizer(step.parameters());
  progress own;  // what only this program knows; saved with the rest
  own.counts["next"] = 1;
  if (std::filesystem::exists(file))
    own = load_training(file, step, parameters, optimizer).progress;

  for (std::uint64_t& i = own.counts["next"]; i <= steps;) {
    std::vector<std::int32_t> tokens;  // sample i of the data: squares from i² on, mod 47
    for (std::uint64_t t = 0; t < 500; ++t) tokens.push_back(std::int32_t((t + i) * (t + i) % 47));
    batch<float> data;
    data.tokens = tokens;
    data.labels = tokens;
    data.seed = 1;  // with the step it fixes what dropout draws
    data.step = i;
    std::fill(gradient.begin(), gradient.end(), 0.f);
    const double loss = step.add_gradient(parameters, data, gradient);
    optimizer.update(parameters, gradient, 1e-2);
    std::cout << "step " << i << "  loss " << loss << "\n";
    if (++i % 10 == 1 || i > steps) save_training(file, step, parameters, optimizer, own);
  }
  // [/resume]
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  try {
    return train(count > 1 ? arguments[1] : "resume.safetensors",
                 count > 2 ? std::strtoull(arguments[2], nullptr, 10) : 40);
  } catch (const error& problem) {
    std::cerr << "resume: " << problem.what() << "\n";
    return 1;
  }
}
