// Clipping a gradient by its norm (Pascanu et al. 2013).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>

#include "../core/error.hpp"

namespace streambp {

namespace detail {

// Σ (g / unit)², in double precision and a fixed order.
template <class Scalar>
double sum_of_squares(std::span<const Scalar> gradient, double unit) {
  constexpr std::size_t lanes = 8;
  const auto square = [&](Scalar g) {
    const double x = double(g) / unit;
    return x * x;
  };
  double squares[lanes] = {};
  std::size_t i = 0;
  for (; i + lanes <= gradient.size(); i += lanes)
    for (std::size_t k = 0; k < lanes; ++k) squares[k] += square(gradient[i + k]);
  double sum = 0;
  for (; i < gradient.size(); ++i) sum += square(gradient[i]);
  for (const double s : squares) sum += s;
  return sum;
}

}  // namespace detail

// sqrt Σ g². Where squares would overflow, or be too small to be told apart from 0, they are those
// of g over the largest |g|. An entry that is not finite gives a norm that is not.
template <class Scalar>
double gradient_norm(std::span<const Scalar> gradient) {
  const double sum = detail::sum_of_squares(gradient, 1);
  if (std::isnan(sum) || (sum > 1e-280 && std::isfinite(sum))) return std::sqrt(sum);
  double most = 0;
  for (const Scalar g : gradient) most = std::max(most, std::abs(double(g)));
  if (most == 0 || !std::isfinite(most)) return most;
  return most * std::sqrt(detail::sum_of_squares(gradient, most));
}

// The factor that brings a gradient of this norm to `limit` at most; 1 for a limit of 0, which
// means none. Throws data_error for a norm or a limit that is negative or not finite.
constexpr double clip_factor(double norm, double limit) {
  constexpr double most = std::numeric_limits<double>::max();
  if (!(norm >= 0 && norm <= most))
    throw data_error(sentence("clip_factor: a norm of ", norm,
                              "; it is finite and not negative: look for the gradient's entries "
                              "that are not, before parameters change"));
  if (!(limit >= 0 && limit <= most))
    throw data_error(sentence("clip_factor: a limit of ", limit,
                              "; it is finite and not negative, and 0 means none"));
  return limit > 0 && norm > limit ? limit / norm : 1;
}

}  // namespace streambp
