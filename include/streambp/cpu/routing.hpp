// Which experts a row goes to: softmax of a router's logits, the largest entries, and the gradient.
#pragma once

#include <cmath>
#include <limits>
#include <span>

#include "../primitives/routing.hpp"
#include "elementwise.hpp"

namespace streambp::cpu {
inline namespace STREAMBP_ISA {

// p = softmax z in place of z; returns lse = log Σ exp z.
template <class S>
[[gnu::noinline, gnu::flatten]] S softmax_row(S* z, position entries) {
  constexpr S lowest = std::numeric_limits<S>::lowest();
  lanes<S> top = lowest, sums = 0;
  along<S>(entries, [&](position j, auto n) { top = max(top, load(z + j, n, lowest)); });
  const S highest = largest(top);
  along<S>(entries, [&](position j, auto n) {
    const lanes<S> e = exp(load(z + j, n, lowest) - highest);
    sums = sums + e;
    store(z + j, n, e);
  });
  const S total = sum(sums);
  along<S>(entries, [&](position j, auto n) { store(z + j, n, load<S>(z + j, n) / total); });
  return highest + std::log(total);
}

// The `top` largest logits, the first of equal ones, largest first. Of logits, since probabilities
// that are nearly equal round to the same.
template <class S>
[[gnu::noinline]] void choose_largest(const S* z, position entries, position top, S* chosen) {
  position last = -1;
  for (position j = 0; j < top; ++j) {
    position best = -1;
    for (position e = 0; e < entries; ++e) {
      const bool after = last < 0 || z[e] < z[last] || (z[e] == z[last] && e > last);
      if (after && (best < 0 || z[e] > z[best])) best = e;
    }
    last = best < 0 ? j : best;  // none: z holds no numbers
    chosen[j] = S(last);
  }
}

// Their probabilities p or, normalised, p / Σ chosen p.
template <class S>
[[gnu::noinline]] void weigh_chosen(const S* p, const S* chosen, position top, bool normalised,
                                    S* weights) {
  S mass = 0;
  for (position j = 0; j < top; ++j) {
    weights[j] = p[position(chosen[j])];
    mass += weights[j];
  }
  if (normalised)
    for (position j = 0; j < top; ++j) weights[j] /= mass;
}

template <class S>
void route(workers<S>& on, view<S> logits, bool normalised, view<S> lse, view<S> chosen,
           view<S> weights) {
  for_rows(on, logits.rows, logits.cols, [&](position i) {
    choose_largest(logits.row(i), logits.cols, chosen.cols, chosen.row(i));
    lse(i, 0) = softmax_row(logits.row(i), logits.cols);
    weigh_chosen(logits.row(i), chosen.row(i), chosen.cols, normalised, weights.row(i));
  });
}

// Copies of the rows [first, last) that go to an expert.
template <class S>
position copies_of(view<const S> chosen, row_range rows, position expert) {
  position copies = 0;
  for (position i = rows.first; i < rows.last; ++i)
    for (position j = 0; j < chosen.cols; ++j) copies += chosen(i, j) == S(expert);
  return copies;
}

template <class S>
void add_routing_sums(workers<S>& on, given<S> p, given<S> lse, given<S> chosen,
                      std::span<const position> grains, view<S> sums) {
  const position experts = p.cols;
  const auto mass = [&](position i, position j, auto n) { return load(p.row(i) + j, n); };
  for_column_ranges(on, experts, [&](position first, position count) {
    for (std::size_t g = 1; g < grains.size(); ++g) {
      const row_range grain{grains[g - 1] - grains[0], grains[g] - grains[0]};
      along<S>(count, [&](position j, auto n) {
        add_grain_sums<1>(grain, first + j, n, mass, sums.data);
      });
      for (position e = first; e < first + count; ++e)
        sums(0, experts + e) += S(copies_of<S>(chosen, grain, e));
    }
  });
  for (std::size_t g = 1; g < grains.size(); ++g) {
    S squares = 0;
    for (position i = grains[g - 1] - grains[0]; i < grains[g] - grains[0]; ++i)
      squares = std::fma(lse(i, 0), lse(i, 0), squares);
    sums(0, 2 * experts) += squares;
  }
}

// dz = p ∘ (dp - p · dp) + 2 lse dlse² p in place of p, where dp is `side` and, for a chosen
// entry, what its weight passes back as well.
template <class S>
[[gnu::noinline, gnu::flatten]] void route_row_backward(S* p, position experts, S lse,
                                                        const S* chosen, const S* weights, S* dw,
                                                        position top, bool normalised,
                                                        const S* side) {
  S inner = 0, mass = 1;
  if (normalised) {
    mass = 0;
    for (position j = 0; j < top; ++j) {
      inner = std::fma(dw[j], weights[j], inner);
      mass += p[position(chosen[j])];
    }
  }
  S mean = 0;
  for (position j = 0; j < top; ++j) {
    dw[j] = p[position(chosen[j])] * ((dw[j] - inner) / mass);
    mean += dw[j];
  }
  lanes<S> means = 0;
  along<S>(experts,
           [&](position e, auto n) { means = fma(load<S>(p + e, n), load(side + e, n), means); });
  const S shift = std::fma(2 * lse, side[experts], -(mean + sum(means)));
  along<S>(experts, [&](position e, auto n) {
    store(p + e, n, load<S>(p + e, n) * (load(side + e, n) + shift));
  });
  for (position j = 0; j < top; ++j) p[position(chosen[j])] += dw[j];
}

template <class S>
void route_backward(workers<S>& on, view<S> p, given<S> lse, given<S> chosen, given<S> weights,
                    written<S> dw, bool normalised, given<S> side) {
  for_rows(on, p.rows, p.cols, [&](position i) {
    route_row_backward(p.row(i), p.cols, lse(i, 0), chosen.row(i), weights.row(i), dw.row(i),
                       chosen.cols, normalised, side.data);
  });
}

template <class S>
double routing_loss(workers<S>&, const routing_loss_of& of, given<S> sums, view<S> slopes) {
  const position experts = (sums.cols - 1) / 2;
  double value = of.z_loss * double(sums(0, 2 * experts)) / of.tokens;
  for (position e = 0; e < experts; ++e) {
    const double share = double(sums(0, experts + e)) / (of.tokens * of.top);
    const double s = of.balance * double(experts) * share / of.tokens;
    value += s * double(sums(0, e));
    slopes(0, e) = S(s);
  }
  slopes(0, experts) = S(of.z_loss / of.tokens);
  return value;
}

}  // namespace STREAMBP_ISA
}  // namespace streambp::cpu
