// y = (f(x gateᵀ) ∘ x upᵀ) downᵀ: SwiGLU and GeGLU (Shazeer 2020).
#pragma once

#include <cmath>

#include "../primitives/activation_kind.hpp"
#include "../primitives/write.hpp"
#include "../split/slot.hpp"
#include "check.hpp"

namespace streambp {

struct gated_mlp {
  static constexpr tag<"gate"> gate{};
  static constexpr tag<"up"> up{};
  static constexpr tag<"down"> down{};
  static constexpr tag<"g"> g{};
  static constexpr tag<"u"> u{};
  static constexpr tag<"h"> h{};
  static constexpr const char* name = "mlp";
  static constexpr bool counts_flops = true, backward_reads_output = false;

  position width = 0;
  position inner = 0;
  activation kind = activation::silu;

  gated_mlp(position width, position inner, activation kind)
      : width(width), inner(inner), kind(kind) {
    expect_positive(name, "width", width);
    expect_positive(name, "inner", inner);
  }

  position features(position given) const {
    [[maybe_unused]] const gated_mlp checked(width, inner,
                                             kind);  // members may have been changed since
    expect_features(name, given, width);
    return width;
  }
  auto slots() const {
    const initial_value in{0, 1 / std::sqrt(double(width))}, out{0, 1 / std::sqrt(double(inner))};
    return std::tuple{parameter(gate, inner, width, in),
                      parameter(up, inner, width, in),
                      parameter(down, width, inner, out),
                      saved(g, inner),
                      saved(u, inner),
                      scratch(h, inner)};
  }

  // g = x gateᵀ, u = x upᵀ, h = f(g) ∘ u, y = h downᵀ
  void forward(auto& at, auto x, auto y) const {
    project(at.on, x, at[gate], at[g]);
    project(at.on, x, at[up], at[u]);
    if (!at.wants_output) return;
    gated_forward(at.on, kind, at[g], at[u], at[h]);
    project(at.on, at[h], at[down], y);
  }
  void backward(auto& at, auto x, auto, auto dy, auto dx) const {
    if (at.trains(down)) {
      gated_forward(at.on, kind, at[g], at[u], at[h]);
      add_weight_gradient(at.on, dy, at[h], at.d(down), at.grains());
    }
    const auto dh = at[h], dg = at[g], du = at[u];  // each in the place of what it differentiates
    project_back(at.on, dy, at[down], dh, write::assign);
    gated_backward(at.on, kind, dg, du, dh);
    if (at.trains(gate)) add_weight_gradient(at.on, dg, x, at.d(gate), at.grains());
    if (at.trains(up)) add_weight_gradient(at.on, du, x, at.d(up), at.grains());
    project_back(at.on, dg, at[gate], dx, write::add);
    project_back(at.on, du, at[up], dx, write::add);
  }
};

inline gated_mlp swiglu(position width, position inner) { return {width, inner, activation::silu}; }
inline gated_mlp geglu(position width, position inner) { return {width, inner, activation::gelu}; }

}  // namespace streambp
