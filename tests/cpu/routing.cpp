#include <streambp/cpu/routing.hpp>

#include <doctest/doctest.h>

#include <numeric>

#include "guarded.hpp"

using namespace streambp;
using namespace streambp::cpu;

namespace {

constexpr position rows = 30;
const std::vector<position> grains{0, 5, 12, 13, 30};

template <class S>
struct routes {
  guarded<S> p, lse, chosen, weights;
  routes(const guarded<S>& logits, position top)
      : p(logits), lse(rows, 1), chosen(rows, top), weights(rows, top) {}
};

// Chunk by chunk; edges are places in `grains`.
template <class S>
routes<S> run(int threads, const guarded<S>& logits, position top, bool normalised,
              const std::vector<position>& edges) {
  routes<S> r(logits, top);
  device<S> on(threads);
  for (std::size_t c = 1; c < edges.size(); ++c) {
    const row_range own{edges[c - 1], edges[c]};
    route(on, (*r.p).rows_in(own), normalised, (*r.lse).rows_in(own), (*r.chosen).rows_in(own),
          (*r.weights).rows_in(own));
  }
  for (const auto* g : {&r.p, &r.lse, &r.chosen, &r.weights}) CHECK(g->intact());
  return r;
}

std::vector<double> naive_softmax(const std::vector<double>& z, double* lse = nullptr) {
  const double top = *std::max_element(z.begin(), z.end());
  double total = 0;
  std::vector<double> p;
  for (const double v : z) total += std::exp(v - top);
  for (const double v : z) p.push_back(std::exp(v - top) / total);
  if (lse) *lse = top + std::log(total);
  return p;
}

template <class S>
std::vector<double> row_of(const guarded<S>& z, position i) {
  std::vector<double> row;
  for (position e = 0; e < (*z).cols; ++e) row.push_back(double(z(i, e)));
  return row;
}

}  // namespace

TEST_CASE_TEMPLATE("routing: probabilities, choices and bits", S, float, double) {
  for (const position experts : {1, 2, 7, 16, 17, 65})
    for (const position top : {position(1), position(2), experts / 2, experts})
      for (const bool normalised : {false, true}) {
        if (top < 1 || top > experts) continue;
        const guarded<S> logits(rows, experts, 1, 4., 0.5), moved(rows, experts, 1, 4., 0.5, 4);
        const auto r = run<S>(1, logits, top, normalised, {0, rows});
        for (position i = 0; i < rows; ++i) {
          double lse;
          const auto p = naive_softmax(row_of(logits, i), &lse);
          std::vector<position> order(p.size());
          std::iota(order.begin(), order.end(), 0);
          std::sort(order.begin(), order.end(), [&](position a, position b) {
            return logits(i, a) > logits(i, b) || (logits(i, a) == logits(i, b) && a < b);
          });
          double mass = 0;
          for (position j = 0; j < top; ++j) mass += p[std::size_t(order[std::size_t(j)])];
          CHECK(double(r.lse(i, 0)) == doctest::Approx(lse).epsilon(tight<S> * 10));
          for (position e = 0; e < experts; ++e)
            CHECK(std::abs(double(r.p(i, e)) - p[std::size_t(e)]) < tight<S> * 10);
          for (position j = 0; j < top; ++j) {
            const position e = order[std::size_t(j)];
            CHECK(position(r.chosen(i, j)) == e);
            CHECK(double(r.weights(i, j)) ==
                  doctest::Approx(p[std::size_t(e)] / (normalised ? mass : 1)).epsilon(1e-5));
          }
        }
        const auto again = run<S>(2, moved, top, normalised, {0, 5, 13, rows});
        CHECK(same_bits(r.p, again.p));
        CHECK(same_bits(r.lse, again.lse));
        CHECK(same_bits(r.chosen, again.chosen));
        CHECK(same_bits(r.weights, again.weights));
      }
}

TEST_CASE_TEMPLATE("routing: among equal entries the first is chosen, and none twice", S, float,
                   double) {
  guarded<S> logits(rows, 6, 1, 0., 0.25);
  for (position i = 0; i < rows; ++i) logits(i, i % 6) = S(1);
  for (position i = 0; i < rows; ++i) logits(i, (i + 2) % 6) = S(1);
  for (const position top : {1, 2, 3, 6}) {
    const auto r = run<S>(1, logits, top, true, {0, rows});
    for (position i = 0; i < rows; ++i) {
      const position a = i % 6, b = (i + 2) % 6;
      std::vector<position> right{std::min(a, b), std::max(a, b)};
      for (position e = 0; e < 6; ++e)
        if (e != a && e != b) right.push_back(e);
      for (position j = 0; j < top; ++j) CHECK(position(r.chosen(i, j)) == right[std::size_t(j)]);
    }
  }
}

TEST_CASE_TEMPLATE("routing: large logits, one probability that is 0, and no number at all", S,
                   float, double) {
  guarded<S> logits(rows, 3, 1, 0., 0.);
  for (position i = 0; i < rows; ++i) logits(i, 1) = S(1e5), logits(i, 2) = S(-1e5);
  for (position e = 0; e < 3; ++e) logits(4, e) = std::numeric_limits<S>::quiet_NaN();
  const auto r = run<S>(1, logits, 3, true, {0, rows});
  CHECK(r.p(0, 1) == 1);
  CHECK(r.p(0, 2) == 0);
  CHECK(r.lse(0, 0) == S(1e5));
  CHECK(r.weights(0, 0) == 1);
  for (position j = 0; j < 3; ++j) CHECK(r.chosen(4, j) == S(j));  // places stay places
}

TEST_CASE_TEMPLATE("routing: sums go grain by grain in any chunks", S, float, double) {
  for (const position experts : {1, 7, 16, 65})
    for (const position top : {position(1), std::min<position>(3, experts)}) {
      const auto r = run<S>(1, guarded<S>(rows, experts, 1, 3., 0.), top, true, {0, rows});
      const auto sums_of = [&](int threads, const std::vector<std::size_t>& edges, position skew) {
        guarded<S> sums(1, 2 * experts + 1, 3, 0., 0., skew);
        device<S> on(threads);
        for (std::size_t c = 1; c < edges.size(); ++c) {
          const auto own = std::span(grains).subspan(edges[c - 1], edges[c] - edges[c - 1] + 1);
          const row_range in{own.front(), own.back()};
          add_routing_sums(on, (*r.p).rows_in(in), (*r.lse).rows_in(in), (*r.chosen).rows_in(in),
                           own, *sums);
        }
        CHECK(sums.intact());
        return sums;
      };
      const auto sums = sums_of(1, {0, 4}, 1);
      CHECK(same_bits(sums, sums_of(2, {0, 1, 2, 3, 4}, 5)));
      CHECK(same_bits(sums, sums_of(2, {0, 2, 4}, 2)));
      for (position e = 0; e < experts; ++e) {
        double mass = 0, times = 0;
        for (position i = 0; i < rows; ++i) {
          mass += double(r.p(i, e));
          for (position j = 0; j < top; ++j) times += position(r.chosen(i, j)) == e;
        }
        CHECK(double(sums(0, e)) == doctest::Approx(mass).epsilon(1e-5));
        CHECK(double(sums(0, experts + e)) == times);
      }
      double squares = 0;
      for (position i = 0; i < rows; ++i) squares += double(r.lse(i, 0)) * double(r.lse(i, 0));
      CHECK(double(sums(0, 2 * experts)) == doctest::Approx(squares).epsilon(1e-5));
    }
}

TEST_CASE("routing: gradients are the slopes, side losses included") {
  for (const position experts : {1, 2, 7, 17})
    for (const position top : {position(1), position(2), experts})
      for (const bool normalised : {false, true}) {
        if (top > experts) continue;
        guarded<double> logits(rows, experts, 1, 3., 0.5);
        const guarded<double> dw(rows, top, 2, 1., 0.3), side(1, experts + 1, 3, 0.7, 0.1);
        const auto r = run<double>(1, logits, top, normalised, {0, rows});
        // The choice is held.
        const auto loss_of = [&](position i) {
          double lse, loss = 0, mass = 0;
          const auto p = naive_softmax(row_of(logits, i), &lse);
          for (position j = 0; j < top; ++j) mass += p[std::size_t(r.chosen(i, j))];
          for (position j = 0; j < top; ++j)
            loss += dw(i, j) * p[std::size_t(r.chosen(i, j))] / (normalised ? mass : 1);
          for (position e = 0; e < experts; ++e) loss += side(0, e) * p[std::size_t(e)];
          return loss + side(0, experts) * lse * lse;
        };
        auto gradient = r.p;
        guarded<double> used = dw;
        device<double> on(2);
        route_backward(on, *gradient, *r.lse, *r.chosen, *r.weights, *used, normalised, *side);
        CHECK(gradient.intact());
        CHECK(used.intact());
        CHECK(error_of(*gradient, [&](position i, position e) {
                return slope(logits(i, e), [&] { return loss_of(i); });
              }) < 1e-7);
      }
}

TEST_CASE_TEMPLATE("routing: a row's gradient does not depend on its place", S, float, double) {
  const auto r = run<S>(1, guarded<S>(rows, 17, 1, 3., 0.), 3, true, {0, rows});
  const guarded<S> side(1, 18, 3, 0.7, 0.1);
  const auto gradient_of = [&](int threads, const std::vector<position>& edges) {
    guarded<S> p = r.p, dw(rows, 3, 2, 1., 0.3);
    device<S> on(threads);
    for (std::size_t c = edges.size(); c-- > 1;) {
      const row_range own{edges[c - 1], edges[c]};
      route_backward(on, (*p).rows_in(own), (*r.lse).rows_in(own), (*r.chosen).rows_in(own),
                     (*r.weights).rows_in(own), (*dw).rows_in(own), true, *side);
    }
    return p;
  };
  const auto once = gradient_of(1, {0, rows});
  CHECK(same_bits(once, gradient_of(2, {0, 5, 12, 13, rows})));
}

TEST_CASE("experts whose probabilities round to the same are told apart by their logits") {
  device<float> on(1);
  std::vector<float> z{1e-9f, 3e-9f, 2e-9f, 0}, lse(1), chosen(2), weights(2);
  route(on, view<float>(z.data(), 1, 4), true, {lse.data(), 1, 1}, {chosen.data(), 1, 2},
        {weights.data(), 1, 2});
  CHECK(z == std::vector<float>(4, 0.25f));
  CHECK(chosen == std::vector<float>{1, 2});
  CHECK(weights == std::vector<float>{0.5f, 0.5f});
}
