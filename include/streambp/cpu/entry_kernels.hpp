// Entry-wise operations on a block of a row: values, slopes, and gradients that add up.
#pragma once

#include <cmath>
#include <type_traits>

#include "../expression/graph.hpp"
#include "lanes.hpp"

namespace streambp::cpu {
inline namespace STREAMBP_ISA {

template <class S>
lanes<S> log(const lanes<S>& x) {
  if constexpr (packets::packet_traits<S>::HasLog) {
    return lanes<S>::each([](const auto& p) { return packets::plog(p); }, x);
  } else {
    alignas(64) S entry[lanes<S>::count];
    store(entry, whole<S>{}, x);
    for (S& e : entry) e = std::log(e);
    return load<S>(entry);
  }
}
template <class S>
lanes<S> sqrt(const lanes<S>& x) {
  return lanes<S>::each([](const auto& p) { return packets::psqrt(p); }, x);
}
template <class S>
lanes<S> abs(const lanes<S>& x) {
  return lanes<S>::each([](const auto& p) { return packets::pabs(p); }, x);
}

// log(1 + x) without loss where x is small: what 1 + x rounds x to has the same relative error in
// the logarithm as in the factor (Kahan).
template <class S>
lanes<S> log1p(const lanes<S>& x) {
  const lanes<S> one = S(1), u = x + one, y = log(u);
  const lanes<S> close = y * (x / (u - one));
  return select(x < lanes<S>(S(1e6)), select(u < one, close, select(one < u, close, x)), y);
}
// exp(x) - 1, likewise.
template <class S>
lanes<S> expm1(const lanes<S>& x) {
  const lanes<S> one = S(1), u = exp(x), y = u - one;
  const lanes<S> close = y * (x / log(u));
  const lanes<S> near_0 = select(u < one, close, select(one < u, close, x));
  return select(abs(x) < lanes<S>(S(0.5)), near_0, y);
}

namespace entries {

using autodiff::operation;
using autodiff::unary;

// Entries of a row that are in work together; a buffer holds them and what fills up its lanes.
template <class S>
inline constexpr position block = 512 / sizeof(S);

template <class S, class F>
void for_lanes(position n, const F& f) {
  for (position k = 0; k < n; k += lanes<S>::count) f(k);
}

template <unary f, class S>
[[gnu::noinline, gnu::flatten]] void unary_values(const S* x, position n, S* y) {
  for_lanes<S>(n, [&](position k) {
    store(y + k, whole<S>{}, autodiff::tangent_at<f>(load<S>(x + k)).value);
  });
}
template <unary f, class S>
[[gnu::noinline, gnu::flatten]] void unary_tangents(const S* x, position n, S* y, S* slope) {
  for_lanes<S>(n, [&](position k) {
    const auto t = autodiff::tangent_at<f>(load<S>(x + k));
    store(y + k, whole<S>{}, t.value);
    store(slope + k, whole<S>{}, t.slope);
  });
}
template <class S>
[[gnu::noinline, gnu::flatten]] void power_values(const S* x, double exponent, position n, S* y) {
  for_lanes<S>(n, [&](position k) {
    store(y + k, whole<S>{}, autodiff::power_at(load<S>(x + k), exponent).value);
  });
}
template <class S>
[[gnu::noinline, gnu::flatten]] void power_tangents(const S* x, double exponent, position n, S* y,
                                                    S* slope) {
  for_lanes<S>(n, [&](position k) {
    const auto t = autodiff::power_at(load<S>(x + k), exponent);
    store(y + k, whole<S>{}, t.value);
    store(slope + k, whole<S>{}, t.slope);
  });
}
template <operation op, class S>
[[gnu::noinline, gnu::flatten]] void binary_values(const S* x1, const S* x2, position n, S* y) {
  for_lanes<S>(n, [&](position k) {
    const lanes<S> a = load<S>(x1 + k), b = load<S>(x2 + k);
    if constexpr (op == operation::add) store(y + k, whole<S>{}, a + b);
    if constexpr (op == operation::subtract) store(y + k, whole<S>{}, a - b);
    if constexpr (op == operation::multiply) store(y + k, whole<S>{}, a * b);
    if constexpr (op == operation::divide) store(y + k, whole<S>{}, a / b);
    if constexpr (op == operation::max) store(y + k, whole<S>{}, select(a < b, b, a));
    if constexpr (op == operation::min) store(y + k, whole<S>{}, select(b < a, b, a));
  });
}
template <class S>
[[gnu::noinline, gnu::flatten]] void select_values(const S* s, const S* x1, const S* x2, position n,
                                                   S* y) {
  for_lanes<S>(n, [&](position k) {
    store(y + k, whole<S>{},
          select(lanes<S>(0) < load<S>(s + k), load<S>(x1 + k), load<S>(x2 + k)));
  });
}

// to (+)= what f gives at each place.
template <class S, class F>
[[gnu::noinline, gnu::flatten]] void give(S* to, bool adds, position n, const F& f) {
  if (adds)
    for_lanes<S>(n, [&](position k) { store(to + k, whole<S>{}, load<S>(to + k) + f(k)); });
  else
    for_lanes<S>(n, [&](position k) { store(to + k, whole<S>{}, f(k)); });
}

// Calls f with the function as a constant.
template <class F>
void with_constant(unary function, const F& f) {
  using enum unary;
  const auto call = [&]<unary known>() { f(std::integral_constant<unary, known>{}); };
  switch (function) {
    case negate:
      return call.template operator()<negate>();
    case unary::exp:
      return call.template operator()<unary::exp>();
    case unary::expm1:
      return call.template operator()<unary::expm1>();
    case unary::log:
      return call.template operator()<unary::log>();
    case unary::log1p:
      return call.template operator()<unary::log1p>();
    case unary::softplus:
      return call.template operator()<unary::softplus>();
    case unary::tanh:
      return call.template operator()<unary::tanh>();
    case sigmoid:
      return call.template operator()<sigmoid>();
    case silu:
      return call.template operator()<silu>();
    case gelu:
      return call.template operator()<gelu>();
    case relu:
      return call.template operator()<relu>();
    case square:
      return call.template operator()<square>();
    case unary::sqrt:
      return call.template operator()<unary::sqrt>();
    case unary::abs:
      return call.template operator()<unary::abs>();
  }
}

}  // namespace entries

}  // namespace STREAMBP_ISA
}  // namespace streambp::cpu
