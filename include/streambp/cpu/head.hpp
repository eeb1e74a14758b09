// Rows of logits: what a loss needs of them, and their gradient from what the loss gives back.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>

#include "../losses/row_terms.hpp"
#include "rows.hpp"

namespace streambp::cpu {
inline namespace STREAMBP_ISA {

template <class S>
[[gnu::noinline, gnu::flatten]] void transform_row(logit_transform transform, S* z,
                                                   position vocabulary) {
  const S scale = S(transform.scale), c = S(transform.softcap);
  if (c != 0)
    along<S>(vocabulary,
             [&](position j, auto n) { store(z + j, n, tanh(load(z + j, n) * (scale / c)) * c); });
  else if (scale != 1)
    along<S>(vocabulary, [&](position j, auto n) { store(z + j, n, load(z + j, n) * scale); });
}

template <class S>
[[gnu::noinline, gnu::flatten]] S mean_of_row(const S* z, position vocabulary) {
  lanes<S> total = 0;
  along<S>(vocabulary, [&](position j, auto n) { total = total + load(z + j, n); });
  return sum(total) / S(vocabulary);
}

template <class S>
[[gnu::noinline, gnu::flatten]] double lse_of_row(const S* z, position vocabulary) {
  constexpr S least = -std::numeric_limits<S>::infinity();
  lanes<S> top = least, total = 0;
  along<S>(vocabulary, [&](position j, auto n) { top = max(top, load(z + j, n, least)); });
  const S highest = largest(top);
  along<S>(vocabulary,
           [&](position j, auto n) { total = total + exp(load(z + j, n, least) - highest); });
  return double(highest) + std::log(double(sum(total)));
}

template <class S>
[[gnu::noinline, gnu::flatten]] void gradient_of_row(logit_transform transform, S* z,
                                                     position vocabulary, position target,
                                                     row_statistics row, row_gradient slope) {
  // exp(z - lse) = exp(z - shift) exp(shift - lse): rounding lse would scale the whole row.
  const S shift = S(row.lse), lse = S(slope.lse * std::exp(double(shift) - row.lse));
  const S mean = S(slope.mean / double(vocabulary)), hit = S(slope.target);
  const auto write = [&](const auto& through) {
    const auto draw = [&](const lanes<S>& zj, const lanes<S>& extra) {
      return through(fma(exp(zj - shift), lse, mean) + extra, zj);
    };
    S at_target[lanes<S>::count];
    store(at_target, whole<S>{}, draw(z[target], hit));
    along<S>(vocabulary, [&](position j, auto n) { store(z + j, n, draw(load(z + j, n), 0)); });
    z[target] = at_target[0];
  };
  const S c = S(transform.softcap), scale = S(transform.scale);
  if (c != 0)
    write([&](const lanes<S>& dz, const lanes<S>& zj) {
      const lanes<S> ratio = zj * (1 / c);
      return dz * (fma(-ratio, ratio, 1) * scale);
    });
  else
    write([&](const lanes<S>& dz, const lanes<S>&) { return dz * scale; });
}

// Turns raw logits (rows, vocabulary) into z in place and gives their statistics, mean if wanted.
// A row whose target is -1 does not count: neither it nor its place in `out` is touched.
template <class S>
void row_statistics_of(device<S>& on, logit_transform transform, view<S> logits,
                       std::span<const std::int32_t> targets, bool want_mean,
                       std::span<row_statistics> out) {
  if (on.counts_only()) return;
  for_rows(on, logits.rows, logits.cols, [&](position i) {
    if (targets[i] < 0) return;
    S* z = logits.row(i);
    transform_row(transform, z, logits.cols);
    out[i] = {lse_of_row(z, logits.cols), double(z[targets[i]]),
              want_mean ? double(mean_of_row(z, logits.cols)) : 0.};
  });
}

// With g = slopes_i: draw_j = (g.lse exp(z_j - lse) + [j = target] g.target + g.mean / vocabulary)
// scale (1 - (z_j / c)²), in place of z. Rows that do not count become 0.
template <class S>
void gradient_of_rows(device<S>& on, logit_transform transform, view<S> logits,
                      std::span<const std::int32_t> targets,
                      std::span<const row_statistics> statistics,
                      std::span<const row_gradient> slopes) {
  if (on.counts_only()) return;
  for_rows(on, logits.rows, logits.cols, [&](position i) {
    if (targets[i] >= 0)
      gradient_of_row(transform, logits.row(i), logits.cols, targets[i], statistics[i], slopes[i]);
    else
      std::fill(logits.row(i), logits.row(i) + logits.cols, S(0));
  });
}

}  // namespace STREAMBP_ISA
}  // namespace streambp::cpu
