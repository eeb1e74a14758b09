#include <streambp/cpu/decayed_scores.hpp>

#include <doctest/doctest.h>

#include "guarded.hpp"

using namespace streambp;
using namespace streambp::cpu;

namespace {

// Decays that leave nothing stand between decays that take almost nothing.
template <class S>
struct column {
  position rows;
  guarded<S> la, high, low;
  explicit column(position rows) : rows(rows), la(rows, 1), high(1, rows), low(1, rows) {
    for (position t = 0; t < rows; ++t)
      la(t, 0) = S(t % 5 == 1 ? -3e4 : -0.002 * (1 + wave(t, 0, 1)));
    sums().assign((*la).data, (*la).stride, rows);
  }
  decay_sums<S> sums() const { return {(*high).data, (*low).data}; }
  // Of the rows after s, up to t.
  double product(position s, position t) const {
    double sum = 0;
    for (position r = s + 1; r <= t; ++r) sum += double(la(r, 0));
    return std::exp(sum);
  }
};

constexpr position lengths[] = {1, 3, 16, 17, 63, 64};

}  // namespace

TEST_CASE_TEMPLATE("decays to a tile's start and end", S, float, double) {
  for (const position n : lengths) {
    const column<S> c(n);
    guarded<S> start(1, n), end(1, n);
    decays_from_start(c.sums(), S(3), n, (*start).data);
    decays_to_end(c.sums(), n, (*end).data);
    CHECK(error_of(*start, [&](position, position t) { return 3 * c.product(-1, t); }) < tight<S>);
    CHECK(error_of(*end, [&](position, position t) { return c.product(t, n - 1); }) < tight<S>);
    CHECK(start.intact());
    CHECK(end.intact());
    CHECK(c.high.intact());
    CHECK(c.low.intact());
  }
}

TEST_CASE_TEMPLATE("a row of scores and its slopes", S, float, double) {
  for (const position n : lengths) {
    const column<S> c(n);
    for (position s = 0; s < n; ++s) {
      const guarded<S> score(1, n, 1, 1., 0.), slope_of_p(1, n, 2, 1., 0.);
      guarded<S> p = score, again = score, dp = slope_of_p, crossing(1, n, 3, 1., 0.);
      const auto d = [&](position t) { return t < s ? 0 : 3 * c.product(s, t); };
      decay_row(c.sums(), s, S(3), n, (*p).data);
      decay_row_backward(c.sums(), s, S(3), n, (*again).data, (*dp).data, (*crossing).data);
      CHECK(same_bits(p, again));
      CHECK(error_of(*p, [&](position, position t) { return d(t) * double(score(0, t)); }) <
            tight<S>);
      CHECK(error_of(*dp, [&](position, position t) { return d(t) * double(slope_of_p(0, t)); }) <
            tight<S>);
      CHECK(error_of(*crossing, [&](position, position t) {
              return t <= s ? 0
                            : double(S(wave(0, t, 3))) +
                                  d(t) * double(score(0, t)) * double(slope_of_p(0, t));
            }) < 2 * tight<S>);
      CHECK(p.intact());
      CHECK(dp.intact());
      CHECK(crossing.intact());
    }
  }
}

TEST_CASE("the sum of a row") {
  for (const position n : widths) {
    const guarded<double> x(1, n, 1, 1., 0.3);
    double sum = 0;
    for (position j = 0; j < n; ++j) sum += x(0, j);
    CHECK(std::abs(sum_of_row((*x).data, n) - sum) < 1e-13 * double(n));
  }
}
