#include <streambp/cpu/activation.hpp>

#include <doctest/doctest.h>

#include <limits>

#include "guarded.hpp"

using namespace streambp;
using namespace streambp::cpu;

namespace {

constexpr activation kinds[] = {activation::silu, activation::gelu,    activation::gelu_tanh,
                                activation::relu, activation::sigmoid, activation::tanh};

long double naive(activation kind, long double x) {
  switch (kind) {
    case activation::silu:
      return x / (1 + std::exp(-x));
    case activation::gelu:
      return x * 0.5L * std::erfc(-x / std::sqrt(2.0L));
    case activation::gelu_tanh:
      return 0.5L * x *
             (1 + std::tanh(std::sqrt(2 / std::acos(-1.0L)) * (x + 0.044715L * x * x * x)));
    case activation::relu:
      return x > 0 ? x : 0;
    case activation::sigmoid:
      return 1 / (1 + std::exp(-x));
    case activation::tanh:
      return std::tanh(x);
  }
  return 0;
}

long double naive_slope(activation kind, long double x) {
  const long double h = 1e-6L;
  return (naive(kind, x + h) - naive(kind, x - h)) / (2 * h);
}

template <class S>
constexpr double slope_tight = sizeof(S) == 4 ? 3e-6 : 1e-11;

}  // namespace

TEST_CASE_TEMPLATE("activations: values and slopes", S, float, double) {
  device<S> on(1);
  for (activation kind : kinds)
    for (position d : widths) {
      const guarded<S> x(9, d, 1, 8, 0.01), dy(9, d, 2, 1, 0), before(9, d, 3, 1, 0);
      guarded<S> y(9, d), dx = before;
      activation_forward(on, kind, *x, *y);
      activation_backward(on, kind, *x, *dy, *dx);
      CAPTURE(int(kind));
      CHECK(error_of(*y, [&](position i, position j) { return naive(kind, x(i, j)); }) < tight<S>);
      CHECK(error_of(*dx, [&](position i, position j) {
              return before(i, j) + dy(i, j) * naive_slope(kind, x(i, j));
            }) < slope_tight<S>);
      CHECK(y.intact());
      CHECK(dx.intact());
    }
}

TEST_CASE_TEMPLATE("gates: values and gradients in place", S, float, double) {
  device<S> on(2);
  for (activation kind : kinds)
    for (position d : widths) {
      const guarded<S> gate(9, d, 1, 3, 0.01), up(9, d, 2, 1, 0), dh(9, d, 3, 1, 0);
      guarded<S> h(9, d), dgate = gate, dup = up;
      gated_forward(on, kind, *gate, *up, *h);
      gated_backward(on, kind, *dgate, *dup, *dh);
      CAPTURE(int(kind));
      CHECK(error_of(*h, [&](position i, position j) {
              return naive(kind, gate(i, j)) * up(i, j);
            }) < tight<S>);
      CHECK(error_of(*dgate, [&](position i, position j) {
              return dh(i, j) * up(i, j) * naive_slope(kind, gate(i, j));
            }) < slope_tight<S>);
      CHECK(error_of(*dup, [&](position i, position j) {
              return dh(i, j) * naive(kind, gate(i, j));
            }) < tight<S>);
      CHECK(h.intact());
      CHECK(dgate.intact());
      CHECK(dup.intact());
    }
}

TEST_CASE_TEMPLATE("activations: a row's bits are its own", S, float, double) {
  device<S> single(1), pair(2);
  for (activation kind : kinds)
    for (position d : widths) {
      const guarded<S> gate(300, d, 1, 3, 0), up(300, d, 2, 1, 0, 3), dh(300, d, 3, 1, 0, 2);
      guarded<S> h(300, d), h2(300, d, 4), dgate = gate, dup = up, dgate2(300, d, 1, 3., 0., 6),
                                           dup2 = up;
      gated_forward(single, kind, *gate, *up, *h);
      gated_backward(single, kind, *dgate, *dup, *dh);
      for (row_range some : {row_range{299, 300}, row_range{7, 299}, row_range{0, 7}}) {
        gated_forward(pair, kind, (*dgate2).rows_in(some), (*up).rows_in(some),
                      (*h2).rows_in(some));
        gated_backward(pair, kind, (*dgate2).rows_in(some), (*dup2).rows_in(some),
                       (*dh).rows_in(some));
      }
      CHECK(same_bits(h, h2));
      CHECK(same_bits(dgate, dgate2));
      CHECK(same_bits(dup, dup2));
    }
}

TEST_CASE_TEMPLATE("activations: far away", S, float, double) {
  device<S> on(1);
  for (activation kind : kinds) {
    guarded<S> x(1, 4), y(1, 4), one(1, 4), dx(1, 4);
    const S far[] = {S(-1e4), S(1e4), S(-100), S(100)};
    for (position j = 0; j < 4; ++j) x(0, j) = far[j], one(0, j) = 1, dx(0, j) = 0;
    activation_forward(on, kind, *x, *y);
    activation_backward(on, kind, *x, *one, *dx);
    CAPTURE(int(kind));
    for (position j = 0; j < 4; ++j) {
      CHECK(std::abs(y(0, j) - double(naive(kind, x(0, j)))) <= 1e-6 * std::abs(double(x(0, j))));
      CHECK(std::abs(dx(0, j) - double(naive_slope(kind, x(0, j)))) < 1e-6);
    }
    x(0, 1) = std::numeric_limits<S>::quiet_NaN();
    activation_forward(on, kind, *x, *y);
    CHECK(std::isnan(y(0, 1)));
    CHECK_FALSE(std::isnan(y(0, 0)));
  }
}
