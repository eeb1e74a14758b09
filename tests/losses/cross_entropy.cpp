#include <streambp/losses/cross_entropy.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <streambp/laws/count_allocations.hpp>
#include <streambp/laws/hold.hpp>
#include <vector>

namespace streambp {
namespace {

// Of the row of logits, with the label spread over the row: Σ_j w_j (lse - z_j) + c lse².
double naive(const std::vector<double>& z, std::size_t label, const cross_entropy& loss) {
  double sum = 0, value = 0;
  for (const double v : z) sum += std::exp(v);
  const double lse = std::log(sum);
  for (std::size_t j = 0; j < z.size(); ++j)
    value += (lse - z[j]) * (loss.label_smoothing / double(z.size()) +
                             (j == label ? 1 - loss.label_smoothing : 0));
  return value + loss.z_loss * lse * lse;
}

row_statistics statistics_of(const std::vector<double>& z, std::size_t label) {
  double sum = 0, mean = 0;
  for (const double v : z) sum += std::exp(v), mean += v / double(z.size());
  return {std::log(sum), z[label], mean};
}

TEST_CASE("cross entropy of a row is the sum over its classes") {
  const std::vector<double> z{0.3, -1.2, 2.5, 0.9};
  for (const cross_entropy& loss :
       {cross_entropy{}, cross_entropy{.label_smoothing = 0.2}, cross_entropy{.z_loss = 0.1},
        cross_entropy{.label_smoothing = 1, .z_loss = 0.3}})
    for (std::size_t label = 0; label < z.size(); ++label) {
      const row_statistics r = statistics_of(z, label);
      const token_term term = loss.term(r, {});
      CHECK(term.value == doctest::Approx(naive(z, label, loss)).epsilon(1e-12));
      const double h = 1e-6;
      const auto slope = [&](row_statistics up, row_statistics down) {
        return (loss.term(up, {}).value - loss.term(down, {}).value) / (2 * h);
      };
      CHECK(term.slopes.lse ==
            doctest::Approx(slope({r.lse + h, r.target, r.mean}, {r.lse - h, r.target, r.mean})));
      CHECK(term.slopes.target ==
            doctest::Approx(slope({r.lse, r.target + h, r.mean}, {r.lse, r.target - h, r.mean})));
      CHECK(term.slopes.mean ==
            doctest::Approx(slope({r.lse, r.target, r.mean + h}, {r.lse, r.target, r.mean - h})));
    }
}

TEST_CASE("cross entropy of large logits: differences count from the base, z_loss from 0") {
  const cross_entropy loss{.label_smoothing = 0.25, .z_loss = 0.5};
  const token_term term = loss.term({2, 1, 0.5, 1e7}, {});  // lse, target and mean beyond 1e7
  CHECK(term.value == doctest::Approx(0.75 * 1 + 0.25 * 1.5 + 0.5 * 10000002. * 10000002.));
  CHECK(term.slopes.lse == doctest::Approx(1 + 10000002.));
}

TEST_CASE("cross entropy: options out of their range are named; smoothing wants the mean") {
  CHECK_THROWS_AS(cross_entropy{.label_smoothing = 1.01}.check(1), data_error);
  CHECK_THROWS_AS(cross_entropy{.label_smoothing = -0.01}.check(1), data_error);
  CHECK_THROWS_AS(cross_entropy{.z_loss = -1}.check(1), data_error);
  CHECK_NOTHROW(cross_entropy{.label_smoothing = 1}.check(1));
  CHECK(cross_entropy{.label_smoothing = 0.1}.wants_mean());
  CHECK_FALSE(cross_entropy{}.wants_mean());
}

TEST_CASE("cross entropy keeps the laws with every option") {
  const cross_entropy cases[] = {
      {},
      {.label_smoothing = 0.1},
      {.z_loss = 1e-2},
      {.logits = {0.5, 5}},
      {.average = over::samples},
      {.average = over::nothing},
      {.label_smoothing = 0.1, .z_loss = 1e-2, .logits = {0.5, 5}, .average = over::samples}};
  for (const cross_entropy& loss : cases) {
    CAPTURE(&loss - cases);
    const laws::report r = laws::hold_loss(loss, laws::rows(37, 6));
    CHECK(r);
    CHECK(r.plans() > 30);
    laws::setting weighted = laws::rows(53, 6);
    weighted.weights = true;
    CHECK(laws::hold_loss(loss, weighted));
  }
}

// An ignored label inside the vocabulary ignores targets, never classes.
TEST_CASE("a label that is ignored may be a class") {
  CHECK(laws::hold_loss(cross_entropy{.ignore_index = 3}, laws::rows(37, 6)));
}

}  // namespace
}  // namespace streambp
