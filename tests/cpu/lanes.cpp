#include <streambp/cpu/lanes.hpp>

#include <doctest/doctest.h>

#include <cstring>
#include <limits>

#include "guarded.hpp"

using namespace streambp;
using namespace streambp::cpu;

template <class S, class F>
S one(const F& f, S x) {
  S out[lanes<S>::count];
  store(out, whole<S>{}, f(lanes<S>(x)));
  return out[0];
}

TEST_CASE_TEMPLATE("a tail holds what whole lanes hold, padded, and writes no more", S, float,
                   double) {
  constexpr position count = lanes<S>::count;
  for (position n = 0; n <= count; ++n) {
    guarded<S> x(1, n, 3, 1, 0), y(1, n);
    store((*y).data, n, load<S>((*x).data, n));
    CHECK(same_bits(x, y));
    CHECK(y.intact());
    S padded[count];
    store(padded, whole<S>{}, load<S>((*x).data, n, S(7)));
    for (position l = n; l < count; ++l) CHECK(padded[l] == 7);
  }
}

TEST_CASE_TEMPLATE("along visits every entry once", S, float, double) {
  for (position entries : {0, 1, 7, 8, 16, 17, 50}) {
    position next = 0;
    along<S>(entries, [&](position j, auto n) {
      CHECK(j == next);
      next = j + position(n);
    });
    CHECK(next == entries);
  }
}

TEST_CASE_TEMPLATE("sum and largest fold all lanes", S, float, double) {
  S x[lanes<S>::count];
  for (position at = 0; at < lanes<S>::count; ++at) {
    for (position l = 0; l < lanes<S>::count; ++l) x[l] = S(l == at ? 100 : l);
    CHECK(largest(load<S>(x)) == 100);
    CHECK(sum(load<S>(x)) == 100 - at + lanes<S>::count * (lanes<S>::count - 1) / 2);
  }
}

TEST_CASE_TEMPLATE("exp, tanh and erf agree with the library's", S, float, double) {
  const double unit = std::numeric_limits<S>::epsilon();
  double worst_exp = 0, worst_tanh = 0, worst_erf = 0;
  for (int k = -4000; k <= 4000; ++k) {
    const S x = S(k * 0.02171);
    const auto relative = [&](S ours, long double right) {
      return double(std::abs((ours - right) / right)) / unit;
    };
    worst_exp = std::max(
        worst_exp, relative(one<S>([](auto a) { return exp(a); }, x), std::exp((long double)(x))));
    const S y = S(k * 0.0025);
    if (k == 0) continue;
    worst_tanh = std::max(worst_tanh, relative(one<S>([](auto a) { return tanh(a); }, y),
                                               std::tanh((long double)(y))));
    worst_erf = std::max(
        worst_erf, relative(one<S>([](auto a) { return erf(a); }, y), std::erf((long double)(y))));
  }
  CAPTURE(worst_exp);
  CAPTURE(worst_tanh);
  CAPTURE(worst_erf);
  CHECK(worst_exp < 3);
  CHECK(worst_tanh < 6);
  CHECK(worst_erf < 6);
}

TEST_CASE_TEMPLATE("special values", S, float, double) {
  constexpr S infinity = std::numeric_limits<S>::infinity(),
              nan = std::numeric_limits<S>::quiet_NaN();
  const auto e = [](S x) { return one<S>([](auto a) { return exp(a); }, x); };
  CHECK(e(-infinity) == 0);
  CHECK(e(S(-1e4)) == 0);
  CHECK(e(0) == 1);
  CHECK(e(infinity) == infinity);
  CHECK(std::isnan(e(nan)));
  CHECK(one<S>([](auto a) { return select(a < 0, 1, 2); }, S(-1)) == 1);
  CHECK(one<S>([](auto a) { return select(a < 0, 1, 2); }, S(0)) == 2);
  CHECK(one<S>([](auto a) { return select(a < 0, 1, 2); }, nan) == 2);
}
