#include <streambp/traits/loss_traits.hpp>

#include <doctest/doctest.h>

using namespace streambp;

namespace {

struct plain_token_loss {
  token_term term(const row_statistics& s, const label_place& t) const {
    return {s.lse * double(t.index), {1, 2, 3}};
  }
};

struct full_token_loss : plain_token_loss {
  std::int32_t ignore_index = 7;
  logit_transform logits{0.5, 30};
  over average = over::samples;
  bool wants_mean() const { return true; }
  void check(position segments) const {
    if (segments != 2) throw segments;
  }
};

struct coupled_loss {
  over average = over::samples;  // of no meaning here
  token_term summary(const row_statistics& s, const label_place&) const {
    return {2 * s.target, {}};
  }
  double couple(std::span<const double> sums, std::span<double> slopes) const {
    slopes[0] = 5;
    return sums[0];
  }
};

struct row_loss {
  double rows(auto&, position, auto) const { return 1; }
};
struct row_loss_of_primitives : row_loss {
  static constexpr bool host_only = false;
};

}  // namespace

static_assert(!loss_traits<plain_token_loss>::couples && !loss_traits<plain_token_loss>::sees_rows);
static_assert(loss_traits<coupled_loss>::couples && !loss_traits<coupled_loss>::sees_rows);
static_assert(!loss_traits<row_loss>::couples && loss_traits<row_loss>::sees_rows);
static_assert(!loss_traits<plain_token_loss>::host_only && !loss_traits<coupled_loss>::host_only);
static_assert(loss_traits<row_loss>::host_only && !loss_traits<row_loss_of_primitives>::host_only);

TEST_CASE("row statistics: a log-probability") {
  CHECK(row_statistics{3, 1, 0}.log_probability() == -2);
}

TEST_CASE("loss_traits: what is absent has its default") {
  using traits = loss_traits<plain_token_loss>;
  CHECK(traits::logits({}).scale == 1);
  CHECK(traits::logits({}).softcap == 0);
  CHECK_FALSE(traits::wants_mean({}));
  CHECK(traits::ignore_index({}) == -100);
  CHECK(traits::average({}) == over::tokens);
  CHECK(traits::term({}, {2, 0, 0}, {10, 1, 4}).value == 8);
  CHECK(traits::term({}, {2, 0, 0}, {10, 1, 4}).slopes.target == 2);
  CHECK_NOTHROW(traits::check({}, 1));
}

TEST_CASE("loss_traits: members are adopted") {
  using traits = loss_traits<full_token_loss>;
  CHECK(traits::logits({}).softcap == 30);
  CHECK(traits::wants_mean({}));
  CHECK(traits::ignore_index({}) == 7);
  CHECK(traits::average({}) == over::samples);
  CHECK_NOTHROW(traits::check({}, 2));
  CHECK_THROWS_AS(traits::check({}, 3), position);
}

TEST_CASE("loss_traits: a coupled loss adds up summaries and is averaged by itself alone") {
  using traits = loss_traits<coupled_loss>;
  CHECK(traits::term({}, {0, 3, 0}, {}).value == 6);
  CHECK(traits::average({}) == over::nothing);
  const double sums[] = {4};
  double slopes[] = {0};
  CHECK(traits::couple({}, sums, slopes) == 4);
  CHECK(slopes[0] == 5);
}
