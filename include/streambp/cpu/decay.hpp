// Decays of a state, as logarithms: one a head for all tokens, or one a head and token.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>

#include "../primitives/decay.hpp"
#include "rows.hpp"

namespace streambp::cpu {
inline namespace STREAMBP_ISA {

// ln(1 + e^x)
inline double softplus(double x) { return std::max(x, 0.) + std::log1p(std::exp(-std::abs(x))); }
inline double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

template <class S>
void constant_decays(workers<S>&, std::span<const double> logarithms, view<S> la) {
  for (position i = 0; i < la.rows; ++i)
    for (position h = 0; h < la.cols; ++h) la(i, h) = S(logarithms[std::size_t(h)]);
}

template <class S>
void sigmoid_decays(workers<S>& on, double root, given<S> z, view<S> la) {
  for_rows(on, la.rows, la.cols, [&](position i) {
    for (position h = 0; h < la.cols; ++h) la(i, h) = S(-softplus(-double(z(i, h))) / root);
  });
}

template <class S>
void sigmoid_decays_backward(workers<S>& on, double root, given<S> z, given<S> dla, view<S> dz) {
  for_rows(on, dz.rows, dz.cols, [&](position i) {
    for (position h = 0; h < dz.cols; ++h)
      dz(i, h) = S(double(dla(i, h)) * sigmoid(-double(z(i, h))) / root);
  });
}

}  // namespace STREAMBP_ISA
}  // namespace streambp::cpu
