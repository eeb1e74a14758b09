#include <streambp/schedule/snapshots.hpp>

#include <doctest/doctest.h>

#include <vector>

using namespace streambp;

static_assert(snapshots{7, 1}.rows() == 8 && !snapshots{7, 1}.two_levels());
static_assert(snapshots{9, 3}.coarse() == 4 && snapshots{9, 3}.rows() == 6);
static_assert(snapshots{9, 3}.row(6) == 2 && snapshots{9, 3}.row(9) == 3 &&
              snapshots{9, 3}.row(7) == 4);
static_assert(snapshots{9, 3}.begins_interval(6) && !snapshots{9, 3}.begins_interval(7));

// A row holds the number of the chunk whose state before it is there.
TEST_CASE("snapshots: a descending sweep finds each state where it or a refill left it") {
  for (position chunks = 1; chunks < 40; ++chunks)
    for (position interval = 1; interval <= chunks + 2; ++interval) {
      const snapshots s{chunks, interval};
      std::vector<position> at(std::size_t(s.rows()), -1);
      const auto ascend = [&](position first, position last) {
        for (position c = first; c < last; ++c) {
          CHECK(at[std::size_t(s.row(c))] == c);
          at[std::size_t(s.row(c + 1))] = c + 1;
        }
      };
      at[std::size_t(s.row(0))] = 0;
      ascend(0, chunks);
      position computed_again = 0;
      for (position c = chunks; c-- > 0;) {
        if (s.two_levels() && c + 1 < chunks && s.begins_interval(c + 1)) {
          ascend(c / interval * interval, c);
          computed_again += c - c / interval * interval;
        }
        CHECK(at[std::size_t(s.row(c))] == c);
      }
      CHECK(computed_again < chunks);
    }
}

TEST_CASE("snapshots: with an interval near the root, states grow as the root of the chunks") {
  for (const position root : {3, 10, 100, 1000}) {
    CHECK(snapshots{root * root, root}.rows() == 2 * root);
    CHECK(snapshots{root * root, 1}.rows() == root * root + 1);
  }
}
