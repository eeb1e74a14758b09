#include <streambp/planner/longest.hpp>

#include <doctest/doctest.h>

#include "small_models.hpp"

using namespace streambp;

TEST_CASE("the last sample grows") {
  CHECK(lengthened(packed({0, 3, 3, 10}), 5) == packed({0, 3, 3, 15}));
  CHECK(lengthened(packed({0, 3, 10}, {-1, 0}), 5) == packed({0, 3, 15}, {-1, 0}));
}

TEST_CASE("the edge between what fits and what does not, to a grain") {
  for (const position tokens : {1, 97, 100})
    for (const position edge : {0, 1, 15, 16, 17, 250, 12345})
      for (const position grain : {16, 256}) {
        // A token takes 10 bytes.
        const auto least = [](const packed& samples) {
          return byte_table{.region = 10 * std::size_t(samples.tokens())};
        };
        const position longest = tokens + edge;
        const length_limit l = longest_sequence(packed::one(tokens), grain,
                                                std::size_t(10 * longest), most_tokens, least);
        CAPTURE(tokens);
        CAPTURE(edge);
        CHECK(l.fits <= longest);
        if (l.next == 0) {
          CHECK(l.fits == 1024 * tokens);
        } else {
          CHECK(l.next > longest);
          CHECK(l.next - l.fits <= grain);
          CHECK(l.bytes.total() == std::size_t(10 * l.next));
        }
      }
}

TEST_CASE("more tokens than can be planned for are not asked about") {
  for (const position allowed : {1000, 1599, 1600, 3199}) {
    position most = 0;
    const length_limit l =
        longest_sequence(packed::one(100), 256, 1, allowed, [&](const packed& s) {
          most = std::max(most, s.tokens());
          return byte_table{};
        });
    CHECK(most == (allowed < 1600 ? 800 : 1600));
    CHECK(l.fits == most);
    CHECK(l.next == 0);
  }
}

TEST_CASE("a budget's reach: plans exist up to it and none one grain further") {
  const auto model = small::blocks(2);
  for (const std::size_t budget : {3_MiB, 4_MiB}) {
    const plan_options options{.budget = budget, .grains = small::grains};
    const auto p = plan<double>(model, cross_entropy{}, small::samples, options);
    REQUIRE(p.limit.next > 0);
    const auto planned = [&](position tokens) {
      return plan<double>(model, cross_entropy{},
                          lengthened(small::samples, tokens - small::samples.tokens()), options)
          .peak();
    };
    CHECK(planned(p.limit.fits) <= budget);
    try {
      planned(p.limit.next);
      CHECK(false);
    } catch (const budget_error& e) {
      CHECK(e.least == p.limit.bytes.total());
    }
  }
}

TEST_CASE("without a budget nothing is asked") {
  const auto p =
      plan<double>(small::blocks(1), cross_entropy{}, small::samples, {.grains = small::grains});
  CHECK(p.budget == 0);
  CHECK(p.limit.fits == 0);
}
