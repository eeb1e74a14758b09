// Forward mode: a number with its slopes in N others. For losses of a few numbers and for
// entry-wise layers, whose T is a row of lanes.
#pragma once

#include <array>
#include <compare>
#include <concepts>
#include <cstddef>
#include <tuple>
#include <type_traits>

#include "tangent.hpp"

namespace streambp::autodiff {

template <class T, int N = 1>
struct dual {
  T value = T(0);
  std::array<T, N> slope = zero();

  dual() = default;
  dual(const T& value) : value(value) {}
  template <class Number>
  requires(std::is_arithmetic_v<Number> && !std::is_same_v<Number, T>) dual(Number constant)
      : value(T(double(constant))) {}
  dual(const T& value, const std::array<T, N>& slope) : value(value), slope(slope) {}

  // The k-th of the numbers that slopes are taken in.
  static dual independent(const T& value, int k = 0) {
    dual x(value);
    x.slope[std::size_t(k)] = T(1);
    return x;
  }

  friend dual operator+(const dual& a, const dual& b) {
    return {a.value + b.value, each([&](std::size_t k) { return a.slope[k] + b.slope[k]; })};
  }
  friend dual operator-(const dual& a, const dual& b) {
    return {a.value - b.value, each([&](std::size_t k) { return a.slope[k] - b.slope[k]; })};
  }
  friend dual operator*(const dual& a, const dual& b) {
    return {a.value * b.value, each([&](std::size_t k) {
              return carried(a.slope[k], b.value) + carried(b.slope[k], a.value);
            })};
  }
  friend dual operator/(const dual& a, const dual& b) {
    const T y = a.value / b.value;
    return {y, each([&](std::size_t k) {
              const T slope = a.slope[k] - carried(b.slope[k], y);
              return if_any(slope, slope / b.value);
            })};
  }
  friend dual operator-(const dual& a) { return a.template through<unary::negate>(); }

  // A NaN in a stays one; at a tie the slope is that of b.
  friend dual max(const dual& a, const dual& b) {
    return {choose(a.value < b.value, b.value, a.value), pick(b.value < a.value, a, b).slope};
  }
  friend dual min(const dual& a, const dual& b) {
    return {choose(b.value < a.value, b.value, a.value), pick(a.value < b.value, a, b).slope};
  }
  // a where s > 0, b elsewhere.
  friend dual select(const dual& s, const dual& a, const dual& b) {
    return pick(T(0) < s.value, a, b);
  }
  friend dual detach(const dual& a) { return a.value; }

  friend dual exp(const dual& a) { return a.template through<unary::exp>(); }
  friend dual expm1(const dual& a) { return a.template through<unary::expm1>(); }
  friend dual log(const dual& a) { return a.template through<unary::log>(); }
  friend dual log1p(const dual& a) { return a.template through<unary::log1p>(); }
  friend dual tanh(const dual& a) { return a.template through<unary::tanh>(); }
  friend dual sigmoid(const dual& a) { return a.template through<unary::sigmoid>(); }
  friend dual silu(const dual& a) { return a.template through<unary::silu>(); }
  friend dual gelu(const dual& a) { return a.template through<unary::gelu>(); }
  friend dual relu(const dual& a) { return a.template through<unary::relu>(); }
  friend dual square(const dual& a) { return a.template through<unary::square>(); }
  friend dual sqrt(const dual& a) { return a.template through<unary::sqrt>(); }
  friend dual abs(const dual& a) { return a.template through<unary::abs>(); }
  friend dual softplus(const dual& a) { return a.template through<unary::softplus>(); }
  friend dual log_sigmoid(const dual& a) { return -softplus(-a); }
  friend dual pow(const dual& a, double exponent) { return a.along(power_at(a.value, exponent)); }

  // A number may be compared; lanes of them have no one answer.
  friend auto operator<=>(const dual& a, const dual& b) {
    if constexpr (std::is_arithmetic_v<T>)
      return a.value <=> b.value;
    else
      return refuse_branch<T>(), std::partial_ordering::unordered;
  }
  friend bool operator==(const dual& a, const dual& b) {
    if constexpr (std::is_arithmetic_v<T>)
      return a.value == b.value;
    else
      return refuse_branch<T>(), false;
  }
  template <std::same_as<bool> Bool>
  explicit operator Bool() const {
    return refuse_branch<T>(), false;
  }

 private:
  template <class F>
  static std::array<T, N> each(const F& f) {
    std::array<T, N> all;
    for (int k = 0; k < N; ++k) all[std::size_t(k)] = f(std::size_t(k));
    return all;
  }
  static std::array<T, N> zero() {
    return each([](std::size_t) { return T(0); });
  }
  template <class Mask>
  static dual pick(const Mask& first, const dual& a, const dual& b) {
    return {choose(first, a.value, b.value),
            each([&](std::size_t k) { return choose(first, a.slope[k], b.slope[k]); })};
  }
  template <unary f>
  dual through() const {
    return along(tangent_at<f>(value));
  }
  dual along(const tangent<T>& at) const {
    return {at.value, each([&](std::size_t k) { return carried(slope[k], at.slope); })};
  }
};

template <int N>
struct value_and_slopes {
  double value = 0;
  std::array<double, N> slopes{};
};

// f and its slopes in each of its numbers: differentiate([](auto a, auto b) { return a * exp(b);
// }, 2., 1.)
template <class F, class... Number>
requires(std::is_arithmetic_v<Number>&&...)
    value_and_slopes<int(sizeof...(Number))> differentiate(const F& f, Number... x) {
  constexpr int n = int(sizeof...(Number));
  int k = 0;
  const std::array<dual<double, n>, n> at{dual<double, n>::independent(double(x), k++)...};
  const dual<double, n> y = std::apply([&](const auto&... d) { return f(d...); }, at);
  return {y.value, y.slope};
}

}  // namespace streambp::autodiff
