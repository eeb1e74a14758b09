// Rows in fixed lanes of 64 bytes: a row function's bits depend on the row's entries and their
// number alone, never on alignment, neighbours or threads.
#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <type_traits>

#include "../core/position.hpp"
#include "isa.hpp"

// Eigen 3.4 has erf of packets among its unsupported modules.
#if EIGEN_MAJOR_VERSION < 5
#include <unsupported/Eigen/SpecialFunctions>
#endif

namespace streambp::cpu {
inline namespace STREAMBP_ISA {

namespace packets = Eigen::internal;

// 16 floats or 8 doubles with the arithmetic of one; comparisons give masks for select.
// Never choose between two by a bool (`b ? x + y : x`): g++ 12 makes that one AVX-512 operation
// whose mask is the bool, so that only the first lane is chosen. Branch around loops, or on a
// constant.
template <class S>
struct lanes {
  using packet = typename packets::packet_traits<S>::type;
  static constexpr position count = 64 / sizeof(S);
  static constexpr int width = packets::packet_traits<S>::size;
  static constexpr int parts = int(count) / width;

  packet part[parts];

  lanes() = default;
  lanes(S value) {
    for (packet& p : part) p = packets::pset1<packet>(value);
  }
  // A number of another type, such as a constant in double, said to be meant.
  template <class Number>
  requires(std::is_arithmetic_v<Number> && !std::is_same_v<Number, S>) explicit lanes(Number value)
      : lanes(S(value)) {}

  template <class F, class... Lanes>
  static lanes each(const F& f, const Lanes&... in) {
    lanes out;
    for (int i = 0; i < parts; ++i) out.part[i] = f(in.part[i]...);
    return out;
  }

  friend lanes operator+(const lanes& a, const lanes& b) {
    return each([](const packet& p, const packet& q) { return packets::padd(p, q); }, a, b);
  }
  friend lanes operator-(const lanes& a, const lanes& b) {
    return each([](const packet& p, const packet& q) { return packets::psub(p, q); }, a, b);
  }
  friend lanes operator*(const lanes& a, const lanes& b) {
    return each([](const packet& p, const packet& q) { return packets::pmul(p, q); }, a, b);
  }
  friend lanes operator/(const lanes& a, const lanes& b) {
    return each([](const packet& p, const packet& q) { return packets::pdiv(p, q); }, a, b);
  }
  friend lanes operator-(const lanes& a) {
    return each([](const packet& p) { return packets::pnegate(p); }, a);
  }
  friend lanes operator<(const lanes& a, const lanes& b) {
    return each([](const packet& p, const packet& q) { return packets::pcmp_lt(p, q); }, a, b);
  }
  // a b + c, rounded once where the instruction set can.
  friend lanes fma(const lanes& a, const lanes& b, const lanes& c) {
    return each(
        [](const packet& p, const packet& q, const packet& r) { return packets::pmadd(p, q, r); },
        a, b, c);
  }
  // Either operand may come back where one is NaN.
  friend lanes max(const lanes& a, const lanes& b) {
    return each([](const packet& p, const packet& q) { return packets::pmax(p, q); }, a, b);
  }
  friend lanes select(const lanes& mask, const lanes& a, const lanes& b) {
    return each(
        [](const packet& m, const packet& p, const packet& q) { return packets::pselect(m, p, q); },
        mask, a, b);
  }
  friend lanes floor(const lanes& a) {
    return each([](const packet& p) { return packets::pfloor(p); }, a);
  }
  // 0 below the least normal number.
  friend lanes exp(const lanes& a) {
    constexpr S least = sizeof(S) == 4 ? S(-87.33654) : S(-708.39641853226408);
    return select(a < least, 0, each([](const packet& p) { return packets::pexp(p); }, a));
  }
  friend lanes tanh(const lanes& a) {
    if constexpr (packets::packet_traits<S>::HasTanh)
      return each([](const packet& p) { return packets::ptanh(p); }, a);
    else
      return one_by_one([](S x) { return std::tanh(x); }, a);
  }
  friend lanes erf(const lanes& a) {
#if EIGEN_MAJOR_VERSION < 5
    if constexpr (packets::packet_traits<S>::HasErf)
      return each([](const packet& p) { return packets::perf(p); }, a);
#endif
    return one_by_one([](S x) { return std::erf(x); }, a);
  }

 private:
  template <class F>
  static lanes one_by_one(const F& f, lanes a) {
    alignas(64) S lane[count];
    for (int i = 0; i < parts; ++i) packets::pstore(lane + i * width, a.part[i]);
    for (S& x : lane) x = f(x);
    for (int i = 0; i < parts; ++i) a.part[i] = packets::pload<packet>(lane + i * width);
    return a;
  }
};

// All lanes, known to the compiler; a row's last entries come with their number instead.
template <class S>
using whole = std::integral_constant<position, lanes<S>::count>;

template <class S>
lanes<S> load(const S* x, whole<S> = {}, S = 0) {
  using packet = typename lanes<S>::packet;
  lanes<S> out;
  for (int i = 0; i < lanes<S>::parts; ++i)
    out.part[i] = packets::ploadu<packet>(x + i * lanes<S>::width);
  return out;
}

template <class S>
lanes<S> load(const S* x, position n, S padding = 0) {
  alignas(64) S padded[lanes<S>::count];
  std::fill(padded, padded + lanes<S>::count, padding);
  std::copy(x, x + n, padded);
  return load(padded, whole<S>{});
}

template <class S>
void store(S* y, whole<S>, const lanes<S>& value) {
  for (int i = 0; i < lanes<S>::parts; ++i)
    packets::pstoreu(y + i * lanes<S>::width, value.part[i]);
}

template <class S>
void store(S* y, position n, const lanes<S>& value) {
  alignas(64) S padded[lanes<S>::count];
  store(padded, whole<S>{}, value);
  std::copy(padded, padded + n, y);
}

// Calls f(j, n) for j = 0, count, 2 count, ...: n is whole<S>, and for the last entries their
// number.
template <class S, class F>
void along(position entries, const F& f) {
  position j = 0;
  for (; j + lanes<S>::count <= entries; j += lanes<S>::count) f(j, whole<S>{});
  if (j < entries) f(j, entries - j);
}

// The lanes' sum, in a fixed tree.
template <class S>
S sum(const lanes<S>& a) {
  typename lanes<S>::packet total = a.part[0];
  for (int i = 1; i < lanes<S>::parts; ++i) total = packets::padd(total, a.part[i]);
  return packets::predux(total);
}

template <class S>
S largest(const lanes<S>& a) {
  typename lanes<S>::packet top = a.part[0];
  for (int i = 1; i < lanes<S>::parts; ++i) top = packets::pmax(top, a.part[i]);
  return packets::predux_max(top);
}

}  // namespace STREAMBP_ISA
}  // namespace streambp::cpu
