// Normalisation of a row: RMSNorm (Zhang and Sennrich 2019), LayerNorm (Ba et al. 2016).
#pragma once

#include "../split/slot.hpp"
#include "check.hpp"

namespace streambp {

// y = gain ∘ x / sqrt(mean x² + epsilon)
struct rms_norm {
  static constexpr tag<"gain"> gain{};
  static constexpr tag<"inverse"> inverse{};
  static constexpr const char* name = "rms_norm";
  static constexpr bool counts_flops = true, backward_reads_output = false;

  position width = 0;
  double epsilon = 1e-6;

  explicit rms_norm(position width, double epsilon = 1e-6) : width(width), epsilon(epsilon) {
    expect_positive(name, "width", width);
    expect_finite(name, "epsilon", epsilon, 0);
  }

  position features(position given) const {
    [[maybe_unused]] const rms_norm checked(width, epsilon);  // members may have been changed since
    expect_features(name, given, width);
    return width;
  }
  auto slots() const { return std::tuple{parameter(gain, 1, width, ones), saved(inverse, 1)}; }

  void forward(auto& at, auto x, auto y) const {
    rms_norm_forward(at.on, x, at[gain], epsilon, y, at[inverse]);
  }
  void backward(auto& at, auto x, auto, auto dy, auto dx) const {
    rms_norm_backward(at.on, x, at[gain], at[inverse], dy, dx, at.d(gain), at.grains());
  }
};

// y = gain ∘ (x - mean) / sqrt(variance + epsilon) + bias
struct layer_norm {
  static constexpr tag<"gain"> gain{};
  static constexpr tag<"bias"> bias{};
  static constexpr tag<"statistics"> statistics{};
  static constexpr const char* name = "layer_norm";
  static constexpr bool counts_flops = true, backward_reads_output = false;

  position width = 0;
  double epsilon = 1e-5;

  explicit layer_norm(position width, double epsilon = 1e-5) : width(width), epsilon(epsilon) {
    expect_positive(name, "width", width);
    expect_finite(name, "epsilon", epsilon, 0);
  }

  position features(position given) const {
    [[maybe_unused]] const layer_norm checked(width,
                                              epsilon);  // members may have been changed since
    expect_features(name, given, width);
    return width;
  }
  auto slots() const {
    return std::tuple{parameter(gain, 1, width, ones), parameter(bias, 1, width, zeros),
                      saved(statistics, 2)};
  }

  void forward(auto& at, auto x, auto y) const {
    layer_norm_forward(at.on, x, at[gain], at[bias], epsilon, y, at[statistics]);
  }
  void backward(auto& at, auto x, auto, auto dy, auto dx) const {
    layer_norm_backward(at.on, x, at[gain], at[statistics], dy, dx, at.d(gain), at.d(bias),
                        at.grains());
  }
};

}  // namespace streambp
