// Attention to a second packed sequence: q from x, k and v from the rows c of the other stream.
// Segment s reads segment s of it.
#pragma once

#include <cmath>

#include "../core/grain.hpp"
#include "../primitives/attention_shape.hpp"
#include "../primitives/write.hpp"
#include "../split/slot.hpp"
#include "attention_heads.hpp"

namespace streambp {

// 0 = the usual value.
struct cross_attention_options {
  position features = 0;
  position context_features = 0;  // features
  position heads = 1;
  position kv_heads = 0;     // heads
  position head_width = 0;   // features / heads
  position value_width = 0;  // head_width
  double scale = 0;          // 1 / sqrt(head_width)
};

struct cross_attention {
  static constexpr tag<"wq"> wq{};
  static constexpr tag<"wk"> wk{};
  static constexpr tag<"wv"> wv{};
  static constexpr tag<"wo"> wo{};
  static constexpr tag<"k"> k{};
  static constexpr tag<"v"> v{};
  static constexpr tag<"q"> q{};
  static constexpr tag<"o"> o{};
  static constexpr tag<"lse"> lse{};
  static constexpr tag<"dq"> dq{};
  static constexpr tag<"d_o"> d_o{};
  static constexpr tag<"tiles"> tiles{};
  static constexpr const char* name = "cross_attention";
  static constexpr bool counts_flops = true, backward_reads_output = false;
  static constexpr reach sees = row;

  cross_attention_options options;

  // Throws shape_error.
  explicit cross_attention(cross_attention_options given) : options(given) {
    auto& a = options;
    fill_in_heads(name, a);
    if (a.context_features == 0) a.context_features = a.features;
    expect_positive(name, "context_features", a.context_features);
  }

  position features(position given) const {
    [[maybe_unused]] const cross_attention checked(options);  // members may have been changed since
    expect_features(name, given, options.features);
    return given;
  }
  auto slots() const {
    const auto& a = options;
    const position heads = a.heads * a.head_width, keys = a.kv_heads * a.head_width,
                   values = a.kv_heads * a.value_width, mixed = a.heads * a.value_width;
    const initial_value in{0, 1 / std::sqrt(double(a.features))},
        of_context{0, 1 / std::sqrt(double(a.context_features))},
        out{0, 1 / std::sqrt(double(mixed))};
    return std::tuple{parameter(wq, heads, a.features, in),
                      parameter(wk, keys, a.context_features, of_context),
                      parameter(wv, values, a.context_features, of_context),
                      parameter(wo, a.features, mixed, out),
                      context(k, keys),
                      context(v, values),
                      saved(q, heads),
                      keepable(o, mixed),
                      keepable(lse, a.heads),
                      scratch(dq, heads),
                      scratch(d_o, mixed),
                      workspace(tiles, attention_workspace(shape(largest_tile)))};
  }

  // Throws shape_error.
  void remember_context(auto& at, auto c) const {
    if (c.cols != options.context_features)
      throw shape_error(sentence("cross_attention: the other stream has ", c.cols,
                                 " features, the layer takes ", options.context_features));
    project(at.on, c, at[wk], at.own_context(k));
    project(at.on, c, at[wv], at.own_context(v));
  }

  void forward(auto& at, auto x, auto y) const {
    project(at.on, x, at[wq], at[q]);
    if (!at.restored) {
      const auto sum = at[dq].middle_cols(0, options.heads);  // dq is backward's
      at.walk(shape(at.chunk.tile), at.context_pieces(), k, v, [&](const auto& memory) {
        attention_forward(at.on, shape(at.chunk.tile), at.context_pieces(), at[q], memory, nullptr,
                          at[o], at[lse], sum, at[tiles]);
      });
    }
    if (at.wants_output) project(at.on, at[o], at[wo], y);
  }

  void backward(auto& at, auto x, auto, auto dy, auto dx) const {
    if (at.trains(wo)) add_weight_gradient(at.on, dy, at[o], at.d(wo), at.grains());
    project_back(at.on, dy, at[wo], at[d_o], write::assign);
    at.walk_back(
        shape(at.chunk.tile), at.context_pieces(), k, v, [&](const auto& memory, auto dk, auto dv) {
          attention_backward(at.on, shape(at.chunk.tile), at.context_pieces(), at[q], memory,
                             nullptr, at[o], at[lse], at[d_o], at[dq], dk, dv, nullptr, at[tiles]);
        });
    pull(at, x, dx, at[dq], wq);
  }

  // Every reader of these rows of the other stream is done.
  void release_context(auto& at, auto c, auto dc) const {
    pull(at, c, dc, at.d_own_context(k), wk);
    pull(at, c, dc, at.d_own_context(v), wv);
  }

 private:
  attention_shape shape(position tile) const {
    const auto& a = options;
    return {a.heads, a.kv_heads, a.head_width, a.value_width, a.scale, 0, 0, true, tile};
  }
  // dw += dyᵀ x, dx += dy w
  void pull(auto& at, auto x, auto dx, auto dy, auto weight) const {
    if (at.trains(weight)) add_weight_gradient(at.on, dy, x, at.d(weight), at.grains());
    project_back(at.on, dy, at[weight], dx, write::add);
  }
};

}  // namespace streambp
