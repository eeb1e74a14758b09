#include <streambp/cpu/head.hpp>

#include <doctest/doctest.h>

#include <cstring>
#include <limits>
#include <streambp/losses/cross_entropy.hpp>

#include "guarded.hpp"

using namespace streambp;
using namespace streambp::cpu;

namespace {

constexpr logit_transform transforms[] = {{1, 0}, {0.5, 0}, {1, 5}, {0.5, 30}};

double z_of(logit_transform t, double raw) {
  return t.softcap == 0 ? t.scale * raw : t.softcap * std::tanh(t.scale * raw / t.softcap);
}

row_statistics naive(logit_transform t, const double* raw, position vocabulary, position target) {
  long double sum = 0, mean = 0, top = -1e30L;
  for (position j = 0; j < vocabulary; ++j) top = std::max(top, (long double)(z_of(t, raw[j])));
  for (position j = 0; j < vocabulary; ++j) {
    sum += std::exp(z_of(t, raw[j]) - top);
    mean += z_of(t, raw[j]) / (long double)(vocabulary);
  }
  return {double(top + std::log(sum)), z_of(t, raw[target]), double(mean)};
}

// A loss that is not linear in any of the three, and its slopes.
double loss_of(row_statistics s) {
  return 0.7 * s.lse * s.lse - std::sin(s.target) + s.mean * s.lse;
}
row_gradient slopes_of(row_statistics s) {
  return {1.4 * s.lse + s.mean, -std::cos(s.target), s.lse};
}

// By row, the tokens it predicts: most rows one, the last row of a shared prompt one a completion.
using target_lists = std::vector<std::vector<std::int32_t>>;

// The lists of the rows in `own`, as the primitives take them.
struct flat_targets {
  std::vector<std::int32_t> first{0}, targets;
  flat_targets(const target_lists& lists, row_range own) {
    for (position i = own.first; i < own.last; ++i) {
      for (const std::int32_t t : lists[std::size_t(i)]) targets.push_back(t);
      first.push_back(std::int32_t(targets.size()));
    }
  }
};

template <class S>
struct head_run {
  guarded<S> z, gradient;
  std::vector<row_statistics> statistics;  // by target
};

template <class S>
head_run<S> run(int threads, logit_transform t, const guarded<S>& raw, const target_lists& lists,
                const std::vector<row_range>& chunks) {
  const flat_targets all(lists, {0, (*raw).rows});
  head_run<S> r{raw, raw, std::vector<row_statistics>(all.targets.size(), {-1, -2, -3})};
  device<S> on(threads);
  for (row_range own : chunks) {
    const flat_targets mine(lists, own);
    const auto statistics =
        std::span(r.statistics)
            .subspan(std::size_t(all.first[std::size_t(own.first)]), mine.targets.size());
    row_statistics_of(on, t, (*r.z).rows_in(own), mine.first, mine.targets, true, statistics);
    std::vector<row_gradient> slopes;
    for (const row_statistics& s : statistics) slopes.push_back(slopes_of(s));
    for (position i = own.first; i < own.last; ++i)
      std::copy((*r.z).row(i), (*r.z).row(i) + (*r.z).cols, (*r.gradient).row(i));
    gradient_of_rows(on, t, (*r.gradient).rows_in(own), mine.first, mine.targets, statistics,
                     slopes);
  }
  return r;
}

}  // namespace

TEST_CASE_TEMPLATE("head: statistics, gradients and bits", S, float, double) {
  for (const bool shared : {false, true})
    for (const logit_transform t : transforms)
      for (position v : {1, 3, 15, 16, 17, 50, 303}) {
        const position rows = 9;
        const guarded<S> raw(rows, v, 1, 6, 1);
        target_lists lists;
        for (position i = 0; i < rows; ++i) lists.push_back({std::int32_t(i * 7 % v)});
        if (shared) {
          lists[2] = {std::int32_t(5 % v), 0, std::int32_t(v - 1)};
          lists[5] = {};
          lists[6] = {std::int32_t(2 % v), std::int32_t(2 % v)};  // two that begin alike
        }
        const flat_targets all(lists, {0, rows});
        const auto once = run<S>(1, t, raw, lists, {{0, rows}});
        CHECK(once.z.intact());
        CHECK(once.gradient.intact());
        std::vector wide(std::size_t(rows), std::vector<double>(std::size_t(v), 0.));
        for (position i = 0; i < rows; ++i)
          for (position j = 0; j < v; ++j) wide[std::size_t(i)][std::size_t(j)] = raw(i, j);
        for (position i = 0; i < rows; ++i)
          for (std::size_t k = 0; k < lists[std::size_t(i)].size(); ++k) {
            const auto right = naive(t, wide[std::size_t(i)].data(), v, lists[std::size_t(i)][k]);
            const auto ours = once.statistics[std::size_t(all.first[std::size_t(i)]) + k];
            const double room = sizeof(S) == 4 ? 2e-6 : 1e-13;
            CHECK(std::abs(ours.lse - right.lse) < room * std::max(1., std::abs(right.lse)));
            CHECK(std::abs(ours.target - right.target) <
                  room * std::max(1., std::abs(right.target)));
            CHECK(std::abs(ours.mean - right.mean) < room * std::max(1., std::abs(right.mean)));
          }
        CHECK(error_of(*once.z, [&](position i, position j) {
                return lists[std::size_t(i)].empty() ? double(raw(i, j)) : z_of(t, raw(i, j));
              }) < tight<S>);
        CHECK(error_of(*once.gradient, [&](position i, position j) {
                double sum = 0;
                for (const std::int32_t target : lists[std::size_t(i)]) {
                  const auto right = naive(t, wide[std::size_t(i)].data(), v, target);
                  const row_gradient g = slopes_of(right);
                  const double z = z_of(t, raw(i, j)), p = std::exp(z - right.lse);
                  const double hit = target == j ? g.target : 0;
                  const double ratio = t.softcap == 0 ? 0 : z / t.softcap;
                  sum += (g.lse * p + hit + g.mean / double(v)) * t.scale * (1 - ratio * ratio);
                }
                return sum;
              }) < (sizeof(S) == 4 ? 1e-5 : 1e-13));
        if (v < 20)
          CHECK(error_of(*once.gradient, [&](position i, position j) {
                  auto& row = wide[std::size_t(i)];
                  return slope(row[std::size_t(j)], [&] {
                    double sum = 0;
                    for (const std::int32_t target : lists[std::size_t(i)])
                      sum += loss_of(naive(t, row.data(), v, target));
                    return sum;
                  });
                }) < (sizeof(S) == 4 ? 1e-5 : 2e-8));

        const guarded<S> moved(rows, v, 1, 6., 1., 4);
        std::vector<row_statistics> without(all.targets.size(), row_statistics{});
        guarded<S> z = raw;
        device<S> on(1);
        row_statistics_of(on, t, *z, all.first, all.targets, false, without);
        CHECK(same_bits(z, once.z));
        for (std::size_t i = 0; i < without.size(); ++i) {
          CHECK(without[i].lse == once.statistics[i].lse);
          CHECK(without[i].mean == 0);
        }
        const auto again = run<S>(2, t, moved, lists, {{7, 9}, {1, 7}, {0, 1}});
        CHECK(same_bits(once.z, again.z));
        CHECK(same_bits(once.gradient, again.gradient));
        CHECK(std::memcmp(once.statistics.data(), again.statistics.data(),
                          once.statistics.size() * sizeof(row_statistics)) == 0);
      }
}

TEST_CASE_TEMPLATE("head: rows that do not count are not touched, and their gradient is 0", S,
                   float, double) {
  guarded<S> z(3, 17, 1, 6, 1);
  for (position j = 0; j < 17; ++j) z(1, j) = std::numeric_limits<S>::quiet_NaN();
  const guarded<S> before = z;
  const flat_targets lists({{4}, {}, {16}}, {0, 3});
  std::vector<row_statistics> statistics(2, {-1, -2, -3});
  const std::vector<row_gradient> slopes(2, {1, -1, std::numeric_limits<double>::quiet_NaN()});
  device<S> on(2);
  row_statistics_of(on, {2, 0}, *z, lists.first, lists.targets, false, statistics);
  CHECK(std::memcmp((*z).row(1), (*before).row(1), 17 * sizeof(S)) == 0);
  CHECK(statistics[0].lse > 0);
  CHECK(statistics[1].lse > 0);
  CHECK(statistics[1].mean == 0);
  gradient_of_rows(on, {2, 0}, *z, lists.first, lists.targets, statistics, slopes);
  for (position j = 0; j < 17; ++j) CHECK(z(1, j) == 0);
}

TEST_CASE_TEMPLATE("head: large logits", S, float, double) {
  guarded<S> z(2, 20);
  for (position j = 0; j < 20; ++j) z(0, j) = S(1e5 + j), z(1, j) = S(j == 3 ? -1e5 : -2e5);
  const flat_targets lists({{19}, {3}}, {0, 2});
  std::vector<row_statistics> statistics(2);
  const std::vector<row_gradient> slopes(2, {1, -1, 0});
  device<S> on(1);
  row_statistics_of(on, {}, *z, lists.first, lists.targets, false, statistics);
  CHECK(statistics[0].lse - statistics[0].target == doctest::Approx(0.458675).epsilon(0.1));
  CHECK(statistics[1].lse == -1e5);
  gradient_of_rows(on, {}, *z, lists.first, lists.targets, statistics, slopes);
  double total = 0;
  for (position j = 0; j < 20; ++j) total += z(0, j);
  CHECK(std::abs(total) < 1e-6);
  for (position j = 0; j < 20; ++j) CHECK(z(1, j) == 0);
}

TEST_CASE("head: probabilities of a wide row sum to one in float") {
  const position v = 50000;
  guarded<float> z(1, v, 1, 4, 20);
  const flat_targets lists({{7}}, {0, 1});
  std::vector<row_statistics> statistics(1);
  const std::vector<row_gradient> slopes{{1, 0, 0}};
  device<float> on(1);
  row_statistics_of(on, {}, *z, lists.first, lists.targets, false, statistics);
  gradient_of_rows(on, {}, *z, lists.first, lists.targets, statistics, slopes);
  double total = 0;
  for (position j = 0; j < v; ++j) total += double(z(0, j));
  CHECK(std::abs(total - 1) < 1e-6);
}

namespace {

struct one_row {
  std::vector<row_statistics> statistics = std::vector<row_statistics>(1);
  double loss = 0;
  std::vector<double> gradient;

  template <class S>
  one_row(const cross_entropy& loss_of, std::vector<S> z, std::int32_t target) {
    const position v = position(z.size());
    const flat_targets lists({{target}}, {0, 1});
    device<S> on(1);
    row_statistics_of(on, {}, view<S>{z.data(), 1, v}, lists.first, lists.targets, true,
                      statistics);
    const token_term term = loss_of.term(statistics[0], {});
    loss = term.value;
    const std::vector<row_gradient> slopes{term.slopes};
    gradient_of_rows(on, {}, view<S>{z.data(), 1, v}, lists.first, lists.targets, statistics,
                     slopes);
    gradient.assign(z.begin(), z.end());
  }
};

}  // namespace

TEST_CASE_TEMPLATE("head: a number added to all logits does not change a loss", S, float, double) {
  const cross_entropy smooth{.label_smoothing = 0.5};
  for (const position v : {7, 32000, 262144}) {
    std::vector<S> z, shifted;
    long double mean = 0, sum = 0;
    for (position j = 0; j < v; ++j) {
      z.push_back(S(double(j * 7919 % 16381) / 1024 - 8));  // whole 1024ths, also 1e4 up
      shifted.push_back(z.back() + S(1e4));
      mean += (long double)(z.back()) / (long double)(v);
      sum += std::exp((long double)(z.back()));
    }
    const one_row here(smooth, z, 5), there(smooth, shifted, 5);
    const double right = double(std::log(sum) - (0.5L * z[5] + 0.5L * mean));
    CHECK(there.loss == doctest::Approx(here.loss).epsilon(1e-12));
    CHECK(here.loss == doctest::Approx(right).epsilon(sizeof(S) == 4 ? 2e-6 : 1e-13));
    double apart = 0;
    for (position j = 0; j < v; ++j)
      apart = std::max(apart, std::abs(here.gradient[std::size_t(j)] -
                                       there.gradient[std::size_t(j)]));
    CHECK(apart < (sizeof(S) == 4 ? 2e-7 : 1e-12));
  }
}

TEST_CASE_TEMPLATE("head: a row near the largest number", S, float, double) {
  const double top = sizeof(S) == 4 ? 3e38 : 1e308, ln3 = std::log(3.);
  for (const double z : {0., 1., 1e7, -1e7, 1e30, top, -top})
    for (const double s : {0., 0.25, 1.}) {
      const one_row r({.label_smoothing = s}, std::vector<S>(3, S(z)), 1);
      CHECK(r.loss == doctest::Approx(ln3).epsilon(1e-7));
      for (int j = 0; j < 3; ++j)
        CHECK(r.gradient[std::size_t(j)] ==
              doctest::Approx((1 - s) / 3 - (j == 1 ? 1 - s : 0)).epsilon(1e-6));
    }
  const one_row apart({}, std::vector<S>{S(top / 2), S(-top / 2), 0}, 0);
  CHECK(apart.loss == 0);
  CHECK(apart.gradient == std::vector<double>{0, 0, 0});
  CHECK(apart.statistics[0].base + apart.statistics[0].mean ==
        doctest::Approx(0).scale(top).epsilon(1e-15));
  // z-loss is of the logits themselves.
  const one_row squared({.z_loss = 1e-3}, std::vector<S>(3, S(1 << 21)), 1);
  CHECK(squared.loss == doctest::Approx(ln3 + 1e-3 * std::pow(std::exp2(21) + ln3, 2)).epsilon(1e-12));
}
