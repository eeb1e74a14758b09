// Decays of a state, as logarithms: one a head for all tokens, or one a head and token.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <type_traits>

#include "rows.hpp"

namespace streambp::cpu {
inline namespace STREAMBP_ISA {

// ln(1 + e^x)
inline double softplus(double x) { return std::max(x, 0.) + std::log1p(std::exp(-std::abs(x))); }
inline double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// la = the same logarithms in every row.
template <class S>
void constant_decays(device<S>& on, std::span<const double> logarithms, view<S> la) {
  if (on.counts_only()) return;
  for (position i = 0; i < la.rows; ++i)
    for (position h = 0; h < la.cols; ++h) la(i, h) = S(logarithms[std::size_t(h)]);
}

// la = ln σ(z) / root: a = σ(z)^(1/root).
template <class S>
void sigmoid_decays(device<S>& on, double root, std::type_identity_t<view<const S>> z, view<S> la) {
  if (on.counts_only()) return;
  for_rows(on, la.rows, la.cols, [&](position i) {
    for (position h = 0; h < la.cols; ++h) la(i, h) = S(-softplus(-double(z(i, h))) / root);
  });
}

// dz = dla σ(-z) / root; dz may be dla.
template <class S>
void sigmoid_decays_backward(device<S>& on, double root, std::type_identity_t<view<const S>> z,
                             std::type_identity_t<view<const S>> dla, view<S> dz) {
  if (on.counts_only()) return;
  for_rows(on, dz.rows, dz.cols, [&](position i) {
    for (position h = 0; h < dz.cols; ++h)
      dz(i, h) = S(double(dla(i, h)) * sigmoid(-double(z(i, h))) / root);
  });
}

}  // namespace STREAMBP_ISA
}  // namespace streambp::cpu
