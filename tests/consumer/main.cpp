// What a project that found the installed package does first: a plan, a gradient, and the same bits
// from another plan. A build without optimisation is warned of, once.
#include <cstdio>
#include <cstring>
#include <streambp/streambp.hpp>

using namespace streambp;

#ifdef __OPTIMIZE__
constexpr int expected_warnings = 0;
#else
constexpr int expected_warnings = 1;
#endif

int main() {
  int warnings = 0;
  set_warning_sink(
      [&](std::string_view said) { warnings += said.find("without optimisation") != said.npos; });
  const auto model =
      embedding(11, 8) |
      residual(rms_norm(8) | causal_attention({.features = 8, .heads = 2, .rotary = 1e4})) |
      rms_norm(8) | linear(8, 11);
  const packed samples({0, 40, 41, 100});
  std::vector<std::int32_t> tokens(100);
  for (std::size_t t = 0; t < tokens.size(); ++t) tokens[t] = std::int32_t(t * t % 11);
  batch<float> data;
  data.tokens = tokens;
  data.labels = tokens;

  const auto gradient = [&](position chunk) {
    engine step(plan<float>(model, cross_entropy{}, samples,
                            {.chunk = chunk, .grains = {.tile = 8, .grain = 16}}),
                model, cross_entropy{});
    std::vector<float> parameters(std::size_t(step.parameters().parameters));
    for (std::size_t i = 0; i < parameters.size(); ++i) parameters[i] = float(i % 7) / 7 - 0.4f;
    return step.value_and_gradient(parameters, data);
  };
  const auto [whole_value, whole] = gradient(100);
  const auto [value, streamed] = gradient(16);
  const bool same = value == whole_value && streamed.size() == whole.size() &&
                    std::memcmp(streamed.data(), whole.data(), whole.size() * sizeof(float)) == 0;
  const bool moves = std::any_of(whole.begin(), whole.end(), [](float g) { return g != 0; });
  std::printf("loss %.9g, %zu gradients, %s bits\n", value, whole.size(), same ? "equal" : "other");
  set_warning_sink({});
  return same && moves && warnings == expected_warnings ? 0 : 1;
}
