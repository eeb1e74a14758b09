// Clipping a gradient by its norm (Pascanu et al. 2013).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>

namespace streambp {

// sqrt Σ g², in double precision and a fixed order.
template <class Scalar>
double gradient_norm(std::span<const Scalar> gradient) {
  constexpr std::size_t lanes = 8;
  double squares[lanes] = {};
  std::size_t i = 0;
  for (; i + lanes <= gradient.size(); i += lanes)
    for (std::size_t k = 0; k < lanes; ++k)
      squares[k] += double(gradient[i + k]) * double(gradient[i + k]);
  double sum = 0;
  for (; i < gradient.size(); ++i) sum += double(gradient[i]) * double(gradient[i]);
  for (const double s : squares) sum += s;
  return std::sqrt(sum);
}

// The factor that brings a gradient of this norm to `limit` at most; 1 for a limit of 0. NaN for a
// norm that is not finite: the optimizer refuses it.
constexpr double clip_factor(double norm, double limit) {
  if (!(norm - norm == 0)) return std::numeric_limits<double>::quiet_NaN();
  return limit > 0 && norm > limit ? limit / norm : 1;
}

}  // namespace streambp
