// Long short-term memory (Hochreiter and Schmidhuber 1997), as in torch.nn.LSTM with one layer:
//   [i f g o] = x wxᵀ + h[t-1] whᵀ + b,
//   c[t] = σ(f) ∘ c[t-1] + σ(i) ∘ tanh(g),  y[t] = h[t] = σ(o) ∘ tanh(c[t])
// b is the sum of PyTorch's two biases.
#pragma once

#include <cmath>

#include "../primitives/write.hpp"
#include "../split/slot.hpp"
#include "check.hpp"

namespace streambp {

struct lstm {
  static constexpr tag<"wx"> wx{};
  static constexpr tag<"wh"> wh{};
  static constexpr tag<"b"> b{};
  static constexpr tag<"state"> state{};
  static constexpr tag<"z"> z{};
  static constexpr tag<"c"> c{};
  static constexpr tag<"dh"> dh{};
  static constexpr tag<"dc"> dc{};
  static constexpr const char* name = "lstm";
  static constexpr bool counts_flops = true;
  static constexpr reach sees = past;

  position width = 0;
  position units = 0;

  lstm(position width, position units) : width(width), units(units) {
    expect_positive(name, "width", width);
    expect_positive(name, "units", units);
  }

  position features(position given) const {
    [[maybe_unused]] const lstm checked(width, units);  // members may have been changed since
    expect_features(name, given, width);
    return units;
  }
  auto slots() const {
    const initial_value near{0, 1 / std::sqrt(3 * double(units))};
    return std::tuple{parameter(wx, 4 * units, width, near),
                      parameter(wh, 4 * units, units, near),
                      parameter(b, 1, 4 * units, zeros),
                      carry(state, 2, units),
                      saved(z, 4 * units),
                      saved(c, units),
                      scratch(dh, units),
                      scratch(dc, units)};
  }

  void forward(auto& at, auto x, auto y) const {
    project(at.on, x, at[wx], at[z]);
    add_bias(at.on, at[b], at[z]);
    lstm_forward(at.on, at.pieces(), at.states(state), at[wh], at[z], at[c], y);
  }
  void backward(auto& at, auto x, auto y, auto dy, auto dx) const {
    const auto dz = at[z], h_before = at[dh];  // each in the place of what is used up
    lstm_backward(at.on, at.pieces(), at.states(state), at[wh], dz, at[c], dy, at[dh], at[dc]);
    if (at.trains(wh)) {
      rows_before(at.on, at.pieces(), at.states(state), y, h_before);
      add_weight_gradient(at.on, dz, h_before, at.d(wh), at.grains());
    }
    if (at.trains(wx)) add_weight_gradient(at.on, dz, x, at.d(wx), at.grains());
    if (at.trains(b)) add_column_sums(at.on, dz, at.d(b), at.grains());
    project_back(at.on, dz, at[wx], dx, write::add);
  }
};

}  // namespace streambp
