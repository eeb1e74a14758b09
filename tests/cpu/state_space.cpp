#include <streambp/cpu/state_space.hpp>

#include <doctest/doctest.h>

#include <array>
#include <limits>

#include "guarded.hpp"

using namespace streambp;
using namespace streambp::cpu;

namespace {

constexpr position rows = 307;
const std::vector<position> grains{0, 64, 100, 101, 300, rows};

struct head_shape {
  position heads, width;
};
// The last two are more than one task.
constexpr head_shape shapes[] = {{1, 1}, {2, 3}, {5, 17}, {67, 1}, {7, 11}};

template <class S>
struct state_input {
  guarded<S> z, a_log, x, skip, o, ddt, dla, dv, d_o;
  explicit state_input(head_shape s, position skew = 1)
      : z(rows, s.heads, 1, 6., 0., skew),
        a_log(1, s.heads, 2, 1., 0., skew),
        x(rows, s.heads * s.width, 3, 1., 0., skew),
        skip(1, s.heads, 4, 1., 0., skew),
        o(rows, s.heads * s.width, 5, 1., 0., skew),
        ddt(rows, s.heads, 6, 1., 0., skew),
        dla(rows, s.heads, 7, 1., 0., skew),
        dv(rows, s.heads * s.width, 8, 1., 0., skew),
        d_o(rows, s.heads * s.width, 9, 1., 0., skew) {}
};

template <class S>
struct state_run {
  guarded<S> dt, la, v, o, dx, ddt, dskip, dz, da_log;
  std::array<const guarded<S>*, 9> all() const {
    return {&dt, &la, &v, &o, &dx, &ddt, &dskip, &dz, &da_log};
  }
};

// Chunks between the given grains' edges, last first in the backward.
template <class S>
state_run<S> run(int threads, head_shape s, const state_input<S>& in,
                 const std::vector<std::size_t>& edges) {
  const position n = s.heads, d = n * s.width;
  state_run<S> y{{rows, n}, {rows, n}, {rows, d},         in.o, {rows, d}, {rows, n},
                 {rows, n}, {rows, n}, {1, n, 10, 1., 0.}};
  device<S> on(threads);
  const auto chunk = [&](std::size_t c) {
    return row_range{grains[edges[c]], grains[edges[c + 1]]};
  };
  for (std::size_t c = 0; c + 1 < edges.size(); ++c) {
    const row_range own = chunk(c);
    const auto at = [own](const guarded<S>& of) { return (*of).rows_in(own); };
    state_steps(on, at(in.z), *in.a_log, at(y.dt), at(y.la));
    state_inputs(on, at(y.dt), at(in.x), at(y.v));
    add_skip(on, *in.skip, at(in.x), at(y.o));
  }
  for (std::size_t c = edges.size() - 1; c-- > 0;) {
    const row_range own = chunk(c);
    const auto at = [own](const guarded<S>& of) { return (*of).rows_in(own); };
    state_inputs_backward(on, at(y.dt), *in.skip, at(in.x), at(in.dv), at(in.d_o), at(y.dx),
                          at(y.ddt), at(y.dskip));
    state_steps_backward(on, at(in.z), *in.a_log, at(y.la), at(in.ddt), at(in.dla), at(y.dz),
                         *y.da_log,
                         std::span(grains).subspan(edges[c], edges[c + 1] - edges[c] + 1));
  }
  for (const auto* m : y.all()) CHECK(m->intact());
  return y;
}

double step(double z) { return std::log(1 + std::exp(z)); }
double decay(double z, double a_log) { return -std::exp(a_log) * step(z); }

}  // namespace

TEST_CASE_TEMPLATE("state space: steps, decays and their slopes", S, float, double) {
  for (const head_shape s : shapes) {
    CAPTURE(s.heads);
    const state_input<S> in(s);
    const auto y = run<S>(1, s, in, {0, 5});
    CHECK(error_of(*y.dt, [&](position i, position h) { return step(double(in.z(i, h))); }) <
          tight<S>);
    CHECK(error_of(*y.la, [&](position i, position h) {
            return decay(double(in.z(i, h)), double(in.a_log(0, h)));
          }) < tight<S>);
    CHECK(error_of(*y.dz, [&](position i, position h) {
            double z = double(in.z(i, h)), a_log = double(in.a_log(0, h));
            return slope(z, [&] {
              return double(in.ddt(i, h)) * step(z) + double(in.dla(i, h)) * decay(z, a_log);
            });
          }) < (sizeof(S) == 4 ? 2e-6 : 1e-9));
    CHECK(error_of(*y.da_log, [&](position, position h) {
            double a_log = double(in.a_log(0, h));
            return wave(0, h, 10) + slope(a_log, [&] {
                     double loss = 0;
                     for (position i = 0; i < rows; ++i)
                       loss += double(in.dla(i, h)) * decay(double(in.z(i, h)), a_log);
                     return loss;
                   });
          }) < (sizeof(S) == 4 ? 1e-5 : 1e-8));
  }
}

TEST_CASE_TEMPLATE("state space: inputs, the way past the state, and their gradients", S, float,
                   double) {
  for (const head_shape s : shapes) {
    CAPTURE(s.heads);
    const state_input<S> in(s);
    const auto y = run<S>(1, s, in, {0, 5});
    CHECK(error_of(*y.v, [&](position i, position j) {
            return double(y.dt(i, j / s.width)) * double(in.x(i, j));
          }) < tight<S>);
    CHECK(error_of(*y.o, [&](position i, position j) {
            return double(in.o(i, j)) + double(in.skip(0, j / s.width)) * double(in.x(i, j));
          }) < tight<S>);
    CHECK(error_of(*y.dx, [&](position i, position j) {
            const position h = j / s.width;
            return double(y.dt(i, h)) * double(in.dv(i, j)) +
                   double(in.skip(0, h)) * double(in.d_o(i, j));
          }) < tight<S>);
    const auto dot_with_x = [&](const guarded<S>& of) {
      return [&](position i, position h) {
        double sum = 0;
        for (position j = h * s.width; j < (h + 1) * s.width; ++j)
          sum += double(in.x(i, j)) * double(of(i, j));
        return sum;
      };
    };
    CHECK(error_of(*y.ddt, dot_with_x(in.dv)) < tight<S>);
    CHECK(error_of(*y.dskip, dot_with_x(in.d_o)) < tight<S>);
  }
}

TEST_CASE_TEMPLATE("state space: the same bits in any chunks, places and threads", S, float,
                   double) {
  for (const head_shape s : shapes) {
    const auto once = run<S>(1, s, state_input<S>(s), {0, 5});
    for (const auto& edges : {std::vector<std::size_t>{0, 1, 2, 3, 4, 5}, {0, 2, 3, 5}}) {
      const auto again = run<S>(2, s, state_input<S>(s, 5), edges);
      for (std::size_t k = 0; k < once.all().size(); ++k)
        CHECK(same_bits(*once.all()[k], *again.all()[k]));
    }
  }
}

TEST_CASE("state space: the slope of z may take its place, and that of a_log may be left out") {
  const head_shape s{5, 1};
  const state_input<float> in(s);
  const auto apart = run<float>(1, s, in, {0, 5});
  guarded<float> z = in.z;
  device<float> on(1);
  state_steps_backward(on, *z, *in.a_log, *apart.la, *in.ddt, *in.dla, *z, {}, grains);
  CHECK(same_bits(z, apart.dz));
}

// A rate that is more than the largest number forgets everything, unless the step is 0.
TEST_CASE_TEMPLATE("state space: rates, steps and gates without end", S, float, double) {
  const S inf = std::numeric_limits<S>::infinity();
  const std::vector<double> rates{-800, -1, 88.7, 89, 200, 709, 710, 1e4},
      gates{-800, -100, -1, 0, 800};
  const position n = position(rates.size()), m = position(gates.size());
  guarded<S> z(m, n), a_log(1, n), dt(m, n), la(m, n), ddt(m, n, 1, 1., 0.), dla(m, n), dz(m, n),
      da_log(1, n, 2, 0., 3.);
  for (position h = 0; h < n; ++h) a_log(0, h) = S(rates[std::size_t(h)]);
  for (position i = 0; i < m; ++i)
    for (position h = 0; h < n; ++h) z(i, h) = S(gates[std::size_t(i)]);
  device<S> on(1);
  state_steps(on, *z, *a_log, *dt, *la);
  for (position i = 0; i < m; ++i)
    for (position h = 0; h < n; ++h) {
      CAPTURE(gates[std::size_t(i)]);
      CAPTURE(rates[std::size_t(h)]);
      const double gate = gates[std::size_t(i)], rate = double(a_log(0, h));
      const long double step =
          gate > 0 ? (long double)(gate) : std::log1p(std::exp((long double)(gate)));
      // e^rate step, in the long double's range.
      const long double forgets = std::exp((long double)(rate)) * (gate == -800 ? 0 : step);
      CHECK(double(dt(i, h)) == doctest::Approx(double(step)).epsilon(1e-6).scale(1e-30));
      if (forgets < 1e30)
        CHECK(double(la(i, h)) == doctest::Approx(-double(forgets)).epsilon(1e-6).scale(1e-30));
      else
        CHECK(std::exp(la(i, h)) == 0);
      if (gate == -800) CHECK(std::exp(la(i, h)) == 1);
      // What the recurrence passes back: nothing across a decay of nothing.
      dla(i, h) = std::exp(la(i, h)) == 0 ? S(0) : S(0.5);
    }
  CHECK(la(m - 1, n - 1) == -inf);
  const std::vector<position> edges{0, m};
  state_steps_backward(on, *z, *a_log, *la, *ddt, *dla, *dz, *da_log, edges);
  for (position h = 0; h < n; ++h) {
    CAPTURE(rates[std::size_t(h)]);
    double sum = 3;
    for (position i = 0; i < m; ++i) {
      CAPTURE(gates[std::size_t(i)]);
      const double sigma = 1 / (1 + std::exp(-gates[std::size_t(i)])), d = double(dla(i, h));
      if (d != 0) sum += d * double(la(i, h));
      const double rate = d == 0 || sigma == 0 ? 0 : std::exp(double(a_log(0, h)));
      const double right = sigma * double(ddt(i, h)) - rate * sigma * d;
      CHECK(double(dz(i, h)) == doctest::Approx(right).epsilon(1e-6).scale(1e-30));
    }
    CHECK(double(da_log(0, h)) == doctest::Approx(sum).epsilon(1e-6));
  }
}
