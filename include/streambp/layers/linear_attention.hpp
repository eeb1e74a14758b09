// Linear attention with a gate: S[t] = a[t] S[t-1] + k[t] v[t]ᵀ a head, o[t] = scale S[t]ᵀ q[t],
// y = (norm(o) ∘ silu(x wgᵀ)) woᵀ. The decay a is one number a head (retention: Sun et al. 2023) or
// σ(x waᵀ + ba)^(1/root) for each token and head (gated linear attention: Yang et al. 2024).
#pragma once

#include <cmath>
#include <vector>

#include "../primitives/activation_kind.hpp"
#include "../primitives/linear_attention_shape.hpp"
#include "../primitives/rotary_shape.hpp"
#include "../primitives/write.hpp"
#include "../split/slot.hpp"
#include "check.hpp"

namespace streambp {

// 0 = the usual value, or none.
struct linear_attention_options {
  position features = 0;
  position heads = 1;
  position key_width = 0;    // features / heads
  position value_width = 0;  // key_width
  double scale = 0;          // 1 / sqrt(key_width)
  double rotary = 0;         // base of rotary positions, such as 10000; 0: none
  double root = 16;          // of gated decays
  double epsilon = 1e-5;     // of the norm of a head's o; a gain would be one of wo's
};

// `Gated`: decays are functions of the token.
template <bool Gated>
struct linear_attention {
  static constexpr tag<"wq"> wq{};
  static constexpr tag<"wk"> wk{};
  static constexpr tag<"wv"> wv{};
  static constexpr tag<"wg"> wg{};
  static constexpr tag<"wo"> wo{};
  static constexpr tag<"wa"> wa{};
  static constexpr tag<"ba"> ba{};
  static constexpr tag<"state"> state{};
  static constexpr tag<"q"> q{};
  static constexpr tag<"k"> k{};
  static constexpr tag<"v"> v{};
  static constexpr tag<"g"> g{};
  static constexpr tag<"o"> o{};
  static constexpr tag<"z"> z{};
  static constexpr tag<"la"> la{};
  static constexpr tag<"kept"> kept{};
  static constexpr tag<"n"> n{};
  static constexpr tag<"h"> h{};
  static constexpr tag<"inverse"> inverse{};
  static constexpr tag<"tiles"> tiles{};
  static constexpr const char* name = Gated ? "gated_linear_attention" : "retention";
  static constexpr bool counts_flops = true, backward_reads_output = false;
  static constexpr reach sees = past;

  linear_attention_options options;
  std::vector<double> frequencies;  // of the rotary pairs
  std::vector<double> logarithms;   // of the heads' decays, unless gated: 1 - 2^(-5 - head)

  // Throws shape_error.
  explicit linear_attention(linear_attention_options given) : options(given) {
    auto& a = options;
    expect_positive(name, "features", a.features);
    expect_positive(name, "heads", a.heads);
    if (a.key_width == 0) {
      if (a.features % a.heads != 0)
        throw shape_error(sentence(name, ": ", a.features, " features do not divide into ", a.heads,
                                   " heads; give key_width"));
      a.key_width = a.features / a.heads;
    }
    if (a.value_width == 0) a.value_width = a.key_width;
    expect_positive(name, "key_width", a.key_width);
    expect_positive(name, "value_width", a.value_width);
    if (a.scale == 0) a.scale = 1 / std::sqrt(double(a.key_width));
    expect_finite(name, "scale", a.scale);
    if (a.rotary != 0) expect_finite(name, "rotary", a.rotary, 1);
    expect_finite(name, "epsilon", a.epsilon, 0);
    if (!(a.root > 0 && std::isfinite(a.root)))
      throw shape_error(sentence(name, ": root is ", a.root, ", it must be positive"));
    if (a.rotary != 0) {
      if (a.key_width % 2 != 0)
        throw shape_error(
            sentence(name, ": rotary positions need an even key_width, not ", a.key_width));
      for (position i = 0; i < a.key_width; i += 2)
        frequencies.push_back(std::pow(a.rotary, -double(i) / double(a.key_width)));
    }
    if (!Gated)
      for (position i = 0; i < a.heads; ++i)
        logarithms.push_back(std::log1p(-std::exp2(-5 - double(i))));
  }

  position features(position given) const {
    const linear_attention checked(options);  // members may have been changed since
    expect_features(name, given, options.features);
    if (frequencies.size() != checked.frequencies.size() ||
        logarithms.size() != checked.logarithms.size())
      throw shape_error(sentence(name, ": ", frequencies.size(), " frequencies and ",
                                 logarithms.size(), " decays; its options ask for ",
                                 checked.frequencies.size(), " and ", checked.logarithms.size()));
    return given;
  }
  auto slots() const {
    const auto& a = options;
    const position keys = a.heads * a.key_width, values = a.heads * a.value_width;
    const position gates = Gated ? a.heads : 0;
    const initial_value in{0, 1 / std::sqrt(double(a.features))},
        out{0, 1 / std::sqrt(double(values))};
    const linear_attention_shape largest = shape(largest_tile);
    return std::tuple{parameter(wq, keys, a.features, in),
                      parameter(wk, keys, a.features, in),
                      parameter(wv, values, a.features, in),
                      parameter(wg, values, a.features, in),
                      parameter(wo, a.features, values, out),
                      parameter(wa, gates, a.features, in),
                      parameter(ba, gates > 0 ? 1 : 0, gates, zeros),
                      carry(state, keys, a.value_width),
                      saved(q, keys),
                      saved(k, keys),
                      saved(v, values),
                      saved(g, values),
                      saved(o, values),
                      saved(z, gates),
                      saved(la, a.heads),
                      saved(kept, largest.kept_columns()),
                      scratch(n, values),
                      scratch(h, values),
                      scratch(inverse, a.heads),
                      workspace(tiles, linear_attention_workspace(largest))};
  }

  void forward(auto& at, auto x, auto y) const {
    project(at.on, x, at[wq], at[q]);
    project(at.on, x, at[wk], at[k]);
    project(at.on, x, at[wv], at[v]);
    project(at.on, x, at[wg], at[g]);
    turn(at, at[q], false);
    turn(at, at[k], false);
    if constexpr (Gated) {
      project(at.on, x, at[wa], at[z]);
      add_bias(at.on, at[ba], at[z]);
      sigmoid_decays(at.on, options.root, at[z], at[la]);
    } else {
      constant_decays(at.on, logarithms, at[la]);
    }
    linear_attention_forward(at.on, shape(at.chunk.tile), at.pieces(), at.states(state), at[q],
                             at[k], at[v], at[la], at[o], at[kept], at[tiles]);
    if (!at.wants_output) return;
    norm(at);
    gated_forward(at.on, activation::silu, at[g], at[n], at[h]);
    project(at.on, at[h], at[wo], y);
  }

  void backward(auto& at, auto x, auto, auto dy, auto dx) const {
    norm(at);
    if (at.trains(wo)) {
      gated_forward(at.on, activation::silu, at[g], at[n], at[h]);
      add_weight_gradient(at.on, dy, at[h], at.d(wo), at.grains());
    }
    const auto dh = at[h], dg = at[g], dn = at[n], d_o = at[h];  // d_o once dh is used up
    project_back(at.on, dy, at[wo], dh, write::assign);
    gated_backward(at.on, activation::silu, dg, dn, dh);
    zero(at.on, d_o);
    rms_norm_backward(at.on, by_head(at[o]), {}, by_head(at[inverse], 1), by_head(dn), by_head(d_o),
                      {}, {});
    const auto dq = at[q], dk = at[k], dv = at[v], dz = at[la];  // in the places of their values
    linear_attention_backward(at.on, shape(at.chunk.tile), at.pieces(), at.states(state), at[q],
                              at[k], at[v], at[la], d_o, dq, dk, dv, Gated ? dz : decltype(dz){},
                              at[kept], at[tiles]);
    turn(at, dq, true);
    turn(at, dk, true);
    pull(at, x, dx, dq, wq);
    pull(at, x, dx, dk, wk);
    pull(at, x, dx, dv, wv);
    pull(at, x, dx, dg, wg);
    if constexpr (Gated) {
      sigmoid_decays_backward(at.on, options.root, at[z], at[la], dz);
      if (at.trains(ba)) add_column_sums(at.on, dz, at.d(ba), at.grains());
      pull(at, x, dx, dz, wa);
    }
  }

 private:
  linear_attention_shape shape(position tile) const {
    const auto& a = options;
    return {a.heads, a.heads, a.key_width, a.value_width, a.scale, tile};
  }
  void turn(auto& at, auto rows, bool inverse) const {
    if (options.rotary != 0)
      rotate(at.on,
             rotary_shape{options.heads, options.key_width, options.key_width, options.rotary},
             frequencies, at.pieces(), rows, inverse);
  }
  // A head's part of a row as a row.
  auto by_head(auto rows) const { return by_head(rows, options.value_width); }
  auto by_head(auto rows, position width) const {
    return decltype(rows){rows.data, rows.rows * options.heads, width};
  }
  // n = each head's o over its root mean square
  void norm(auto& at) const {
    rms_norm_forward(at.on, by_head(at[o]), {}, options.epsilon, by_head(at[n]),
                     by_head(at[inverse], 1));
  }
  // dw += dyᵀ x, dx += dy w
  void pull(auto& at, auto x, auto dx, auto dy, auto weight) const {
    if (at.trains(weight)) add_weight_gradient(at.on, dy, x, at.d(weight), at.grains());
    project_back(at.on, dy, at[weight], dx, write::add);
  }
};

inline linear_attention<false> retention(linear_attention_options options) {
  return linear_attention<false>(options);
}
inline linear_attention<true> gated_linear_attention(linear_attention_options options) {
  return linear_attention<true>(options);
}

}  // namespace streambp
