#include <streambp/traits/loss_list.hpp>

#include <doctest/doctest.h>

using namespace streambp;

namespace {

struct of_tokens {
  int number = 0;
  token_term term(const row_statistics&, const label_place&) const { return {}; }
};
struct of_sums {
  token_term summary(const row_statistics&, const label_place&) const { return {}; }
  double couple(std::span<const double>, std::span<double>) const { return 0; }
};
struct of_rows {
  double rows(auto&, position, auto) const { return 0; }
};

}  // namespace

// A loss is a list of one.
static_assert(loss_count<of_tokens> == 1);
static_assert(loss_count<losses_of<of_tokens, of_rows, of_tokens>> == 3);
static_assert(scores_labels<of_tokens> && scores_labels<of_sums> && !scores_labels<of_rows>);
static_assert(scores_labels<losses_of<of_rows, of_tokens>>);
static_assert(!scores_labels<losses_of<of_rows, of_rows>>);

TEST_CASE("losses keep their order and their values") {
  const auto [first, second] =
      loss_list<losses_of<of_tokens, of_tokens>>::of(losses(of_tokens{3}, of_tokens{4}));
  CHECK(first.number == 3);
  CHECK(second.number == 4);
  CHECK(std::get<0>(loss_list<of_tokens>::of({5})).number == 5);
}

TEST_CASE("which of them couple, by head") {
  CHECK_FALSE(couples_of<of_tokens>().any());
  CHECK(couples_of<of_sums>()[0]);
  constexpr coupled_heads some = couples_of<losses_of<of_tokens, of_sums, of_rows, of_sums>>();
  static_assert(some.any());
  CHECK_FALSE(some[0]);
  CHECK(some[1]);
  CHECK_FALSE(some[2]);
  CHECK(some[3]);
  CHECK_FALSE(some[63]);
  coupled_heads last;
  last.add(63, false);
  CHECK(last.any());
  CHECK_FALSE(last.of_tokens(63));
  CHECK(some.of_tokens(3));
  CHECK_FALSE(some.of_tokens(2));
  CHECK(last[63]);
  CHECK_FALSE(last[0]);
}
