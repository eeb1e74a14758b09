// y[t] = f(b + Σ_i w[i] ∘ x[t-i]), i < taps: each feature looks back along its own past (the short
// convolution of state space models). f is the identity or silu; before a sample's first row are
// zeros.
#pragma once

#include <cmath>

#include "../primitives/activation_kind.hpp"
#include "../primitives/write.hpp"
#include "../split/slot.hpp"
#include "check.hpp"

namespace streambp {

struct causal_convolution {
  static constexpr tag<"weight"> weight{};
  static constexpr tag<"bias"> bias{};
  static constexpr tag<"behind"> behind{};
  static constexpr tag<"z"> z{};
  static constexpr tag<"dz"> dz{};
  static constexpr const char* name = "convolution";
  static constexpr bool counts_flops = true, backward_reads_output = false;
  static constexpr reach sees = past;

  position width = 0;
  position taps = 0;
  bool has_silu = false;

  causal_convolution(position width, position taps, bool silu = false)
      : width(width), taps(taps), has_silu(silu) {
    expect_positive(name, "width", width);
    expect_positive(name, "taps", taps);
  }

  position features(position given) const {
    [[maybe_unused]] const causal_convolution checked(width,
                                                      taps);  // members may have been changed since
    expect_features(name, given, width);
    return width;
  }
  auto slots() const {
    const position activated = has_silu ? width : 0;
    return std::tuple{parameter(weight, taps, width, {0, 1 / std::sqrt(double(taps))}),
                      parameter(bias, 1, width, zeros), carry(behind, taps - 1, width),
                      saved(z, activated), scratch(dz, activated)};
  }

  void forward(auto& at, auto x, auto y) const {
    const auto linear = has_silu ? at[z] : at.wants_output ? y : decltype(y){};
    convolution_forward(at.on, at.pieces(), at.states(behind), x, at[weight], at[bias], linear);
    if (has_silu && at.wants_output) activation_forward(at.on, activation::silu, linear, y);
  }
  void backward(auto& at, auto x, auto, auto dy, auto dx) const {
    if (has_silu) {
      zero(at.on, at[dz]);
      activation_backward(at.on, activation::silu, at[z], dy, at[dz]);
    }
    const auto d = has_silu ? at[dz] : dy;
    if (at.trains(weight))
      add_tap_gradients(at.on, at.pieces(), at.states(behind), x, d, at.d(weight), at.grains());
    if (at.trains(bias)) add_column_sums(at.on, d, at.d(bias), at.grains());
    convolution_backward(at.on, at.pieces(), at.states(behind), at[weight], d, dx, write::add);
  }
};

}  // namespace streambp
