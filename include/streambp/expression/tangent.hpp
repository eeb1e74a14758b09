// The functions of one number that forwards are made of, each with its slope, for numbers and for
// lanes of them: every derivative of the library's autodiff comes from here or from dual's
// operators.
#pragma once

#include <cmath>
#include <limits>

#include "../core/language.hpp"

namespace streambp::autodiff {

// relu: max(x, 0). silu: x σ(x). gelu: x Φ(x). softplus: log(1 + exp x).
enum class unary : unsigned char {
  negate,
  exp,
  expm1,
  log,
  log1p,
  softplus,
  tanh,
  sigmoid,
  silu,
  gelu,
  relu,
  square,
  sqrt,
  abs
};

// f(x) and f'(x).
template <class T>
struct tangent {
  T value, slope;
};

constexpr double choose(bool first, double a, double b) { return first ? a : b; }
template <class T>
T choose(const T& mask, const T& a, const T& b) {
  return select(mask, a, b);
}

// What becomes of a gradient or slope g: `product`, which is g times or through something. Where
// nothing comes nothing goes on, though the other factor be infinite or NaN: of two branches only
// the one that was taken has a slope.
template <class T>
T if_any(const T& g, const T& product) {
  using std::abs;
  return choose(T(0) < abs(g), product, g);
}
template <class T>
T carried(const T& g, const T& s) {
  return if_any(g, g * s);
}

// max(x, 0) + log(1 + exp(-|x|)) has no kink at 0 and cancels nowhere; its slope is σ(x).
template <class T>
tangent<T> softplus_at(const T& x) {
  using std::abs, std::exp, std::log1p;
  return {choose(x < T(0), T(0), x) + log1p(exp(-abs(x))), T(1) / (exp(-x) + T(1))};
}

template <unary f, class T>
tangent<T> tangent_at(const T& x) {
  using std::abs, std::erf, std::exp, std::expm1, std::log, std::log1p, std::sqrt, std::tanh;
  if constexpr (f == unary::negate) {
    return {-x, T(-1)};
  } else if constexpr (f == unary::exp) {
    const T y = exp(x);
    return {y, y};
  } else if constexpr (f == unary::expm1) {
    return {expm1(x), exp(x)};
  } else if constexpr (f == unary::log) {
    return {log(x), T(1) / x};
  } else if constexpr (f == unary::log1p) {
    return {log1p(x), T(1) / (x + T(1))};
  } else if constexpr (f == unary::softplus) {
    return softplus_at(x);
  } else if constexpr (f == unary::tanh) {
    const T y = tanh(x);
    return {y, T(1) - y * y};
  } else if constexpr (f == unary::sigmoid) {
    const T y = T(1) / (exp(-x) + T(1));
    return {y, y * (T(1) - y)};
  } else if constexpr (f == unary::silu) {
    const T s = T(1) / (exp(-x) + T(1)), y = x * s;
    return {y, s + y * (T(1) - s)};
  } else if constexpr (f == unary::gelu) {  // the normal distribution's Φ, and its density
    const T below = erf(x * T(0.70710678118654752)) * T(0.5) + T(0.5);
    const T density = exp(x * x * T(-0.5)) * T(0.39894228040143268);
    return {x * below, below + x * density};
  } else if constexpr (f == unary::relu) {
    return {choose(x < T(0), T(0), x), choose(T(0) < x, T(1), T(0))};
  } else if constexpr (f == unary::square) {
    return {x * x, x + x};
  } else if constexpr (f == unary::sqrt) {
    const T y = sqrt(x);  // at 0 the slope is 0, so that the length of a row has one there
    return {y, choose(T(0) < x, T(0.5) / y, choose(x < T(0), y, T(0)))};
  } else {
    return {abs(x), choose(x < T(0), T(-1), choose(T(0) < x, T(1), T(0)))};
  }
}

// x^n, by products.
template <class T>
T whole_power(const T& x, int n) {
  T y(1);
  for (int i = 0; i < n; ++i) y = y * x;
  return y;
}

// x^p and p x^(p-1), p a number: by products and a root where 2 p is whole and not large. A
// negative x has whole powers only. At 0 the slope is 0 where p lies between 0 and 1, as that of
// sqrt.
template <class T>
tangent<T> power_at(const T& x, double p) {
  using std::abs, std::exp, std::log, std::sqrt;
  if (p == 0) return {T(1), T(0)};
  if (p < 0) {
    const T y = T(1) / power_at(x, -p).value;
    return {y, T(p) * y / x};
  }
  const double whole = std::floor(p);
  if (whole <= 32 && (p == whole || p == whole + 0.5)) {
    if (whole == 0) return tangent_at<unary::sqrt>(x);
    const T below = whole_power(x, int(whole) - 1);
    if (p == whole) return {below * x, T(p) * below};
    const T root = sqrt(x);
    return {below * root * x, T(p) * below * root};
  }
  const T y = exp(T(p) * log(abs(x)));
  const double of_negative = p != whole             ? std::numeric_limits<double>::quiet_NaN()
                             : std::fmod(p, 2) == 1 ? -1
                                                    : 1;
  const T value = choose(x < T(0), T(of_negative) * y, y);
  return {value, choose(T(0) < abs(x), T(p) * value / x, x)};
}

// What a forward that compares is told.
template <class T>
constexpr void refuse_branch() {
  static_assert(sizeof(T) == 0,
                "a forward must not branch on values: use max, min or select(s, a, b), which is a "
                "where s > 0 and b elsewhere");
}

}  // namespace streambp::autodiff
