// Attention with shared key and value heads: S = scale q kᵀ over the rows seen, P = softmax S,
// y = (P v) woᵀ. Causal or bidirectional, with the usual additions.
#pragma once

#include <cmath>
#include <vector>

#include "../core/grain.hpp"
#include "../primitives/attention_shape.hpp"
#include "../primitives/rotary_shape.hpp"
#include "../primitives/write.hpp"
#include "../split/slot.hpp"
#include "attention_heads.hpp"

namespace streambp {

// 0 = none, or the usual value.
struct attention_options {
  position features = 0;
  position heads = 1;
  position kv_heads = 0;     // heads
  position head_width = 0;   // features / heads
  position value_width = 0;  // head_width
  double rotary = 0;         // base of rotary positions, such as 10000
  position window = 0;       // a row sees itself and window - 1 before
  double softcap = 0;        // scores are softcap · tanh(s / softcap)
  double scale = 0;          // 1 / sqrt(head_width)
  bool bias = false;         // of all four projections
  bool sinks = false;        // a learned logit a head that joins the softmax denominator only
};

template <reach Sees>
struct attention {
  static_assert(Sees != reach::row, "attention sees the past or all of its segment");
  static constexpr tag<"wq"> wq{};
  static constexpr tag<"wk"> wk{};
  static constexpr tag<"wv"> wv{};
  static constexpr tag<"wo"> wo{};
  static constexpr tag<"bq"> bq{};
  static constexpr tag<"bk"> bk{};
  static constexpr tag<"bv"> bv{};
  static constexpr tag<"bo"> bo{};
  static constexpr tag<"sinks"> sinks{};
  static constexpr tag<"k"> k{};
  static constexpr tag<"v"> v{};
  static constexpr tag<"q"> q{};
  static constexpr tag<"o"> o{};
  static constexpr tag<"lse"> lse{};
  static constexpr tag<"dq"> dq{};
  static constexpr tag<"d_o"> d_o{};
  static constexpr tag<"tiles"> tiles{};
  static constexpr const char* name = "attention";
  static constexpr bool counts_flops = true, backward_reads_output = false;
  static constexpr reach sees = Sees;

  attention_options options;
  std::vector<double> frequencies;  // of the rotary pairs

  // Throws shape_error.
  explicit attention(attention_options given) : options(given) {
    auto& a = options;
    fill_in_heads(name, a);
    expect_finite(name, "softcap", a.softcap, 0);
    if (a.rotary != 0) expect_finite(name, "rotary", a.rotary, 1);
    if (a.window < 0 || (a.window > 0 && Sees == reach::all))
      throw shape_error("attention: a window is for causal attention, and not negative");
    if (a.rotary != 0) {
      if (a.head_width % 2 != 0)
        throw shape_error(
            sentence("attention: rotary positions need an even head width, not ", a.head_width));
      for (position i = 0; i < a.head_width; i += 2)
        frequencies.push_back(std::pow(a.rotary, -double(i) / double(a.head_width)));
    }
  }

  position features(position given) const {
    const attention checked(options);  // members may have been changed since
    expect_features(name, given, options.features);
    if (frequencies.size() != checked.frequencies.size())
      throw shape_error(sentence("attention: ", frequencies.size(), " frequencies for ",
                                 checked.frequencies.size(), " pairs of features that turn"));
    return given;
  }
  auto slots() const {
    const auto& a = options;
    const position heads = a.heads * a.head_width, keys = a.kv_heads * a.head_width,
                   values = a.kv_heads * a.value_width, mixed = a.heads * a.value_width;
    const initial_value in{0, 1 / std::sqrt(double(a.features))},
        out{0, 1 / std::sqrt(double(mixed))};
    const position b = a.bias ? 1 : 0;
    return std::tuple{parameter(wq, heads, a.features, in),
                      parameter(wk, keys, a.features, in),
                      parameter(wv, values, a.features, in),
                      parameter(wo, a.features, mixed, out),
                      parameter(bq, b, heads, zeros),
                      parameter(bk, b, keys, zeros),
                      parameter(bv, b, values, zeros),
                      parameter(bo, b, a.features, zeros),
                      parameter(sinks, a.sinks ? 1 : 0, a.heads, zeros),
                      memory(k, keys),
                      memory(v, values),
                      saved(q, heads),
                      keepable(o, mixed),
                      keepable(lse, a.heads),
                      scratch(dq, heads),
                      scratch(d_o, mixed),
                      workspace(tiles, attention_workspace(shape(largest_tile)))};
  }

  void remember(auto& at, auto x) const {
    const auto k_own = at.own(k), v_own = at.own(v);
    project(at.on, x, at[wk], k_own);
    project(at.on, x, at[wv], v_own);
    if (options.bias) {
      add_bias(at.on, at[bk], k_own);
      add_bias(at.on, at[bv], v_own);
    }
    turn(at, k_own, options.kv_heads, false);
  }

  void forward(auto& at, auto x, auto y) const {
    project(at.on, x, at[wq], at[q]);
    if (options.bias) add_bias(at.on, at[bq], at[q]);
    turn(at, at[q], options.heads, false);
    if (!at.restored) {
      const auto sum = at[dq].middle_cols(0, options.heads);  // dq is backward's
      at.walk(shape(at.chunk.tile), at.pieces(), k, v, [&](const auto& memory) {
        attention_forward(at.on, shape(at.chunk.tile), at.pieces(), at[q], memory, at[sinks].data,
                          at[o], at[lse], sum, at[tiles]);
      });
    }
    if (!at.wants_output) return;
    project(at.on, at[o], at[wo], y);
    if (options.bias) add_bias(at.on, at[bo], y);
  }

  void backward(auto& at, auto x, auto, auto dy, auto dx) const {
    if (at.trains(wo)) add_weight_gradient(at.on, dy, at[o], at.d(wo), at.grains());
    if (at.trains(bo)) add_column_sums(at.on, dy, at.d(bo), at.grains());
    project_back(at.on, dy, at[wo], at[d_o], write::assign);
    const auto dsinks = at.trains(sinks) ? at.d(sinks).data : nullptr;
    at.walk_back(shape(at.chunk.tile), at.pieces(), k, v,
                 [&](const auto& memory, auto dk, auto dv) {
                   attention_backward(at.on, shape(at.chunk.tile), at.pieces(), at[q], memory,
                                      at[sinks].data, at[o], at[lse], at[d_o], at[dq], dk, dv,
                                      dsinks, at[tiles]);
                 });
    turn(at, at[dq], options.heads, true);
    pull(at, x, dx, at[dq], wq, bq);
  }

  // No later row is left to read these keys and values: through their projections, once.
  void release(auto& at, auto x, auto dx) const {
    const auto dk = at.d_own(k), dv = at.d_own(v);
    turn(at, dk, options.kv_heads, true);
    pull(at, x, dx, dk, wk, bk);
    pull(at, x, dx, dv, wv, bv);
  }

 private:
  // `tile`: query rows, the plan's.
  attention_shape shape(position tile) const {
    const auto& a = options;
    return {a.heads,   a.kv_heads, a.head_width,       a.value_width, a.scale,
            a.softcap, a.window,   Sees == reach::all, tile};
  }
  void turn(auto& at, auto rows, position heads, bool inverse) const {
    if (options.rotary != 0)
      rotate(at.on, rotary_shape{heads, options.head_width, options.head_width, options.rotary},
             frequencies, at.pieces(), rows, inverse);
  }
  // dw += dyᵀ x, db += Σ dy, dx += dy w
  void pull(auto& at, auto x, auto dx, auto dy, auto weight, auto bias) const {
    if (at.trains(weight)) add_weight_gradient(at.on, dy, x, at.d(weight), at.grains());
    if (at.trains(bias)) add_column_sums(at.on, dy, at.d(bias), at.grains());
    project_back(at.on, dy, at[weight], dx, write::add);
  }
};

inline attention<past> causal_attention(attention_options options) {
  return attention<past>(options);
}
inline attention<all> bidirectional_attention(attention_options options) {
  return attention<all>(options);
}

}  // namespace streambp
