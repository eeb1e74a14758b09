// Normalisation over time: each feature over the tokens of its segment,
// y = gain ∘ (x - mean) / sqrt(variance + epsilon) + bias. Its read sees a total, so a cut stands
// before it.
#pragma once

#include "../split/slot.hpp"
#include "check.hpp"

namespace streambp {

struct time_norm {
  static constexpr tag<"gain"> gain{};
  static constexpr tag<"bias"> bias{};
  static constexpr tag<"moments"> moments{};
  static constexpr const char* name = "time_norm";
  static constexpr bool counts_flops = true, backward_reads_output = false;
  static constexpr reach sees = all;

  position width = 0;
  double epsilon = 1e-5;

  explicit time_norm(position width, double epsilon = 1e-5) : width(width), epsilon(epsilon) {
    expect_positive(name, "width", width);
    expect_finite(name, "epsilon", epsilon, 0);
  }

  position features(position given) const {
    [[maybe_unused]] const time_norm checked(width,
                                             epsilon);  // members may have been changed since
    expect_features(name, given, width);
    return width;
  }
  auto slots() const {
    return std::tuple{parameter(gain, 1, width, ones), parameter(bias, 1, width, zeros),
                      total(moments, 2 * width)};
  }

  void remember(auto& at, auto x) const {
    add_time_moments(at.on, at.pieces(), at.chunk.tile, x, at[moments]);
  }
  void forward(auto& at, auto x, auto y) const {
    time_norm_forward(at.on, at.pieces(), x, at[moments], at[gain], at[bias], epsilon, y);
  }
  void backward(auto& at, auto x, auto, auto dy, auto dx) const {
    time_norm_backward(at.on, at.pieces(), at.chunk.tile, x, at[moments], at[gain], epsilon, dy, dx,
                       at.d(moments), at.d(gain), at.d(bias));
  }
  void release(auto& at, auto x, auto dx) const {
    time_norm_release(at.on, at.pieces(), x, at[moments], epsilon, at.d(moments), dx);
  }
};

}  // namespace streambp
