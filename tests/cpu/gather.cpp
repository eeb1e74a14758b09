#include <streambp/cpu/gather.hpp>

#include <doctest/doctest.h>

#include "guarded.hpp"

using namespace streambp;
using namespace streambp::cpu;

TEST_CASE_TEMPLATE("gather takes rows, scatter_add gives them back", S, float, double) {
  const std::vector<std::int32_t> tokens{3, 0, 3, 6, 3, 1, 0, 6};
  device<S> single(1), pair(2);
  for (position d : widths) {
    const guarded<S> table(7, d, 1, 1, 0), dy(8, d, 2, 1, 0), before(7, d, 3, 1, 0);
    guarded<S> y(8, d), dtable = before, chunked = before;
    gather(pair, tokens, *table, 1.5, *y);
    CHECK(y.intact());
    CHECK(error_of(*y, [&](position i, position j) {
            return table(tokens[std::size_t(i)], j) * S(1.5);
          }) == 0);

    scatter_add(single, tokens, *dy, 1.5, *dtable);
    CHECK(dtable.intact());
    CHECK(error_of(*dtable, [&](position v, position j) {
            double total = before(v, j);
            for (position i = 8; i-- > 0;)
              if (tokens[std::size_t(i)] == v) total += 1.5 * dy(i, j);
            return total;
          }) < tight<S>);
    for (position j = 0; j < d; ++j) CHECK(dtable(5, j) == before(5, j));

    scatter_add(pair, std::span(tokens).subspan(3), (*dy).middle_rows(3, 5), 1.5, *chunked);
    scatter_add(pair, std::span(tokens).first(3), (*dy).middle_rows(0, 3), 1.5, *chunked);
    CHECK(same_bits(dtable, chunked));
  }
}
