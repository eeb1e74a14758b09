// Moments of each feature over a segment's tokens, and the normalisation by them.
#pragma once

#include <algorithm>
#include <cmath>
#include <iterator>

#include "../primitives/time_norm.hpp"
#include "elementwise.hpp"

namespace streambp::cpu {
inline namespace STREAMBP_ISA {

// Joins a tile's rows of x to the moments m (2 d) of the `before` rows ahead of it: mean, and sum
// of squares around it. With δ the tile's mean less theirs and n = before + rows (Chan et al.
// 1979), mean += δ rows / n, squares += Σ (x - tile's mean)² + δ² before rows / n.
template <class S>
[[gnu::noinline, gnu::flatten]] void join_tile(given<S> x, position before, position d, S* m) {
  const S rows = S(x.rows), share = rows / (S(before) + rows);
  along<S>(x.cols, [&](position j, auto n) {
    lanes<S> one = 0, two = 0;
    const lanes<S> base = load(x.row(0) + j, n);  // keeps the sum small
    for (position i = 0; i < x.rows; ++i) one = one + (load(x.row(i) + j, n) - base);
    const lanes<S> mean = base + one / rows;
    for (position i = 0; i < x.rows; ++i) {
      const lanes<S> apart = load(x.row(i) + j, n) - mean;
      two = fma(apart, apart, two);
    }
    const lanes<S> delta = mean - load<S>(m + j, n);
    store(m + j, n, fma(delta, share, load<S>(m + j, n)));
    two = fma(delta * delta, S(before) * share, two);
    store(m + d + j, n, load<S>(m + d + j, n) + two);
  });
}

template <class S>
void add_time_moments(workers<S>& on, const piece_list& pieces, position tile, given<S> x,
                      view<S> moments) {
  for_column_ranges(on, x.cols, [&](position j, position count) {
    for (const piece p : pieces)
      for (position i = 0; i < p.rows; i += tile)
        join_tile<S>(x.middle_rows(p.row + i, std::min(tile, p.rows - i)).middle_cols(j, count),
                     p.start + i, x.cols, moments.row(p.segment) + j);
  });
}

// z = (x - mean) inverse of the columns from j on. One row is its own mean, z does not depend on
// it.
template <class S>
struct time_scale {
  lanes<S> mean, inverse;

  template <class Count>
  static time_scale of(const S* moments, position d, position j, Count n, S rows, S epsilon) {
    alignas(64) S inverse[lanes<S>::count];
    store(inverse, whole<S>{}, load(moments + d + j, n) / rows + epsilon);
    for (S& v : inverse) v = 1 / std::sqrt(v);  // the packets' root is not exact
    if (rows == 1) std::fill(std::begin(inverse), std::end(inverse), S(0));
    return {load(moments + j, n), load<S>(inverse)};
  }
  lanes<S> operator()(const lanes<S>& x) const { return (x - mean) * inverse; }
};

// Calls f(piece, rows) for the rows of each piece that a task takes.
template <class S, class F>
void for_piece_rows(workers<S>& on, const piece_list& pieces, position cols, const F& f) {
  for_row_ranges(on, pieces.rows().rows(), cols, [&](position first, position last) {
    for (const piece p : pieces) {
      if (p.row >= last) break;
      const row_range own{std::max(first, p.row), std::min(last, p.last())};
      if (own.rows() > 0) f(p, own);
    }
  });
}

// y = z ∘ gain + bias, for rows of one segment of n.
template <class S>
[[gnu::noinline, gnu::flatten]] void time_norm_rows(given<S> x, const S* moments, S n, S epsilon,
                                                    const S* gain, const S* bias, view<S> y) {
  along<S>(x.cols, [&](position j, auto count) {
    const auto z = time_scale<S>::of(moments, x.cols, j, count, n, epsilon);
    const lanes<S> g = load(gain + j, count), b = load(bias + j, count);
    for (position i = 0; i < x.rows; ++i)
      store(y.row(i) + j, count, fma(z(load(x.row(i) + j, count)), g, b));
  });
}
template <class S>
void time_norm_forward(workers<S>& on, const piece_list& pieces, given<S> x, given<S> moments,
                       given<S> gain, given<S> bias, double epsilon, view<S> y) {
  for_piece_rows(on, pieces, x.cols, [&](const piece& p, row_range own) {
    time_norm_rows<S>(x.rows_in(own), moments.row(p.segment),
                      S(pieces.samples().segment(p.segment).rows()), S(epsilon), gain.data,
                      bias.data, y.rows_in(own));
  });
}

// Of a tile: dx += inverse dy ∘ gain; d (2, x.cols), rows `stride` apart, += Σ dy ∘ gain and
// Σ dy ∘ gain ∘ z; dgain += Σ dy ∘ z, dbias += Σ dy, unless null.
template <class S>
[[gnu::noinline, gnu::flatten]] void time_norm_tile_backward(given<S> x, const S* moments,
                                                             position stride, S n, S epsilon,
                                                             const S* gain, given<S> dy, view<S> dx,
                                                             S* d, S* dgain, S* dbias) {
  along<S>(x.cols, [&](position j, auto count) {
    const auto z = time_scale<S>::of(moments, stride, j, count, n, epsilon);
    const lanes<S> g = load(gain + j, count);
    lanes<S> sum = 0, across = 0;
    for (position i = 0; i < x.rows; ++i) {
      const lanes<S> dyi = load(dy.row(i) + j, count);
      store(dx.row(i) + j, count, fma(dyi * g, z.inverse, load<S>(dx.row(i) + j, count)));
      sum = sum + dyi;
      across = fma(dyi, z(load(x.row(i) + j, count)), across);
    }
    store(d + j, count, fma(sum, g, load<S>(d + j, count)));
    store(d + stride + j, count, fma(across, g, load<S>(d + stride + j, count)));
    if (dgain) store(dgain + j, count, load<S>(dgain + j, count) + across);
    if (dbias) store(dbias + j, count, load<S>(dbias + j, count) + sum);
  });
}

template <class S>
void time_norm_backward(workers<S>& on, const piece_list& pieces, position tile, given<S> x,
                        given<S> moments, given<S> gain, double epsilon, given<S> dy, view<S> dx,
                        view<S> dmoments, written<S> dgain, written<S> dbias) {
  for_column_ranges(on, x.cols, [&](position j, position count) {
    const auto part = [&](auto v, row_range own) { return v.rows_in(own).middle_cols(j, count); };
    pieces.descending([&](const piece& p) {
      const S n = S(pieces.samples().segment(p.segment).rows());
      for (position t = (p.rows - 1) / tile * tile; t >= 0; t -= tile) {
        const row_range own{p.row + t, p.row + std::min(p.rows, t + tile)};
        time_norm_tile_backward<S>(
            part(x, own), moments.row(p.segment) + j, x.cols, n, S(epsilon), gain.data + j,
            part(dy, own), part(dx, own), dmoments.row(p.segment) + j,
            dgain.rows > 0 ? dgain.data + j : nullptr, dbias.rows > 0 ? dbias.data + j : nullptr);
      }
    });
  });
}

// What the moments pass back to each row: dx -= inverse (Σ dz + z Σ dz ∘ z) / n.
template <class S>
[[gnu::noinline, gnu::flatten]] void time_norm_rows_release(given<S> x, const S* moments, S n,
                                                            S epsilon, const S* d, view<S> dx) {
  along<S>(x.cols, [&](position j, auto count) {
    const auto z = time_scale<S>::of(moments, x.cols, j, count, n, epsilon);
    const lanes<S> sum = load(d + j, count), across = load(d + x.cols + j, count),
                   share = -(z.inverse / n);
    for (position i = 0; i < x.rows; ++i)
      store(dx.row(i) + j, count,
            fma(share, fma(z(load(x.row(i) + j, count)), across, sum),
                load<S>(dx.row(i) + j, count)));
  });
}
template <class S>
void time_norm_release(workers<S>& on, const piece_list& pieces, given<S> x, given<S> moments,
                       double epsilon, given<S> dmoments, view<S> dx) {
  for_piece_rows(on, pieces, x.cols, [&](const piece& p, row_range own) {
    time_norm_rows_release<S>(x.rows_in(own), moments.row(p.segment),
                              S(pieces.samples().segment(p.segment).rows()), S(epsilon),
                              dmoments.row(p.segment), dx.rows_in(own));
  });
}

}  // namespace STREAMBP_ISA
}  // namespace streambp::cpu
