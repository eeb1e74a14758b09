// y = Σ_j w_j expert_j(x) over the top experts of a router (Shazeer et al. 2017), each a gated MLP;
// with the balance loss of Switch transformers (Fedus et al. 2022) and the router's z-loss (Zoph et
// al. 2022) as side losses. No token is dropped.
#pragma once

#include <cmath>

#include "../primitives/activation_kind.hpp"
#include "../primitives/write.hpp"
#include "../split/slot.hpp"
#include "check.hpp"

namespace streambp {

struct expert_options {
  position features = 0;
  position inner = 0;  // of one expert
  position experts = 1;
  position top = 1;        // experts a token
  bool normalised = true;  // the weights of a token's experts sum to 1
  double balance = 0;      // · experts Σ_e (share of choices)_e (mean probability)_e
  double z_loss = 0;       // · mean (log Σ exp logits)²
  activation kind = activation::silu;
};

struct mixture_of_experts {
  static constexpr tag<"router"> router{};
  static constexpr tag<"gate"> gate{};
  static constexpr tag<"up"> up{};
  static constexpr tag<"down"> down{};
  static constexpr tag<"sums"> sums{};
  static constexpr tag<"p"> p{};
  static constexpr tag<"lse"> lse{};
  static constexpr tag<"chosen"> chosen{};
  static constexpr tag<"weights"> weights{};
  static constexpr tag<"place"> place{};
  static constexpr tag<"x"> copies{};
  static constexpr tag<"g"> g{};
  static constexpr tag<"u"> u{};
  static constexpr tag<"y"> y_copies{};
  static constexpr tag<"h"> h{};
  static constexpr tag<"dx"> dx_copies{};
  static constexpr tag<"dw"> dw{};
  static constexpr tag<"first"> first{};
  static constexpr const char* name = "experts";
  static constexpr bool counts_flops = true, backward_reads_output = false;
  static constexpr reach sees = row;

  expert_options options;

  // Throws shape_error.
  explicit mixture_of_experts(expert_options given) : options(given) {
    expect_positive(name, "features", given.features);
    expect_positive(name, "inner", given.inner);
    expect_positive(name, "top", given.top);
    expect_finite(name, "balance", given.balance, 0);
    expect_finite(name, "z_loss", given.z_loss, 0);
    if (given.top > given.experts)
      throw shape_error(
          sentence("experts: the top ", given.top, " of ", given.experts, " experts"));
  }

  position features(position given) const {
    [[maybe_unused]] const mixture_of_experts checked(
        options);  // members may have been changed since
    expect_features(name, given, options.features);
    return given;
  }
  auto slots() const {
    const auto& o = options;
    const position d = o.features, e = o.experts, k = o.top;
    const initial_value in{0, 1 / std::sqrt(double(d))}, out{0, 1 / std::sqrt(double(o.inner))};
    return std::tuple{parameter(router, e, d, in),
                      parameter(gate, e * o.inner, d, in),
                      parameter(up, e * o.inner, d, in),
                      parameter(down, e * d, o.inner, out),
                      tally(sums, 2 * e + 1),
                      saved(p, e),
                      saved(lse, 1),
                      saved(chosen, k),
                      saved(weights, k),
                      saved(place, k),
                      saved(copies, k * d),
                      saved(g, k * o.inner),
                      saved(u, k * o.inner),
                      saved(y_copies, k * d),
                      scratch(h, k * o.inner),
                      scratch(dx_copies, k * d),
                      scratch(dw, k),
                      workspace(first, e + 1)};
  }

  void forward(auto& at, auto x, auto y) const {
    project(at.on, x, at[router], at[p]);
    route(at.on, at[p], options.normalised, at[lse], at[chosen], at[weights]);
    if (at.tallies) add_routing_sums(at.on, at[p], at[lse], at[chosen], at.grains(), at[sums]);
    if (!at.wants_output && !at.saves) return;
    const position n = x.rows * options.top;
    const auto xs = stacked(at[copies], n), gs = stacked(at[g], n), us = stacked(at[u], n),
               hs = stacked(at[h], n), ys = stacked(at[y_copies], n);
    order_by_expert(at.on, at[chosen], options.experts, at[place], at[first]);
    copy_to_experts(at.on, x, at[place], {}, xs);
    project_experts(at.on, at[first], options.experts, xs, at[gate], gs);
    project_experts(at.on, at[first], options.experts, xs, at[up], us);
    gated_forward(at.on, options.kind, gs, us, hs);
    project_experts(at.on, at[first], options.experts, hs, at[down], ys);
    if (!at.wants_output) return;
    zero(at.on, y);
    add_from_experts(at.on, ys, at[place], at[weights], y);
  }

  void backward(auto& at, auto x, auto, auto dy, auto dx) const {
    const position n = x.rows * options.top;
    const auto xs = stacked(at[copies], n), gs = stacked(at[g], n), us = stacked(at[u], n),
               hs = stacked(at[h], n), ys = stacked(at[y_copies], n);
    order_by_expert(at.on, at[chosen], options.experts, at[place], at[first]);
    dot_with_experts(at.on, ys, at[place], dy, at[dw]);
    const auto dys = ys;  // in the place of y
    copy_to_experts(at.on, dy, at[place], at[weights], dys);
    if (at.trains(down)) {
      gated_forward(at.on, options.kind, gs, us, hs);
      add_expert_gradients(at.on, at[first], options.experts, at[chosen], dys, hs, at.d(down),
                           at.grains());
    }
    project_back_experts(at.on, at[first], options.experts, dys, at[down], hs, write::assign);
    gated_backward(at.on, options.kind, gs, us, hs);
    if (at.trains(gate))
      add_expert_gradients(at.on, at[first], options.experts, at[chosen], gs, xs, at.d(gate),
                           at.grains());
    if (at.trains(up))
      add_expert_gradients(at.on, at[first], options.experts, at[chosen], us, xs, at.d(up),
                           at.grains());
    const auto dxs = stacked(at[dx_copies], n);
    project_back_experts(at.on, at[first], options.experts, gs, at[gate], dxs, write::assign);
    project_back_experts(at.on, at[first], options.experts, us, at[up], dxs, write::add);
    add_from_experts(at.on, dxs, at[place], {}, dx);

    route_backward(at.on, at[p], at[lse], at[chosen], at[weights], at[dw], options.normalised,
                   at.d(sums));
    if (at.trains(router)) add_weight_gradient(at.on, at[p], x, at.d(router), at.grains());
    project_back(at.on, at[p], at[router], dx, write::add);
  }

  double side_loss(auto& at) const {
    const double tokens = double(at.chunk.samples->tokens());
    return routing_loss(at.on, {options.balance, options.z_loss, tokens, double(options.top)},
                        at[sums], at.d(sums));
  }

 private:
  // (rows, top · width) as (rows · top, width): a row of its own for each copy.
  auto stacked(auto rows, position n) const {
    rows.cols = rows.stride = rows.cols / options.top;
    rows.rows = n;
    return rows;
  }
};

}  // namespace streambp
