// Clipping a gradient by its norm (Pascanu et al. 2013).
#pragma once

#include <cmath>
#include <limits>
#include <span>

#include "../core/error.hpp"
#include "../default_device.hpp"
#include "../primitives/sums.hpp"

namespace streambp {

// sqrt Σ g². Where squares would overflow, or be too small to be told apart from 0, they are those
// of g over the largest |g|. An entry that is not finite gives a norm that is not.
template <class Scalar, primitives::computing_device Device = default_device<Scalar>>
double gradient_norm(std::span<const Scalar> gradient) {
  Device on(1);
  const double sum = sum_of_squares(on, gradient, 1);
  if (std::isnan(sum) || (sum > 1e-280 && std::isfinite(sum))) return std::sqrt(sum);
  const double most = largest_of(on, gradient);
  if (most == 0 || !std::isfinite(most)) return most;
  return most * std::sqrt(sum_of_squares(on, gradient, most));
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
