// A layer of another library, joined without touching it: its trait is specialized through an
// adapter.
#include <streambp/streambp.hpp>

#include <cmath>
#include <iostream>

// The other library: a per-feature scaling with a soft sign, on plain pointers.
namespace elsewhere {
struct soft_scale {
  int width;
  static float f(float s, float x) { return s * x / (1 + std::fabs(x)); }
  static float slope(float x) { return 1 / ((1 + std::fabs(x)) * (1 + std::fabs(x))); }
};
}  // namespace elsewhere

// [adapter]
// The adapter is an ordinary layer that holds a reference: y = s ∘ x / (1 + |x|).
struct soft_scale_adapter {
  static constexpr streambp::tag<"scale"> scale{};
  static constexpr const char* name = "soft_scale";
  static constexpr streambp::reach sees = streambp::row;
  using other = elsewhere::soft_scale;

  const other& layer;

  auto slots() const {
    return std::tuple{streambp::parameter(scale, 1, layer.width, streambp::ones)};
  }
  void forward(auto& at, auto x, auto y) const {
    for (streambp::position i = 0; i < x.rows; ++i)
      for (streambp::position j = 0; j < x.cols; ++j) y(i, j) = other::f(at[scale](0, j), x(i, j));
  }
  // Rows last first: a parameter's gradient is a sum over rows, and its order must not depend on
  // chunks.
  void backward(auto& at, auto x, auto, auto dy, auto dx) const {
    for (streambp::position i = x.rows; i-- > 0;)
      for (streambp::position j = 0; j < x.cols; ++j) {
        if (at.trains(scale)) at.d(scale)(0, j) += dy(i, j) * other::f(1, x(i, j));
        dx(i, j) += dy(i, j) * at[scale](0, j) * other::slope(x(i, j));
      }
  }
};

template <>
struct streambp::layer_traits<elsewhere::soft_scale>
    : streambp::adapted_traits<elsewhere::soft_scale, soft_scale_adapter> {};
// [/adapter]

using namespace streambp;

int main() {
  const auto model = embedding(50, 32) | residual(rms_norm(32) | elsewhere::soft_scale{32}) |
                     residual(rms_norm(32) | causal_attention({.features = 32, .heads = 4})) |
                     rms_norm(32) | linear(32, 50);
  const packed samples({0, 300, 1000});
  std::vector<std::int32_t> tokens;
  for (position t = 0; t < samples.tokens(); ++t) tokens.push_back(std::int32_t(t * t % 17));
  batch<float> data;
  data.tokens = data.labels = tokens;

  // The same bits from one chunk and from many.
  std::vector<float> parameters, whole;
  for (const position chunk : {position(1000), position(256)}) {
    const auto p = plan(model, cross_entropy{}, samples, {.chunk = chunk});
    engine step(p, model, cross_entropy{});
    if (parameters.empty()) parameters = initial_parameters<float>(step.parameters(), 1);
    const auto [loss, gradient] = step.value_and_gradient(parameters, data);
    std::cout << p.chunk_count() << " chunks: loss " << loss << "\n";
    if (whole.empty()) whole = gradient;
    if (gradient != whole) return 1;
  }
  std::cout << "equal gradients\n";
}
