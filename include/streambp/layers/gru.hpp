// A gated recurrent unit (Cho et al. 2014), as in torch.nn.GRU with one layer:
//   [r z n] = x wxᵀ + bx,  [r' z' a] = h[t-1] whᵀ + bh,
//   y[t] = h[t] = (1 - σ(z + z')) ∘ tanh(n + σ(r + r') ∘ a) + σ(z + z') ∘ h[t-1]
#pragma once

#include <cmath>

#include "../primitives/write.hpp"
#include "../split/slot.hpp"
#include "check.hpp"

namespace streambp {

struct gru {
  static constexpr tag<"wx"> wx{};
  static constexpr tag<"wh"> wh{};
  static constexpr tag<"bx"> bx{};
  static constexpr tag<"bh"> bh{};
  static constexpr tag<"state"> state{};
  static constexpr tag<"g"> g{};
  static constexpr tag<"a"> a{};
  static constexpr tag<"dh"> dh{};
  static constexpr const char* name = "gru";
  static constexpr bool counts_flops = true;
  static constexpr reach sees = past;

  position width = 0;
  position units = 0;

  gru(position width, position units) : width(width), units(units) {
    expect_positive(name, "width", width);
    expect_positive(name, "units", units);
  }

  position features(position given) const {
    [[maybe_unused]] const gru checked(width, units);  // members may have been changed since
    expect_features(name, given, width);
    return units;
  }
  auto slots() const {
    const initial_value near{0, 1 / std::sqrt(3 * double(units))};
    return std::tuple{parameter(wx, 3 * units, width, near),
                      parameter(wh, 3 * units, units, near),
                      parameter(bx, 1, 3 * units, zeros),
                      parameter(bh, 1, 3 * units, zeros),
                      carry(state, 1, units),
                      saved(g, 3 * units),
                      saved(a, units),
                      scratch(dh, units)};
  }

  void forward(auto& at, auto x, auto y) const {
    project(at.on, x, at[wx], at[g]);
    add_bias(at.on, at[bx], at[g]);
    add_bias(at.on, gates(at[bh]), gates(at[g]));
    zero(at.on, at[a]);
    add_bias(at.on, candidate(at[bh]), at[a]);
    gru_forward(at.on, at.pieces(), at.states(state), at[wh], at[g], at[a], y);
  }
  void backward(auto& at, auto x, auto y, auto dy, auto dx) const {
    const auto dg = at[g], da = at[a], h_before = at[dh];  // each in the place of what is used up
    gru_backward(at.on, at.pieces(), at.states(state), at[wh], dg, da, y, dy, at[dh]);
    if (at.trains(wh)) {
      rows_before(at.on, at.pieces(), at.states(state), y, h_before);
      const auto dw = at.d(wh);
      add_weight_gradient(at.on, gates(dg), h_before, dw.middle_rows(0, 2 * units), at.grains());
      add_weight_gradient(at.on, da, h_before, dw.middle_rows(2 * units, units), at.grains());
    }
    if (at.trains(bh)) {
      add_column_sums(at.on, gates(dg), gates(at.d(bh)), at.grains());
      add_column_sums(at.on, da, candidate(at.d(bh)), at.grains());
    }
    if (at.trains(wx)) add_weight_gradient(at.on, dg, x, at.d(wx), at.grains());
    if (at.trains(bx)) add_column_sums(at.on, dg, at.d(bx), at.grains());
    project_back(at.on, dg, at[wx], dx, write::add);
  }

 private:
  // Columns of r and z, and of n.
  auto gates(auto rows) const { return rows.middle_cols(0, 2 * units); }
  auto candidate(auto rows) const { return rows.middle_cols(2 * units, units); }
};

}  // namespace streambp
