#include <streambp/primitives/memory_block.hpp>

#include <doctest/doctest.h>

#include <vector>

#include "core/lengths.hpp"

using namespace streambp;

namespace {

// Whether some row of the pieces sees the memory row, key by key.
bool is_seen(const attention_shape& shape, const piece_list& pieces, position row) {
  for (const piece& p : pieces)
    for (position i = 0; i < p.rows; ++i) {
      position place = 0;
      for (const row_range& r : p.seen) {
        const position key = place + row - r.first, query = p.before + p.start + i;
        place += r.rows();
        if (r.first <= row && row < r.last &&
            (shape.sees_all || (key <= query && (shape.window == 0 || query - key < shape.window))))
          return true;
      }
    }
  return false;
}

void compare(const attention_shape& shape, const piece_list& pieces, position memory,
             position at_a_time) {
  std::vector<int> held(memory);
  position before = 0;
  int blocks = 0;
  attention_shape wide = shape;  // key blocks begin at whole tiles: up to a tile ahead of a window
  if (shape.window > 0) wide.window += shape.tile - 1;
  walk_memory(shape, pieces, memory, at_a_time, [&](row_range rows, bool first) {
    CHECK(first == (blocks++ == 0));
    CHECK(rows.first >= before);
    CHECK(rows.rows() <= at_a_time);
    before = rows.last;
    bool useful = false;
    for (position row = rows.first; row < rows.last; ++row) {
      ++held[row];
      useful |= is_seen(wide, pieces, row);
    }
    if (rows.rows() > 0 && at_a_time < memory) CHECK(useful);
    const row_range lent = lent_rows(shape, rows, memory);
    CHECK(lent.first == rows.first);
    CHECK(lent.last >= rows.last);
    CHECK(lent.last <= memory);
  });
  CHECK(blocks > 0);
  for (position row = 0; row < memory; ++row)
    if (is_seen(shape, pieces, row)) CHECK(held[row] == 1);
}

}  // namespace

TEST_CASE("a walk passes every memory row that is seen once, and no block in vain") {
  dice draw(3);
  for (int trial = 0; trial < 12; ++trial) {
    const packed samples = random_samples(draw, 8);
    const position n = samples.tokens(), first = draw(n + 1) / 8 * 8;
    for (const position prefix : {0, 5})
      for (const position at_a_time : {1, 7, 64})
        for (const position window : {0, 1, 13})
          compare({.window = window, .tile = 8}, {samples, {first, n}, prefix}, prefix + n,
                  at_a_time);
  }
  const packed family({0, 40, 57, 57, 93, 104}, {-1, 0, 0, 0, -1}), other({0, 9, 9, 30, 31, 50});
  for (const row_range rows : {row_range{0, 104}, row_range{40, 57}, row_range{93, 104}})
    for (const position at_a_time : {1, 10, 200}) {
      compare({.tile = 8}, {family, rows, 3}, 107, at_a_time);
      compare({.window = 20, .tile = 8}, {family, rows, 3}, 107, at_a_time);
      compare({.sees_all = true, .tile = 8}, {family, rows, 3}, 107, at_a_time);
      compare({.sees_all = true, .tile = 8}, piece_list(family, rows).seeing(other), 50, at_a_time);
    }
}

TEST_CASE("a walk of all rows is one block; so is one of rows that see nothing") {
  const packed samples = packed::one(20);
  std::vector<row_range> blocks;
  const auto note = [&](row_range rows, bool) { blocks.push_back(rows); };
  walk_memory(attention_shape{}, {samples, {0, 8}}, 20, 0, note);
  CHECK(blocks == std::vector<row_range>{{0, 20}});
  blocks.clear();
  walk_memory(attention_shape{}, {samples, {0, 8}}, 20, 5, note);
  CHECK(blocks == std::vector<row_range>{{0, 5}, {5, 8}});
  blocks.clear();
  const packed other({0, 0, 20}), two({0, 5, 20});
  walk_memory(attention_shape{.sees_all = true}, piece_list(two, {0, 5}).seeing(other), 20, 4,
              note);
  CHECK(blocks == std::vector<row_range>{{0, 0}});
}
