#include <streambp/cpu/decay.hpp>

#include <doctest/doctest.h>

#include <limits>

#include "guarded.hpp"

using namespace streambp;
using namespace streambp::cpu;

TEST_CASE("softplus and sigmoid neither overflow nor lose small results") {
  CHECK(softplus(0) == doctest::Approx(std::log(2)).epsilon(1e-15));
  CHECK(softplus(1e3) == 1e3);
  CHECK(softplus(-50) == doctest::Approx(std::exp(-50)).epsilon(1e-14));
  CHECK(softplus(-1e6) == 0);
  CHECK(sigmoid(-1e6) == 0);
  CHECK(sigmoid(1e6) == 1);
  CHECK(sigmoid(-50) == doctest::Approx(std::exp(-50)).epsilon(1e-14));
}

TEST_CASE_TEMPLATE("decays: values, and slopes in place", S, float, double) {
  const position rows = 9;
  for (const position heads : {1, 5, 70}) {
    const guarded<S> z(rows, heads, 1, 6., 0.), dla(rows, heads, 2, 1., 0.);
    guarded<S> la(rows, heads), dz = dla;
    device<S> on(2);
    sigmoid_decays(on, 16, *z, *la);
    const auto decay = [](double x) { return std::log(1 / (1 + std::exp(-x))) / 16; };
    CHECK(error_of(*la, [&](position i, position h) { return decay(double(z(i, h))); }) < tight<S>);
    sigmoid_decays_backward(on, 16, *z, *dz, *dz);
    CHECK(error_of(*dz, [&](position i, position h) {
            double x = double(z(i, h));
            return double(dla(i, h)) * slope(x, [&] { return decay(x); });
          }) < (sizeof(S) == 4 ? 2e-6 : 1e-9));
    CHECK(la.intact());
    CHECK(dz.intact());
    std::vector<double> logarithms;
    for (position h = 0; h < heads; ++h) logarithms.push_back(-0.25 * double(h));
    constant_decays(on, logarithms, *la);
    CHECK(error_of(*la, [&](position, position h) { return -0.25 * double(h); }) == 0);
    CHECK(la.intact());
  }
}
