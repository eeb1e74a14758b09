// Rows of logits: what a loss needs of them, and their gradient from what the loss gives back.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <span>

#include "../primitives/head.hpp"
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
[[gnu::noinline, gnu::flatten]] S largest_of_row(const S* z, position vocabulary) {
  constexpr S least = -std::numeric_limits<S>::infinity();
  lanes<S> top = least;
  along<S>(vocabulary, [&](position j, auto n) { top = max(top, load(z + j, n, least)); });
  return largest(top);
}

// log Σ exp (z - highest)
template <class S>
[[gnu::noinline, gnu::flatten]] double lse_of_row(const S* z, S highest, position vocabulary) {
  constexpr S least = -std::numeric_limits<S>::infinity();
  lanes<S> total = 0;
  along<S>(vocabulary,
           [&](position j, auto n) { total = total + exp(load(z + j, n, least) - highest); });
  return std::log(double(sum(total)));
}

// Mean of z - base, in double: entries of one sign would lose what tells them apart.
template <class S>
[[gnu::noinline, gnu::flatten]] double mean_of_row(const S* z, double base, position vocabulary) {
  const lanes<double> share = 1 / double(vocabulary);
  lanes<double> total = 0;
  along<double>(vocabulary, [&](position j, auto n) {
    alignas(64) double wide[lanes<double>::count];
    for (position i = 0; i < lanes<double>::count; ++i) wide[i] = i < n ? double(z[j + i]) : base;
    total = fma(load(wide, whole<double>{}) - base, share, total);
  });
  return sum(total);
}

// draw = (g.lse exp(z - base - lse) + g.mean / vocabulary) scale (1 - (z / c)²), in place of z.
template <class S>
[[gnu::noinline, gnu::flatten]] void gradient_of_row(logit_transform transform, S* z,
                                                     position vocabulary, const row_statistics& row,
                                                     row_gradient g) {
  // exp(z - base - lse) = exp(z - shift) exp(shift - base - lse): rounding base + lse would scale
  // the whole row.
  const S shift = S(row.base == 0 ? row.lse : row.base);
  const S lse = S(g.lse * std::exp((double(shift) - row.base) - row.lse));
  const S mean = S(g.mean / double(vocabulary));
  const S c = S(transform.softcap), scale = S(transform.scale);
  const auto dz = [&](const lanes<S>& zj) { return fma(exp(zj - shift), lse, mean); };
  if (c != 0)
    along<S>(vocabulary, [&](position j, auto n) {
      const lanes<S> zj = load(z + j, n), ratio = zj * (1 / c);
      store(z + j, n, dz(zj) * (fma(-ratio, ratio, 1) * scale));
    });
  else
    along<S>(vocabulary, [&](position j, auto n) { store(z + j, n, dz(load(z + j, n)) * scale); });
}

template <class S>
void row_statistics_of(workers<S>& on, logit_transform transform, view<S> logits,
                       std::span<const std::int32_t> first, std::span<const std::int32_t> targets,
                       bool want_mean, std::span<row_statistics> out) {
  for_rows(on, logits.rows, logits.cols, [&](position i) {
    if (first[i] == first[i + 1]) return;
    S* const z = logits.row(i);
    transform_row(transform, z, logits.cols);
    const S highest = largest_of_row(z, logits.cols);
    const double base = std::abs(highest) > S(1 << 20) ? double(highest) : 0.;
    const double lse = (double(highest) - base) + lse_of_row(z, highest, logits.cols);
    const double mean = want_mean ? mean_of_row(z, base, logits.cols) : 0.;
    for (std::int32_t t = first[i]; t < first[i + 1]; ++t)
      out[t] = {lse, double(z[targets[t]]) - base, mean, base};
  });
}

template <class S>
void gradient_of_rows(workers<S>& on, logit_transform transform, view<S> logits,
                      std::span<const std::int32_t> first, std::span<const std::int32_t> targets,
                      std::span<const row_statistics> statistics,
                      std::span<const row_gradient> slopes) {
  for_rows(on, logits.rows, logits.cols, [&](position i) {
    S* const row = logits.row(i);
    if (first[i] == first[i + 1]) {
      std::fill(row, row + logits.cols, S(0));
      return;
    }
    row_gradient sum;
    for (std::int32_t t = first[i]; t < first[i + 1]; ++t) {
      sum.lse += slopes[t].lse;
      sum.mean += slopes[t].mean;
    }
    gradient_of_row(transform, row, logits.cols, statistics[first[i]], sum);
    for (std::int32_t t = first[i]; t < first[i + 1]; ++t) {
      const double z = statistics[t].base + statistics[t].target;
      const double ratio = transform.softcap == 0 ? 0 : z / transform.softcap;
      row[targets[t]] += S(slopes[t].target * transform.scale * (1 - ratio * ratio));
    }
  });
}

}  // namespace STREAMBP_ISA
}  // namespace streambp::cpu
