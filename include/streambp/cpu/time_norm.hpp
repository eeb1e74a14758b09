// Sums over a segment's tokens, and the normalisation by them.
#pragma once

#include <cmath>

#include "elementwise.hpp"

namespace streambp::cpu {
inline namespace STREAMBP_ISA {

// Calls f(first row, last row) for the tiles of a piece, counted from its segment's start.
template <class F>
void for_each_tile(const piece& p, position tile, F&& f) {
  for (position i = 0; i < p.rows; i += tile) f(p.row + i, p.row + std::min(p.rows, i + tile));
}

// totals (segments, 3 d): the segment's first row x0, Σ (x - x0), Σ (x - x0)²: added tile by tile.
// Differences from a row of its own keep the squares small.
template <class S>
void add_time_moments(device<S>& on, const piece_list& pieces, position tile,
                      std::type_identity_t<view<const S>> x, view<S> totals) {
  if (on.counts_only()) return;
  const position d = x.cols;
  for_column_ranges(on, d, [&](position j, position count) {
    for (const piece p : pieces) {
      S* const x0 = totals.row(p.segment) + j;
      S *const sum1 = x0 + d, *const sum2 = x0 + 2 * d;
      if (p.start == 0) std::copy_n(x.row(p.row) + j, count, x0);
      for_each_tile(p, tile, [&](position first, position last) {
        along<S>(count, [&](position c, auto n) {
          const lanes<S> base = load<S>(x0 + c, n);
          lanes<S> one = 0, two = 0;
          for (position row = first; row < last; ++row) {
            const lanes<S> delta = load(x.row(row) + j + c, n) - base;
            one = one + delta;
            two = fma(delta, delta, two);
          }
          store(sum1 + c, n, load<S>(sum1 + c, n) + one);
          store(sum2 + c, n, load<S>(sum2 + c, n) + two);
        });
      });
    }
  });
}

// Mean and inverse deviation of a column, from its totals over n rows.
template <class S>
struct time_moments {
  S mean, inverse;
};
template <class S>
time_moments<S> moments_of(const S* totals, position d, position j, position n, double epsilon) {
  const S shift = totals[d + j] / S(n);
  const S variance = std::max(totals[2 * d + j] / S(n) - shift * shift, S(0));
  return {totals[j] + shift, 1 / std::sqrt(variance + S(epsilon))};
}

// z = (x - mean) inverse, y = z ∘ gain + bias.
template <class S>
[[gnu::noinline]] void time_norm_row(const S* x, const S* totals, position d, position n,
                                     double epsilon, const S* gain, const S* bias, S* y) {
  for (position j = 0; j < d; ++j) {
    const auto [mean, inverse] = moments_of(totals, d, j, n, epsilon);
    y[j] = std::fma((x[j] - mean) * inverse, gain[j], bias[j]);
  }
}
template <class S>
void time_norm_forward(device<S>& on, const piece_list& pieces,
                       std::type_identity_t<view<const S>> x,
                       std::type_identity_t<view<const S>> totals,
                       std::type_identity_t<view<const S>> gain,
                       std::type_identity_t<view<const S>> bias, double epsilon, view<S> y) {
  if (on.counts_only()) return;
  for_rows(on, pieces, x.cols, [&](const piece& p, position row) {
    time_norm_row(x.row(row), totals.row(p.segment), x.cols,
                  pieces.samples().segment(p.segment).rows(), epsilon, gain.data, bias.data,
                  y.row(row));
  });
}

// dz = dy ∘ gain: dx += inverse dz, dtotals (segments, 3 d) += Σ dz, Σ dz ∘ z in its first two
// thirds, last tile first; dgain += Σ dy ∘ z, dbias += Σ dy, unless without data.
template <class S>
void time_norm_backward(device<S>& on, const piece_list& pieces, position tile,
                        std::type_identity_t<view<const S>> x,
                        std::type_identity_t<view<const S>> totals,
                        std::type_identity_t<view<const S>> gain, double epsilon,
                        std::type_identity_t<view<const S>> dy, view<S> dx, view<S> dtotals,
                        std::type_identity_t<view<S>> dgain, std::type_identity_t<view<S>> dbias) {
  if (on.counts_only()) return;
  const position d = x.cols;
  for_column_ranges(on, d, [&](position first_column, position count) {
    pieces.descending([&](const piece& p) {
      const position n = pieces.samples().segment(p.segment).rows();
      for (position t = (p.rows - 1) / tile * tile; t >= 0; t -= tile)
        for (position j = first_column; j < first_column + count; ++j) {
          const auto [mean, inverse] = moments_of(totals.row(p.segment), d, j, n, epsilon);
          S sum = 0, across = 0;
          for (position row = p.row + t; row < p.row + std::min(p.rows, t + tile); ++row) {
            const S g = dy(row, j), z = (x(row, j) - mean) * inverse;
            dx(row, j) = std::fma(g * gain(0, j), inverse, dx(row, j));
            sum += g;
            across = std::fma(g, z, across);
          }
          dtotals(p.segment, j) = std::fma(sum, gain(0, j), dtotals(p.segment, j));
          dtotals(p.segment, d + j) = std::fma(across, gain(0, j), dtotals(p.segment, d + j));
          if (dgain.data) dgain(0, j) += across;
          if (dbias.data) dbias(0, j) += sum;
        }
    });
  });
}

// What the totals pass back to each row: dx -= inverse (Σ dz + z Σ dz ∘ z) / n.
template <class S>
void time_norm_release(device<S>& on, const piece_list& pieces,
                       std::type_identity_t<view<const S>> x,
                       std::type_identity_t<view<const S>> totals, double epsilon,
                       std::type_identity_t<view<const S>> dtotals, view<S> dx) {
  if (on.counts_only()) return;
  const position d = x.cols;
  for_rows(on, pieces, d, [&](const piece& p, position row) {
    const position n = pieces.samples().segment(p.segment).rows();
    const S* const sums = dtotals.row(p.segment);
    for (position j = 0; j < d; ++j) {
      const auto [mean, inverse] = moments_of(totals.row(p.segment), d, j, n, epsilon);
      const S z = (x(row, j) - mean) * inverse;
      dx(row, j) -= inverse * std::fma(z, sums[d + j], sums[j]) / S(n);
    }
  });
}

}  // namespace STREAMBP_ISA
}  // namespace streambp::cpu
