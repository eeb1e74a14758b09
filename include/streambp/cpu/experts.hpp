// Rows sent to experts: which experts a row goes to, its copies ordered by expert, products with
// each expert's own weights, and the way back.
#pragma once

#include <cmath>
#include <limits>
#include <span>

#include "elementwise.hpp"
#include "product.hpp"

namespace streambp::cpu {
inline namespace STREAMBP_ISA {

// p = softmax z in place of z, lse = log Σ exp z; the `top` largest entries of p, ties by number,
// are chosen (rows, top), with weights p or, normalised, p / Σ chosen p.
template <class S>
[[gnu::noinline]] void route_row(S* z, position experts, position top, bool normalised, S* lse,
                                 S* chosen, S* weights) {
  S highest = z[0];
  for (position e = 1; e < experts; ++e) highest = std::max(highest, z[e]);
  S total = 0;
  for (position e = 0; e < experts; ++e) total += z[e] = std::exp(z[e] - highest);
  *lse = highest + std::log(total);
  for (position e = 0; e < experts; ++e) z[e] /= total;
  S mass = 0;
  for (position j = 0; j < top; ++j) {
    position best = -1;
    for (position e = 0; e < experts; ++e) {
      bool taken = false;
      for (position i = 0; i < j; ++i) taken = taken || position(chosen[i]) == e;
      if (!taken && (best < 0 || z[e] > z[best])) best = e;
    }
    chosen[j] = S(best);
    weights[j] = z[best];
    mass += z[best];
  }
  if (normalised)
    for (position j = 0; j < top; ++j) weights[j] /= mass;
}

template <class S>
void route(device<S>& on, view<S> logits, bool normalised, view<S> lse, view<S> chosen,
           view<S> weights) {
  if (on.counts_only()) return;
  for_rows(on, logits.rows, logits.cols, [&](position i) {
    route_row(logits.row(i), logits.cols, chosen.cols, normalised, lse.row(i), chosen.row(i),
              weights.row(i));
  });
}

// The copies of the rows, by expert and then by row: place(i, j) is where copy j of row i stands,
// first(0, e) the first place of expert e, and first(0, experts) their number. Numbers are held as
// scalars; a chunk has fewer copies than fp32 has integers.
template <class S>
void order_by_expert(device<S>& on, std::type_identity_t<view<const S>> chosen, position experts,
                     view<S> place, view<S> first) {
  if (on.counts_only()) return;
  for (position e = 0; e <= experts; ++e) first(0, e) = 0;
  for (position i = 0; i < chosen.rows; ++i)
    for (position j = 0; j < chosen.cols; ++j) first(0, position(chosen(i, j)) + 1) += 1;
  for (position e = 0; e < experts; ++e) first(0, e + 1) += first(0, e);
  for (position i = 0; i < chosen.rows; ++i)
    for (position j = 0; j < chosen.cols; ++j) place(i, j) = first(0, position(chosen(i, j)))++;
  for (position e = experts; e > 0; --e) first(0, e) = first(0, e - 1);
  first(0, 0) = 0;
}

// copies_place(i, j) = x_i, or weights(i, j) x_i.
template <class S>
void copy_to_experts(device<S>& on, std::type_identity_t<view<const S>> x,
                     std::type_identity_t<view<const S>> place,
                     std::type_identity_t<view<const S>> weights, view<S> copies) {
  if (on.counts_only()) return;
  for_rows(on, x.rows, x.cols * place.cols, [&](position i) {
    for (position j = 0; j < place.cols; ++j)
      scale_row<S>(x.row(i), weights.data ? weights(i, j) : S(1), x.cols,
                   copies.row(position(place(i, j))));
  });
}

template <class S>
[[gnu::noinline, gnu::flatten]] void add_scaled(const S* x, S factor, position d, S* y) {
  along<S>(d, [&](position j, auto n) {
    store(y + j, n, fma(load(x + j, n), factor, load<S>(y + j, n)));
  });
}

// y_i += Σ_j weights(i, j) copies_place(i, j), weights 1 if without data.
template <class S>
void add_from_experts(device<S>& on, std::type_identity_t<view<const S>> copies,
                      std::type_identity_t<view<const S>> place,
                      std::type_identity_t<view<const S>> weights, view<S> y) {
  if (on.counts_only()) return;
  for_rows(on, y.rows, y.cols * place.cols, [&](position i) {
    for (position j = 0; j < place.cols; ++j)
      add_scaled<S>(copies.row(position(place(i, j))), weights.data ? weights(i, j) : S(1), y.cols,
                    y.row(i));
  });
}

// out(i, j) = copies_place(i, j) · dy_i
template <class S>
[[gnu::noinline, gnu::flatten]] S dot_of(const S* x, const S* y, position d) {
  lanes<S> total = 0;
  along<S>(d, [&](position j, auto n) { total = fma(load(x + j, n), load(y + j, n), total); });
  return sum(total);
}
template <class S>
void dot_with_experts(device<S>& on, std::type_identity_t<view<const S>> copies,
                      std::type_identity_t<view<const S>> place,
                      std::type_identity_t<view<const S>> dy, view<S> out) {
  if (on.counts_only()) return;
  for_rows(on, dy.rows, dy.cols * place.cols, [&](position i) {
    for (position j = 0; j < place.cols; ++j)
      out(i, j) = dot_of<S>(copies.row(position(place(i, j))), dy.row(i), dy.cols);
  });
}

// Calls f(expert, places of its copies) for each expert that has any.
template <class S, class F>
void for_each_expert(std::type_identity_t<view<const S>> first, position experts, F&& f) {
  for (position e = 0; e < experts; ++e) {
    const row_range own{position(first(0, e)), position(first(0, e + 1))};
    if (own.rows() > 0) f(e, own);
  }
}

// y = x w_eᵀ for the copies of each expert e; w holds the experts' matrices one below the other.
template <class S>
void project_experts(device<S>& on, std::type_identity_t<view<const S>> first, position experts,
                     std::type_identity_t<view<const S>> x, std::type_identity_t<view<const S>> w,
                     view<S> y) {
  if (on.counts_only()) return on.count(2 * x.rows * x.cols * y.cols);
  for_each_expert<S>(first, experts, [&](position e, row_range own) {
    project(on, x.rows_in(own), w.middle_rows(e * y.cols, y.cols), y.rows_in(own));
  });
}

// dx (+)= dy w_e
template <class S>
void project_back_experts(device<S>& on, std::type_identity_t<view<const S>> first,
                          position experts, std::type_identity_t<view<const S>> dy,
                          std::type_identity_t<view<const S>> w, view<S> dx, write how) {
  if (on.counts_only()) return on.count(2 * dy.rows * dy.cols * dx.cols);
  for_each_expert<S>(first, experts, [&](position e, row_range own) {
    project_back(on, dy.rows_in(own), w.middle_rows(e * dy.cols, dy.cols), dx.rows_in(own), how);
  });
}

// dw_e += dyᵀ x, grain by grain of the rows that the copies come from, last grain first.
template <class S>
void add_expert_gradients(device<S>& on, std::type_identity_t<view<const S>> first,
                          position experts, std::type_identity_t<view<const S>> chosen,
                          std::type_identity_t<view<const S>> dy,
                          std::type_identity_t<view<const S>> x, view<S> dw,
                          std::span<const position> grains) {
  if (on.counts_only()) return on.count(2 * dy.rows * dy.cols * x.cols);
  for_each_expert<S>(first, experts, [&](position e, row_range own) {
    position last = own.last;
    for (std::size_t g = grains.size(); g-- > 1;) {
      position copies = 0;
      for (position i = grains[g - 1] - grains[0]; i < grains[g] - grains[0]; ++i)
        for (position j = 0; j < chosen.cols; ++j) copies += position(chosen(i, j)) == e;
      if (copies == 0) continue;
      const row_range in_grain{last - copies, last};
      const position edges[] = {0, copies};
      add_weight_gradient(on, dy.rows_in(in_grain), x.rows_in(in_grain),
                          dw.middle_rows(e * dy.cols, dy.cols), std::span<const position>(edges));
      last -= copies;
    }
  });
}

// Adds to sums (1, 2 experts + 1), grain by grain, first grain first: Σ p, how often each expert
// was chosen, Σ lse².
template <class S>
void add_routing_sums(device<S>& on, std::type_identity_t<view<const S>> p,
                      std::type_identity_t<view<const S>> lse,
                      std::type_identity_t<view<const S>> chosen, std::span<const position> grains,
                      view<S> sums) {
  if (on.counts_only()) return;
  const position experts = p.cols;
  for (std::size_t g = 1; g < grains.size(); ++g) {
    const row_range own{grains[g - 1] - grains[0], grains[g] - grains[0]};
    for (position e = 0; e < experts; ++e) {
      S mass = 0, times = 0;
      for (position i = own.first; i < own.last; ++i) {
        mass += p(i, e);
        for (position j = 0; j < chosen.cols; ++j) times += S(position(chosen(i, j)) == e);
      }
      sums(0, e) += mass;
      sums(0, experts + e) += times;
    }
    S squares = 0;
    for (position i = own.first; i < own.last; ++i) squares += lse(i, 0) * lse(i, 0);
    sums(0, 2 * experts) += squares;
  }
}

// The gradient of the router's logits, in place of p, from dw = dL/dweights and the slopes of the
// side losses: in each p (1, experts), in lse² (one more).
template <class S>
[[gnu::noinline]] void route_row_backward(S* p, position experts, S lse, const S* chosen,
                                          const S* weights, const S* dw, position top,
                                          bool normalised, const S* side) {
  S inner = 0, mass = 0;
  for (position j = 0; j < top; ++j) {
    inner += dw[j] * weights[j];
    mass += p[position(chosen[j])];
  }
  const auto slope = [&](position e) {  // dL/dp_e
    S dp = side[e];
    for (position j = 0; j < top; ++j)
      if (position(chosen[j]) == e) dp += normalised ? (dw[j] - inner) / mass : dw[j];
    return dp;
  };
  S mean = 0;
  for (position e = 0; e < experts; ++e) mean += p[e] * slope(e);
  const S through_lse = 2 * lse * side[experts];
  for (position e = 0; e < experts; ++e) p[e] *= slope(e) - mean + through_lse;
}

template <class S>
void route_backward(device<S>& on, view<S> p, std::type_identity_t<view<const S>> lse,
                    std::type_identity_t<view<const S>> chosen,
                    std::type_identity_t<view<const S>> weights,
                    std::type_identity_t<view<const S>> dw, bool normalised,
                    std::type_identity_t<view<const S>> side) {
  if (on.counts_only()) return;
  for_rows(on, p.rows, p.cols, [&](position i) {
    route_row_backward(p.row(i), p.cols, lse(i, 0), chosen.row(i), weights.row(i), dw.row(i),
                       chosen.cols, normalised, side.data);
  });
}

}  // namespace STREAMBP_ISA
}  // namespace streambp::cpu
