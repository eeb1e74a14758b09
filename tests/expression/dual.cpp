#include <streambp/expression/dual.hpp>

#include <doctest/doctest.h>

#include <streambp/autodiff/loss_term.hpp>
#include <streambp/losses/cross_entropy.hpp>

namespace streambp::autodiff {
namespace {

constexpr double points[] = {-2.5, -0.7, -0.2, 0.3, 0.9, 2.1};

// f's slope at x, and the slope that five points of f give.
template <class F>
void check_slope(const char* name, const F& f, double shift = 0) {
  CAPTURE(name);
  for (const double p : points) {
    const double x = shift == 0 ? p : shift + p * p, h = 1e-3;
    CAPTURE(x);
    const auto at = [&](double v) { return differentiate(f, v).value; };
    const double slope = (8 * (at(x + h) - at(x - h)) - (at(x + 2 * h) - at(x - 2 * h))) / (12 * h);
    CHECK(differentiate(f, x).slopes[0] == doctest::Approx(slope).epsilon(1e-9));
  }
}

TEST_CASE("each function has its slope") {
  check_slope("negate", [](auto x) { return -x; });
  check_slope("exp", [](auto x) { return exp(x); });
  check_slope(
      "log", [](auto x) { return log(x); }, 0.5);
  check_slope("expm1", [](auto x) { return expm1(x); });
  check_slope(
      "log1p", [](auto x) { return log1p(x); }, -0.5);
  check_slope("log_sigmoid", [](auto x) { return log_sigmoid(x); });
  check_slope("tanh", [](auto x) { return tanh(x); });
  check_slope("sigmoid", [](auto x) { return sigmoid(x); });
  check_slope("silu", [](auto x) { return silu(x); });
  check_slope("gelu", [](auto x) { return gelu(x); });
  check_slope("relu", [](auto x) { return relu(x); });
  check_slope("square", [](auto x) { return square(x); });
  check_slope(
      "sqrt", [](auto x) { return sqrt(x); }, 0.5);
  check_slope("abs", [](auto x) { return abs(x); });
  check_slope("softplus", [](auto x) { return softplus(x); });
  check_slope("arithmetic", [](auto x) { return (1 + x * x) / (2 - 0.1 * x) - x / 3 + 4; });
  check_slope("max and min", [](auto x) { return max(2 * x, -x) * min(x, 0.5); });
  check_slope("select", [](auto x) { return select(x, exp(x), 3 * x); });
}

TEST_CASE("values are those of <cmath>") {
  for (const double x : points) {
    const double sigma = 1 / (1 + std::exp(-x));
    CHECK(differentiate([](auto v) { return sigmoid(v); }, x).value ==
          doctest::Approx(sigma).epsilon(1e-15));
    CHECK(differentiate([](auto v) { return silu(v); }, x).value ==
          doctest::Approx(x * sigma).epsilon(1e-15));
    CHECK(differentiate([](auto v) { return gelu(v); }, x).value ==
          doctest::Approx(x * std::erfc(-x / std::sqrt(2.)) / 2).epsilon(1e-14));
    CHECK(differentiate([](auto v) { return softplus(v); }, x).value ==
          doctest::Approx(std::log1p(std::exp(x))).epsilon(1e-14));
  }
}

TEST_CASE("several numbers at once") {
  const auto [value, slopes] =
      differentiate([](auto a, auto b, auto c) { return a * exp(b) / c + 2; }, 3., 0.5, 4);
  CHECK(value == doctest::Approx(2 + 0.75 * std::exp(0.5)));
  CHECK(slopes[0] == doctest::Approx(std::exp(0.5) / 4));
  CHECK(slopes[1] == doctest::Approx(0.75 * std::exp(0.5)));
  CHECK(slopes[2] == doctest::Approx(-0.1875 * std::exp(0.5)));
}

TEST_CASE("what is detached is a constant; numbers may be compared; NaN stays NaN") {
  const auto d = differentiate([](auto x) { return detach(x) * x; }, 3.);
  CHECK(d.value == 9);
  CHECK(d.slopes[0] == 3);
  const auto branch = differentiate([](auto x) { return x > 1 ? x * x : 2 * x; }, 3.);
  CHECK(branch.slopes[0] == 6);
  CHECK(std::isnan(differentiate([](auto x) { return max(x, 0); }, std::nan("")).value));
  CHECK(std::isnan(differentiate([](auto x) { return min(x, 0); }, std::nan("")).value));
}

TEST_CASE("large arguments stay finite") {
  for (const double x : {-1e4, 1e4})
    for (const auto& d : {differentiate([](auto v) { return sigmoid(v); }, x),
                          differentiate([](auto v) { return silu(v); }, x),
                          differentiate([](auto v) { return gelu(v); }, x),
                          differentiate([](auto v) { return softplus(v); }, x),
                          differentiate([](auto v) { return tanh(v); }, x)}) {
      CHECK(std::isfinite(d.value));
      CHECK(std::isfinite(d.slopes[0]));
    }
}

TEST_CASE("a loss's term from one function is the one with slopes written by hand") {
  const row_statistics r{3.2, 1.1, -0.4};
  const cross_entropy loss{.label_smoothing = 0.1, .z_loss = 1e-2};
  const token_term by_hand = loss.term(r, {});
  const token_term ours = term_of(r, [](auto lse, auto target, auto mean) {
    return 0.9 * (lse - target) + 0.1 * (lse - mean) + 1e-2 * square(lse);
  });
  CHECK(ours.value == doctest::Approx(by_hand.value).epsilon(1e-15));
  CHECK(ours.slopes.lse == doctest::Approx(by_hand.slopes.lse).epsilon(1e-15));
  CHECK(ours.slopes.target == doctest::Approx(by_hand.slopes.target).epsilon(1e-15));
  CHECK(ours.slopes.mean == doctest::Approx(by_hand.slopes.mean).epsilon(1e-15));
}

}  // namespace
}  // namespace streambp::autodiff
