// A recurrence of one's own: a forward that says what a row does to the state. Its gradient goes
// back through all tokens, chunk by chunk, whatever the plan.
#include <streambp/streambp.hpp>

#include <iostream>

#include <streambp/laws/hold.hpp>

using namespace streambp;

// [recurrence]
// The state is a pair: a fast h and a slow m, which h writes to through a gate.
//   h[t] = tanh(norm(h[t-1] uᵀ + m[t-1] + x[t] wᵀ)),  f[t] = σ(h[t] ∘ a + b)
//   m[t] = f[t] ∘ m[t-1] + (1 - f[t]) ∘ h[t],         y[t] = h[t] + m[t]
struct two_speed {
  static constexpr tag<"w"> w{};
  static constexpr tag<"u"> u{};
  static constexpr tag<"a"> a{};
  static constexpr tag<"b"> b{};
  static constexpr tag<"state"> state{};
  static constexpr const char* name = "two_speed";
  static constexpr auto sees = past;

  position width;

  auto slots(position in) const {
    const initial_value near_zero{0, 1 / std::sqrt(double(width))};
    return std::tuple{parameter(w, width, in, near_zero), parameter(u, width, width, near_zero),
                      parameter(a, 1, width, zeros), parameter(b, 1, width, {2, 0}),
                      carry(state, 1, 2 * width)};
  }
  auto forward(auto& at, auto x) const {
    const auto z = matmul(x, at[w]);  // for all rows at once: it does not look at the state
    const auto both = at.recur(state, [&](auto before) {
      const auto m = slice(before, width, width);
      const auto h = tanh(rms_normalise(matmul(slice(before, 0, width), at[u]) + m + z, 1e-2));
      const auto f = sigmoid(h * at[a] + at[b]);
      return concatenate(h, f * m + (1 - f) * h);
    });
    return slice(both, 0, width) + slice(both, width, width);
  }
};
// [/recurrence]

int main() {
  const auto report = laws::hold(two_speed{6}, laws::rows(37, 6));
  std::cout << report << "\n";
  if (!report) return 1;

  // Which letter came `back` tokens ago? Only a state can tell.
  constexpr position letters = 8, back = 3, width = 32;
  const auto model = embedding(letters, width) | two_speed{width} | linear(width, letters);
  std::vector<position> ends{0};
  for (int sample = 0; sample < 8; ++sample) ends.push_back(ends.back() + 60 + 9 * sample);
  const packed samples(ends);
  const auto tokens = std::size_t(samples.tokens());
  std::vector<std::int32_t> letter(tokens), label(tokens, -100);  // -100: not asked
  std::uint32_t dice = 1;
  for (std::size_t t = 0; t < tokens; ++t)
    letter[t] = std::int32_t((dice = dice * 1664525 + 1013904223) >> 29);
  for (position s = 0; s < samples.segments(); ++s)
    for (position t = samples.segment(s).first + back; t < samples.segment(s).last; ++t)
      label[std::size_t(t)] = letter[std::size_t(t - back)];

  const auto p = plan(model, cross_entropy{}, samples, {.chunk = 256});
  engine step(p, model, cross_entropy{});
  auto parameters = initial_parameters<float>(step.parameters(), 1);
  std::vector<float> gradient(parameters.size());
  adamw<float> optimizer(step.parameters());
  batch<float> data;
  data.tokens = letter;
  data.labels = label;
  double first = 0, loss = 0;
  for (int i = 0; i < 150; ++i) {
    std::fill(gradient.begin(), gradient.end(), 0.f);
    loss = step.add_gradient(parameters, data, gradient);
    optimizer.update(parameters, gradient, 1e-2);
    if (i == 0) first = loss;
    if (i % 30 == 0) std::cout << "step " << i << "  loss " << loss << "\n";
  }
  std::cout << p.chunk_count() << " chunks, loss " << first << " to " << loss << "\n";
  return loss < 0.2 * first ? 0 : 1;
}
