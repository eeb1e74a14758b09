#include <streambp/primitives/attention_shape.hpp>

#include <doctest/doctest.h>

#include "core/lengths.hpp"

using namespace streambp;

namespace {

// Key by key: those of the ranges seen, counted in the order of positions.
position naive_pairs(const attention_shape& shape, const piece& p) {
  position pairs = 0;
  for (position i = 0; i < p.rows; ++i) {
    const position query = p.before + p.start + i;
    position key = 0;
    for (const row_range& r : p.seen)
      for (position row = r.first; row < r.last; ++row, ++key)
        pairs +=
            shape.sees_all || (key <= query && (shape.window == 0 || query - key < shape.window));
  }
  return pairs;
}

// The same of keys among some rows of the memory.
position naive_pairs(const attention_shape& shape, piece p, row_range memory) {
  position pairs = 0;
  for (position row = memory.first; row < memory.last; ++row)
    for (position i = 0; i < p.rows; ++i) {
      position place = 0;
      for (const row_range& r : p.seen) {
        const position key = place + row - r.first, query = p.before + p.start + i;
        pairs +=
            r.first <= row && row < r.last &&
            (shape.sees_all || (key <= query && (shape.window == 0 || query - key < shape.window)));
        place += r.rows();
      }
    }
  return pairs;
}

void compare(const piece_list& pieces) {
  position sum = 0;
  for (const position window : {0, 1, 2, 7, 1000})
    for (const bool sees_all : {false, true}) {
      if (sees_all && window > 0) continue;
      const attention_shape shape{.window = window, .sees_all = sees_all};
      for (const piece& p : pieces) {
        CHECK(visible_pairs(shape, p) == naive_pairs(shape, p));
        for (position first = 0; first < p.seen[2].last; first += 5) {
          const row_range memory{first, first + 5};
          CHECK(visible_pairs(shape, p, memory) == naive_pairs(shape, p, memory));
        }
        CHECK(visible_pairs(shape, p, {0, p.seen[2].last}) == visible_pairs(shape, p));
      }
    }
  const attention_shape all{.sees_all = true};
  for (const piece& p : pieces) {
    CHECK(visible_pairs(all, p) == naive_pairs(all, p));
    sum += naive_pairs(all, p);
  }
  CHECK(visible_pairs(all, pieces) == sum);
}

}  // namespace

TEST_CASE("visible pairs: counted key by key, over ragged samples, prefixes and cuts") {
  dice draw(1);
  for (int trial = 0; trial < 60; ++trial) {
    const packed samples = random_samples(draw, 8);
    const position first = draw(samples.tokens() + 1);
    const position last = first + draw(samples.tokens() - first + 1);
    for (const position prefix : {0, 5}) compare({samples, {first, last}, prefix});
  }
}

TEST_CASE("visible pairs: a parent's rows come before a child's own") {
  const packed family({0, 12, 17, 17, 30, 34}, {-1, 0, 0, 0, -1});
  for (const position prefix : {0, 3})
    for (const row_range own : {row_range{0, 34}, row_range{10, 20}, row_range{17, 33}})
      compare({family, own, prefix});
  // By hand: the second row of a child behind 12 rows of its parent sees 14.
  const piece_list rows(family, {13, 14});
  CHECK(visible_pairs(attention_shape{}, rows) == 14);
  CHECK(visible_pairs(attention_shape{.window = 13}, rows) == 13);
}

TEST_CASE("visible pairs: another stream is seen whole, whatever its length") {
  const packed samples({0, 5, 5, 9}), context({0, 3, 10, 10});
  const piece_list readers = piece_list(samples, {0, 9}).seeing(context);
  const attention_shape all{.sees_all = true};
  for (const piece& p : readers) CHECK(visible_pairs(all, p) == naive_pairs(all, p));
  CHECK(visible_pairs(all, readers) == 5 * 3);
}

TEST_CASE("visible pairs: counts go past 2^32") {
  const position tokens = position(1) << 20;
  CHECK(visible_pairs(attention_shape{}, piece_list(packed::one(tokens), {0, tokens})) ==
        tokens * (tokens + 1) / 2);
}

// A layer takes a workspace for the largest tile and may run with a smaller one.
TEST_CASE("attention's tiles: whole panels, and one workspace for all") {
  for (const position group : {1, 3, 8})
    for (const auto& [key, value] : {std::pair<position, position>{1, 1}, {6, 5}, {64, 128}}) {
      attention_shape largest{
          .heads = 2 * group, .kv_heads = 2, .key_width = key, .value_width = value};
      for (const position tile : {8, 16, 32, 64}) {
        attention_shape shape = largest;
        shape.tile = tile;
        CHECK(shape.group() == group);
        CHECK(shape.tile_rows() % 8 == 0);
        CHECK(shape.tile_rows() >= tile * group);
        CHECK(shape.block_keys() % tile == 0);
        CHECK(shape.block_keys() >= 192);
        CHECK(attention_workspace(shape) <= attention_workspace(largest));
      }
    }
}
