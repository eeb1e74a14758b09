// Normalisation of each row: root mean square, and layer norm. r is the inverse deviation of a row.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "../primitives/norm.hpp"
#include "elementwise.hpp"
#include "mean_square.hpp"

namespace streambp::cpu {
inline namespace STREAMBP_ISA {

// The gain in use is offset + gain, and 1 where there is none.
template <class S>
struct given_gain {
  const S* data;
  S offset;
  template <class Count>
  lanes<S> at(position j, Count n) const {
    return load(data + j, n) + offset;
  }
};

template <class S>
struct unit_gain {
  template <class Count>
  lanes<S> at(position, Count) const {
    return 1;
  }
};

template <class S, class F>
void with_gain(view<const S> gain, double offset, const F& f) {
  if (gain.data)
    f(given_gain<S>{gain.data, S(offset)});
  else
    f(unit_gain<S>{});
}

template <class S>
struct row_moments {
  S mean, r;
};

// Of rows whose squares S does not hold: those of x / m, m = max |x|, in units of m. r is 0 where
// it would be infinite, as of a row of zeros with an epsilon of 0. The mean is 0 unless it is asked
// for.
template <class S>
[[gnu::noinline, gnu::cold]] row_moments<S> moments_in_units(const S* x, position d, S epsilon,
                                                             bool centred) {
  S m = std::sqrt(epsilon), mean = 0, squares = 0;
  for (position j = 0; j < d; ++j) m = std::max(m, std::abs(x[j]));
  if (m == 0) return {0, 0};
  for (position j = 0; j < d && centred; ++j) mean += x[j] / m / S(d);
  for (position j = 0; j < d; ++j) squares += (x[j] / m - mean) * (x[j] / m - mean);
  const S r = 1 / std::sqrt(squares / S(d) + epsilon / m / m) / m;
  return {mean * m, std::isinf(r) ? 0 : r};
}

template <class S, class Gain>
[[gnu::noinline, gnu::cold]] S rms_norm_row_in_units(const S* x, Gain gain, position d, S epsilon,
                                                     S* y) {
  const S r = moments_in_units(x, d, epsilon, false).r;
  along<S>(d, [&](position j, auto n) { store(y + j, n, load(x + j, n) * r * gain.at(j, n)); });
  return r;
}

// r; or -1, and y is not written, where S does not hold the squares.
template <class S, class Gain>
[[gnu::noinline, gnu::flatten]] S rms_norm_row(const S* x, Gain gain, position d, S epsilon, S* y) {
  lanes<S> squares = 0;
  along<S>(d, [&](position j, auto n) {
    const lanes<S> xj = load(x + j, n);
    squares = fma(xj, xj, squares);
  });
  const S mean_square = sum(squares) / S(d) + epsilon;
  if (!held(mean_square)) [[unlikely]]
    return -1;
  const S r = 1 / std::sqrt(mean_square);
  along<S>(d, [&](position j, auto n) { store(y + j, n, load(x + j, n) * r * gain.at(j, n)); });
  return r;
}

template <class S, class Gain>
[[gnu::noinline, gnu::flatten]] void rms_norm_row_backward(const S* x, Gain gain, S r, const S* dy,
                                                           position d, S* dx) {
  lanes<S> dot = 0;
  const S cube = r * r * r;
  // x is large, or tiny: z = x r is not.
  if (!(cube >= std::numeric_limits<S>::min() && cube <= std::numeric_limits<S>::max()))
      [[unlikely]] {
    along<S>(d, [&](position j, auto n) {
      dot = fma(load(dy + j, n) * gain.at(j, n), load(x + j, n) * r, dot);
    });
    const S along_z = -sum(dot) / S(d);
    along<S>(d, [&](position j, auto n) {
      const lanes<S> dz = load(dy + j, n) * gain.at(j, n);
      store(dx + j, n, fma(fma(load(x + j, n) * r, along_z, dz), r, load(dx + j, n)));
    });
    return;
  }
  along<S>(d, [&](position j, auto n) {
    dot = fma(load(dy + j, n) * gain.at(j, n), load(x + j, n), dot);
  });
  const S along_x = -r * r * r * (sum(dot) / S(d));
  along<S>(d, [&](position j, auto n) {
    const lanes<S> dz = load(dy + j, n) * gain.at(j, n);
    store(dx + j, n, fma(dz, r, fma(load(x + j, n), along_x, load(dx + j, n))));
  });
}

template <class S>
void rms_norm_forward(workers<S>& on, given<S> x, given<S> gain, double epsilon, view<S> y,
                      written<S> inverse, double gain_offset = 0) {
  with_gain<S>(gain, gain_offset, [&](auto g) {
    for_rows(on, x.rows, x.cols, [&](position i) {
      const S r = rms_norm_row(x.row(i), g, x.cols, S(epsilon), y.row(i));
      inverse(i, 0) = r < 0 ? rms_norm_row_in_units(x.row(i), g, x.cols, S(epsilon), y.row(i)) : r;
    });
  });
}

template <class S>
void rms_norm_backward(workers<S>& on, given<S> x, given<S> gain, given<S> inverse, given<S> dy,
                       view<S> dx, written<S> dgain, std::span<const position> grains,
                       double gain_offset = 0) {
  if (dgain.rows > 0)
    add_row_sums(on, grains, x.cols, dgain.data, [&](position i, position j, auto n) {
      return load(dy.row(i) + j, n) * (load(x.row(i) + j, n) * inverse(i, 0));
    });
  with_gain<S>(gain, gain_offset, [&](auto g) {
    for_rows(on, x.rows, x.cols, [&](position i) {
      rms_norm_row_backward(x.row(i), g, inverse(i, 0), dy.row(i), x.cols, dx.row(i));
    });
  });
}

template <class S, class Gain>
[[gnu::noinline, gnu::cold]] row_moments<S> layer_norm_row_in_units(const S* x, Gain gain,
                                                                    const S* bias, position d,
                                                                    S epsilon, S* y) {
  const auto [mean, r] = moments_in_units(x, d, epsilon, true);
  along<S>(d, [&, mean = mean, r = r](position j, auto n) {
    store(y + j, n, (load(x + j, n) - mean) * r * gain.at(j, n));
  });
  if (bias) sum_row(y, bias, d, y);
  return {mean, r};
}

template <class S, class Gain>
[[gnu::noinline, gnu::flatten]] row_moments<S> layer_norm_row(const S* x, Gain gain, const S* bias,
                                                              position d, S epsilon, S* y) {
  lanes<S> total = 0, squares = 0;
  along<S>(d, [&](position j, auto n) { total = total + load(x + j, n); });
  const S mean = sum(total) / S(d);
  along<S>(d, [&](position j, auto n) {
    const lanes<S> c = load(x + j, n, mean) - mean;
    squares = fma(c, c, squares);
  });
  const S variance = sum(squares) / S(d) + epsilon;
  if (!held(variance)) [[unlikely]]
    return layer_norm_row_in_units(x, gain, bias, d, epsilon, y);
  const S r = 1 / std::sqrt(variance);
  along<S>(
      d, [&](position j, auto n) { store(y + j, n, (load(x + j, n) - mean) * r * gain.at(j, n)); });
  if (bias) sum_row(y, bias, d, y);
  return {mean, r};
}

template <class S, class Gain>
[[gnu::noinline, gnu::flatten]] void layer_norm_row_backward(const S* x, Gain gain,
                                                             row_moments<S> row, const S* dy,
                                                             position d, S* dx) {
  const auto [mean, r] = row;
  lanes<S> total = 0, dot = 0;
  along<S>(d, [&, mean = mean, r = r](position j, auto n) {
    const lanes<S> dz = load(dy + j, n) * gain.at(j, n);
    total = total + dz;
    dot = fma(dz, (load(x + j, n) - mean) * r, dot);
  });
  const S mean_dz = sum(total) / S(d), mean_dot = sum(dot) / S(d);
  along<S>(d, [&, mean = mean, r = r](position j, auto n) {
    const lanes<S> dz = load(dy + j, n) * gain.at(j, n);
    const lanes<S> z = (load(x + j, n) - mean) * r;
    store(dx + j, n, fma(dz - mean_dz - z * mean_dot, r, load(dx + j, n)));
  });
}

template <class S>
void layer_norm_forward(workers<S>& on, given<S> x, given<S> gain, given<S> bias, double epsilon,
                        view<S> y, written<S> statistics, double gain_offset = 0) {
  with_gain<S>(gain, gain_offset, [&](auto g) {
    for_rows(on, x.rows, x.cols, [&](position i) {
      const auto row = layer_norm_row(x.row(i), g, bias.data, x.cols, S(epsilon), y.row(i));
      statistics(i, 0) = row.mean;
      statistics(i, 1) = row.r;
    });
  });
}

template <class S>
void layer_norm_backward(workers<S>& on, given<S> x, given<S> gain, given<S> statistics,
                         given<S> dy, view<S> dx, written<S> dgain, written<S> dbias,
                         std::span<const position> grains, double gain_offset = 0) {
  if (dgain.rows > 0)
    add_row_sums(on, grains, x.cols, dgain.data, [&](position i, position j, auto n) {
      return load(dy.row(i) + j, n) *
             ((load(x.row(i) + j, n) - statistics(i, 0)) * statistics(i, 1));
    });
  if (dbias.rows > 0)
    add_row_sums(on, grains, x.cols, dbias.data,
                 [&](position i, position j, auto n) { return load(dy.row(i) + j, n); });
  with_gain<S>(gain, gain_offset, [&](auto g) {
    for_rows(on, x.rows, x.cols, [&](position i) {
      layer_norm_row_backward(x.row(i), g, {statistics(i, 0), statistics(i, 1)}, dy.row(i), x.cols,
                              dx.row(i));
    });
  });
}

}  // namespace STREAMBP_ISA
}  // namespace streambp::cpu
