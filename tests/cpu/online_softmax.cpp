#include "streambp/cpu/online_softmax.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

using namespace streambp;
using namespace streambp::cpu;

namespace {

constexpr position keys = 72;  // no multiple of 16: the buffer is longer
constexpr position buffer = 80;

template <class S>
std::vector<S> scores(int seed) {
  std::vector<S> s(buffer, std::numeric_limits<S>::quiet_NaN());
  for (position j = 0; j < keys; ++j) s[j] = S(10 * std::sin(double(j * 7 + seed * 31)));
  return s;
}

}  // namespace

TEST_CASE_TEMPLATE("two blocks give the softmax of both", S, float, double) {
  const double near = sizeof(S) == 4 ? 1e-5 : 1e-13;
  for (const double softcap : {0.0, 3.0})
    for (const row_range seen : {row_range{0, keys}, {0, 1}, {5, 6}, {3, 37}, {16, 32}, {71, 72}}) {
      const std::vector<S> first = scores<S>(1), second = scores<S>(2);
      std::vector<S> p = first, r = second;
      S maximum = no_score<S>, total = 0;
      softmax_step(maximum, total, p.data(), seen, keys, S(softcap));
      const S factor = softmax_step(maximum, total, r.data(), {0, keys}, keys, S(softcap));
      const softmax_end<S> end = softmax_finish<S>(maximum, total, nullptr);

      const auto score = [&](S x) { return softcap > 0 ? softcap * std::tanh(x / softcap) : x; };
      long double sum = 0;
      for (position j = seen.first; j < seen.last; ++j) sum += std::exp(score(first[j]));
      for (position j = 0; j < keys; ++j) sum += std::exp(score(second[j]));
      CHECK(std::abs(end.lse - std::log(sum)) < near);
      for (position j = 0; j < keys; ++j) {
        const bool is_seen = j >= seen.first && j < seen.last;
        const double right = is_seen ? double(std::exp(score(first[j])) / sum) : 0;
        CHECK(std::abs(p[j] * factor * end.factor - right) < near);
        if (!is_seen) CHECK(p[j] == 0);
      }
    }
}

TEST_CASE_TEMPLATE("a block that a row does not see changes nothing", S, float, double) {
  std::vector<S> p = scores<S>(1), hidden = scores<S>(2);
  S maximum = no_score<S>, total = 0;
  softmax_step(maximum, total, p.data(), {0, keys}, keys, S(0));
  const S old_maximum = maximum, old_total = total;
  CHECK(softmax_step(maximum, total, hidden.data(), {40, 40}, keys, S(0)) == 1);
  CHECK(maximum == old_maximum);
  CHECK(total == old_total);
  for (position j = 0; j < keys; ++j) CHECK(hidden[j] == 0);
}

TEST_CASE_TEMPLATE("a row that sees nothing gives 0, -inf and no gradient", S, float, double) {
  std::vector<S> p = scores<S>(1), dp = scores<S>(2);
  S maximum = no_score<S>, total = 0;
  CHECK(softmax_step(maximum, total, p.data(), {}, keys, S(0)) == 1);
  const softmax_end<S> end = softmax_finish<S>(maximum, total, nullptr);
  CHECK(end.factor == 0);
  CHECK(end.lse == no_score<S>);
  softmax_gradient(p.data(), dp.data(), {0, keys}, keys, end.lse, S(1), S(0));
  for (position j = 0; j < keys; ++j) CHECK((p[j] == 0 && dp[j] == 0));

  const S sink = 2;
  CHECK(softmax_finish(maximum, total, &sink).factor == 0);
  CHECK(softmax_finish(maximum, total, &sink).lse == 2);
  CHECK(sink_gradient<S>(sink, &end.lse, &total, 1, 1) == 0);
}

TEST_CASE_TEMPLATE("the gradient of a score is its probability's, through the cap", S, float,
                   double) {
  const double near = sizeof(S) == 4 ? 1e-5 : 1e-13, lse = 4, delta = 0.3;
  const std::vector<S> s = scores<S>(1), dp = scores<S>(2);
  for (const double softcap : {0., 3.}) {
    std::vector<S> p = s, ds = dp;
    softmax_gradient(p.data(), ds.data(), {3, keys}, keys, S(lse), S(delta), S(softcap));
    for (position j = 3; j < keys; ++j) {
      const double t = softcap > 0 ? std::tanh(s[j] / softcap) : 0,
                   right = std::exp((softcap > 0 ? softcap * t : double(s[j])) - lse);
      const double d = right * (dp[j] - delta) * (1 - t * t);
      CHECK(std::abs(p[j] - right) <= near * (1 + right));
      CHECK(std::abs(ds[j] - d) <= near * (1 + std::abs(d)) * 100);
    }
  }
}

TEST_CASE_TEMPLATE("what is not seen is selected, not multiplied", S, float, double) {
  const S nan = std::numeric_limits<S>::quiet_NaN();
  const row_range seen{19, 50};
  std::vector<S> s = scores<S>(1), dp = scores<S>(2), p = s, ds = dp;
  for (position j = 0; j < keys; ++j)
    if (j < seen.first || j >= seen.last) p[j] = ds[j] = nan;
  S maximum = no_score<S>, total = 0;
  std::vector<S> step = p;
  softmax_step(maximum, total, step.data(), seen, keys, S(0));
  CHECK(std::isfinite(total));
  softmax_gradient(s.data(), dp.data(), seen, keys, S(9), S(0.3), S(2));
  softmax_gradient(p.data(), ds.data(), seen, keys, S(9), S(0.3), S(2));
  for (position j = 0; j < keys; ++j) {
    CHECK(p[j] == s[j]);
    CHECK(ds[j] == dp[j]);
    if (j < seen.first || j >= seen.last) CHECK((step[j] == 0 && p[j] == 0 && ds[j] == 0));
  }
}
