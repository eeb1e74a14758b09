// Sums of all entries, for the host.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>

#include "../primitives/sums.hpp"
#include "device.hpp"

namespace streambp::cpu {
inline namespace STREAMBP_ISA {

template <class S>
double sum_of_products(workers<S>&, view<const S> c, view<const S> y) {
  double sum = 0;
  for (position i = 0; i < y.rows; ++i)
    for (position j = 0; j < y.cols; ++j) sum += double(c(i, j)) * double(y(i, j));
  return sum;
}

template <class S>
double sum_of_squares(workers<S>&, std::span<const S> x, double unit) {
  constexpr std::size_t lanes = 8;
  const auto square = [&](S entry) {
    const double own = double(entry) / unit;
    return own * own;
  };
  double squares[lanes] = {};
  std::size_t i = 0;
  for (; i + lanes <= x.size(); i += lanes)
    for (std::size_t k = 0; k < lanes; ++k) squares[k] += square(x[i + k]);
  double sum = 0;
  for (; i < x.size(); ++i) sum += square(x[i]);
  for (const double s : squares) sum += s;
  return sum;
}

template <class S>
double largest_of(workers<S>&, std::span<const S> x) {
  double most = 0;
  for (const S entry : x) most = std::max(most, std::abs(double(entry)));
  return most;
}

}  // namespace STREAMBP_ISA
}  // namespace streambp::cpu
