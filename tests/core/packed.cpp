#include <streambp/core/packed.hpp>

#include <doctest/doctest.h>

#include <string>

#include "lengths.hpp"

using namespace streambp;

namespace {

std::string complaint(std::vector<position> offsets) {
  try {
    packed{std::move(offsets)};
  } catch (const shape_error& e) {
    return e.what();
  }
  return "";
}

std::vector<piece> list_of(const piece_list& pieces) {
  std::vector<piece> all;
  for (const piece p : pieces) all.push_back(p);
  return all;
}

}  // namespace

TEST_CASE("packed: segments, empty ones included") {
  const packed samples({0, 3, 3, 7});
  CHECK(samples.tokens() == 7);
  CHECK(samples.segments() == 3);
  CHECK(samples.segment(0) == row_range{0, 3});
  CHECK(samples.segment(1) == row_range{3, 3});
  CHECK(samples.segment(2) == row_range{3, 7});
  CHECK(packed::one(5) == packed({0, 5}));
  CHECK(packed().tokens() == 0);
}

TEST_CASE("packed: a row belongs to the segment that holds it, never to an empty one") {
  const packed samples({0, 0, 2, 2, 2, 5, 5});
  const position owner[] = {1, 1, 4, 4, 4};
  for (position row = 0; row < 5; ++row) CHECK(samples.segment_at(row) == owner[row]);
}

TEST_CASE("packed: offsets that describe no samples are refused in words") {
  CHECK(complaint({}) ==
        "packed: 0 offsets describe no segment; give 0 and the end of each sample");
  CHECK(complaint({0}) ==
        "packed: 1 offsets describe no segment; give 0 and the end of each sample");
  CHECK(complaint({1, 4}) == "packed: offsets[0] is 1, it must be 0");
  CHECK(complaint({0, 4, 3}) ==
        "packed: offsets[2] is 3, less than offsets[1] = 4; offsets are running sums of lengths");
  CHECK(complaint({0, 0}) == "");
}

TEST_CASE("pieces: a chunk over three segments, with a prefix") {
  const packed samples({0, 4, 4, 5, 11});
  const auto pieces = list_of({samples, {2, 8}, 3});
  REQUIRE(pieces.size() == 3);

  CHECK(pieces[0].segment == 0);
  CHECK(pieces[0].row == 0);
  CHECK(pieces[0].rows == 2);
  CHECK(pieces[0].start == 2);
  CHECK(pieces[0].before == 3);
  CHECK(pieces[0].seen[0] == row_range{0, 3});
  CHECK(pieces[0].seen.back() == row_range{3, 7});

  CHECK(pieces[1].segment == 2);
  CHECK(pieces[1].row == 2);
  CHECK(pieces[1].rows == 1);
  CHECK(pieces[1].start == 0);
  CHECK(pieces[1].seen.back() == row_range{7, 8});

  CHECK(pieces[2].segment == 3);
  CHECK(pieces[2].row == 3);
  CHECK(pieces[2].last() == 6);
  CHECK(pieces[2].start == 0);
  CHECK(pieces[2].seen.back() == row_range{8, 14});
}

TEST_CASE("pieces: a row sees the past up to itself") {
  const packed samples({0, 4, 9, 12}, {-1, 0, -1});
  const auto pieces = list_of({samples, {6, 11}, 2});
  REQUIRE(pieces.size() == 2);
  const auto goes_on = pieces[0].past(1);  // position 3 of the second segment, behind its parent
  CHECK(goes_on[0] == row_range{0, 2});
  CHECK(goes_on[1] == row_range{2, 6});
  CHECK(goes_on[2] == row_range{6, 10});
  const auto begins = pieces[1].past(3);
  CHECK(begins[1].rows() == 0);
  CHECK(begins[2] == row_range{11, 12});
  CHECK(pieces[1].past(4)[2] == row_range{11, 13});
}

TEST_CASE("pieces: of no rows there are none") {
  CHECK(list_of({packed({0, 4}), {2, 2}}).empty());
  CHECK(list_of({packed({0, 0}), {0, 0}}).empty());
}

TEST_CASE("pieces: each row of a chunk once, in order, at its position, whatever the offsets") {
  dice draw(1);
  for (int round = 0; round < 300; ++round) {
    const packed samples = random_samples(draw, 8);
    const position n = samples.tokens(), prefix = draw(4);
    const position first = draw(n + 1), last = first + draw(n - first + 1);
    position row = first;
    for (const piece p : piece_list(samples, {first, last}, prefix)) {
      const row_range own = samples.segment(p.segment);
      REQUIRE(p.rows > 0);
      REQUIRE(p.row == row - first);
      REQUIRE(p.start == row - own.first);
      REQUIRE(p.before == prefix);
      REQUIRE(p.seen[0] == row_range{0, prefix});
      REQUIRE(p.seen.back() == row_range{own.first + prefix, own.last + prefix});
      row += p.rows;
      REQUIRE(row <= own.last);
      REQUIRE((row == own.last || row == last));
    }
    REQUIRE(row == last);
  }
}
