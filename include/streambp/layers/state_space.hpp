// A selective state space layer with one decay a head (Mamba-2: Dao and Gu 2024):
//   [z, x, B, C, dt] = u inᵀ,  [x, B, C] = silu(convolution([x, B, C])),
//   dt = ln(1 + e^(dt + dt_bias)),
//   H[t] = e^(-e^a_log dt) H[t-1] + B (dt x)ᵀ,  o = Hᵀ C + skip x,  y = rms_norm(o ∘ silu(z)) outᵀ.
// It is linear attention with q = C, k = B, v = dt x.
#pragma once

#include <cmath>

#include "../primitives/activation_kind.hpp"
#include "../primitives/linear_attention_shape.hpp"
#include "../primitives/write.hpp"
#include "../split/slot.hpp"
#include "check.hpp"

namespace streambp {

// 0 = the usual value.
struct state_space_options {
  position features = 0;
  position inner = 0;        // of x: 2 features
  position head_width = 64;  // of x a head
  position states = 128;     // of B and C a group: rows of H
  position groups = 1;       // of heads that share B and C
  position taps = 4;
  double epsilon = 1e-5;
};

struct state_space {
  static constexpr tag<"in"> in{};
  static constexpr tag<"kernel"> kernel{};
  static constexpr tag<"kernel_bias"> kernel_bias{};
  static constexpr tag<"dt_bias"> dt_bias{};
  static constexpr tag<"a_log"> a_log{};
  static constexpr tag<"skip"> skip{};
  static constexpr tag<"gain"> gain{};
  static constexpr tag<"out"> out{};
  static constexpr tag<"behind"> behind{};
  static constexpr tag<"state"> state{};
  static constexpr tag<"parts"> parts{};
  static constexpr tag<"c"> c{};
  static constexpr tag<"dt"> dt{};
  static constexpr tag<"la"> la{};
  static constexpr tag<"o"> o{};
  static constexpr tag<"kept"> kept{};
  static constexpr tag<"u"> u{};
  static constexpr tag<"du"> du{};
  static constexpr tag<"h"> h{};
  static constexpr tag<"n"> n{};
  static constexpr tag<"dh"> dh{};
  static constexpr tag<"dq"> dq{};
  static constexpr tag<"dk"> dk{};
  static constexpr tag<"inverse"> inverse{};
  static constexpr tag<"ddt"> ddt{};
  static constexpr tag<"dskip"> dskip{};
  static constexpr tag<"tiles"> tiles{};
  static constexpr const char* name = "state_space";
  static constexpr bool counts_flops = true, backward_reads_output = false;
  static constexpr reach sees = past;

  state_space_options options;

  // Throws shape_error.
  explicit state_space(state_space_options given) : options(given) {
    auto& a = options;
    expect_positive(name, "features", a.features);
    if (a.inner == 0) a.inner = 2 * a.features;
    expect_positive(name, "head_width", a.head_width);
    expect_positive(name, "states", a.states);
    expect_positive(name, "groups", a.groups);
    expect_positive(name, "taps", a.taps);
    expect_finite(name, "epsilon", a.epsilon, 0);
    if (a.inner < 1 || a.inner % a.head_width != 0)
      throw shape_error(sentence(name, ": an inner width of ", a.inner,
                                 " does not divide into heads of ", a.head_width));
    if (heads() % a.groups != 0)
      throw shape_error(
          sentence(name, ": ", heads(), " heads do not divide into ", a.groups, " groups"));
  }

  position features(position given) const {
    [[maybe_unused]] const state_space checked(options);  // members may have been changed since
    expect_features(name, given, options.features);
    return given;
  }
  auto slots() const {
    const auto& a = options;
    const position all = a.inner + convolved() + heads(), keys = heads() * a.states;
    const linear_attention_shape largest = shape(largest_tile);
    return std::tuple{parameter(in, all, a.features, {0, 1 / std::sqrt(double(a.features))}),
                      parameter(kernel, a.taps, convolved(), {0, 1 / std::sqrt(double(a.taps))}),
                      parameter(kernel_bias, 1, convolved(), zeros),
                      parameter(dt_bias, 1, heads(), {-4.6, 1}),  // steps around 0.01
                      parameter(a_log, 1, heads(), {2, 0.6}),     // rates around 8
                      parameter(skip, 1, heads(), ones),
                      parameter(gain, 1, a.inner, ones),
                      parameter(out, a.features, a.inner, {0, 1 / std::sqrt(double(a.inner))}),
                      carry(behind, a.taps - 1, convolved()),
                      carry(state, keys, a.head_width),
                      saved(parts, all),
                      saved(c, convolved()),
                      saved(dt, heads()),
                      saved(la, heads()),
                      saved(o, a.inner),
                      saved(kept, largest.kept_columns()),
                      scratch(u, convolved()),
                      scratch(du, convolved()),
                      scratch(h, a.inner),
                      scratch(n, a.inner),
                      scratch(dh, a.inner),
                      scratch(dq, keys),
                      scratch(dk, keys),
                      scratch(inverse, 1),
                      scratch(ddt, heads()),
                      scratch(dskip, heads()),
                      workspace(tiles, linear_attention_workspace(largest))};
  }

  void forward(auto& at, auto rows, auto y) const {
    project(at.on, rows, at[in], at[parts]);
    convolution_forward(at.on, at.pieces(), at.states(behind), mixed(at[parts]), at[kernel],
                        at[kernel_bias], at[c]);
    add_bias(at.on, at[dt_bias], steps(at[parts]));
    state_steps(at.on, steps(at[parts]), at[a_log], at[dt], at[la]);
    const auto v = at[h];
    state_inputs_of(at, v);
    linear_attention_forward(at.on, shape(at.chunk.tile), at.pieces(), at.states(state),
                             c_of(at[u]), b_of(at[u]), v, at[la], at[o], at[kept], at[tiles]);
    add_skip(at.on, at[skip], x_of(at[u]), at[o]);
    if (!at.wants_output) return;
    norm(at);
    project(at.on, at[n], at[out], y);
  }

  void backward(auto& at, auto rows, auto, auto dy, auto dx) const {
    norm(at);
    if (at.trains(out)) add_weight_gradient(at.on, dy, at[n], at.d(out), at.grains());
    const auto dn = at[n], dz = gate(at[parts]), d_o = at[o];  // each in the place of its own value
    project_back(at.on, dy, at[out], dn, write::assign);
    zero(at.on, at[dh]);
    rms_norm_backward(at.on, at[h], at[gain], at[inverse], dn, at[dh], at.d(gain), at.grains());
    gated_backward(at.on, activation::silu, dz, d_o, at[dh]);

    const auto v = at[h], dv = at[h], dla = at[n].middle_cols(0, heads());
    state_inputs_of(at, v);
    linear_attention_backward(at.on, shape(at.chunk.tile), at.pieces(), at.states(state),
                              c_of(at[u]), b_of(at[u]), v, at[la], d_o, at[dq], at[dk], dv, dla,
                              at[kept], at[tiles]);
    state_inputs_backward(at.on, at[dt], at[skip], x_of(at[u]), dv, d_o, x_of(at[du]), at[ddt],
                          at[dskip]);
    if (at.trains(skip)) add_column_sums(at.on, at[dskip], at.d(skip), at.grains());
    sum_over_group(at.on, shape(at.chunk.tile), at[dk], b_of(at[du]));
    sum_over_group(at.on, shape(at.chunk.tile), at[dq], c_of(at[du]));
    const auto d_steps = steps(at[parts]);
    state_steps_backward(at.on, steps(at[parts]), at[a_log], at[la], at[ddt], dla, d_steps,
                         at.d(a_log), at.grains());
    if (at.trains(dt_bias)) add_column_sums(at.on, d_steps, at.d(dt_bias), at.grains());

    const auto dc = at[u];
    zero(at.on, dc);
    activation_backward(at.on, activation::silu, at[c], at[du], dc);
    if (at.trains(kernel))
      add_tap_gradients(at.on, at.pieces(), at.states(behind), mixed(at[parts]), dc, at.d(kernel),
                        at.grains());
    if (at.trains(kernel_bias)) add_column_sums(at.on, dc, at.d(kernel_bias), at.grains());
    convolution_backward(at.on, at.pieces(), at.states(behind), at[kernel], dc, mixed(at[parts]),
                         write::assign);
    if (at.trains(in)) add_weight_gradient(at.on, at[parts], rows, at.d(in), at.grains());
    project_back(at.on, at[parts], at[in], dx, write::add);
  }

 private:
  position heads() const { return options.inner / options.head_width; }
  position shared() const { return options.groups * options.states; }
  position convolved() const { return options.inner + 2 * shared(); }
  linear_attention_shape shape(position tile) const {
    return {heads(), options.groups, options.states, options.head_width, 1, tile};
  }

  // Columns of parts: z, what the convolution mixes, dt.
  auto gate(auto rows) const { return rows.middle_cols(0, options.inner); }
  auto mixed(auto rows) const { return rows.middle_cols(options.inner, convolved()); }
  auto steps(auto rows) const { return rows.middle_cols(options.inner + convolved(), heads()); }
  // Columns of what it mixes: x, B, C.
  auto x_of(auto rows) const { return rows.middle_cols(0, options.inner); }
  auto b_of(auto rows) const { return rows.middle_cols(options.inner, shared()); }
  auto c_of(auto rows) const { return rows.middle_cols(options.inner + shared(), shared()); }

  // u = silu(c), v = dt x
  void state_inputs_of(auto& at, auto v) const {
    activation_forward(at.on, activation::silu, at[c], at[u]);
    state_inputs(at.on, at[dt], x_of(at[u]), v);
  }
  // h = silu(z) ∘ o, n = gain ∘ h over its root mean square
  void norm(auto& at) const {
    gated_forward(at.on, activation::silu, gate(at[parts]), at[o], at[h]);
    rms_norm_forward(at.on, at[h], at[gain], options.epsilon, at[n], at[inverse]);
  }
};

}  // namespace streambp
