// Scalar functions of each entry and their slopes, alone and as the gate of a gated MLP.
#pragma once

#include <type_traits>

#include "../primitives/activation.hpp"
#include "rows.hpp"

namespace streambp::cpu {
inline namespace STREAMBP_ISA {

// f(x) and f'(x).
template <class S>
struct curve_point {
  lanes<S> value, slope;
};

template <class S>
lanes<S> logistic(const lanes<S>& x) {
  return lanes<S>(1) / (exp(-x) + 1);
}

template <activation kind, class S>
curve_point<S> curve(const lanes<S>& x) {
  if constexpr (kind == activation::silu) {
    const lanes<S> s = logistic(x), y = x * s;
    return {y, fma(y, 1 - s, s)};
  } else if constexpr (kind == activation::gelu) {
    // x Φ(x), with the normal distribution's Φ and its density
    const lanes<S> below = fma(erf(x * S(0.70710678118654752)), 0.5, 0.5);
    const lanes<S> density = exp(x * x * S(-0.5)) * S(0.39894228040143268);
    return {x * below, fma(x, density, below)};
  } else if constexpr (kind == activation::gelu_tanh) {
    // x (1 + tanh u) / 2 = x logistic(2u), u = √(2/π) (x + 0.044715 x³)
    const lanes<S> x2 = x * x;
    const lanes<S> s = logistic(x * fma(x2, S(0.071354816272600), S(1.5957691216057308)));
    const lanes<S> y = x * s;
    return {y, fma(y * (1 - s), fma(x2, S(0.214064448817801), S(1.5957691216057308)), s)};
  } else if constexpr (kind == activation::relu) {
    const auto negative = x < 0;
    return {select(negative, 0, x), select(lanes<S>(0) < x, 1, 0)};
  } else if constexpr (kind == activation::sigmoid) {
    const lanes<S> s = logistic(x);
    return {s, s * (1 - s)};
  } else {
    const lanes<S> t = tanh(x);
    return {t, fma(-t, t, 1)};
  }
}

template <activation kind, class S>
[[gnu::noinline, gnu::flatten]] void activation_row(const S* x, position d, S* y) {
  along<S>(d, [&](position j, auto n) { store(y + j, n, curve<kind>(load(x + j, n)).value); });
}

template <activation kind, class S>
[[gnu::noinline, gnu::flatten]] void activation_row_backward(const S* x, const S* dy, position d,
                                                             S* dx) {
  along<S>(d, [&](position j, auto n) {
    store(dx + j, n, fma(load(dy + j, n), curve<kind>(load(x + j, n)).slope, load(dx + j, n)));
  });
}

template <activation kind, class S>
[[gnu::noinline, gnu::flatten]] void gated_row(const S* gate, const S* up, position d, S* h) {
  along<S>(d, [&](position j, auto n) {
    store(h + j, n, curve<kind>(load(gate + j, n)).value * load(up + j, n));
  });
}

template <activation kind, class S>
[[gnu::noinline, gnu::flatten]] void gated_row_backward(S* gate, S* up, const S* dh, position d) {
  along<S>(d, [&](position j, auto n) {
    const curve_point<S> f = curve<kind>(load(gate + j, n));
    const lanes<S> dhj = load(dh + j, n);
    store(gate + j, n, dhj * f.slope * load(up + j, n));
    store(up + j, n, dhj * f.value);
  });
}

// Calls f with the kind as a constant.
template <class F>
void with_constant(activation kind, const F& f) {
  using enum activation;
  const auto call = [&]<activation known>() { f(std::integral_constant<activation, known>{}); };
  switch (kind) {
    case silu:
      return call.template operator()<silu>();
    case gelu:
      return call.template operator()<gelu>();
    case gelu_tanh:
      return call.template operator()<gelu_tanh>();
    case relu:
      return call.template operator()<relu>();
    case sigmoid:
      return call.template operator()<sigmoid>();
    case activation::tanh:
      return call.template operator()<activation::tanh>();
  }
}

template <class S>
void activation_forward(workers<S>& on, activation kind, given<S> x, view<S> y) {
  with_constant(kind, [&](auto f) {
    for_rows(on, x.rows, x.cols,
             [&](position i) { activation_row<f.value>(x.row(i), x.cols, y.row(i)); });
  });
}

template <class S>
void activation_backward(workers<S>& on, activation kind, given<S> x, given<S> dy, view<S> dx) {
  with_constant(kind, [&](auto f) {
    for_rows(on, x.rows, x.cols, [&](position i) {
      activation_row_backward<f.value>(x.row(i), dy.row(i), x.cols, dx.row(i));
    });
  });
}

template <class S>
void gated_forward(workers<S>& on, activation kind, given<S> gate, given<S> up, view<S> h) {
  with_constant(kind, [&](auto f) {
    for_rows(on, h.rows, h.cols,
             [&](position i) { gated_row<f.value>(gate.row(i), up.row(i), h.cols, h.row(i)); });
  });
}

template <class S>
void gated_backward(workers<S>& on, activation kind, view<S> gate, written<S> up, given<S> dh) {
  with_constant(kind, [&](auto f) {
    for_rows(on, gate.rows, gate.cols, [&](position i) {
      gated_row_backward<f.value>(gate.row(i), up.row(i), dh.row(i), gate.cols);
    });
  });
}

}  // namespace STREAMBP_ISA
}  // namespace streambp::cpu
