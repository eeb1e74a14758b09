#include <streambp/autodiff/packing.hpp>

#include <doctest/doctest.h>

#include "../core/lengths.hpp"

namespace streambp::autodiff {
namespace {

TEST_CASE("columns are free again after the last step") {
  column_packing rows(0);
  const int a = rows.place(5, 0, 2), b = rows.place(3, 1, 1), c = rows.place(4, 2, 3),
            d = rows.place(5, 3, 4);
  CHECK(rows.at(a) == 0);
  CHECK(rows.at(b) == 5);
  CHECK(rows.at(c) == 5);
  CHECK(rows.at(d) == 0);
  CHECK(rows.end() == 9);
  rows.prolong(d, 9);
  CHECK(rows.at(rows.place(5, 6, 7)) == 5);
}

TEST_CASE("no rows lie across two slots, and none share columns in one step") {
  dice draw(3);
  for (int round = 0; round < 50; ++round) {
    struct life {
      int number, first, last;
    };
    const position fixed = draw(20);
    column_packing rows(fixed);
    std::vector<life> all;
    for (int step = 0; step < 40; ++step) {
      const int last = step + int(draw(8));
      const position cols = 1 + draw(9), from = draw(2) == 0 ? 0 : fixed;
      all.push_back({rows.place(cols, step, last, from), step, last});
      const position at = rows.at(all.back().number);
      CHECK(at >= from);
      CHECK((at >= fixed || at + cols <= fixed));
      CHECK(at + cols <= rows.end());
    }
    for (const life& a : all)
      for (const life& b : all)
        if (a.number != b.number && a.first <= b.last && b.first <= a.last)
          CHECK((rows.at(a.number) + rows.cols(a.number) <= rows.at(b.number) ||
                 rows.at(b.number) + rows.cols(b.number) <= rows.at(a.number)));
  }
}

}  // namespace
}  // namespace streambp::autodiff
