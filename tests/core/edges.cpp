#include <streambp/core/edges.hpp>

#include <doctest/doctest.h>

#include <vector>

#include "lengths.hpp"

using namespace streambp;

namespace {

using list = std::vector<position>;

list listed(const edges& e) { return {e.begin(), e.end()}; }

// Every question, asked of the listed edges one by one.
void answers_as(const edges& e, const list& all) {
  REQUIRE(listed(e) == all);
  REQUIRE(e.size() == position(all.size()));
  REQUIRE(e.parts() == position(all.size()) - 1);
  REQUIRE(e.back() == all.back());
  position largest = 0;
  for (position i = 0; i < e.parts(); ++i) {
    const row_range part{all[std::size_t(i)], all[std::size_t(i) + 1]};
    REQUIRE(e.part(i) == part);
    REQUIRE(e.after(part.first) == part.last);
    largest = std::max(largest, part.rows());
    const repetition r = e.repetition_at(part.first);
    REQUIRE(r.last <= e.back());
    for (position row = part.first; row + r.period < r.last; ++row)
      REQUIRE(std::binary_search(all.begin(), all.end(), row) ==
              std::binary_search(all.begin(), all.end(), row + r.period));
  }
  REQUIRE(e.largest() == largest);
  for (position row = 0; row <= all.back() + 1; ++row) {
    const auto at = std::lower_bound(all.begin(), all.end(), row);
    REQUIRE(e.lower_bound(row) == at - all.begin());
    REQUIRE(e.at_most(row) == *std::prev(std::upper_bound(all.begin(), all.end(), row)));
  }
}

}  // namespace

TEST_CASE("no part: one edge, at 0") {
  answers_as({}, {0});
  answers_as({0}, {0});
  CHECK(edges{} == edges{0});
}

TEST_CASE("equal parts are written once, whatever added them") {
  edges e;
  e.append(8);
  e.append(8, 2);
  e.append(5);
  answers_as(e, {0, 8, 16, 24, 29});
  CHECK(e == edges{0, 8, 16, 24, 29});
  CHECK(e.hash() == edges{0, 8, 16, 24, 29}.hash());
  CHECK_FALSE(e == edges{0, 8, 16, 24});
  CHECK_FALSE(e == edges{0, 8, 16, 25, 29});
  CHECK(e.hash() != edges{0, 8, 16, 25, 29}.hash());
  CHECK(e.repetition_at(8).last == 24);
  CHECK(e.repetition_at(0).times(0, 8) == 3);
  CHECK(e.repetition_at(0).times(0, 16) == 1);
  CHECK(e.repetition_at(0).times(0, 12) == 1);
  CHECK(e.repetition_at(24).times(24, 5) == 1);
}

TEST_CASE("words repeat, words of words too") {
  edges word, words;
  word.append(4, 2);
  word.append(1);
  words.append(3);
  words.append(word, 2);
  words.append(word);
  answers_as(words, {0, 3, 7, 11, 12, 16, 20, 21, 25, 29, 30});
  CHECK(words == edges{0, 3, 7, 11, 12, 16, 20, 21, 25, 29, 30});
  CHECK(edges{0, 3, 7, 11, 12, 16, 20, 21, 25, 29, 30} == words);
  edges twice;
  twice.append(words, 2);
  twice.append(word, 3);
  twice.append(edges{}, 7);
  list all = listed(words);
  for (const position e : listed(words))
    if (e > 0) all.push_back(30 + e);
  for (const position from : {60, 69, 78})
    for (const position e : {4, 8, 9}) all.push_back(from + e);
  answers_as(twice, all);
}

TEST_CASE("any words: every question has the answer of the edges listed") {
  dice draw(5);
  for (int round = 0; round < 200; ++round) {
    edges e, word;
    list all{0}, ends;  // ends: of the word
    for (position n = 1 + draw(9); n > 0; --n)
      if (draw(2) == 0) {
        const position rows = 1 + draw(3), times = 1 + draw(4);
        word.append(rows, times);
        for (position t = 0; t < times; ++t)
          ends.push_back((ends.empty() ? 0 : ends.back()) + rows);
      } else {
        const position times = 1 + draw(4);
        e.append(word, times);
        for (position t = 0; t < times; ++t) {
          const position from = all.back();
          for (const position end : ends) all.push_back(from + end);
        }
        if (draw(3) == 0) word = e, ends.assign(all.begin() + 1, all.end());
        if (all.size() > 3000) break;
      }
    answers_as(e, all);
  }
}

TEST_CASE("more edges than could be listed") {
  edges word, e;
  word.append(256, position(1) << 20);
  word.append(64);
  e.append(word, position(1) << 20);
  const position rows = (position(1) << 28) + 64;
  CHECK(e.back() == rows << 20);
  CHECK(e.parts() == ((position(1) << 20) + 1) << 20);
  CHECK(e.part(((position(1) << 20) + 1) * 12345 - 1) ==
        row_range{12345 * rows - 64, 12345 * rows});
  CHECK(e.lower_bound(12345 * rows - 64) == ((position(1) << 20) + 1) * 12345 - 1);
  CHECK(e.at_most(12345 * rows + 511) == 12345 * rows + 256);
  CHECK(e.largest() == 256);
}
