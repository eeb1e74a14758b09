// Moments of each feature over a segment's tokens, and the normalisation by them.
#pragma once

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "../primitives/time_norm.hpp"
#include "elementwise.hpp"

namespace streambp::cpu {
inline namespace STREAMBP_ISA {

// Of a feature over some rows: its mean, and the sum of squares around it or, where S does not hold
// that, minus its root.
template <class S>
struct time_moments {
  S mean = 0, squares = 0;
};

template <class S>
inline constexpr S not_held = std::numeric_limits<S>::quiet_NaN();

template <class S>
S root_of(S squares) {
  return squares < 0 ? -squares : std::sqrt(squares);
}
template <class S>
S square_or_root(S root) {
  return root * root <= std::numeric_limits<S>::max() ? root * root : -root;
}

// join_tile of the one column x, in units of the largest distance.
template <class S>
[[gnu::noinline, gnu::cold]] time_moments<S> join_in_units(given<S> x, position before,
                                                           time_moments<S> m) {
  const S rows = S(x.rows), share = rows / (S(before) + rows);
  S mean = x(0, 0);
  for (position i = 0; i < x.rows; ++i) mean += (x(i, 0) - x(0, 0)) / rows;
  const S delta = mean - m.mean, apart = delta * std::sqrt(S(before) * share),
          inside = root_of(m.squares);
  S unit = std::max(std::abs(apart), inside);
  for (position i = 0; i < x.rows; ++i) unit = std::max(unit, std::abs(x(i, 0) - mean));
  const auto square = [&](S distance) { return (distance / unit) * (distance / unit); };
  S squares = square(inside) + square(apart);
  for (position i = 0; i < x.rows; ++i) squares += square(x(i, 0) - mean);
  return {m.mean + delta * share, square_or_root(unit * std::sqrt(squares))};
}

// Joins a tile's rows of x to the moments m (2 d) of the `before` rows ahead of it. With δ the
// tile's mean less theirs and n = before + rows (Chan et al. 1979), mean += δ rows / n,
// squares += Σ (x - tile's mean)² + δ² before rows / n.
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
    const lanes<S> old_mean = load<S>(m + j, n), old_squares = load<S>(m + d + j, n);
    const lanes<S> delta = mean - old_mean;
    two = fma(delta * delta, S(before) * share, two);
    const lanes<S> squares = old_squares + two;
    store(m + j, n, fma(delta, share, old_mean));
    store(m + d + j, n, squares);
    // NaN where S does not hold the squares, 0 elsewhere.
    const lanes<S> odd =
        select(old_squares < lanes<S>(0), lanes<S>(not_held<S>), squares - squares);
    if (sum(odd) == 0) [[likely]]
      return;
    alignas(64) S was[3][lanes<S>::count];
    store(was[0], whole<S>{}, old_mean);
    store(was[1], whole<S>{}, old_squares);
    store(was[2], whole<S>{}, odd);
    for (position k = 0; k < n; ++k) {
      if (was[2][k] == 0) continue;
      const auto joined = join_in_units<S>(x.middle_cols(j + k, 1), before, {was[0][k], was[1][k]});
      m[j + k] = joined.mean;
      m[d + j + k] = joined.squares;
    }
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

// 1 / sqrt(squares / rows + epsilon); 0 where that is infinite: what does not vary is its mean.
template <class S>
S inverse_deviation(S squares, S rows, S epsilon) {
  if (squares < 0) [[unlikely]]
    return 1 / std::sqrt(1 / rows + epsilon / squares / squares) / -squares;
  const S variance = squares / rows + epsilon;
  return variance == 0 ? 0 : 1 / std::sqrt(variance);  // the packets' root is not exact
}

// z = (x - mean) inverse of the columns from j on. One row is its own mean, z does not depend on
// it.
template <class S>
struct time_scale {
  lanes<S> mean, inverse;

  template <class Count>
  static time_scale of(const S* moments, position d, position j, Count n, S rows, S epsilon) {
    alignas(64) S squares[lanes<S>::count], inverse[lanes<S>::count];
    store(squares, whole<S>{}, load(moments + d + j, n));
    for (position k = 0; k < lanes<S>::count; ++k)
      inverse[k] = inverse_deviation(squares[k], rows, epsilon);
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
