// Direct preference optimisation (Rafailov et al. 2023): a coupled loss of two segments.
#pragma once

#include <cmath>
#include <span>
#include <utility>
#include <vector>

#include "../core/error.hpp"
#include "../traits/loss_traits.hpp"

namespace streambp {

// Mean over pairs of -log sigmoid(beta ((p_c - r_c) - (p_r - r_r))): p is the sum of a segment's
// counted log-probabilities, r the same of the reference model.
struct direct_preference {
  struct pair {
    position chosen = 0;
    position rejected = 0;
  };
  std::vector<pair> pairs;        // of segments
  std::vector<double> reference;  // by segment
  double beta = 0.1;

  token_term summary(const row_statistics& r, const label_place&) const {
    return {r.log_probability(), {-1, 1, 0}};
  }

  double couple(std::span<const double> sums, std::span<double> slopes) const {
    for (double& s : slopes) s = 0;
    double value = 0;
    const double n = double(pairs.size());
    for (const auto& [c, r] : pairs) {
      const auto chosen = std::size_t(c), rejected = std::size_t(r);
      const double margin =
          beta * ((sums[chosen] - reference[chosen]) - (sums[rejected] - reference[rejected]));
      // -log sigmoid(m) = log(1 + exp(-m)), from the side that cannot overflow.
      value +=
          (margin > 0 ? std::log1p(std::exp(-margin)) : std::log1p(std::exp(margin)) - margin) / n;
      const double slope = -beta / (1 + std::exp(margin)) / n;
      slopes[chosen] += slope;
      slopes[rejected] -= slope;
    }
    return value;
  }

  // Throws data_error.
  void check(position segments) const {
    if (position(reference.size()) != segments)
      throw data_error(sentence("direct_preference: ", reference.size(),
                                " reference log-probabilities for ", segments, " segments"));
    if (!(beta >= 0 && std::isfinite(beta)))
      throw data_error(
          sentence("direct_preference: beta is ", beta, "; it is finite and not negative"));
    for (const auto& [c, r] : pairs)
      if (c < 0 || c >= segments || r < 0 || r >= segments || c == r)
        throw data_error(sentence("direct_preference: pair (", c, ", ", r, ") of ", segments,
                                  " segments; name two different ones"));
    for (std::size_t s = 0; s < reference.size(); ++s)
      if (!std::isfinite(reference[s]))
        throw data_error(sentence("direct_preference: reference log-probability ", s, " is ",
                                  reference[s], "; each is finite"));
  }
};

}  // namespace streambp
