// A tile's decays: D[s][t] = Π_{s<r<=t} a_r for s <= t, 0 for others, from sums of logarithms.
#pragma once

#include <algorithm>

#include "elementwise.hpp"

namespace streambp::cpu {
inline namespace STREAMBP_ISA {

// L_t = ln a_0 + ... + ln a_t, held as the sum of two numbers: a difference of two L is then exact
// to rounding even after a decay that leaves nothing, where L is large. Infinite logarithms count
// as `nothing`, whose exponential is 0, too.
template <class S>
struct decay_sums {
  static constexpr double nothing = -65536;
  S* high;
  S* low;  // both as long as the tile

  void assign(const S* la, position stride, position rows) const {
    double total = 0, lost = 0;  // by rounding of the total
    for (position t = 0; t < rows; ++t) {
      const double next = std::max(double(la[t * stride]), nothing);
      const double sum = total + next, added = sum - total;
      lost += (total - (sum - added)) + (next - added);
      total = sum;
      high[t] = S(total);
      low[t] = S((total - double(high[t])) + lost);
    }
  }
};

// w_t = factor e^(L_t)
template <class S>
[[gnu::noinline, gnu::flatten]] void decays_from_start(decay_sums<S> sums, S factor, position rows,
                                                       S* w) {
  along<S>(rows, [&](position t, auto n) {
    store(w + t, n, exp(load(sums.high + t, n) + load(sums.low + t, n)) * factor);
  });
}

// w_t = e^(L_last - L_t)
template <class S>
[[gnu::noinline, gnu::flatten]] void decays_to_end(decay_sums<S> sums, position rows, S* w) {
  const S high = sums.high[rows - 1], low = sums.low[rows - 1];
  along<S>(rows, [&](position t, auto n) {
    store(w + t, n, exp((high - load(sums.high + t, n)) + (low - load(sums.low + t, n))));
  });
}

// p_t = factor D[s][t] p_t for row s.
template <class S>
[[gnu::noinline, gnu::flatten]] void decay_row(decay_sums<S> sums, position s, S factor,
                                               position rows, S* p) {
  const S high = sums.high[s], low = sums.low[s];
  const position whole_groups = s / lanes<S>::count * lanes<S>::count;
  along<S>(rows - whole_groups, [&](position j, auto n) {
    const position t = whole_groups + j;
    const lanes<S> d = exp((load(sums.high + t, n) - high) + (load(sums.low + t, n) - low));
    store(p + t, n, d * factor * load(p + t, n));
  });
  std::fill_n(p, s, S(0));
}

// The same for p, whose gradient dp becomes that of what p was; crossing_t += the slope in ln
// D[s][t]. Entries of crossing up to s become 0.
template <class S>
[[gnu::noinline, gnu::flatten]] void decay_row_backward(decay_sums<S> sums, position s, S factor,
                                                        position rows, S* p, S* dp, S* crossing) {
  const S high = sums.high[s], low = sums.low[s];
  const position whole_groups = s / lanes<S>::count * lanes<S>::count;
  along<S>(rows - whole_groups, [&](position j, auto n) {
    const position t = whole_groups + j;
    const lanes<S> d =
        exp((load(sums.high + t, n) - high) + (load(sums.low + t, n) - low)) * factor;
    const lanes<S> score = load(p + t, n), slope = load(dp + t, n) * d;
    store(p + t, n, score * d);
    store(dp + t, n, slope);
    store(crossing + t, n, fma(slope, score, load(crossing + t, n)));
  });
  std::fill_n(p, s, S(0));
  std::fill_n(dp, s, S(0));
  std::fill_n(crossing, s + 1, S(0));
}

template <class S>
[[gnu::noinline, gnu::flatten]] S sum_of_row(const S* x, position d) {
  lanes<S> total = 0;
  along<S>(d, [&](position j, auto n) { total = total + load(x + j, n); });
  return sum(total);
}

}  // namespace STREAMBP_ISA
}  // namespace streambp::cpu
