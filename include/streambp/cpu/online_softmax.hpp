// One row of attention's softmax, block by block: running maximum and sum, then the gradient.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "../core/position.hpp"
#include "lanes.hpp"

namespace streambp::cpu {
inline namespace STREAMBP_ISA {

template <class S>
inline constexpr S no_score = -std::numeric_limits<S>::infinity();

// The whole lanes of a row that hold an entry of `seen`. A row's buffer ends with a whole lane.
template <class S>
constexpr row_range lanes_of(row_range seen) {
  constexpr position count = lanes<S>::count;
  return seen.rows() > 0 ? row_range{seen.first / count * count, round_up(seen.last, count)}
                         : row_range{};
}

// s_j = value for the j of `outer` that are not in `inner`.
template <class S>
void fill_outside(S* s, row_range inner, row_range outer, S value) {
  for (position j = outer.first; j < inner.first; ++j) s[j] = value;
  for (position j = inner.last; j < outer.last; ++j) s[j] = value;
}

// c tanh(s / c)
template <class S>
lanes<S> soft_capped(const lanes<S>& s, S softcap) {
  return tanh(s * (1 / softcap)) * softcap;
}

// s (keys) becomes P = exp(S - maximum), 0 outside `seen`, and `total` adds it up. Returns the
// factor that takes what was summed under the old maximum to the new one.
template <class S>
[[gnu::noinline]] S softmax_step(S& maximum, S& total, S* s, row_range seen, position keys,
                                 S softcap) {
  const row_range touched = lanes_of<S>(seen);
  constexpr position count = lanes<S>::count;
  if (softcap > 0)
    for (position j = touched.first; j < touched.last; j += count)
      store(s + j, whole<S>{}, soft_capped(load(s + j), softcap));
  fill_outside(s, seen, touched, no_score<S>);

  lanes<S> top = no_score<S>;
  for (position j = touched.first; j < touched.last; j += count) top = max(top, load(s + j));
  const S before = maximum;
  maximum = std::max(before, largest(top));
  if (maximum == no_score<S>) {
    std::fill(s, s + keys, S(0));
    return 1;
  }

  lanes<S> sums = 0;
  for (position j = touched.first; j < touched.last; j += count) {
    const lanes<S> p = exp(load(s + j) - maximum);
    store(s + j, whole<S>{}, p);
    sums = sums + p;
  }
  fill_outside(s, touched, {0, keys}, S(0));
  const S factor = maximum == before ? S(1) : std::exp(before - maximum);
  total = total * factor + sum(sums);
  return factor;
}

template <class S>
struct softmax_end {
  S factor;  // of the summed P v
  S lse;
};

// A row that sees nothing gets factor 0 and lse -inf. The sink joins the sum only.
template <class S>
[[gnu::noinline]] softmax_end<S> softmax_finish(S maximum, S total, const S* sink) {
  const S top = sink ? std::max(maximum, *sink) : maximum;
  if (top == no_score<S>) return {0, no_score<S>};
  const S shrink = std::exp(maximum - top);
  const S sum = total * shrink + (sink ? std::exp(*sink - top) : S(0));
  return {shrink / sum, top + std::log(sum)};
}

// s becomes P = exp(S - lse), dp becomes dS = P ∘ (dP − delta) [∘ (1 − (S / c)²)].
template <class S>
[[gnu::noinline]] void softmax_gradient(S* s, S* dp, row_range seen, position keys, S lse, S delta,
                                        S softcap) {
  if (lse == no_score<S>) seen = {};
  const row_range touched = lanes_of<S>(seen);
  constexpr position count = lanes<S>::count;
  for (position j = touched.first; j < touched.last; j += count) {
    const lanes<S> score = softcap > 0 ? soft_capped(load(s + j), softcap) : load(s + j);
    const lanes<S> p = exp(score - lse);
    lanes<S> ds = p * (load(dp + j) - delta);
    if (softcap > 0) {
      const lanes<S> t = score * (1 / softcap);
      ds = ds * fma(-t, t, lanes<S>(1));
    }
    store(s + j, whole<S>{}, p);
    store(dp + j, whole<S>{}, ds);
  }
  fill_outside(s, seen, {0, keys}, S(0));
  fill_outside(dp, seen, {0, keys}, S(0));
}

// A sink's gradient: Σ −exp(sink − lse) delta, over every `stride`-th of the rows.
template <class S>
[[gnu::noinline]] S sink_gradient(S sink, const S* lse, const S* delta, position rows,
                                  position stride) {
  S sum = 0;
  for (position i = 0; i < rows * stride; i += stride)
    if (lse[i] > no_score<S>) sum -= std::exp(sink - lse[i]) * delta[i];
  return sum;
}

}  // namespace STREAMBP_ISA
}  // namespace streambp::cpu
