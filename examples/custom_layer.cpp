// Layers of one's own: five lines for a function of an entry, a few more for one with parameters.
// They give a forward; the backward is derived. The laws say whether they stream exactly.
#include <iostream>
#include <streambp/laws/hold.hpp>
#include <streambp/streambp.hpp>

using namespace streambp;

// [entry]
// y = max(x, 0)²
struct squared_relu {
  auto forward(auto x) const { return square(max(x, 0)); }
};
// [/entry]

// [rows]
// y = (silu(a) ∘ b ∘ (1 + softmax(x routeᵀ))) downᵀ, where (a, b) = x upᵀ
struct routed_mlp {
  static constexpr tag<"route"> route{};
  static constexpr tag<"up"> up{};
  static constexpr tag<"down"> down{};
  static constexpr const char* name = "routed_mlp";

  position width, inner;

  auto slots() const {
    return std::tuple{parameter(route, inner, width, {0, 0.1}),
                      parameter(up, 2 * inner, width, {0, 0.1}),
                      parameter(down, width, inner, {0, 0.1})};
  }
  auto forward(auto& at, auto x) const {
    const auto share = softmax(matmul(x, at[route]));
    const auto h = matmul(x, at[up]);
    const auto gated = silu(slice(h, 0, inner)) * slice(h, inner, inner);
    return matmul(gated * (1 + share), at[down]);
  }
};
// [/rows]

// [memory]
// Attention whose keys are normalised: remember writes what later rows read.
struct normed_attention {
  static constexpr tag<"q"> q{};
  static constexpr tag<"k"> k{};
  static constexpr tag<"keys"> keys{};
  static constexpr auto sees = past;

  auto slots(position in) const {
    return std::tuple{parameter(q, in, in, {0, 0.1}), parameter(k, in, in, {0, 0.1}),
                      memory(keys, in)};
  }
  void remember(auto& at, auto x) const { at.write(keys, rms_normalise(matmul(x, at[k]), 1e-2)); }
  auto forward(auto& at, auto x) const {
    return attend(matmul(x, at[q]), at[keys], at[keys], {.heads = 2, .window = 100});
  }
};
// [/memory]

int main() {
  // [laws]
  for (const auto& report : {laws::hold(squared_relu{}, laws::rows(37, 4)),
                             laws::hold(routed_mlp{6, 5}, laws::rows(37, 6)),
                             laws::hold(normed_attention{}, laws::rows(37, 6))}) {
    std::cout << report << "\n";
    if (!report) return 1;
  }
  // [/laws]
  const auto block = residual(rms_norm(64) | normed_attention{}) |
                     residual(rms_norm(64) | routed_mlp{64, 96} | squared_relu{});
  const auto model = embedding(50, 64) | repeat(2, block) | rms_norm(64) | linear(64, 50);
  const packed samples({0, 700, 2000});
  std::vector<std::int32_t> tokens;
  for (position t = 0; t < samples.tokens(); ++t) tokens.push_back(std::int32_t(t * t % 23));
  const auto p = plan(model, cross_entropy{}, samples, {.budget = 6_MiB, .threads = 2});
  std::cout << p;
  engine step(p, model, cross_entropy{});
  batch<float> data;
  data.tokens = data.labels = tokens;
  const auto parameters = initial_parameters<float>(step.parameters(), 1);
  const auto [loss, gradient] = step.value_and_gradient(parameters, data);
  std::cout << "loss " << loss << ", " << gradient.size() << " gradients\n";
}
