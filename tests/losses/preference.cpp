#include <streambp/losses/preference.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <streambp/laws/count_allocations.hpp>
#include <streambp/laws/hold.hpp>
#include <string>
#include <vector>

namespace streambp {
namespace {

double value_of(const direct_preference& loss, std::vector<double> sums) {
  std::vector<double> slopes(sums.size());
  return loss.couple(sums, slopes);
}

TEST_CASE("direct preference is the mean of -log sigmoid over pairs") {
  const direct_preference loss{{{0, 1}, {3, 2}}, {-3, -2, -7, -5}, 0.3};
  const std::vector<double> sums{-2.5, -2.75, -6, -9};
  const auto softplus = [](double m) { return std::log1p(std::exp(-m)); };
  const double m1 = 0.3 * ((-2.5 + 3) - (-2.75 + 2)), m2 = 0.3 * ((-9. + 5) - (-6. + 7));
  std::vector<double> slopes(4, 7.);  // assigned, not added to
  CHECK(loss.couple(sums, slopes) == doctest::Approx((softplus(m1) + softplus(m2)) / 2));
  for (std::size_t s = 0; s < sums.size(); ++s) {
    const double h = 1e-6;
    std::vector<double> up = sums, down = sums;
    up[s] += h, down[s] -= h;
    CHECK(slopes[s] == doctest::Approx((value_of(loss, up) - value_of(loss, down)) / (2 * h)));
  }
}

TEST_CASE("direct preference: margins of any size stay finite") {
  const direct_preference loss{{{0, 1}}, {0, 0}, 1};
  for (const double margin : {-1e4, -800., 800., 1e4}) {
    std::vector<double> slopes(2);
    const double value = loss.couple(std::vector{margin, 0.}, slopes);
    CHECK(value == doctest::Approx(margin < 0 ? -margin : 0));
    CHECK(slopes[0] == doctest::Approx(margin < 0 ? -1 : 0));
    CHECK(slopes[1] == -slopes[0]);
  }
}

TEST_CASE("direct preference: what does not fit is named") {
  const auto says = [](const direct_preference& loss, const char* words) {
    std::string text;
    try {
      loss.check(4);
    } catch (const data_error& e) {
      text = e.what();
    }
    CAPTURE(text);
    CHECK(text.find(words) != std::string::npos);
  };
  says({{{0, 1}}, {0, 0, 0}}, "direct_preference: 3 reference log-probabilities for 4 segments");
  says({{{0, 4}}, {0, 0, 0, 0}},
       "direct_preference: pair (0, 4) of 4 segments; name two different ones");
  says({{{-1, 2}}, {0, 0, 0, 0}}, "pair (-1, 2) of 4 segments; name two different ones");
  says({{{2, 2}}, {0, 0, 0, 0}}, "pair (2, 2) of 4 segments; name two different ones");
  says({{{0, 1}}, {0, std::nan(""), 0, 0}},
       "direct_preference: reference log-probability 1 is nan; each is finite");
  says({{{0, 1}}, {0, 0, 0, 0}, -1},
       "direct_preference: beta is -1; it is finite and not negative");
}

TEST_CASE("direct preference keeps the laws, with pairs of one token and of none") {
  const direct_preference loss{{{2, 4}, {1, 4}, {4, 0}}, {0.5, -1, -30, 0, -40, 0}, 0.3};
  const laws::report r = laws::hold_loss(loss, laws::rows(37, 6));
  CHECK(r);
  CHECK(r.unjudged() == std::vector{laws::law::batch_independence});
}

}  // namespace
}  // namespace streambp
