// Rotary positions: pairs of a head's features turn by position times frequency.
#pragma once

#include <cmath>
#include <span>

#include "../primitives/rotary.hpp"
#include "rows.hpp"

namespace streambp::cpu {
inline namespace STREAMBP_ISA {

struct circle_point {
  lanes<double> cosine, sine;
};

// To the last bit or two for angles up to 10^7: reduced to [-π/4, π/4] by multiples of π/2 held in
// two numbers, then Taylor's polynomials.
inline circle_point circle(const lanes<double>& angle) {
  constexpr double big = 6755399441055744;  // 1.5 * 2^52: adding it rounds to an integer
  const lanes<double> quarter = fma(angle, 0.63661977236758134, big) - big;
  const lanes<double> a =
      fma(quarter, -6.07710050650619224932e-11, fma(quarter, -1.57079632673412561417, angle));
  const lanes<double> a2 = a * a;
  const auto polynomial = [&](auto... coefficient) {
    lanes<double> p = 0;
    ((p = fma(p, a2, coefficient)), ...);
    return p;
  };
  const lanes<double> sine =
      fma(a * a2,
          polynomial(1 / 355687428096000., -1 / 1307674368000., 1 / 6227020800., -1 / 39916800.,
                     1 / 362880., -1 / 5040., 1 / 120., -1 / 6.),
          a);
  const lanes<double> cosine = polynomial(1 / 20922789888000., -1 / 87178291200., 1 / 479001600.,
                                          -1 / 3628800., 1 / 40320., -1 / 720., 1 / 24., -0.5, 1.);
  const auto odd = [](const lanes<double>& k) { return k - floor(k * 0.5) * 2; };
  const lanes<double> swapped = 0 < odd(quarter);
  const lanes<double> up = 1 - odd(floor(quarter * 0.5)) * 2;
  const lanes<double> right = 1 - odd(floor((quarter + 1) * 0.5)) * 2;
  return {select(swapped, sine, cosine) * right, select(swapped, cosine, sine) * up};
}

// (a, b) becomes (a cos - b sin, a sin + b cos) for each pair of each head.
template <class S>
[[gnu::noinline, gnu::flatten]] void rotate_row(const rotary_shape& shape, const double* frequency,
                                                double at, double direction, S* x) {
  constexpr position count = lanes<S>::count;
  const position half = shape.rotated / 2;
  for (position pair = 0; pair < half; pair += count) {
    const position n = std::min(count, half - pair);
    alignas(64) S cosines[count], sines[count];
    for (position l = 0; l < count; l += lanes<double>::count) {
      const position left = std::clamp<position>(n - l, 0, lanes<double>::count);
      const circle_point point = circle(load(frequency + pair + l, left) * at);
      alignas(64) double wide[2][lanes<double>::count];
      store(wide[0], whole<double>{}, point.cosine);
      store(wide[1], whole<double>{}, point.sine * direction);
      for (position i = 0; i < lanes<double>::count; ++i) {
        cosines[l + i] = S(wide[0][i]);
        sines[l + i] = S(wide[1][i]);
      }
    }
    const lanes<S> cosine = load<S>(cosines), sine = load<S>(sines);
    const auto turn = [&](S* first, S* second, auto some) {
      const lanes<S> a = load<S>(first, some), b = load<S>(second, some);
      store(first, some, fma(a, cosine, -(b * sine)));
      store(second, some, fma(b, cosine, a * sine));
    };
    for (position h = 0; h < shape.heads; ++h) {
      S* head = x + h * shape.width;
      if (shape.interleaved) {
        S* pairs = head + 2 * pair;
        alignas(64) S first[count] = {}, second[count] = {};
        for (position i = 0; i < n; ++i) first[i] = pairs[2 * i], second[i] = pairs[2 * i + 1];
        turn(first, second, whole<S>{});
        for (position i = 0; i < n; ++i) pairs[2 * i] = first[i], pairs[2 * i + 1] = second[i];
      } else if (n == count) {
        turn(head + pair, head + half + pair, whole<S>{});
      } else {
        turn(head + pair, head + half + pair, n);
      }
    }
  }
}

template <class S>
void rotate(workers<S>& on, const rotary_shape& shape, std::span<const double> frequencies,
            const piece_list& pieces, view<S> x, bool inverse = false) {
  for_rows(on, pieces, x.cols, [&](const piece& p, position row) {
    rotate_row(shape, frequencies.data(), double(p.before + p.start + (row - p.row)),
               inverse ? -1. : 1., x.row(row));
  });
}

}  // namespace STREAMBP_ISA
}  // namespace streambp::cpu
