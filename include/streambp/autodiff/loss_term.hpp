// Token losses from one function of the target's row: the slopes are derived.
#pragma once

#include "../expression/dual.hpp"
#include "../traits/loss_traits.hpp"

namespace streambp::autodiff {

// The term of a loss f(lse, target, mean), for its term() or summary().
//   token_term term(const row_statistics& r, const label_place&) const {
//     return term_of(r, [](auto lse, auto target, auto) { return square(lse - target); });
//   }
template <class F>
token_term term_of(const row_statistics& r, const F& f) {
  const auto [value, slopes] = differentiate(f, r.lse, r.target, r.mean);
  return {value, {slopes[0], slopes[1], slopes[2]}};
}

}  // namespace streambp::autodiff
