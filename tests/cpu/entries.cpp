#include <streambp/cpu/entries.hpp>

#include <doctest/doctest.h>

#include <algorithm>

#include "guarded.hpp"

using namespace streambp;
using namespace streambp::cpu;
using autodiff::operation;
using autodiff::unary;

namespace {

constexpr position rows = 41;  // with 512 columns more than one task

template <class F>
struct function {
  F f;
  auto forward(auto x) const { return f(x); }
};
template <class F>
function(F) -> function<F>;

double sigma(double x) { return 1 / (1 + std::exp(-x)); }
double normal(double x) { return std::erfc(-x / std::sqrt(2.)) / 2; }

// Entries that keep away from the kinks below.
template <class S>
guarded<S> smooth_entries(position cols, position skew) {
  guarded<S> x(rows, cols, 1, 3., 0., skew);
  for (position i = 0; i < rows; ++i)
    for (position j = 0; j < cols; ++j)
      for (const double kink : {0., 0.25, 0.3, -0.5})
        if (std::abs(double(x(i, j)) - kink) < 1e-3) x(i, j) += S(0.01);
  return x;
}

// Calls check(function, the same of a number) for functions that use every operation.
template <class F>
void each_function(const F& check) {
  check(function{[](auto x) { return exp(-x) + tanh(x) * sigmoid(x); }},
        [](double x) { return std::exp(-x) + std::tanh(x) * sigma(x); });
  check(function{[](auto x) { return silu(x) - 2 * gelu(x) / (square(x) + 1); }},
        [](double x) { return x * sigma(x) - 2 * x * normal(x) / (x * x + 1); });
  check(function{[](auto x) { return log(abs(x) + 0.5) * sqrt(square(x) + 2); }},
        [](double x) { return std::log(std::abs(x) + 0.5) * std::sqrt(x * x + 2); });
  check(function{[](auto x) { return max(x, 0.25) + 3 * min(x, -0.5) - 5 * relu(x); }},
        [](double x) { return std::max(x, 0.25) + 3 * std::min(x, -0.5) - (x > 0 ? 5 * x : 0); });
  check(function{[](auto x) { return select(x - 0.3, x * x, 2 - x); }},
        [](double x) { return x > 0.3 ? x * x : 2 - x; });
  check(function{[](auto x) { return softplus(x); }},
        [](double x) { return std::log(1 + std::exp(x)); });
}

// In the order of unary's names.
double (*const naive[])(double) = {[](double x) { return -x; },
                                   [](double x) { return std::exp(x); },
                                   [](double x) { return std::expm1(x); },
                                   [](double x) { return std::log(x); },
                                   [](double x) { return std::log1p(x); },
                                   [](double x) { return std::log(1 + std::exp(x)); },
                                   [](double x) { return std::tanh(x); },
                                   sigma,
                                   [](double x) { return x * sigma(x); },
                                   [](double x) { return x * normal(x); },
                                   [](double x) { return x > 0 ? x : 0; },
                                   [](double x) { return x * x; },
                                   [](double x) { return std::sqrt(x); },
                                   [](double x) { return std::abs(x); }};

template <class S>
constexpr double room = sizeof(S) == 4 ? 4e-6 : 1e-8;  // of a slope beside a central difference

}  // namespace

TEST_CASE_TEMPLATE("entries: values, slopes, and their bits in any rows, places and threads", S,
                   float, double) {
  device<S> one(1), two(2);
  for (const position d : {1, 3, 17, 53, 512})
    each_function([&](const auto& f, const auto& right) {
      const guarded<S> x = smooth_entries<S>(d, 1), dy(rows, d, 2, 1., 0.);
      guarded<S> y(rows, d), dx(rows, d, 3, 1., 0.);
      map_entries(one, f, *x, *y);
      differentiate_entries(one, f, *x, *dy, *dx);
      CHECK(error_of(*y, [&](position i, position j) { return right(double(x(i, j))); }) <
            2 * tight<S>);
      CHECK(error_of(*dx, [&](position i, position j) {
              double at = double(x(i, j));
              return wave(i, j, 3) + double(dy(i, j)) * slope(at, [&] { return right(at); });
            }) < room<S>);
      guarded<S> x2 = smooth_entries<S>(d, 5), y2(rows, d, 4), dx2(rows, d, 3, 1., 0., 6);
      for (const row_range some : {row_range{40, rows}, {7, 40}, {7, 7}, {0, 7}}) {
        map_entries(two, f, (*x2).rows_in(some), (*y2).rows_in(some));
        differentiate_entries(two, f, (*x2).rows_in(some), (*dy).rows_in(some),
                              (*dx2).rows_in(some));
      }
      CHECK(same_bits(y, y2));
      CHECK(same_bits(dx, dx2));
      CHECK((y.intact() && dx.intact() && y2.intact() && dx2.intact()));
      map_entries(two, f, *x2, *x2);
      CHECK(same_bits(y, x2));
      CHECK(x2.intact());
    });
}

TEST_CASE("entries: a gradient may be added to that of y, and none comes through detach") {
  const function detached{[](auto x) { return x * detach(tanh(x)); }};
  const guarded<double> x(5, 17, 1, 3., 0.);
  guarded<double> dx(5, 17, 2, 1., 0.);
  device<double> on(1);
  differentiate_entries(on, detached, *x, *dx, *dx);
  CHECK(error_of(*dx, [&](position i, position j) {
          return wave(i, j, 2) * (1 + std::tanh(x(i, j)));
        }) < tight<double>);
}

TEST_CASE_TEMPLATE("entry kernels: values and slopes of whole lanes", S, float, double) {
  constexpr position n = entries::block<S> - 5, filled = round_up(n, lanes<S>::count);
  const guarded<S> a(1, filled, 1, 1., 1.5), b(1, filled, 2, 1., 1.5), s(1, filled, 3, 1., 0.);
  guarded<S> y(1, filled), slopes(1, filled);
  for (int f = 0; f <= int(unary::abs); ++f) {
    CAPTURE(f);
    const auto right = naive[f];
    const auto value = [&](position, position j) { return right(double(a(0, j))); };
    entries::with_constant(unary(f), [&](auto known) {
      entries::unary_values<known.value>((*a).data, n, (*y).data);
      CHECK(error_of(*y, value) < tight<S>);
      entries::unary_tangents<known.value>((*a).data, n, (*y).data, (*slopes).data);
    });
    CHECK(error_of(*y, value) < tight<S>);
    CHECK(error_of(*slopes, [&](position, position j) {
            double x = double(a(0, j));
            return slope(x, [&] { return right(x); });
          }) < room<S>);
  }
  const auto gives = [&](auto op, const auto& right) {
    entries::binary_values<op.value>((*a).data, (*b).data, n, (*y).data);
    CHECK(error_of(*y, [&](position, position j) { return right(a(0, j), b(0, j)); }) == 0);
  };
  using enum operation;
  gives(std::integral_constant<operation, add>{}, [](S p, S q) { return p + q; });
  gives(std::integral_constant<operation, subtract>{}, [](S p, S q) { return p - q; });
  gives(std::integral_constant<operation, multiply>{}, [](S p, S q) { return p * q; });
  gives(std::integral_constant<operation, divide>{}, [](S p, S q) { return p / q; });
  gives(std::integral_constant<operation, max>{}, [](S p, S q) { return std::max(p, q); });
  gives(std::integral_constant<operation, min>{}, [](S p, S q) { return std::min(p, q); });
  entries::select_values((*s).data, (*a).data, (*b).data, n, (*y).data);
  const auto selected = [&](position, position j) { return s(0, j) > 0 ? a(0, j) : b(0, j); };
  CHECK(error_of(*y, selected) == 0);
  for (const bool adds : {true, false}) {
    entries::give((*y).data, adds, n, [&](position k) { return load<S>((*a).data + k); });
    CHECK(error_of(*y, [&](position, position j) {
            return adds ? selected(0, j) + a(0, j) : a(0, j);
          }) == 0);
  }
  CHECK((y.intact() && slopes.intact()));
}
