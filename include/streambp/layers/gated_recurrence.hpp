// f = σ(x wfᵀ + bf), c = x wcᵀ + bc, h[t] = f ∘ h[t-1] + (1 - f) ∘ c, y = h woᵀ: a gated recurrence
// whose gates look at x alone (Martin and Cundy 2018), so its gradient is one scan.
#pragma once

#include <cmath>

#include "../primitives/activation_kind.hpp"
#include "../primitives/write.hpp"
#include "../split/slot.hpp"
#include "check.hpp"

namespace streambp {

struct gated_recurrence {
  static constexpr tag<"wf"> wf{};
  static constexpr tag<"bf"> bf{};
  static constexpr tag<"wc"> wc{};
  static constexpr tag<"bc"> bc{};
  static constexpr tag<"wo"> wo{};
  static constexpr tag<"state"> state{};
  static constexpr tag<"z"> z{};
  static constexpr tag<"f"> f{};
  static constexpr tag<"c"> c{};
  static constexpr tag<"h"> h{};
  static constexpr tag<"dh"> dh{};
  static constexpr const char* name = "recurrence";
  static constexpr bool counts_flops = true, backward_reads_output = false;
  static constexpr reach sees = past;

  position width = 0;
  position states = 0;

  gated_recurrence(position width, position states) : width(width), states(states) {
    expect_positive(name, "width", width);
    expect_positive(name, "states", states);
  }

  position features(position given) const {
    [[maybe_unused]] const gated_recurrence checked(width,
                                                    states);  // members may have been changed since
    expect_features(name, given, width);
    return width;
  }
  auto slots() const {
    const initial_value in{0, 1 / std::sqrt(double(width))}, out{0, 1 / std::sqrt(double(states))};
    return std::tuple{parameter(wf, states, width, in),
                      parameter(bf, 1, states, {1, 0}),
                      parameter(wc, states, width, in),
                      parameter(bc, 1, states, zeros),
                      parameter(wo, width, states, out),
                      carry(state, 1, states),
                      saved(z, states),
                      saved(f, states),
                      saved(c, states),
                      saved(h, states),
                      scratch(dh, states)};
  }

  void forward(auto& at, auto x, auto y) const {
    project(at.on, x, at[wf], at[z]);
    add_bias(at.on, at[bf], at[z]);
    activation_forward(at.on, activation::sigmoid, at[z], at[f]);
    project(at.on, x, at[wc], at[c]);
    add_bias(at.on, at[bc], at[c]);
    scan_forward(at.on, at.pieces(), at.states(state), at[f], at[c], at[h]);
    if (at.wants_output) project(at.on, at[h], at[wo], y);
  }
  void backward(auto& at, auto x, auto, auto dy, auto dx) const {
    if (at.trains(wo)) add_weight_gradient(at.on, dy, at[h], at.d(wo), at.grains());
    project_back(at.on, dy, at[wo], at[dh], write::assign);
    const auto df = at[f], dc = at[c];  // in the places of f and c
    scan_backward(at.on, at.pieces(), at.states(state), at[f], at[c], at[h], at[dh], df, dc);
    const auto dz = at[dh];
    zero(at.on, dz);
    activation_backward(at.on, activation::sigmoid, at[z], df, dz);
    if (at.trains(wf)) add_weight_gradient(at.on, dz, x, at.d(wf), at.grains());
    if (at.trains(bf)) add_column_sums(at.on, dz, at.d(bf), at.grains());
    if (at.trains(wc)) add_weight_gradient(at.on, dc, x, at.d(wc), at.grains());
    if (at.trains(bc)) add_column_sums(at.on, dc, at.d(bc), at.grains());
    project_back(at.on, dz, at[wf], dx, write::add);
    project_back(at.on, dc, at[wc], dx, write::add);
  }
};

}  // namespace streambp
